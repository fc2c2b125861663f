"""What operations of the ALUs compute where no source tells."""
import itertools
from fractions import Fraction

from .floats import INF, MINUS, NAN, bits, flushed, fraction, half, halves, is_nan, number, rounded
from .question import Question, planes

FLAG = 0x00010001  # what vfla gives for a flag that is set


def flag(condition):
    return FLAG if condition else 0


def signed(word):
    return word - (1 << 32) if word & MINUS else word


def truncated(word):
    """The integer of a finite float, cut."""
    value = number(word)
    return int(value) if abs(value) < float("inf") else 0


def nearest(word):
    value = number(word)
    return round(value) if abs(value) < float("inf") else 0


def saturated(word, integer, low, high, nan):
    if is_nan(word):
        return nan & 0xffffffff
    if word & 0x7fffffff == INF:
        integer = low if word & MINUS else high
    return min(max(integer, low), high) & 0xffffffff


def to_integers(words, convert):
    """Planes of FTOIN, FTOIZ and FTOUZ. @param convert  (word, its integer, smallest and largest integer) -> word"""
    limits = (-(1 << 31), (1 << 31) - 1), (0, (1 << 32) - 1)
    return planes([convert(w, nearest(w), *limits[0]) for w in words], [convert(w, truncated(w), *limits[0]) for w in words],
                  [convert(w, truncated(w), *limits[1]) for w in words])


def as_x86(word, integer, low, high):
    inside = not is_nan(word) and word & 0x7fffffff != INF and low <= integer <= high
    return integer & 0xffffffff if inside else (MINUS if low else 0xffffffff)


LARGE = [bits(x) for x in (2.0**31, 2.0**32 - 256, 2.0**32, 1e10, -2.0**31, -2.0**31 - 256, -1e10, 3e9, 1e20, -1.0, -0.5, 2.0**31 - 128)] + [
    INF, INF | MINUS, NAN, NAN | MINUS]


def coverage(samples):
    return [(1 << min(max(n, 0), 4)) - 1 for n in samples]


ALPHAS = [bits(k / 63) for k in range(64)]
QUARTERS = [4 * fraction(w) for w in ALPHAS]

SPECIAL_SUMS = [(NAN, bits(1.0)), (bits(1.0), NAN), (INF, INF | MINUS), (INF, bits(1.0)), (0x00000001, 0x00000002), (0x007fffff, 0x00000001),
                (bits(1.0), bits(2.0)), (0, MINUS), (MINUS, MINUS), (0x7f7fffff, 0x7f7fffff), (0xff7fffff, 0xff7fffff), (0x00800000, 0x80000001),
                (0x7f7fffff, bits(1.0)), (INF | MINUS, INF | MINUS), (NAN, NAN), (bits(1.5), bits(-1.5))]


def float_sum(a, b):
    if is_nan(a) or is_nan(b):
        return NAN
    if INF in (a & 0x7fffffff, b & 0x7fffffff):
        if a & 0x7fffffff == b & 0x7fffffff and a != b:
            return NAN
        return a if a & 0x7fffffff == INF else b
    exact = fraction(a) + fraction(b)
    return rounded(exact) if exact else (MINUS if a == b == MINUS else 0)


def float_product(a, b):
    exact = fraction(a) * fraction(b)
    return rounded(exact) if exact else (a ^ b) & MINUS


SUMS = [float_sum(a, b) for a, b in SPECIAL_SUMS]


def four_ways(function, operands, flush_in=flushed, flush_out=flushed):
    """Results with denormals kept, and with operands, results or both taken for 0."""
    whole = [function(*row) for row in operands]
    no_operands = [function(*map(flush_in, row)) for row in operands]
    return {"kept": whole, "operands are 0": no_operands, "results are 0": list(map(flush_out, whole)),
            "operands and results are 0": list(map(flush_out, no_operands))}


def halves_flushed(word):
    return sum(((h & 0x8000) if not h & 0x7c00 else h) << s for s in (0, 16) for h in [word >> s & 0xffff])


