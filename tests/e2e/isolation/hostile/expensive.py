"""Little input that is much work, or much memory, for whoever does not look at the clock and the bill."""
import array
import re
import struct

import qpu_program

from . import board, lists
from .assault import Unexpected, attack
from .jobs import IN_FLIGHT, program
from .programs import CHARGED, check_work

ASTC_12X12 = 77
STATE, SAMPLER, IMAGE = 0, 64, 1 << 19  # in the object; small levels stand in front of the large one
SIDE = 3072  # texels of the image: 256 blocks

# Where the lanes look: those of a row of a quad far apart in S, its rows next to each other, so that a lookup takes
# sixteen probes; and quads in other places. Uniforms: the three distances.
PLACES = """
    ldunifrf.rf10
    ldunifrf.rf11
    ldunifrf.rf12
    eidx rf1
    and rf2, rf1, 1
    shr rf3, rf1, 2
    shr rf4, rf1, 1
    and rf4, rf4, 1
    itof rf2, rf2
    itof rf5, rf3
    itof rf4, rf4
    fmul rf2, rf2, rf10
    fmul rf5, rf5, rf11
    fmul rf6, rf4, rf12
    fadd rf3, rf2, rf5
    fadd rf4, rf6, rf5
"""
DISTANCES = (0.05, 0.23, 0.0005)
# One after the other elsewhere. Uniforms: texture and sampler.
LOOKUP = """
    fadd rf3, rf3, rf12 ; nop ; wrtmuc
    fadd rf4, rf4, rf12 ; nop ; wrtmuc
    mov tmut, rf4
    mov tmus, rf3 ; thrsw
    fadd rf3, rf3, rf10
    nop
    nop ; nop ; ldtmu.rf5
"""
LOOKUPS = 8
# For ever. Uniform: how far back the uniforms of the lookups are.
AGAIN = "bu again\nnop\nnop\nnop\n"

# Stores a word in each lane's page, on and on through the whole address space, of which nothing is mapped there.
# Uniforms: the first page, bytes from one lane to the next.
UNMAPPED = """
    ldunifrf.rf1
    ldunifrf.rf2
    eidx rf3
    shl rf3, rf3, 12
    add rf1, rf1, rf3
again:
""" + 200 * """
    add rf1, rf1, rf2
    copy tmud, rf1
    copy tmua, rf1
""" + "b again\nnop\nnop\nnop\n"

# The coordinate program: six rows of the vertex, as they are.
COPY_SIX = array.array("Q", [
    0x39c02194bc03f000, 0x39c02195bc03f040, 0x39c02196bc03f080, 0x39c02197bc03f0c0, 0x39c02198bc03f100,
    0x39c02199bc03f140, 0x39c02180be03f014, 0x39c02180be03f055, 0x39c02180be03f096, 0x39c02180be03f0d7,
    0x39c02180be03f118, 0x39c02180be03f159, 0x38203186bb03f000, 0x38003186bb03f000, 0x38003186bb03f000])
LINES = 1
LARGEST = 65535  # pixels of a frame, each way
VERTICES = 1 << 27  # of a draw
DERIVED_BYTES = 2 << 30  # of a client, by docs/security.md; shaded vertices are charged to it
SQUARE, BINNED = 16384, 100  # the same of frames that are only binned, and how many
LARGEST_RENDERED, PASSES = 7680, 100  # pixels each way; how often such a frame goes over its tiles


def bits(size, *fields):
    """A record of so many bytes; fields: (first bit, value)."""
    return sum(value << first for first, value in fields).to_bytes(size, "little")


def texture(address):
    """State of a texture of ASTC blocks with all its levels, and of a sampler that reads as many of them as it can."""
    levels = SIDE.bit_length() - 1
    state = bits(24, (6, address + IMAGE >> 6), (58, SIDE), (72, SIDE), (86, 1), (100, ASTC_12X12), (108, 2), (111, 3),
                 (114, 4), (117, 5), (120, levels), (107, 1), (134, 1))
    sampler = bits(24, (3, 1), (20, 0xfff), (32, -4 * 256 & 0xffff), (61, 3))
    return state, sampler


