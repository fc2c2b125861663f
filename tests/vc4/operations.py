"""The operations of the QPU of VideoCore IV on one lane, as docs/hardware/vc4-qpu.md 2 states them.

Words are integers of 32 bits. This is the plainest form of the rules, exact and slow: what the data of the chip is held against.
"""
from fractions import Fraction

MASK = 0xffffffff
SIGN = 0x80000000
INFINITY = 0x7f800000
FLOAT_OPERATIONS = {"fadd", "fsub", "fmin", "fmax", "fminabs", "fmaxabs", "ftoi", "fmul"}  # take floats (2.5)
FLOAT_RESULTS = {"fadd", "fsub", "fmin", "fmax", "fminabs", "fmaxabs", "itof", "fmul"}  # give floats (2.6)
ADD_OPERATIONS = {"fadd", "fsub", "fmin", "fmax", "fminabs", "fmaxabs", "ftoi", "itof", "add", "sub", "shr", "asr", "ror", "shl", "min",
                  "max", "and", "or", "xor", "not", "clz", "v8adds", "v8subs"}


def signed(word):
    return word - (1 << 32) if word & SIGN else word


def exponent(word):
    return word >> 23 & 255


def value(word):
    """The number that arithmetic sees: denormals are 0."""
    if exponent(word) == 0:
        return Fraction(0)
    magnitude = (word & 0x7fffff | 0x800000) * Fraction(2)**(exponent(word) - 150)
    return -magnitude if word & SIGN else magnitude


def toward_zero(number):
    """The float word of an exact number: cut, flushed to +0, infinite beyond the range."""
    if number == 0:
        return 0
    sign, number = (SIGN, -number) if number < 0 else (0, number)
    power = number.numerator.bit_length() - number.denominator.bit_length()
    if Fraction(2)**power > number:
        power -= 1
    if power < -126:
        return 0
    if power > 127:
        return sign | INFINITY
    return sign | power + 127 << 23 | int(number / Fraction(2)**(power - 23)) & 0x7fffff


def fadd(a, b):
    for word in (b, a):
        if exponent(word) == 255:
            return word & SIGN | INFINITY
    return toward_zero(value(a) + value(b))


def fmul(a, b):
    if exponent(a) == 0 or exponent(b) == 0:
        return 0
    if 255 in (exponent(a), exponent(b)):
        return (a ^ b) & SIGN | INFINITY
    return toward_zero(value(a) * value(b))


def ftoi(word):
    number = 0 if exponent(word) == 255 else value(word)
    return int(number) & MASK if abs(number) < 1 << 31 else 0


def key(word):
    """The order of floats for minima and maxima."""
    return -(word & 0x7fffffff) if word & SIGN else word


def by_bytes(rule, a, b):
    return sum(rule(a >> shift & 255, b >> shift & 255) << shift for shift in (0, 8, 16, 24))


def last_out(word, shift):
    """The last bit that a shift to the right drops."""
    return shift > 0 and bool(word >> shift - 1 & 1)


