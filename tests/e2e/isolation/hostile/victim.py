#!/usr/bin/env python3
"""A client that minds its own business: each round it computes, renders and, now and then, converts a texture and opens
the node anew, and compares every word with what is right. On a Raspberry Pi 0 to 3 it has no textures to convert, and computes
through the firmware's mailbox.

usage: victim.py [--settled] [--wrong-after N]
  --settled        opens and allocates nothing after the first round
  --wrong-after N  finds a wrong word in round N: for tests of those who watch

Prints a line of JSON for each round: {"at": seconds of CLOCK_MONOTONIC when it began, "took": seconds}, or {"wrong": why}.
Ends with its standard input.
"""
import argparse
import array
import errno
import json
import os
import random
import select
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from hostile import board, drm, lists, vc4_drm  # pylint: disable=wrong-import-position
import qpu_program  # pylint: disable=wrong-import-position

PAUSE = 0.004  # seconds between rounds
SIDE = 96  # pixels: four tiles, cut at two edges
WORKGROUPS = 6
PATIENCE = 120  # seconds for one job; a watcher is quicker

# Stores a * index + b in each word. Uniforms: a, b, result.
LINEAR = """
    workgroup_x rf1
    shl rf1, rf1, 4
    eidx rf2
    add rf1, rf1, rf2
    shl rf8, rf1, 2
    ldunifrf.rf5
    ldunifrf.rf6
    ldunifrf.rf7
    umul24 rf1, rf1, rf5
    add rf1, rf1, rf6
    add rf7, rf7, rf8
    copy tmud, rf1
    copy tmua, rf7
    tmuwt -
end
"""


class Wrong(Exception):
    pass


def compare(what, found, expected):
    if found != expected:
        at = next(i for i, pair in enumerate(zip(found, expected)) if pair[0] != pair[1])
        raise Wrong(f"{what}: word {at} is {found[at]:#x}, not {expected[at]:#x}")


def raster_copy(side):
    """Registers of a TFU job: rows of 32-bit texels to rows."""
    return {"icfg": 29 << 16, "iis": side, "ios": side << 16 | side, "ioc": side << 16}


class Victim:
    """What all have; subclasses have _open(), device, compute() and render()."""

    def __init__(self, settled, seed):
        self.random = random.Random(seed)
        self.settled = settled
        self.rounds = 0
        self._open()

    def convert(self):
        """Something that needs objects for this round only."""

    def round(self):
        if not self.settled and self.rounds % 8 == 7:
            self.device.close()
            self._open()
        self.rounds += 1
        self.compute()
        self.render()
        if not self.settled and self.rounds % 4 == 0:
            self.convert()