def half_number(h):
    return Fraction((-1 if h & 0x8000 else 1) * (((h & 0x3ff) | 0x400) << (h >> 10 & 31) if h & 0x7c00 else (h & 0x3ff) << 1), 1 << 25)


def half_rounded(value, how="nearest"):
    word = rounded(value, how, 11, -24, 16)
    return half(number(word)) if word & 0x7fffffff < INF else (word >> 16 & 0x8000) | 0x7c00


def on_halves(function):
    return lambda a, b: sum(function(a >> s & 0xffff, b >> s & 0xffff) << s for s in (0, 16))


half_products = on_halves(lambda a, b: half_rounded(half_number(a) * half_number(b)) | (0 if half_number(a) * half_number(b) else (a ^ b) & 0x8000))

TINY_PAIRS = [(0x00000001, bits(2.0)), (0x00800000, bits(0.5)), (0x00400000, bits(4.0)), (0x80000003, bits(1.0)), (bits(2.0**-100), bits(2.0**-40)),
              (bits(2.0**-100), bits(2.0**-26)), (0x007fffff, bits(1.0)), (bits(3.0), bits(5.0))]
TINY_SUMS = [(1, 2), (0x00800000, 0x80000001), (0x00400000, 0x00400000), (0x80000005, 0x80000006), (0x00800001, 0x80800000), (1, 0x00800000),
             (0x007fffff, 0x007fffff), (bits(3.0), bits(5.0))]
TINY_HALVES = [(0x00010200, 0x40004000), (0x04000001, 0x38003c00), (0x83ff0001, 0x3c003c00), (0x20001400, 0x10001400)]


def denormals(name, op, operands, results, **more):
    a, b = zip(*operands)
    return Question(f"denormals_{name}", "qpu 2.1", f"denormals as operands and results of {op.split()[0]}", results, "kept",
                    f"{op}\n", planes(a, b), floats=True, **more)


def small_float(value, mantissa, how):
    """Of 5 bits of exponent and no sign, from a half."""
    if value & 0x7fff > 0x7c00:
        return 0x1f << mantissa | 1 << (mantissa - 1)
    if value & 0x8000:
        return 0
    if value == 0x7c00:
        return 0x1f << mantissa
    word = rounded(half_number(value), how, mantissa + 1, -14 - mantissa, 16)
    if word == INF or number(word) > 65504:
        return 0x1f << mantissa
    return half(number(word)) >> (10 - mantissa)


SMALL_HALVES = [0x3c00, 0x3c08, 0x3c18, 0x3c04, 0x3c0c, 0x3c10, 0x3c30, 0x3c11, 0x0001, 0x0008, 0x0018, 0x0021, 0x5555, 0x03ff]
TOO_LARGE = [0x7bff, 0x7bf0, 0x7be1]


def small_floats(halves_given, how, largest=False):
    def one(h, mantissa):
        word = small_float(h, mantissa, how)
        return word - 1 if largest and word == 0x1f << mantissa else word
    return [one(h, 6) | one(h, 6) << 11 | one(h, 5) << 22 for h in halves_given]


INTEGERS = [0x01000001, 0x01000002, 0x01000003, 0x7fffffff, 0x80000001, 0xffffffff, 0x03fffffe, 0x02000002, 0x02000006, 0xfeffffff, 0x80000080,
            0x80000180, 0x7fffffbf, 0x7fffffc0, 1, 0]


def as_floats(how):
    return planes([rounded(signed(w), how) for w in INTEGERS], [rounded(w, how) for w in INTEGERS])


RATIOS = [bits(k / 37 * 1.05 - 0.02) for k in range(38)] + [bits(0.5), bits(0.25)]


def unorm16(word, how):
    value = min(max(fraction(word), Fraction(0)), Fraction(1)) * 65535
    return round(value) if how == "nearest" else int(value)