def operate(name, a, b):
    """(result, C, V): V is the signed overflow that saturation looks at."""
    shift = b & 31
    larger, key_larger = signed(a) > signed(b), key(a) > key(b)
    abs_larger = a & ~SIGN > b & ~SIGN
    carry = overflow = False
    if name in ("fadd", "fsub"):
        result = fadd(a, b ^ SIGN if name == "fsub" else b)
        carry = signed(result) > 0
    elif name in ("fmin", "fmax"):
        carry, result = key_larger, b if key_larger == (name == "fmin") else a
    elif name in ("fminabs", "fmaxabs"):
        carry, result = abs_larger, (b if abs_larger == (name == "fminabs") else a) & ~SIGN
    elif name in ("min", "max"):
        carry, result = larger, b if larger == (name == "min") else a
    elif name == "itof":
        result, carry = toward_zero(Fraction(signed(a))), signed(a) > 0
    elif name == "add":
        result, carry = a + b & MASK, a + b > MASK
        overflow = signed(a) + signed(b) != signed(result)
    elif name == "sub":
        result, carry = a - b & MASK, a < b
        overflow = signed(a) - signed(b) != signed(result)
    elif name == "shr":
        result, carry = a >> shift, last_out(a, shift)
    elif name == "asr":
        result, carry = signed(a) >> shift & MASK, last_out(a, shift)
    elif name == "shl":
        result, carry = a << shift & MASK, bool(a << shift >> 32 & 1)
    else:
        result = {
            "ftoi": lambda: ftoi(a),
            "ror": lambda: (a >> shift | a << 32 - shift) & MASK,
            "and": lambda: a & b,
            "or": lambda: a | b,
            "xor": lambda: a ^ b,
            "not": lambda: a ^ MASK,
            "clz": lambda: 32 - a.bit_length(),
            "fmul": lambda: fmul(a, b),
            "mul24": lambda: (a & 0xffffff) * (b & 0xffffff) & MASK,
            "v8adds": lambda: by_bytes(lambda x, y: min(x + y, 255), a, b),
            "v8subs": lambda: by_bytes(lambda x, y: max(x - y, 0), a, b),
            "v8muld": lambda: by_bytes(lambda x, y: (x * y + 127) // 255, a, b),
            "v8min": lambda: by_bytes(min, a, b),
            "v8max": lambda: by_bytes(max, a, b),
        }[name]()
    return result, carry, overflow


def flags(result, carry):
    return ("z" if result == 0 else "") + ("n" if result & SIGN else "") + ("c" if carry else "")


def half(word):
    """float32 to float16 as the packs of file A do it (2.6)."""
    sign, power = word >> 16 & 0x8000, exponent(word)
    if power == 255:
        return sign | 0x7c00
    mantissa = (word >> 13 & 1023) + (1 if word & 0x1fff else 0)
    power += mantissa >> 10
    mantissa &= 1023
    if power <= 112:
        return 0
    return sign | 0x7c00 if power >= 143 else sign | power - 112 << 10 | mantissa


def clamp(number, low, high):
    return max(low, min(high, number))


def narrowed(word, carry, overflow, bits, saturate):
    """An integer result as 16 signed or 8 unsigned bits."""
    mask = (1 << bits) - 1
    low, high = (-0x8000, 0x7fff) if bits == 16 else (0, 255)
    of_overflow = (0x8000 if carry else 0x7fff) if bits == 16 else (0 if carry else 255)
    if not saturate:
        return of_overflow if overflow else word & mask
    number = signed(word)
    if not overflow:
        return clamp(number, low, high) & mask
    return of_overflow & (mask if low <= number <= high else clamp(number, low, high) & mask)


def pack(mode, word, carry, overflow, is_float):
    """What pack mode `mode` of file A makes of a result, in a register that was 0."""
    if mode == 0:
        return word
    if mode == 8:
        return (SIGN if carry else SIGN - 1) if overflow else word
    saturate, lane = mode > 8, mode & 7
    if lane in (1, 2):
        bits = half(word) if is_float else narrowed(word, carry, overflow, 16, saturate)
        return bits << 16 * (lane - 1)
    byte = narrowed(word, carry, overflow, 8, saturate)
    return byte * 0x01010101 if lane == 3 else byte << 8 * (lane - 4)


def float_of_half(bits):
    power = bits >> 10 & 31
    high = INFINITY if power == 31 else power + 112 << 23 if power else 0
    return (bits & 0x8000) << 16 | high | (bits & 1023) << 13


def unpack(mode, word, to_float):
    if mode == 0:
        return word
    if mode in (1, 2):
        bits = word >> 16 * (mode - 1) & 0xffff
        return float_of_half(bits) if to_float else (bits | 0xffff0000 if bits & 0x8000 else bits)
    if mode == 3:
        return (word >> 24) * 0x01010101
    byte = word >> 8 * (mode - 4) & 255
    return toward_zero(Fraction(byte, 255)) if to_float else byte
