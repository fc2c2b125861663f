"""QPU programs that are much to decode, to compile or to keep."""
import array
import random
import re
import time

import qpu_program

from . import board
from .assault import Unexpected, attack
from .jobs import IN_FLIGHT, program

COMPILED_ON = (board.DEFAULT, board.V3D42)
LARGE = 4000  # words, nearly as many as are compiled
SMALL = 900  # the same of a program that is compiled at once
# Units of work (gpu/base/work_meter.h) that a thread does between two looks while such attacks work: at least, so that it is
# charged at all, and at most.
CHARGED, COMPILED = (10_000, 30_000), (100_000, 420_000)
LATE = 2.0  # seconds after the end of an attack: less than siege.GRACE

HOPS, HOP_WORDS = 1024, 64  # a program jumps through so many pieces that are decoded one by one
SPACES, ENTRIES = 24, 4

ALIKE, ALIKE_WORDS, COMMON = 40, 200, 16


def longest_work(a, kind):
    """Units of work that a thread of the daemon did between two looks, at most."""
    row = re.search(rf"^longest work between two looks: .*?(\d+) (?:units )?{kind}\b", a.status(), re.M)
    if row is None:
        raise Unexpected("the status does not say how long the daemon works without a look")
    return int(row[1])


def check_work(a, kind, bounds):
    """What is done now is counted, and looked at in between; waits until it is done."""
    least, most = bounds
    least = least if a.undisturbed else 0
    while (found := longest_work(a, kind)) < least and time.monotonic() < a.until + LATE:
        time.sleep(0.05)
    if not least <= found <= most:
        raise Unexpected(f"{found} units of work are {kind} between two looks, not {least} to {most}")


def additions(source, words):
    return "\n".join(f"add rf{source.randrange(1, 60)}, rf{source.randrange(60)}, rf{source.randrange(60)}"
                     for _ in range(words)) + "\n"


@attack(point=4, processes=2, boards=COMPILED_ON)
def large_programs(a):
    """Programs as long as are compiled, each another, and shorter ones, which are compiled at once."""
    device = a.device()
    while a.going():
        for words in (LARGE, SMALL):
            made = program(device, "mov rf1, 0\nmov rf2, 1\n" + additions(a.random, words) + "end\n")
            for _ in range(IN_FLIGHT):
                device.submit_csd(qpu_program.config(device, made, 64), [made])
            device.wait(made, 60)
        check_work(a, "compiled", COMPILED)


@attack(point=5, shared=False, boards=COMPILED_ON)
def jumping_programs(a):
    """Half a megabyte of jumps, decoded anew from each of some entries in each of some address spaces."""
    kept = []
    for _ in range(SPACES):
        device = a.device()
        hop = qpu_program.assembled("b next\n" + "nop\n" * (HOP_WORDS - 1) + "next:\n", device.version)
        code = array.array("I", hop * HOPS + qpu_program.assembled("end\n", device.version))
        made = device.bo(1 << 20)
        made.words[:len(code)] = memoryview(code)
        config = qpu_program.config(device, made, 1)
        for entry in range(ENTRIES):
            device.submit_csd([*config[:5], config[5] + 8 * (4 + entry), *config[6:]], [made])
        device.wait(made, 60)
        kept.append(made)
    a.hold()


@attack(point=5, processes=2, boards=COMPILED_ON)
def alike_programs(a):
    """More programs that begin alike than are kept, one after the other."""
    device = a.device()
    start = "mov rf1, 0\n" + additions(random.Random(1), COMMON)
    made = [program(device, start + additions(a.random, ALIKE_WORDS) + "end\n") for _ in range(ALIKE)]
    while a.going():
        for one in made:
            device.submit_csd(qpu_program.config(device, one, 64), [one])
        device.wait(made[-1], 60)
