"""Pictures in memory and in files: PPM in, PNG out."""
import re
import struct
import zlib

from new_file import new_file


class Image:
    """RGB, 8 bits each, rows from the top."""

    def __init__(self, width, height, texels):
        if len(texels) != 3 * width * height:
            raise ValueError(f"{len(texels)} bytes are not a picture of {width}x{height}")
        self.width, self.height, self.texels = width, height, texels

    def cropped(self, width, height):
        """The upper left part, at most of this size."""
        width, height, row = min(width, self.width), min(height, self.height), 3 * self.width
        return Image(width, height, b"".join(self.texels[row * y:row * y + 3 * width] for y in range(height)))

    def has_colors(self, count):
        """Whether there are at least that many colours."""
        colors = set()
        for color in zip(self.texels[::3], self.texels[1::3], self.texels[2::3]):
            colors.add(color)
            if len(colors) >= count:
                return True
        return False


def read_ppm(path):
    """@raises ValueError: the file is not a whole binary PPM of 8 bits"""
    with open(path, "rb") as file:
        data = file.read()
    header = re.match(rb"P6\s+(\d+)\s+(\d+)\s+255\s", data)
    if not header:
        raise ValueError(f"{path} is not a binary PPM of 8 bits")
    return Image(int(header[1]), int(header[2]), data[header.end():])


def write_png(path, image):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    row = 3 * image.width
    lines = b"".join(b"\0" + image.texels[row * y:row * (y + 1)] for y in range(image.height))
    with new_file(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", image.width, image.height, 8, 2, 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(lines, 6)) + chunk(b"IEND", b""))
