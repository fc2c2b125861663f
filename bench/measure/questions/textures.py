"""What lookups of textures compute: weights, levels, conversions. The texture is at word 16 of the question's memory, whose first
words are its descriptor, the sampler at word 8."""
import struct
from fractions import Fraction

from .floats import INF, MINUS, NAN, bits, half, number, rounded
from .question import In, Question, planes

DESCRIPTOR, SAMPLER, SMALLER_LEVEL, TEXELS = 0, 8, 16, 32
R8, RGBA8, R16, R16F, R32UI = 0, 4, 10, 16, 109
QUERY = 0x01f00000  # of the LOD
INDEX_256 = list(range(256))
WORDS_16 = [k * 251 + 7 for k in INDEX_256]


def fields(*rows, words):
    """[(first bit, value)]"""
    value = 0
    for start, part in rows:
        value |= part << start
    return [value >> 32 * k & 0xffffffff for k in range(words)]


def descriptor(chip, kind, width, height, levels=1, srgb=False):
    """Without the address, which the first word gets."""
    swizzle = [(108, 2), (111, 3), (114, 4), (117, 5)]
    return fields((58, width), (72, height), (86, 1), (100, kind), *swizzle, (120, levels - 1), (2 if chip == 71 else 3, int(srgb)), words=6)


def sampler(nearest=False, levels=1, bias=0):
    """Clamped to the edge; mip levels are blended."""
    flags = 7 if nearest else 0
    return fields((0, flags), (20, (levels - 1) * 256 if levels > 1 else 0), (32, int(bias * 256) & 0xffff), (48, 1), (51, 1), (54, 1), words=2)


def memory_of(kind, width, height, texels, smaller=(), **more):
    """{chip: words}. @param texels  words of level 0; smaller: those of level 1, which lies below"""
    state = {key: value for key, value in more.items() if key in ("nearest", "bias")}
    levels = 2 if smaller else 1
    result = {}
    for chip in (71, 42):
        words = descriptor(chip, kind, width, height, levels, more.get("srgb", False))
        words[0] = In(TEXELS, words[0])
        result[chip] = [*words, 0, 0, *sampler(levels=more.get("levels", levels), **state), 0, 0, 0, 0, 0, 0,
                        *(list(smaller) + [0] * 16)[:16], *texels]
    return result


def lookup(before, wide=True, parameters=None, results=1):
    """Code and uniforms. @param before  writes of coordinates, of which the last one launches"""
    uniforms = [In(DESCRIPTOR, 2 if parameters == QUERY else 1), In(SAMPLER, int(wide)), *([parameters] if parameters is not None else [])]
    return "nop ; nop ; wrtmuc\n" * len(uniforms) + before + "".join(f"ldtmu.rf{20 + k}\n" for k in range(results)), uniforms


def texture_question(name, where, asks, alternatives, assumed, before, inputs, memory, results=1, wide=True, parameters=None):
    """@param results  of as many lookups with one channel each, all of the same parameters"""
    code, uniforms = lookup(before, wide, parameters, results)
    return Question(name, where, asks, alternatives, assumed, code, inputs, results, uniforms=uniforms * results, memory=memory)


def pack_texels(form, values):
    data = struct.pack(f"<{len(values)}{form}", *values)
    return [int.from_bytes(data[k:k + 4], "little") for k in range(0, len(data), 4)]


PLACES = [Fraction(k, 1024) for k in range(1, 1024, 31)] + [Fraction(1, 512), Fraction(511, 512)]
SIMPLE_2D = "mov tmut, rf5\nmov tmus, rf4\n"


def weight(place, num_bits, how):
    scaled = place * 2**num_bits
    return Fraction(int(scaled) if how == "cut" else int(scaled + Fraction(1, 2)), 2**num_bits)


def kept(value, steps):
    """As the texture's own integers would keep it."""
    return rounded(Fraction(int(value * steps + Fraction(1, 2)), steps)) if steps else rounded(value)


def weights(steps=0):
    rows = {}
    for number in (8, 7, 6, 5, 4):
        for how, text in (("cut", "cut"), ("nearest", "to the nearest")):
            # A sum of floats of 8 bits may be off in its last place.
            rows[f"{number} bits, {text}"] = [kept(weight(p, number, how), 0) for p in PLACES], 2 if steps == 255 else 0
            if steps:
                rows[f"{number} bits, {text}; sums of {steps.bit_length()} bits"] = [kept(weight(p, number, how), steps) for p in PLACES]
    rows["the float's own"] = [rounded(p) for p in PLACES]
    return rows