def snorm16(word, how):
    value = min(max(fraction(word), Fraction(-1)), Fraction(1)) * 32767
    return (round(value) if how == "nearest" else int(value)) & 0xffff


ZEROS = planes([0, MINUS, 0, MINUS] * 4, [MINUS, 0, 0, MINUS] * 4)
COMPARED = planes([1, 2, 2, 0xffffffff, 0x80000000, 0, 5, 0x7fffffff, 3, 9, 0xfffffffe, 0xffffffff, 0, 1, 0x40000000, 6],
                  [2, 1, 2, 1, 0x7fffffff, 0, 0xffffffff, 0x80000000, 3, 8, 0xffffffff, 0xfffffffe, 1, 0, 0xc0000000, 7])


def compared(condition):
    return [flag(condition(a, b)) for a, b in zip(*COMPARED)]


def carry_of(op, read=lambda w: w):
    return Question(f"carry_{op}", "qpu 1.5", f"the flag that {op}.pushc gives", {
        "a > b": compared(lambda a, b: read(a) > read(b)), "a < b": compared(lambda a, b: read(a) < read(b)),
        "a >= b": compared(lambda a, b: read(a) >= read(b)), "0": [0] * 16}, "a > b" if op != "or" else "0",
        f"{op}.pushc -, rf4, rf5\nvfla rf20\n", COMPARED)


SIGNS = [0, MINUS, NAN, NAN | MINUS, bits(-1.0), bits(1.0), INF | MINUS, INF, 0x80000001, 1, bits(-3.5), bits(2.0), 0xff7fffff, 0x7f7fffff,
         bits(-0.25), bits(0.25)]


def float_flags(zero, negative):
    return planes([flag(zero(w)) for w in SIGNS], [flag(negative(w)) for w in SIGNS])


FACTORS = planes([0x00800000, 0x00ffffff, 0x007fffff, 0x01000002, 0xff000003, 0x00800001, 5, 0x00fffffe] * 2,
                 [2, 0x00ffffff, 0x00ffffff, 3, 7, 0x00800001, 0xfffffffb, 0x80000003] * 2)


def low24(word, is_signed):
    word &= 0xffffff
    return word - (1 << 24) if is_signed and word & 0x800000 else word


def products(is_signed):
    return [low24(a, is_signed) * low24(b, is_signed) & 0xffffffff for a, b in zip(*FACTORS)]


HALF_NANS = planes([0x7e003c00, 0x3c007e00, 0x7e007e00, 0xbc007e00] * 4, [0x3c007e00, 0x7e003c00, 0x3c00c000, 0x7e00bc00] * 4)


def of_nans(op, choose):
    def one(a, b):
        a_nan, b_nan = a & 0x7fff > 0x7c00, b & 0x7fff > 0x7c00
        if a_nan or b_nan:
            return choose(a, b, a_nan, b_nan)
        smaller = min(a, b, key=half_number)
        return smaller if op == "vfmin" else (b if smaller == a else a)
    return [on_halves(one)(a, b) for a, b in zip(*HALF_NANS)]


def nans_of_halves(op):
    return Question(f"{op}_nan", "qpu 2.2", f"{op} of a NaN and a number", {
        "the number": of_nans(op, lambda a, b, a_nan, b_nan: b if a_nan and not b_nan else a),
        "the NaN": of_nans(op, lambda a, b, a_nan, b_nan: a if a_nan else b),
        "the first operand": of_nans(op, lambda a, b, a_nan, b_nan: a),
        "the second operand": of_nans(op, lambda a, b, a_nan, b_nan: b)}, "the number", f"{op} rf20, rf4, rf5\n", HALF_NANS)


