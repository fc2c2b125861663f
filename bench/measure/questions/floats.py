"""Floats as the 32 or 16 bits of their words, rounded from exact numbers."""
import decimal
import math
import struct
from fractions import Fraction

NAN, INF = 0x7fc00000, 0x7f800000
MINUS = 0x80000000
decimal.getcontext().prec = 60


def bits(value):
    """Of a number that a float holds, or the nearest one."""
    return struct.unpack("<I", struct.pack("<f", value))[0]


def number(word):
    return struct.unpack("<f", struct.pack("<I", word))[0]


def half(value):
    return struct.unpack("<H", struct.pack("<e", value))[0]


def halves(low, high):
    return half(low) | half(high) << 16


def rounded(value, how="nearest", significant=24, least=-149, most=128):
    """The word of an exact number. @param how  nearest (ties to even), cut, away (ties away from zero)
    @param least  exponent of the smallest denormal; most: of the first power that is too large"""
    value = Fraction(value)
    if value == 0:
        return 0
    sign, value = (MINUS, -value) if value < 0 else (0, value)
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if Fraction(2) ** exponent > value:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - significant + 1, least)
    count, rest = divmod(value, unit)
    tie = Fraction(rest, unit) - Fraction(1, 2)
    if how != "cut" and (tie > 0 or (tie == 0 and (how == "away" or count & 1))):
        count += 1
    if count * unit >= Fraction(2) ** most:
        return sign | INF if how != "cut" else sign | bits(float((2**significant - 1) * Fraction(2) ** (most - significant)))
    return sign | bits(float(count * unit))


def fraction(word):
    return Fraction(number(word))


def is_nan(word):
    return word & 0x7fffffff > INF


def ordered(word):
    """An integer that counts floats."""
    return -(word & 0x7fffffff) if word & MINUS else word


def is_denormal(word):
    return 0 < word & 0x7fffffff < 0x800000


def flushed(word):
    return word & MINUS if is_denormal(word) else word


def reciprocal_root(value):
    """To 60 digits."""
    return Fraction(1 / decimal_of(value).sqrt())


def decimal_of(value):
    value = Fraction(value)
    return decimal.Decimal(value.numerator) / decimal.Decimal(value.denominator)


def power_of_two(value):
    """2^value, to more than 40 digits."""
    whole = math.floor(value)
    return Fraction((decimal_of(value - whole) * decimal.Decimal(2).ln()).exp()) * Fraction(2) ** whole


def logarithm(value):
    """Of a positive number to the base 2. Exact for powers of two."""
    value, exponent = Fraction(value), 0
    while value >= 2:
        value, exponent = value / 2, exponent + 1
    while value < 1:
        value, exponent = value * 2, exponent - 1
    return exponent + (Fraction(decimal_of(value).ln() / decimal.Decimal(2).ln()) if value != 1 else 0)


PI = Fraction("3.14159265358979323846264338327950288419716939937510582097494")


def sine_of_half_turns(value):
    """sin(pi * value) by its series."""
    x = decimal_of(value) * decimal_of(PI)
    term, total, n = x, decimal.Decimal(0), 1
    while abs(term) > decimal.Decimal(10) ** -50:
        total += term
        term = -term * x * x / ((n + 1) * (n + 2))
        n += 2
    return Fraction(round(total * 10 ** 45), 10 ** 45)
