"""Pictures of replayed frames, read to the bytes of their pixels: what piglit's checksums of frames are of."""
import hashlib
import struct
import zlib

from conformance_parts.lists import Refusal

FAR_OFF = 8  # of 255: what of a channel is more than rounding


class Picture:
    """Rows from the top, channels of 8 bits."""

    def __init__(self, width, height, channels, data):
        self.width, self.height, self.channels, self.data = width, height, channels, data

    def checksum(self):
        """As piglit's: of the pixels, by MD5."""
        return hashlib.md5(self.data, usedforsecurity=False).hexdigest()

    def share_off(self, other):
        """Which share of pixels is far off in a channel that both have; 1 where the sizes differ."""
        if (self.width, self.height) != (other.width, other.height):
            return 1.0
        channels, off = min(self.channels, other.channels, 3), bytearray(self.width * self.height)
        for channel in range(channels):
            mine, others = self.data[channel::self.channels], other.data[channel::other.channels]
            if mine != others:
                off = bytearray(one | (abs(a - b) > FAR_OFF) for one, a, b in zip(off, mine, others))
        return sum(off) / max(1, len(off))


def _bad(path, why):
    raise Refusal(f"{path}: {why}")


def _unfiltered(lines, width, height, step):
    """Rows of a PNG, whose bytes are told as differences from the left, from above, or both."""
    row, before, rows = width * step, bytes(width * step), []
    for y in range(height):
        kind, line = lines[y * (row + 1)], bytearray(lines[y * (row + 1) + 1:(y + 1) * (row + 1)])
        for x in range(row) if kind else ():
            left, up, corner = (line[x - step], before[x], before[x - step]) if x >= step else (0, before[x], 0)
            if kind == 1:
                add = left
            elif kind == 2:
                add = up
            elif kind == 3:
                add = (left + up) // 2
            else:
                guess = left + up - corner
                away = (abs(guess - left), abs(guess - up), abs(guess - corner))
                add = (left, up, corner)[away.index(min(away))]
            line[x] = line[x] + add & 0xFF
        rows.append(bytes(line))
        before = rows[-1]
    return b"".join(rows)


def _read_png(path, data):
    at, header, packed = 8, None, []
    while at + 12 <= len(data):
        length, name = struct.unpack(">I4s", data[at:at + 8])
        if name == b"IHDR":
            header = struct.unpack(">IIBBBBB", data[at + 8:at + 21])
        elif name == b"IDAT":
            packed.append(data[at + 8:at + 8 + length])
        at += 12 + length
    channels = {0: 1, 2: 3, 4: 2, 6: 4}.get(header[3]) if header else None
    if not channels or header[2] != 8 or header[6]:
        _bad(path, "it is no PNG of 8 bits without palette and interlacing")
    width, height = header[:2]
    try:
        lines = zlib.decompress(b"".join(packed))
    except zlib.error as error:
        _bad(path, f"{error}")
    if len(lines) != height * (width * channels + 1):
        _bad(path, "its pixels are not whole")
    return Picture(width, height, channels, _unfiltered(lines, width, height, channels))


def _read_bmp(path, data):
    if len(data) < 54:
        _bad(path, "it is cut")
    start, (width, height, _, bits) = struct.unpack("<I", data[10:14])[0], struct.unpack("<iiHH", data[18:30])
    if bits not in (24, 32) or struct.unpack("<I", data[30:34])[0] not in (0, 3):
        _bad(path, "it is no BMP of 24 or 32 bits without compression")
    step, stride, rows = bits // 8, (width * bits // 8 + 3) // 4 * 4, abs(height)
    if start + stride * rows > len(data):
        _bad(path, "its pixels are not whole")
    order = range(rows) if height < 0 else reversed(range(rows))
    out = bytearray(3 * width * rows)
    lines = b"".join(data[start + stride * y:start + stride * y + step * width] for y in order)
    for channel in range(3):
        out[channel::3] = lines[2 - channel::step]
    return Picture(width, rows, 3, bytes(out))


def read_picture(path):
    """A PNG or BMP; Refusal if it is none."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        _bad(path, error.strerror)
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return _read_png(path, data)
    return _read_bmp(path, data) if data.startswith(b"BM") else _bad(path, "it is no PNG or BMP")