def of_zeros(op):
    """The assembler exchanges operands unless they stand in the order that tells fmin from fmax (qpu 1.9)."""
    order = (0, 1) if op == "fmin" else (1, 0)
    a, b = (ZEROS[k] for k in order)
    less = [MINUS if MINUS in pair else 0 for pair in zip(a, b)]
    more = [0 if 0 in pair else MINUS for pair in zip(a, b)]
    return Question(f"{op}_zeros", "qpu 2.2", f"{op} of zeros of both signs", {
        "-0 is less than +0": less if op == "fmin" else more, "the first operand": a, "the second operand": b, "+0": [0] * 16},
        "the first operand", f"{op} rf20, rf{4 + order[0]}, rf{4 + order[1]}\n", ZEROS)


NAN_ROWS = planes([0x7fa12345, bits(1.0), 0xffc54321, 0x7f812345, INF, 0, 0x7fc00001, bits(2.0)] * 2,
                  [bits(1.0), 0x7fa12345, bits(1.0), 0xffc54321, INF | MINUS, 0, 0x7fc00002, bits(3.0)] * 2)


def nan_sums(own, kept):
    def one(a, b):
        for word in (a, b):
            if is_nan(word):
                return word | 0x400000 if kept else own
        result = float_sum(a, b)
        return own if is_nan(result) else result
    return [one(a, b) for a, b in zip(*NAN_ROWS)]


A_BITS = [0, 1, 2, 3] * 4
POPPED = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]

VF_ROWS = [(halves(1.0, 2048.0), halves(2.0**-11, 1.0)), (halves(1.0, 2050.0), halves(3 * 2.0**-11, 1.0)), (halves(60000.0, 1.0), halves(60000.0, -1.0)),
           (halves(1.5, -3.25), halves(0.75, 2.5)), (halves(1.0, 4096.0), halves(2.0**-12, 3.0)), (halves(-1.0, -2049.0), halves(-2.0**-11, -0.5))]


def half_sums(how):
    return [on_halves(lambda x, y: half_rounded(half_number(x) + half_number(y), how))(a, b) for a, b in VF_ROWS]


HALF_PAIRS = [(halves(x, y), halves(1.0, 1.0)) for x in (0.5, 1.0, 2.0) for y in (0.5, 1.0, 2.0)]
HALF_PRODUCTS = [(halves(x, y), halves(2.0, 3.0)) for x in (0.0, 1.0) for y in (0.0, 1.0)]


def flags_of_halves(name, op, asks, operands, holds):
    """@param holds  (half of a, half of b) -> whether the flag holds for them"""
    found = [[holds(half_number(a >> s & 0xffff), half_number(b >> s & 0xffff)) for s in (0, 16)] for a, b in operands]
    return Question(name, "newer-mesa", asks, {
        "where both halves have it": [flag(all(pair)) for pair in found], "where the low half has it": [flag(pair[0]) for pair in found],
        "where the high half has it": [flag(pair[1]) for pair in found], "where one of them has it": [flag(any(pair)) for pair in found],
        "of each half for itself": [pair[0] | pair[1] << 16 for pair in found]}, "where both halves have it", f"{op} -, rf4, rf5\nvfla rf20\n",
        planes(*zip(*operands)), only=71)


def half_sum(a, b):
    return half_rounded(half_number(a) + half_number(b))


TINY_HALF_SUMS = [(0x00010200, 0x00010200), (0x04000001, 0x80010002), (0x83ff0001, 0x80010400), (0x04010400, 0x84008401)]

