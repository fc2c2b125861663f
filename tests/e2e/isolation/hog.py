#!/usr/bin/env python3
"""A client whose jobs do not end, or not in the time that others would wait.

usage: hog.py KIND      prints "busy" when the first job is queued; hogs until it is killed
       hog.py fates     submits one job of each kind and prints the status of its fence (1, or a negative errno)
       hog.py passed    submits endless jobs through the descriptor on its standard input, prints "busy" and waits
"""
import ctypes
import fcntl
import os
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "qpu_programs"))
import qpu_program  # pylint: disable=wrong-import-position
import v3d_drm  # pylint: disable=wrong-import-position
from hostile import BIN_PREFIX, SUBMIT_CL, SUBMIT_TFU, SubmitCl, SubmitTfu  # pylint: disable=wrong-import-position

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
        handles = (ctypes.c_uint32 * 1)(self.lists.handle)
        submit = SubmitCl(bo_handles=ctypes.addressof(handles), count=1)
        base = self.lists.address
        submit.words[:] = [*bin_range, *render_range, 0, 0, out_sync, base, self.lists.size, base]
        self.device.ioctl(v3d_drm.READ_WRITE, SUBMIT_CL, submit)

    def write(self, offset, data):
        data = bytes(data) + bytes(-len(data) % 4)
        self.lists.words[offset // 4:(offset + len(data)) // 4] = memoryview(data).cast("I")

    def render(self, out_sync=0):
        """A rendering list that branches to itself."""
        at = self.lists.address + 0x1000
        self.write(0x1000, bytes([NOP, BRANCH]) + struct.pack("<I", at))
        self.submit_cl((at, at), (at, at + 0x800), out_sync)

    def bin(self, out_sync=0):
        """A binning list that branches to itself, behind a proper start."""
        at = self.lists.address + 0x2000
        loop = at + len(BIN_PREFIX)
        self.write(0x2000, BIN_PREFIX + bytes([NOP, BRANCH]) + struct.pack("<I", loop))
        self.submit_cl((at, at + 0x800), (at, at), out_sync)

    def convert(self, width, height, out_sync=0):
        """A raster copy of `height` rows, all of which are the first one."""
        rgba32f = 31
        tfu = SubmitTfu()
        tfu.words[0] = rgba32f << 16
        tfu.words[1], tfu.words[5] = self.image.address, self.image.address + (1 << 19)
        tfu.words[6] = height << 16 | width
        tfu.words[11] = self.image.handle
        tfu.words[16] = out_sync
        self.device.ioctl(v3d_drm.WRITE, SUBMIT_TFU, tfu)

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
        device = v3d_drm.Device.__new__(v3d_drm.Device)
        device.fd, device._bos = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3), []
        device.revision = device.param(v3d_drm.PARAM_HUB_IDENT3) >> 8 & 255
        os.close(0)
    else:
        device = v3d_drm.Device(v3d_drm.RENDER)
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