@attack(point=4, processes=3)
def costly_lookups(a):
    """Lookups that take milliseconds each: sixteen probes of two levels, each in other blocks of ASTC."""
    device = a.device()
    image = device.bo(2 << 20)
    for at, record in zip((STATE, SAMPLER), texture(image.address)):
        words = array.array("I", record)
        image.words[at // 4:at // 4 + len(words)] = memoryview(words)
    noise = array.array("I", a.random.randbytes((2 << 20) - IMAGE))
    image.words[IMAGE // 4:] = memoryview(noise)
    distances = [int.from_bytes(struct.pack("<f", value), "little") for value in DISTANCES]
    of_lookups = [image.address | 1, image.address + SAMPLER | 1] * LOOKUPS
    made = program(device, PLACES + "again:\n" + LOOKUP * LOOKUPS + AGAIN,
                   [*distances, *of_lookups, -4 * (len(of_lookups) + 1)])
    while a.going():
        for _ in range(IN_FLIGHT):
            device.submit_csd(qpu_program.config(device, made, 24), [made, image])
        check_work(a, "charged", CHARGED)
        device.wait(made, 300)


@attack(point=4, processes=2, boards=(board.DEFAULT, board.V3D42))
def unmapped_pages(a):
    """Stores to other unmapped pages all the time: a signal and a mapping of the host for each lane."""
    device = a.device()
    made = program(device, UNMAPPED, [a.random.randrange(1 << 31) & ~0xfff, 1 << 16])
    while a.going():
        for _ in range(IN_FLIGHT):
            device.submit_csd(qpu_program.config(device, made, 24), [made])
        device.wait(made, 300)


def draw_lines(address, side, count):
    """A bin list of a draw of lines from corner to corner of a frame, and what it needs from address + 0x1000 on."""
    record, vertices, code = (address + 0x1000 * n for n in range(1, 4))
    half = side * 32
    coarse = min(side // 128, 511)  # 64 pixels each
    middle = bits(8, (0, side * 128 - coarse * 0x4000), (22, coarse), (32, side * 128 - coarse * 0x4000), (54, coarse))

    def corner(sign):
        return struct.pack("<ffffii", sign, sign, 0.5, 1.0, int(sign * half), int(sign * half))

    content = {
        record: bits(32, (32, 1), (64, 1), (65, 1), (67, code >> 3), (128, 1), (129, 1), (131, code >> 3), (192, 1),
                     (193, 1), (195, code >> 3)) +
        b"".join(bits(16, (0, vertices + at), (32, size & 3), (34, 2), (40, size), (44, size), (64, 24), (96, 1))
                 for at, size in ((0, 4), (16, 2))),
        vertices: corner(-1.0) + corner(1.0),
        code: COPY_SIX.tobytes(),
    }
    # Positions are what the program says: no clipping.
    packets = lists.start_binning(side, side) + b"".join([
        bytes([64]) + bits(4, (0, 2), (5, record >> 5)), bytes([96]) + bits(3, (0, 3)),
        bytes([107]) + struct.pack("<HHHH", 0, 0, side, side),
        bytes([110]) + struct.pack("<ff", half, half),
        bytes([108]) + middle,
        bytes([38]) + struct.pack("<BIII", LINES, 2, count, 0), lists.FLUSH])
    return packets, content


def submit_bins(device, side, count, renders):
    """The object of such a bin list, and a function that submits it with the render list renders(address)."""
    commands, tiles = device.bo(1 << 16), device.bo(1 << 18)
    packets, content = draw_lines(commands.address, side, count)
    content[commands.address + 0x8000] = packets
    rendering = renders(commands.address + 0x6000)
    content[commands.address + 0x6000] = rendering
    for at, data in content.items():
        words = array.array("I", data.ljust(-(-len(data) // 4) * 4, b"\0"))
        first = (at - commands.address) // 4
        commands.words[first:first + len(words)] = memoryview(words)
    start, end = commands.address + 0x8000, commands.address + 0x8000 + len(packets)
    render = commands.address + 0x6000
    return commands, lambda: device.submit_cl(
        [commands, tiles], (start, end), (render, render + len(rendering)),
        (tiles.address, 1 << 17, tiles.address + (1 << 17)))


@attack(point=4, processes=3)
def diagonal_lines(a):
    """Lines through a million tiles each."""
    device = a.device()
    commands, submit = submit_bins(device, LARGEST, 3000, lambda at: lists.configure(64, 64, 1) + b"\x0d")
    while a.going():
        for _ in range(IN_FLIGHT):
            submit()
        device.wait(commands, 300)


@attack(point=4, processes=2, charged=DERIVED_BYTES)
def many_vertices(a):
    """As many vertices as a draw can have, each fetched and shaded."""
    device = a.device()
    commands, submit = submit_bins(device, 64, VERTICES, lambda at: lists.configure(64, 64, 1) + b"\x0d")
    while a.going():
        for _ in range(IN_FLIGHT):
            submit()
        device.wait(commands, 300)


@attack(point=4, processes=2)
def huge_targets(a):
    """Frames of a gigabyte that are cleared and stored, tile by tile over each other."""
    device = a.device()
    commands, tiles, image = device.bo(1 << 19), device.bo(1 << 18), device.bo(8 << 20)
    stride = 256  # of rows: less than those of the frame
    at, side = commands.address, LARGEST_RENDERED
    generic = lists.generic_tile(image.address, stride)
    parts = {0: lists.start_binning(side, side) + lists.FLUSH, 256: generic,
             512: lists.render(side, side, a.random.getrandbits(32), at + 256, len(generic), PASSES)}
    for offset, data in parts.items():
        words = array.array("I", data.ljust(-(-len(data) // 4) * 4, b"\0"))
        commands.words[offset // 4:offset // 4 + len(words)] = memoryview(words)
    while a.going():
        for _ in range(IN_FLIGHT):
            device.submit_cl([commands, tiles, image], (at, at + len(parts[0])), (at + 512, at + 512 + len(parts[512])),
                             (tiles.address, 1 << 17, tiles.address + (1 << 17)))
        device.wait(image, 300)


def charged(a, name):
    """How much of a resource all clients hold."""
    row = re.search(rf"^{name} .*", a.status(), re.M)
    if row is None:
        raise Unexpected(f"the status has no {name}")
    return sum(map(int, re.findall(r"\(pid \d+\) (\d+)", row[0])))


@attack(point=5, seconds=3, shared=False)
def binned_memory(a):
    """Bin jobs of empty frames of many tiles, whose render jobs wait for one without end."""
    device = a.device()
    start = lists.configure(64, 64, 1)
    _, submit = submit_bins(device, SQUARE, 0, lambda at: start + b"\x01" + lists.branch(at + len(start)))
    bytes_of_lists = (SQUARE // lists.TILE) ** 2 * 24
    most = 0
    for _ in range(BINNED):
        submit()
        most = max(most, charged(a, "derived-bytes"))
    if most < bytes_of_lists:
        raise Unexpected(f"{most} bytes are charged for the tile lists of {BINNED} jobs of {bytes_of_lists}")
    a.hold()
