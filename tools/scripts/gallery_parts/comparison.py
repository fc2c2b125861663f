"""How much two pictures differ, and how much they may."""
import collections
import dataclasses

from .image import Image

# A pixel is off when a channel differs by more, in steps of 255. Few steps are rounding: a V3D's inexact functions
# (reciprocal, square root, exp2, log2), its colours of 8 bits that reach the tile buffer as half floats, llvmpipe's own
# approximations.
OFF_BY = 8

# A picture of fewer colours shows nothing that could be compared.
LEAST_COLORS = 4


@dataclasses.dataclass(frozen=True)
class Limits:
    share: float = 0.25  # percent of the pixels that may be off
    mean: float = 0.3    # mean difference over all channels, in steps of 255
    colors: int = LEAST_COLORS
    reason: str = ""     # why these are not the common limits


@dataclasses.dataclass(frozen=True)
class Difference:
    share: float  # percent of the pixels that are off
    mean: float   # over all channels, in steps of 255
    largest: int  # of any channel

    def __str__(self):
        return f"{self.share:.3f} % of the pixels off, mean {self.mean:.4f}, largest {self.largest}"


def difference(a, b):
    """@raises ValueError: the sizes differ"""
    if (a.width, a.height) != (b.width, b.height):
        raise ValueError(f"the sizes differ: {a.width}x{a.height} and {b.width}x{b.height}")
    channels = bytes(abs(x - y) for x, y in zip(a.texels, b.texels))
    counts = collections.Counter(channels)
    worst = collections.Counter(map(max, channels[::3], channels[1::3], channels[2::3]))
    off = sum(count for value, count in worst.items() if value > OFF_BY)
    return Difference(100 * off / (a.width * a.height), sum(v * n for v, n in counts.items()) / len(channels),
                      max(counts))


def problem(picture, reference, limits):
    """What is wrong with the picture, or "" when it is as good as its reference."""
    for image, name in (reference, "the reference"), (picture, "the picture"):
        if not image.has_colors(limits.colors):
            return f"{name} is blank: fewer than {limits.colors} colours"
    try:
        found = difference(picture, reference)
    except ValueError as error:
        return str(error)
    if found.share > limits.share:
        return f"{found.share:.3f} % of the pixels are off by more than {OFF_BY}, not at most {limits.share} %"
    if found.mean > limits.mean:
        return f"the mean difference is {found.mean:.4f}, not at most {limits.mean}"
    return ""


def difference_image(a, b):
    """Where two pictures of one size differ, eight times as strong."""
    return Image(a.width, a.height, bytes(min(255, 8 * abs(x - y)) for x, y in zip(a.texels, b.texels)))