def bilinear(name, kind, row, steps=0):
    """From a texel of 0 to one of 1."""
    coordinates = planes([bits(float((Fraction(1, 2) + p) / 4)) for p in PLACES], [bits(0.125)] * len(PLACES))
    return texture_question(f"filter_{name}", "texture 13", f"weights and sums of a linear filter, {name}", weights(steps), "8 bits, cut", SIMPLE_2D,
                            coordinates, memory_of(kind, 4, 4, row))


ROWS = {
    "r16f": (R16F, pack_texels("H", ([0] + [half(1.0)] * 7) * 4), 0),
    "rgba8": (RGBA8, pack_texels("I", ([0] + [0xffffffff] * 3) * 4), 255),
    "r16": (R16, pack_texels("H", ([0] + [65535] * 7) * 4), 65535),
}
LEVEL_PLACES = [Fraction(k, 1024) for k in range(1, 1024, 31)]


def levels():
    # Level 1 lies right below level 0: one utile of 64 bytes.
    rows = {f"{number} bits, {text}": [rounded(weight(p, number, how)) for p in LEVEL_PLACES]
            for number in (8, 7, 6, 5, 4) for how, text in (("cut", "cut"), ("nearest", "to the nearest"))}
    rows["the float's own"] = [rounded(p) for p in LEVEL_PLACES]
    return texture_question("filter_levels", "texture 4.2", "weights of two levels", rows, "8 bits, cut",
                            "mov tmut, rf5\nmov tmub, rf6\nmov tmuslod, rf4\n",
                            planes([bits(0.375)] * len(LEVEL_PLACES), [bits(0.375)] * len(LEVEL_PLACES), [bits(float(p)) for p in LEVEL_PLACES]),
                            memory_of(R16F, 4, 4, [0] * 16, [half(1.0) * 0x10001] * 16))


EDGES = [Fraction(1) - Fraction(1, 2**k) for k in range(6, 14)] + [Fraction(1) + Fraction(1, 2**k) for k in range(6, 14)]


def edges(how):
    return [rounded(Fraction(int(weight(e, 8, "cut" if how == "cut" else "nearest")), 1)) for e in EDGES]


SRGB = [Fraction(k, 255) for k in INDEX_256]


def linear(value):
    """Of an sRGB value, exact enough."""
    x = float(value)
    return x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4


def fetch_256(name, where, asks, alternatives, assumed, kind, words, wide=True, **more):
    return texture_question(name, where, asks, alternatives, assumed, "mov tmub, 0\nmov tmusf, rf4\n", planes(INDEX_256),
                            memory_of(kind, 256, 1, words, nearest=True, **more), wide=wide)


def half_cut(value):
    return half(number(rounded(value, "cut", 11, -24, 16)))


def as_half(value):
    return bits(struct.unpack("<e", struct.pack("<e", value))[0])


def eight_bits(value):
    return rounded(Fraction(round(value * 255), 255))


ACROSS = planes([bits(0.5), bits(0.5 + 3 / 256), bits(0.5), bits(0.5 + 3 / 256)] * 4, [bits(0.5), bits(0.5 + 4 / 256), bits(0.5), bits(0.5 + 4 / 256)] * 4)


def lod(value):
    """Of 16 lanes, as near as a step of 1/256 of a level in the fifth of a number between 1 and 4."""
    return ([bits(value)] * 16, 1 << 15)


