#!/usr/bin/env python3
"""A client whose jobs do not end, or not in the time that others would wait.

usage: hog.py KIND      prints "busy" when the first job is queued; hogs until it is killed
       hog.py fates     submits one job of each kind and prints the status of its fence (1, or a negative errno)
       hog.py passed    submits endless jobs through the descriptor on its standard input, prints "busy" and waits
"""
import fcntl
import os
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "qpu_programs"))
import qpu_program  # pylint: disable=wrong-import-position
from hostile import drm, lists  # pylint: disable=wrong-import-position

ENDLESS = "here:\n b here\n nop\n nop\n nop\n"
NOP, BRANCH, RETURN = 1, 16, 18
QUEUED = 16  # jobs at a time


class Hog:
    def __init__(self, device):
        self.device = device
        self.program = device.bo(qpu_program.SIZE)
        self.lists = device.bo(1 << 16)
        self.image = device.bo(1 << 20)
        qpu_program.load(self.program, ENDLESS)

    def compute(self, out_sync=0, batches=24):
        cfg = qpu_program.config(self.device, self.program, batches)
        self.device.submit_csd(cfg, [self.program], out_sync=out_sync)

    def submit_cl(self, bin_range, render_range, out_sync=0):
        base = self.lists.address
        self.device.submit_cl([self.lists], bin_range, render_range, (base, self.lists.size, base), out_sync=out_sync)

    def write(self, offset, data):
        data = bytes(data) + bytes(-len(data) % 4)
        self.lists.words[offset // 4:(offset + len(data)) // 4] = memoryview(data).cast("I")

    def render(self, out_sync=0):
        """A rendering list that branches to itself."""
        at = self.lists.address + 0x1000
        self.write(0x1000, bytes([NOP, BRANCH]) + struct.pack("<I", at))
        self.submit_cl((at, at), (at, at + 0x800), out_sync)

    def bin(self, out_sync=0):
        """A binning list that branches to itself, after a proper start."""
        at = self.lists.address + 0x2000
        start = lists.start_binning(64, 64)
        loop = at + len(start)
        self.write(0x2000, start + bytes([NOP, BRANCH]) + struct.pack("<I", loop))
        self.submit_cl((at, at + 0x800), (at, at), out_sync)

    def convert(self, width, height, out_sync=0):
        """A raster copy of `height` rows, all of which are the first one."""
        rgba32f = 31
        self.device.submit_tfu([self.image], icfg=rgba32f << 16, iia=self.image.address,
                               ioa=self.image.address + (1 << 19), ios=height << 16 | width, out_sync=out_sync)

    def tfu(self, out_sync=0):
        self.convert(16384, 16384, out_sync)

    def tfu_absurd(self, out_sync=0):
        self.convert(65535, 65535, out_sync)

    KINDS = (compute, render, bin, tfu, tfu_absurd)


def print_fates(hog):
    for kind in Hog.KINDS:
        syncobj = hog.device.syncobj()
        kind(hog, out_sync=syncobj)
        begin = time.monotonic()
        while (status := hog.device.status(syncobj)) == 0 and time.monotonic() - begin < 120:
            time.sleep(0.01)
        print(kind.__name__, status, flush=True)


def main():
    kind = sys.argv[1]
    if kind == "passed":
        device = drm.Device(fd=fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3))
        os.close(0)
    else:
        device = drm.Device()
    hog = Hog(device)
    if kind == "fates":
        return print_fates(hog)
    submit = Hog.compute if kind == "passed" else getattr(Hog, kind)
    while True:
        for _ in range(QUEUED):
            submit(hog)
        print("busy", flush=True)
        if kind == "passed":
            time.sleep(900)
        for bo in (hog.program, hog.lists, hog.image):
            try:
                device.wait(bo, 600)
            except OSError:
                pass


if __name__ == "__main__":
    main()
