"""What loads and stores of tiles, averages of samples and mip levels of the TFU round to. Nothing is drawn."""
from fractions import Fraction

from .floats import half
from .operations import half_number, half_rounded, small_float
from .question import In, Levels, Question, Tile
from .textures import linear

R11F, RGBA16F, RGBA8, R8, SRGB8, RGB10_A2, BGR565 = 8, 18, 27, 30, 0, 3, 7
HALF_PIXELS = 32  # of 8 bytes


def half_words(values):
    """RGBA of four equal halves each."""
    return [h * 0x10001 for h in values for _ in (0, 1)]


ROUNDED_HALVES = [0x3c00 + 2 * k for k in range(16)] + [0x2e01 + 37 * k for k in range(12)] + [0x0001, 0x0008, 0x0018, 0x5555]


def as_r11f(how):
    return [small_float(h, 6, how) | small_float(h, 6, how) << 11 | small_float(h, 5, how) << 22 for h in ROUNDED_HALVES]


UNIT_HALVES = [half(k / 41) for k in range(28)] + [half(0.998), half(0.9985), half(1.0), half(0.50049)]


def to_integer(value, largest, how):
    scaled = Fraction(value) * largest
    return int(scaled) if how == "cut" else int(scaled + Fraction(1, 2))


def as_rgb10(how):
    return [sum(to_integer(half_number(h), (1 << bits_of) - 1, how) << at for at, bits_of in ((0, 10), (10, 10), (20, 10), (30, 2))) for h in UNIT_HALVES]


def encoded(value):
    """As sRGB."""
    x = float(value)
    return x * 12.92 if x <= 0.0031308 else 1.055 * x ** (1 / 2.4) - 0.055


def as_srgb(how):
    return [to_integer(encoded(half_number(h)), 255, how) * 0x10101 | to_integer(half_number(h), 255, how) << 24 for h in UNIT_HALVES]


BYTE_PIXELS = [k * 0x01010101 for k in range(0, 256, 4)]


def pairs(values):
    """Pixels of two bytes in words."""
    return [values[k] | values[k + 1] << 16 for k in range(0, len(values), 2)]


def as_565(how):
    return pairs([to_integer(Fraction(v, 255), 31, how) * 0x801 | to_integer(Fraction(v, 255), 63, how) << 5 for v in range(0, 256, 4)])


SMALL_PIXELS = [k & 31 | (2 * k + 1 & 63) << 5 | (k * 7 & 31) << 11 for k in range(64)]


def widened(value, width, how):
    if how == "repeated":
        return value << (8 - width) | value >> (2 * width - 8)
    if how == "zeros below":
        return value << (8 - width)
    return to_integer(Fraction(value, (1 << width) - 1), 255, how)


def from_565(how):
    # Blue lies lowest, and red lowest in the image that is stored.
    return [widened(p >> 11, 5, how) | widened(p >> 5 & 63, 6, how) << 8 | widened(p & 31, 5, how) << 16 | 0xff000000 for p in SMALL_PIXELS]


SRGB_HALVES = [k * 0x010101 | (255 - k) << 24 for k in range(4, 256, 8)]


def from_srgb(as_half):
    words = []
    for p in SRGB_HALVES:
        colour, alpha = as_half(linear(Fraction(p & 255, 255))), as_half((p >> 24) / 255)
        words += [colour * 0x10001, colour | alpha << 16]
    return words


def cut_half(value):
    return half_rounded(Fraction(value), "cut")


# Four samples of 16 x 16 pixels, whose sums leave all remainders.
SIDE = 16


STEPS = (0, 1, 3, 7)


def sample(x, y, number, channel):
    return (x * 11 + y * 5 + STEPS[number] * (3 + x % 5 + 2 * (y % 3)) + channel * 64) & 255


