"""How exact the special functions are, and what they give of special operands."""
from fractions import Fraction

from .floats import INF, MINUS, NAN, bits, flushed, fraction, is_denormal, logarithm, power_of_two, reciprocal_root, rounded, sine_of_half_turns
from .question import Question, planes

SAMPLES = 192


def spread(number, low, high):
    """Floats from one power of two to another, with mantissas that differ in all bits. @param number  which of the sequences"""
    words = []
    for k in range(SAMPLES):
        exponent = low + k * (high - low) // SAMPLES
        mantissa = (k * 0x9e3779b1 + number * 0x7f4a7c15) >> 5 & 0x7fffff
        words.append((exponent + 127) << 23 | mantissa)
    return words


def halves_of_turns():
    return [bits((k / (SAMPLES - 1) - 0.5) * 0.9999) for k in range(SAMPLES)]


# name: operands, the exact result
FUNCTIONS = {
    "recip": (spread(1, -20, 20), lambda x: 1 / x),
    "rsqrt": (spread(2, -20, 20), reciprocal_root),
    "exp": ([w ^ (MINUS if k & 1 else 0) for k, w in enumerate(spread(3, -12, 6))], power_of_two),
    "log": (spread(4, -8, 8), logarithm),
    "sin": (halves_of_turns(), sine_of_half_turns),
}


def precision(name):
    operands, exact = FUNCTIONS[name]
    results = [exact(fraction(w)) for w in operands]
    near, cut = [rounded(r) for r in results], [rounded(r, "cut") for r in results]
    steps = {"off by 1 in the last place": 1, "off by 2": 2, "off by 4": 4, "right in 20 bits": 8, "right in 18 bits": 32, "right in 16 bits": 128,
             "right in 14 bits": 512, "right in 12 bits": 2048, "right in 10 bits": 8192}
    return Question(f"{name}_bits", "qpu 2.4", f"how exact {name} is", {
        "the nearest float": near, "cut": cut, **{text: (near, ulps) for text, ulps in steps.items()}}, "the nearest float",
        f"{name} rf20, rf4\n", planes(operands))


SPECIAL = [0, MINUS, INF, INF | MINUS, NAN, NAN | MINUS, 1, 0x80000001, 0x007fffff, 0x00400000, 0x7f7fffff, 0xff7fffff, bits(2.0**127),
           bits(-1.0), bits(1.0), bits(-2.0**127)]


def reciprocal(w):
    if w & 0x7fffffff == 0:
        return w | INF
    if w & 0x7fffffff == INF:
        return w & MINUS
    return NAN if w & 0x7fffffff > INF else rounded(1 / fraction(w))


def root(w):
    if w & 0x7fffffff == 0:
        return w | INF
    if w & 0x7fffffff > INF or w & MINUS:
        return NAN
    return 0 if w == INF else rounded(reciprocal_root(fraction(w)))


def log2(w):
    if w & 0x7fffffff == 0:
        return INF | MINUS
    if w & 0x7fffffff > INF or w & MINUS:
        return NAN
    return INF if w == INF else rounded(logarithm(fraction(w)))


EXPONENTS = [bits(x) for x in (-126.0, -127.0, -130.5, -148.0, -149.0, -149.9, -151.0, -200.0, 127.5, 128.0, 1000.0, 0.0)] + [INF, INF | MINUS, NAN, 1]


def power(w):
    if w & 0x7fffffff > INF:
        return NAN
    if w & 0x7fffffff == INF:
        return 0 if w & MINUS else INF
    x = fraction(w)
    return INF if x >= 128 else rounded(power_of_two(max(x, Fraction(-300))))


def special(name, function, operands, assumed):
    """Whether denormals count, as operands and as results."""
    def plane(flush_in, flush_out):
        words = [function(flushed(w) if flush_in else w) for w in operands]
        return [flushed(w) if flush_out else w for w in words]

    rows = {"as IEEE 754 has it": plane(False, False), "but denormal operands are 0": plane(True, False),
            "but denormal results are 0": plane(False, True), "but denormal operands and results are 0": plane(True, True)}
    distinct = {}
    for text, words in rows.items():
        if words not in distinct.values():
            distinct[text] = words
    return Question(f"{name}_special", "qpu 2.4", f"{name} of zeros, infinities, NaN, denormals and signs", distinct, assumed,
                    f"{name} rf20, rf4\n", planes(operands), floats=True)


OUTSIDE = [bits(x) for x in (0.6, 0.75, 1.0, 1.5, 2.0, 2.5, 10.25, -0.6, -0.75, -1.0, -1.5, -2.0, 0.5, -0.5, 100.0, -100.0)]

QUESTIONS = [precision(name) for name in FUNCTIONS] + [
    Question("rsqrt2_bits", "qpu 2.4", "in what rsqrt2 differs from rsqrt", {
        "in nothing, or in the last place": ([rounded(reciprocal_root(fraction(w))) for w in FUNCTIONS["rsqrt"][0]], 1),
        "in the last 4 bits": ([rounded(reciprocal_root(fraction(w))) for w in FUNCTIONS["rsqrt"][0]], 16),
        "right in 12 bits": ([rounded(reciprocal_root(fraction(w))) for w in FUNCTIONS["rsqrt"][0]], 2048)},
        "in nothing, or in the last place", "rsqrt2 rf20, rf4\n", planes(FUNCTIONS["rsqrt"][0])),
    special("recip", reciprocal, SPECIAL, "as IEEE 754 has it"),
    special("rsqrt", root, SPECIAL, "as IEEE 754 has it"),
    special("log", log2, SPECIAL, "as IEEE 754 has it"),
    special("exp", power, EXPONENTS, "but denormal results are 0"),
    Question("sin_outside", "qpu 2.4", "sin of more than half a turn of half turns (|x| > 0.5)", {
        "1 or -1": [bits(-1.0) if w & MINUS else bits(1.0) for w in OUTSIDE],
        "the sine": ([rounded(sine_of_half_turns(fraction(w) % 2)) for w in OUTSIDE], 1 << 16),
        "0": [0 if abs(fraction(w)) > Fraction(1, 2) else (bits(-1.0) if w & MINUS else bits(1.0)) for w in OUTSIDE]},
        "1 or -1", "sin rf20, rf4\n", planes(OUTSIDE)),
]
assert all(not is_denormal(w) for operands, _ in FUNCTIONS.values() for w in operands)