QUESTIONS = [
    Question("float_to_integer", "qpu 2.2", "ftoin, ftoiz and ftouz of what no integer holds, and of NaN", {
        "the nearest limit; NaN is 0": to_integers(LARGE, lambda w, i, low, high: saturated(w, i, low, high, 0)),
        "the nearest limit; NaN is the largest": to_integers(LARGE, lambda w, i, low, high: saturated(w, i, low, high, high)),
        "the nearest limit; NaN is the smallest": to_integers(LARGE, lambda w, i, low, high: saturated(w, i, low, high, low)),
        "the low 32 bits": to_integers(LARGE, lambda w, i, low, high: i & 0xffffffff),
        "0x80000000, and 0xffffffff of ftouz": to_integers(LARGE, as_x86),
    }, "the nearest limit; NaN is 0", "ftoin rf20, rf4\nftoiz rf21, rf4\nftouz rf22, rf4\n", planes(LARGE), 3),
    Question("coverage", "qpu 2.2", "ftoc: how many samples an alpha covers, and which", {
        "4 alpha, to the nearest, the lowest ones": coverage(round(q) for q in QUARTERS),
        "4 alpha, cut, the lowest ones": coverage(int(q) for q in QUARTERS),
        "4 alpha, upwards, the lowest ones": coverage(-int(-q // 1) for q in QUARTERS),
        "5 alpha, cut, the lowest ones": coverage(int(q * 5 / 4) for q in QUARTERS),
    }, "4 alpha, to the nearest, the lowest ones", "ftoc rf20, rf4\n", planes(ALPHAS)),
    Question("flpop_flags", "qpu 2.2", "whether flpop changes flags", {
        "A stays": planes([w >> 2 for w in POPPED], [flag(w == 0) for w in A_BITS]),
        "A is bit 0": planes([w >> 2 for w in POPPED], [flag(w & 1) for w in POPPED]),
        "A is bit 1": planes([w >> 2 for w in POPPED], [flag(w & 2) for w in POPPED]),
        "A is whether bits 0 and 1 are set": planes([w >> 2 for w in POPPED], [flag(w & 3 == 3) for w in POPPED]),
    }, "A stays", "mov.pushz -, rf4\nflpop rf20, rf5\nvfla rf21\n", planes(A_BITS, POPPED), 2),
    Question("faddnf", "qpu 2.2", "in what faddnf differs from fadd", {
        "in nothing": SUMS, "NaN is 0": [0 if is_nan(s) else s for s in SUMS],
        "what is not finite is the largest number": [(s & MINUS) | 0x7f7fffff if s & 0x7fffffff == INF else s for s in SUMS],
        "denormals are 0": [flushed(float_sum(flushed(a), flushed(b))) for a, b in SPECIAL_SUMS],
    }, "in nothing", "faddnf rf20, rf4, rf5\n", planes(*zip(*SPECIAL_SUMS)), floats=True),
    of_zeros("fmin"), of_zeros("fmax"), nans_of_halves("vfmin"), nans_of_halves("vfmax"),
    carry_of("max", signed), carry_of("umin"), carry_of("umax"), carry_of("or"),
    Question("float_flags", "qpu 1.5", "Z and N of a float result that is -0 or NaN", {
        " ".join(names): float_flags(z, n) for (names, z, n) in (
            ((zn, nn), z, n) for (zn, z), (nn, n) in itertools.product(
                {"Z of both zeros,": lambda w: w & 0x7fffffff == 0, "Z of +0,": lambda w: w == 0}.items(),
                {"N of numbers below 0": lambda w: bool(w & MINUS) and not is_nan(w) and w != MINUS,
                 "N of the sign, NaN too": lambda w: bool(w & MINUS), "N of the sign but of NaN": lambda w: bool(w & MINUS) and not is_nan(w),
                 "N of the sign but of -0": lambda w: bool(w & MINUS) and w != MINUS}.items()))},
        "Z of both zeros, N of numbers below 0",
        "fmul.pushz -, rf4, 1.0\nvfla rf20\nfmul.pushn -, rf4, 1.0\nvfla rf21\n", planes(SIGNS), 2),
    Question("clamp_nan", "qpu 1.9", "NaN through .sat, .nsat and .max0", {
        "the low bound": planes([0, 0], [bits(-1.0)] * 2, [0, 0]), "NaN": planes([NAN] * 2, [NAN] * 2, [NAN] * 2),
        "the high bound": planes([bits(1.0)] * 2, [bits(1.0)] * 2, [INF] * 2), "0": planes([0, 0], [0, 0], [0, 0])},
        "the low bound", "fmov rf20, rf4.sat\nfmov rf21, rf4.nsat\nfmov rf22, rf4.max0\n", planes([NAN, NAN | MINUS]), 3, floats=True, only=71),
    Question("smul24", "qpu 2.3", "whether the operands of smul24 have signs of 24 bits", {
        "they have": products(True), "they have none": products(False)}, "they have", "smul24 rf20, rf4, rf5\n", FACTORS),
    Question("norm16_rounding", "qpu 2.3", "rounding of ftounorm16 and ftosnorm16", {
        how: planes(*([f(w, how) for w in RATIOS] for f in (unorm16, snorm16))) for how in ("nearest", "cut")}, "nearest",
        "ftounorm16 rf20, rf4\nftosnorm16 rf21, rf4\nmov rf24, 15\nadd rf24, rf24, 1\nshl rf20, rf20, rf24\nshr rf20, rf20, rf24\n"
        "shl rf21, rf21, rf24\nshr rf21, rf21, rf24\n", planes(RATIOS), 2, only=71),
    Question("norm16_upper", "qpu 2.3", "the upper half of what ftounorm16 and ftosnorm16 give", {
        "0, and copies of the sign": planes([unorm16(w, "nearest") for w in RATIOS],
                                            [(s | 0xffff0000 if s & 0x8000 else s) for s in (snorm16(w, "nearest") for w in RATIOS)]),
        "0": planes([unorm16(w, "nearest") for w in RATIOS], [snorm16(w, "nearest") for w in RATIOS]),
        "the lower half again": planes(*([f(w, "nearest") * 0x10001 for w in RATIOS] for f in (unorm16, snorm16)))},
        "0, and copies of the sign", "ftounorm16 rf20, rf4\nftosnorm16 rf21, rf4\n", planes(RATIOS), 2, only=71),
    Question("norm16_nan", "qpu 2.3", "ftounorm16 and ftosnorm16 of NaN", {
        "0": planes([0, 0], [0, 0]), "the largest": planes([0xffff] * 2, [0x7fff] * 2),
        "the low bound": planes([0, 0], [0x8001 | 0xffff0000] * 2), "by the sign": planes([0xffff, 0], [0x7fff, 0xffff8001])},
        "0", "ftounorm16 rf20, rf4\nftosnorm16 rf21, rf4\n", planes([NAN, NAN | MINUS]), 2, only=71),
    Question("small_floats", "qpu 2.2", "rounding of v11fpack", {
        text: small_floats(SMALL_HALVES, how) for text, how in (("to the nearest, ties to even", "nearest"), ("cut", "cut"), ("ties away from 0", "away"))},
        "to the nearest, ties to even", "v11fpack rf20, rf4, rf4\n", planes([h * 0x10001 for h in SMALL_HALVES]), only=71),
    Question("small_floats_too_large", "qpu 2.2", "v11fpack of numbers that round up to more than the largest", {
        "the largest": small_floats(TOO_LARGE, "nearest", True), "infinity": small_floats(TOO_LARGE, "nearest")},
        "the largest", "v11fpack rf20, rf4, rf4\n", planes([h * 0x10001 for h in TOO_LARGE]), only=71),
    Question("integer_to_float", "qpu 2.2", "rounding of itof and utof", {
        "to the nearest, ties to even": as_floats("nearest"), "cut": as_floats("cut"), "ties away from 0": as_floats("away")},
        "to the nearest, ties to even", "itof rf20, rf4\nutof rf21, rf4\n", planes(INTEGERS), 2),
    denormals("fadd", "fadd rf20, rf4, rf5", TINY_SUMS, four_ways(float_sum, TINY_SUMS)),
    denormals("fmul", "fmul rf20, rf4, rf5", TINY_PAIRS, four_ways(float_product, TINY_PAIRS)),
    denormals("fmin", "fmin rf20, rf4, rf5", TINY_SUMS[:4], {
        "kept": [1, 0x80000001, 0x00400000, 0x80000006], "are 0": [0, MINUS, 0, MINUS]}),
    denormals("vfmul", "vfmul rf20, rf4, rf5", TINY_HALVES, four_ways(half_products, TINY_HALVES, halves_flushed, halves_flushed)),
    denormals("fcmp", "fcmp.pushn -, rf4, rf5\nvfla rf20", [(1, 2), (0x80000001, 0), (0, 1), (2, 1)], {
        "kept": [FLAG, FLAG, FLAG, 0], "are 0": [0, 0, 0, 0]}),
    Question("denormals_from_half", "qpu 1.9", "denormal halves as operands (.l)", {
        "kept": [bits(float(half_number(h))) for h in (1, 0x3ff, 0x8001, 0x200)], "are 0": [0, 0, MINUS, 0]},
        "kept", "fmul rf20, rf4.l, 1.0\n", planes([1, 0x3ff, 0x8001, 0x200])),
    Question("denormals_to_half", "qpu 1.9", "denormal halves as results (.l)", {
        "kept": [half_rounded(Fraction(x)) for x in (2.0**-24, 2.0**-15, 1.5 * 2.0**-24, 2.0**-25)], "are 0": [0] * 4},
        "kept", "mov rf20, 0\nfmul rf20.l, rf4, 1.0\n", planes([bits(x) for x in (2.0**-24, 2.0**-15, 1.5 * 2.0**-24, 2.0**-25)])),
    Question("half_rounding", "qpu 2.1", "rounding of a float to a half (.l)", {
        name: [half_rounded(fraction(w), how) for w in (bits(1 + k * 2.0**-12) for k in range(16))]
        for name, how in (("to the nearest, ties to even", "nearest"), ("cut", "cut"), ("ties away from 0", "away"))},
        "to the nearest, ties to even", "mov rf20, 0\nfmul rf20.l, rf4, 1.0\n", planes([bits(1 + k * 2.0**-12) for k in range(16)])),
    Question("nan_bits", "qpu 2.1", "the bits of a NaN that fadd gives", {
        "the first NaN, quiet; else 0xffc00000": nan_sums(0xffc00000, True), "the first NaN, quiet; else 0x7fc00000": nan_sums(NAN, True),
        "always 0x7fc00000": nan_sums(NAN, False), "always 0xffc00000": nan_sums(0xffc00000, False), "always 0x7fffffff": nan_sums(0x7fffffff, False),
    }, "the first NaN, quiet; else 0xffc00000", "fadd rf20, rf4, rf5\n", NAN_ROWS),
    Question("nans_not_propagated", "qpu 2.1", "NaN in a dispatch without PROPAGATE_NANS", {
        "as with it": SUMS, "NaN operands are 0": [float_sum(*(0 if is_nan(w) else w for w in pair)) for pair in SPECIAL_SUMS],
        "NaN is 0": [0 if is_nan(s) else s for s in SUMS]}, "as with it", "fadd rf20, rf4, rf5\n", planes(*zip(*SPECIAL_SUMS)), floats=True,
        propagate_nans=False, only=42),
    flags_of_halves("vfcmp_flags", "vfcmp.pushn", "the flag of a lane that vfcmp.pushn gives", HALF_PAIRS, lambda a, b: a < b),
    flags_of_halves("vfmul_flags", "vfmul.pushz", "the flag of a lane that vfmul.pushz gives", HALF_PRODUCTS, lambda a, b: a * b == 0),
    denormals("vfadd", "vfadd rf20, rf4, rf5", TINY_HALF_SUMS, four_ways(on_halves(half_sum), TINY_HALF_SUMS, halves_flushed, halves_flushed), only=71),
    Question("vfadd_rounding", "newer-mesa (unknowns)", "rounding of vfadd", {
        "to the nearest, ties to even": half_sums("nearest"), "cut": half_sums("cut"), "ties away from 0": half_sums("away")},
        "to the nearest, ties to even", "vfadd rf20, rf4, rf5\n", planes(*zip(*VF_ROWS)), only=71),
]
