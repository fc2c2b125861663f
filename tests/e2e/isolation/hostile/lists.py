"""Control lists of V3D 7.1, as little of them as victims and attackers need (gpu/cle/packet_table.h)."""
import struct

BRANCH, RETURN, HALT, FLUSH = 16, b"\x12", b"\x00", b"\x04"
TILE = 64  # pixels each way


def branch(address, opcode=BRANCH):
    return struct.pack("<BI", opcode, address)


def _bits(opcode, size, *fields):
    """fields: (first bit, value) after the opcode."""
    value = 0
    for first, number in fields:
        value |= number << first
    return bytes([opcode]) + value.to_bytes(size, "little")


def start_binning(width, height):
    """What a bin list begins with, tiles of 64x64."""
    return (bytes([119, 0]) + _bits(120, 8, (8, 3), (11, 3), (32, width - 1), (48, height - 1)) + bytes([19, 6]))


def empty_bin(width, height):
    return start_binning(width, height) + FLUSH


def configure(width, height, color):
    """What a render list begins with: one target of 8888, cleared."""
    tiles = (-(-width // TILE), -(-height // TILE))
    across = [-(-tiles[0] // 4), -(-tiles[1] // 4)]
    stride = TILE // 2  # of the target in the tile buffer
    cleared_tile = (_bits(124, 3), b"\x1a", _bits(29, 12, (0, 8)), b"\x19", b"\x1b")
    return b"".join([
        _bits(121, 8, (0, 0), (8, width), (24, height), (52, 3), (55, 3)),
        _bits(121, 8, (0, 2), (18, stride - 1), (27, 8), (32, color)),
        _bits(121, 8, (0, 1), (16, 0x3f800000)),
        _bits(126, 1),
        _bits(122, 8, (0, 3), (8, 3), (16, across[0]), (24, across[1]), (32, tiles[0]), (44, tiles[1])),
        *cleared_tile, _bits(124, 3), b"\x1a", _bits(29, 12, (0, 8)), b"\x1b", b"\x13"])


def generic_tile(image, stride):
    """The list that every tile runs: stores the target as rows of `stride` bytes."""
    store = _bits(29, 12, (0, 0), (4, 0), (12, 27), (18, 1), (28, stride), (64, image))
    return bytes([125, 26]) + store + bytes([25, 27]) + RETURN


def render(width, height, color, generic, generic_size, passes=1):
    """Fills the image that the generic list names with a colour, so many times."""
    across = -(-width // (4 * TILE)), -(-height // (4 * TILE))
    supertiles = b"".join(bytes([23, x, y]) for y in range(across[1]) for x in range(across[0]))
    return (configure(width, height, color) + struct.pack("<BII", 20, generic, generic + generic_size) + supertiles * passes +
            bytes([13]))