QUESTIONS = [
    *(bilinear(name, *row) for name, row in ROWS.items()),
    levels(),
    texture_question("nearest_edge", "texture 13", "which texel is nearest just beside the edge of two", {
        "coordinates cut to 8 bits": edges("cut"), "coordinates rounded to 8 bits": edges("nearest")}, "coordinates cut to 8 bits", SIMPLE_2D,
        planes([bits(float(e / 4)) for e in EDGES], [bits(0.125)] * 16),
        memory_of(R16F, 4, 4, pack_texels("H", ([0] + [half(1.0)] * 7) * 4), nearest=True)),
    texture_question("odd_coordinates", "texture 4.3", "which of four texels infinite coordinates and NaN find, clamped", {
        text: [bits(x) for x in (4.0, 1.0, nan, 4.0, 1.0)] for text, nan in (("the last and the first one, and NaN the first", 1.0),
                                                                             ("the last and the first one, and NaN the last", 4.0))},
        "the last and the first one, and NaN the first", SIMPLE_2D, planes([INF, INF | MINUS, NAN, bits(1e20), bits(-1e20)], [bits(0.125)] * 5),
        memory_of(R16F, 4, 4, pack_texels("H", [half(x) for x in (1.0, 2.0, 3.0, 4.0, 0.0, 0.0, 0.0, 0.0)] * 4), nearest=True)),
    fetch_256("srgb", "texture 5", "sRGB values as floats", {
        "rounded to halves": [as_half(linear(v)) for v in SRGB], "rounded to floats": ([bits(linear(v)) for v in SRGB], 4),
        "rounded to 8 bits": [eight_bits(Fraction(linear(v))) for v in SRGB], "right in 8 bits": ([bits(linear(v)) for v in SRGB], 1 << 15)},
        "rounded to floats", RGBA8, INDEX_256, srgb=True),
    fetch_256("unorm8", "texture 5", "8 bits as floats", {
        "v / 255, to the nearest": [rounded(v) for v in SRGB], "v / 255, cut": [rounded(v, "cut") for v in SRGB],
        "rounded to halves": [as_half(float(v)) for v in SRGB], "v * 257 / 65536": [rounded(Fraction(k * 257, 65536)) for k in INDEX_256]},
        "v / 255, to the nearest", RGBA8, INDEX_256),
    fetch_256("unorm8_as_halves", "texture 2.3", "rounding of floats to results of 16 bits", {
        "to the nearest": [half(float(v)) for v in SRGB], "cut": [half_cut(v) for v in SRGB]}, "to the nearest", RGBA8, INDEX_256, wide=False),
    texture_question("coordinate_not_written", "texture 2.1", "a lookup for which T is not written, after one that had it", {
        "T is absent: one dimension": planes([bits(3.0)] * 16, [bits(1.0)] * 16), "T is that of the lookup before": planes([bits(3.0)] * 16, [bits(3.0)] * 16)},
        "T is absent: one dimension", "mov tmut, rf5\nmov tmus, rf4\nnop ; nop ; wrtmuc\nnop ; nop ; wrtmuc\nmov tmus, rf4\n",
        # A width of one dimension has the height as its upper bits.
        planes([bits(1.5 / (4 | 4 << 14))] * 16, [bits(0.625)] * 16), memory_of(R16F, 4, 4, pack_texels("H", [half(float(y + 1)) for y in range(4) for _ in range(8)]),
                                                                  nearest=True), results=2),
    fetch_256("unorm16", "texture 5", "16 bits as floats", {
        "v / 65535, to the nearest": [rounded(Fraction(v, 65535)) for v in WORDS_16], "v / 65535, cut": [rounded(Fraction(v, 65535), "cut") for v in WORDS_16],
        "rounded to halves": [as_half(v / 65535) for v in WORDS_16]}, "v / 65535, to the nearest", R16, pack_texels("H", WORDS_16)),
    texture_question("uint_in_16_bits", "texture 2.3", "integers of 32 bits in results of 16", {
        "the low 16 bits": [0x1234 + k for k in range(16)], "the nearest limit": [0xffff] * 16}, "the low 16 bits",
        "mov tmub, 0\nmov tmusf, rf4\n", planes(list(range(16))), memory_of(R32UI, 16, 1, [0x51234 + k for k in range(16)], nearest=True), wide=False),
    texture_question("fetch_beyond_levels", "texture 4.3", "a fetch of a level that is not there", {
        "0": [0] * 16, "the last level": [0x51234] * 16}, "0", "mov tmub, 1\nmov tmut, 0\nmov tmusf, 0\n", planes(list(range(16))),
        memory_of(R32UI, 4, 4, [0x51234] * 16, nearest=True)),
    texture_question("lod_of_a_point", "texture 4.2", "the LOD of a quad whose coordinates are all the same", {
        text: [bits(value)] * 16 for text, value in (("-16", -16.0), ("-14", -14.0), ("-15", -15.0), ("-32", -32.0), ("-128", -128.0), ("0", 0.0))}, "-16",
        SIMPLE_2D, planes([bits(0.5)] * 16, [bits(0.5)] * 16), memory_of(R8, 256, 256, [0] * 16), parameters=QUERY),
    texture_question("lod_norm", "texture 4.2", "the LOD of differences of 3 and 4 texels", {
        "the length": lod(2.321928), "the larger one": lod(2.0), "the sum": lod(2.807355)}, "the length", SIMPLE_2D, ACROSS,
        memory_of(R8, 256, 256, [0] * 16), parameters=QUERY),
    texture_question("bias_of_explicit_lod", "texture 4.2", "the sampler's bias of 1.5 beside an explicit LOD of 2", {
        "they are added": [bits(3.5)] * 16, "the bias is ignored": [bits(2.0)] * 16}, "they are added", "mov tmut, rf5\nmov tmub, 2.0\nmov tmuslod, rf4\n",
        planes([bits(0.5)] * 16, [bits(0.5)] * 16), memory_of(R8, 256, 256, [0] * 16, bias=1.5), parameters=QUERY),
]