def uif_place(x, y):
    """The word of a texel of 4 bytes, in four columns of blocks."""
    block = (x // 8) % 4 + 4 * (y // 8)
    return block * 64 + ((x // 4) & 1) * 16 + ((y // 4) & 1) * 32 + (x % 4) + (y % 4) * 4


def samples_in_memory():
    words = [0] * (4 * SIDE * SIDE)
    for y in range(SIDE):
        for x in range(SIDE):
            for number in range(4):
                words[uif_place(2 * x + (number & 1), 2 * y + (number >> 1))] = sum(sample(x, y, number, c) << 8 * c for c in range(4))
    return words


def averages(of):
    return [sum(of([sample(x, y, number, c) for number in range(4)]) << 8 * c for c in range(4)) for y in range(SIDE) for x in range(SIDE)]


def even(four):
    count, rest = divmod(sum(four), 4)
    return count + (rest > 2 or (rest == 2 and count & 1))


def in_pairs(four):
    return ((four[0] + four[1] + 1) // 2 + (four[2] + four[3] + 1) // 2 + 1) // 2


AVERAGES = {"to the nearest, halves upwards": averages(lambda four: (sum(four) + 2) // 4), "cut": averages(lambda four: sum(four) // 4),
            "to the nearest, halves to even": averages(even), "in pairs, halves upwards": averages(in_pairs),
            "the first sample": averages(lambda four: four[0])}

# Mip levels: 16 x 16 texels in two columns of blocks, and below them 8 x 8 in one.
LEVEL_WORDS = 64


def level_place(x, y):
    return (2 * (y // 8) + x // 8) * 64 + ((x // 4) & 1) * 16 + ((y // 4) & 1) * 32 + (x % 4) + (y % 4) * 4


def level_texel(x, y):
    return sum((sample(x // 2, y // 2, (x & 1) + 2 * (y & 1), c)) << 8 * c for c in range(4))


def level_memory():
    words = [0] * 256
    for y in range(16):
        for x in range(16):
            words[level_place(x, y)] = level_texel(x, y)
    return [0] * LEVEL_WORDS + words


def smaller_level(of):
    words = [0] * LEVEL_WORDS
    for y in range(8):
        for x in range(8):
            words[level_place(x, y)] = sum(of([sample(x, y, number, c) for number in range(4)]) << 8 * c for c in range(4))
    return words


LEVELS = {"to the nearest, halves upwards": smaller_level(lambda four: (sum(four) + 2) // 4), "cut": smaller_level(lambda four: sum(four) // 4),
          "to the nearest, halves to even": smaller_level(even), "in pairs, halves upwards": smaller_level(in_pairs),
          "the first texel": smaller_level(lambda four: four[0])}
UB2_IN, UB2_OUT, BASE = 13, 5, In(LEVEL_WORDS)
TFU = {71: Levels(4 << 16 | UB2_IN << 23, BASE, 0, BASE, 16 << 16 | 16, UB2_OUT << 12 | 1 << 4 | 1),
       42: Levels(4 << 9 | UB2_IN << 18 | 1 << 5, BASE, 0, In(LEVEL_WORDS, UB2_OUT << 3 | 1), 16 << 16 | 16, 0)}


def tile(name, where, asks, alternatives, assumed, job, memory):
    return Question(name, where, asks, alternatives, assumed, words=len(next(iter(alternatives.values()))), job=job, memory=memory)


HOWS = {"to the nearest": "nearest", "cut": "cut"}
QUESTIONS = [
    tile("store_r11f", "cle-and-tiles 6.1", "rounding of halves that are stored as r11f_g11f_b10f", {
        "to the nearest, ties to even": as_r11f("nearest"), "cut": as_r11f("cut"), "ties away from 0": as_r11f("away")},
        "to the nearest, ties to even", Tile(RGBA16F, 8, R11F, 4, True, HALF_PIXELS), half_words(ROUNDED_HALVES)),
    tile("store_rgb10", "cle-and-tiles 6.1", "rounding of halves that are stored as rgb10_a2", {text: as_rgb10(how) for text, how in HOWS.items()},
         "to the nearest", Tile(RGBA16F, 8, RGB10_A2, 4, True, HALF_PIXELS), half_words(UNIT_HALVES)),
    tile("store_srgb", "cle-and-tiles 6.1", "rounding of halves that are stored as srgb8_alpha8", {text: as_srgb(how) for text, how in HOWS.items()},
         "to the nearest", Tile(RGBA16F, 8, SRGB8, 4, True, HALF_PIXELS), half_words(UNIT_HALVES)),
    tile("load_srgb", "cle-and-tiles 6.1", "rounding of srgb8_alpha8 that is loaded as halves", {
        "to the nearest": from_srgb(half), "cut": from_srgb(cut_half)}, "to the nearest", Tile(SRGB8, 4, RGBA16F, 8, True, 32), SRGB_HALVES),
    tile("store_565", "cle-and-tiles 6.1", "rounding of bytes that are stored as bgr565", {text: as_565(how) for text, how in HOWS.items()},
         "to the nearest", Tile(RGBA8, 4, BGR565, 2, False), BYTE_PIXELS),
    tile("load_565", "cle-and-tiles 6.1", "bgr565 that is loaded as bytes", {
        "bits are repeated": from_565("repeated"), "v * 255 / 31, to the nearest": from_565("nearest"), "zeros stand below": from_565("zeros below")},
        "bits are repeated", Tile(BGR565, 2, RGBA8, 4, False), pairs(SMALL_PIXELS)),
    tile("load_r8", "cle-and-tiles 6.1", "the channels that an image of r8 lacks, when it is loaded", {
        "0, 0 and 255": [k * 4 | 0xff000000 for k in range(64)], "0": [k * 4 for k in range(64)], "255": [k * 4 | 0xffffff00 for k in range(64)],
        "the first one's": BYTE_PIXELS}, "0, 0 and 255", Tile(R8, 1, RGBA8, 4, False),
        [sum((16 * w + 4 * b) << 8 * b for b in range(4)) for w in range(16)]),
    tile("average_of_samples", "cle-and-tiles 6.3", "rounding of the average of four samples of 8 bits", AVERAGES, "to the nearest, halves upwards",
         Tile(RGBA8, 4, RGBA8, 4, False, SIDE, SIDE, True), samples_in_memory()),
    Question("level_of_tfu", "texture 10.4", "rounding of the TFU's mip levels of 8 bits", LEVELS, "to the nearest, halves upwards", words=LEVEL_WORDS,
             job=TFU, memory=level_memory(), in_memory=0),
]