class V3dVictim(Victim):
    def _open(self):
        self.device = drm.Device()
        self.program, self.result = self.device.bo(qpu_program.SIZE), self.device.bo(4096)
        self.commands, self.image = self.device.bo(4096), self.device.bo(4 * SIDE * SIDE)
        self.tiles = self.device.bo(1 << 18)

    def compute(self):
        a, b = self.random.randrange(1 << 12), self.random.getrandbits(31)
        qpu_program.load(self.program, LINEAR, [a, b, self.result.address], self.device.version)
        for i in range(16 * WORKGROUPS):
            self.result.words[i] = 0
        self.device.submit_csd(qpu_program.config(self.device, self.program, WORKGROUPS), [self.program, self.result])
        self.device.wait(self.result, PATIENCE)
        compare("compute", self.result.words[:16 * WORKGROUPS].tolist(),
                [(a * i + b) & 0xffffffff for i in range(16 * WORKGROUPS)])

    def render(self):
        color = self.random.getrandbits(32)
        generic = lists.generic_tile(self.image.address, 4 * SIDE)
        binning = lists.empty_bin(SIDE, SIDE)
        at = self.commands.address
        rendering = lists.render(SIDE, SIDE, color, at + 256, len(generic))
        content = (binning.ljust(256, b"\0") + generic.ljust(256, b"\0") + rendering).ljust(1024, b"\0")
        self.commands.words[:256] = memoryview(content).cast("I")
        self.device.submit_cl([self.commands, self.image, self.tiles], (at, at + len(binning)),
                              (at + 512, at + 512 + len(rendering)),
                              (self.tiles.address, self.tiles.size // 2, self.tiles.address + self.tiles.size // 2))
        self.device.wait(self.image, PATIENCE)
        compare("picture", self.image.words[:SIDE * SIDE].tolist(), [color] * (SIDE * SIDE))

    def convert(self):
        """The picture through the TFU into an object that lives for this round only."""
        texels = array.array("I", (self.random.getrandbits(32) for _ in range(32 * 32)))
        source, target = drm.v3d_drm.Bo(self.device, 4096), drm.v3d_drm.Bo(self.device, 4096)
        source.words[:] = memoryview(texels)
        self.device.submit_tfu([target, source], iia=source.address, ioa=target.address, **raster_copy(32))
        self.device.wait(target, PATIENCE)
        compare("texture", target.words.tolist(), texels.tolist())
        source.close()
        target.close()


class V3d42Victim(V3dVictim):
    """That of V3D 4.2, of which the lists here are none: it computes."""

    def render(self):
        pass

    def convert(self):
        pass


# Stores a * lane + b in a row of sixteen words. Uniforms: a, b, result.
VC4_LINEAR = """
    mov r1, uni
    mov r2, elem
    mul24 r1, r1, r2
    mov r0, uni
    add r0, r0, r1
    load_imm vw_setup, nop, 0x00001a00
    mov vpm, r0
    load_imm vw_setup, nop, 0x80904000
    load_imm vw_setup, nop, 0xc0000000
    mov vw_addr, uni
    mov nop, vpm_st_wait
end
"""


class Patient(vc4_drm.Device):
    """The memory of the board is for all: as Mesa does it asks again when there is none."""

    def ioctl(self, direction, number, argument):
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return super().ioctl(direction, number, argument)
            except OSError as error:
                if error.errno != errno.ENOMEM or time.monotonic() > until:
                    raise
                time.sleep(0.001)


class VideoCoreVictim(Victim):
    CODE, UNIFORMS, RESULT = 0, 0x400, 0x800

    def __init__(self, settled, seed):
        self.mailbox = vc4_drm.Mailbox()
        self.mailbox.enable()
        self.memory = vc4_drm.Memory(self.mailbox, 4096)
        super().__init__(settled, seed)

    def _open(self):
        self.device = Patient()
        self.image, self.vertices = self.device.bo(4 * SIDE * SIDE), self.device.bo(4096)
        far = 3 * 16 * SIDE  # a triangle that covers the frame
        self.vertices.words[:3] = memoryview(array.array("I", [0, far, far << 16]))
        self.programs = [self.device.shader(vc4_drm.assembled(text)) for text in (vc4_drm.VERTEX, vc4_drm.COORDINATE)]

    def compute(self):
        a, b = self.random.randrange(1 << 12), self.random.getrandbits(31)
        code = self.memory.put(self.CODE, vc4_drm.assembled(VC4_LINEAR))
        result = self.memory.put(self.RESULT, [0] * 16)
        uniforms = self.memory.put(self.UNIFORMS, [a, b, result])
        status = self.mailbox.execute(self.memory, [(uniforms, code)], 10_000)
        if status:
            raise Wrong(f"the user program did not end: {status:#x}")
        compare("compute", array.array("I", self.memory.map[self.RESULT:self.RESULT + 64]).tolist(),
                [(a * lane + b) & 0xffffffff for lane in range(16)])

    def render(self):
        """Half of the rounds: a triangle with a program of its own. The others: a clear."""
        color = self.random.getrandbits(32)
        if self.rounds % 2:
            self.device.submit([self.image.handle], 0, SIDE, clear_color=(drm.U32 * 2)(color, color))
        else:
            words = vc4_drm.assembled(vc4_drm.FRAGMENT.format(0)).replace(bytes(4), struct.pack("<I", color), 1)
            fragment = self.device.shader(words)
            tiles = -(-SIDE // vc4_drm.TILE)
            binning = vc4_drm.start(tiles, tiles) + vc4_drm.draw_state(SIDE) + vc4_drm.draw(vc4_drm.TRIANGLES, 3)
            self.device.submit([self.image.handle, fragment, *self.programs, self.vertices.handle], 0, SIDE,
                               binning + vc4_drm.FINISH, vc4_drm.record(1, 2, 3, 4), shader_rec_count=1)
            self.device.close_handle(fragment)
        self.device.wait(self.image, PATIENCE)
        compare("picture", self.image.words[:SIDE * SIDE].tolist(), [color] * (SIDE * SIDE))


VICTIMS = {board.DEFAULT: V3dVictim, board.V3D42: V3d42Victim, board.VIDEOCORE: VideoCoreVictim}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--settled", action="store_true")
    parser.add_argument("--wrong-after", type=int)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    victim = None
    while not select.select([sys.stdin], [], [], PAUSE)[0]:
        at = time.monotonic()
        try:
            victim = victim or VICTIMS[board.name()](options.settled, options.seed)
            victim.round()
            if victim.rounds == options.wrong_after:
                raise Wrong("as --wrong-after asks")
        except (OSError, Wrong) as error:
            print(json.dumps({"at": at, "wrong": str(error)}), flush=True)
            sys.exit(1)
        print(json.dumps({"at": at, "took": time.monotonic() - at}), flush=True)


if __name__ == "__main__":
    main()
