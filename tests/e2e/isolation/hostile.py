#!/usr/bin/env python3
"""A client that means ill: garbage control lists, shaders, dispatches and TFU jobs, wild addresses, bad ioctl arguments;
then a job without end, in the middle of which it waits to be killed.

usage: hostile.py SEED        prints "endless" when the last job runs
"""
import ctypes
import errno
import itertools
import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "qpu_programs"))
import qpu_program  # pylint: disable=wrong-import-position
import v3d_drm  # pylint: disable=wrong-import-position

SUBMIT_CL, SUBMIT_TFU = 0x40, 0x46
SubmitCl = v3d_drm._struct("SubmitCl", words=ctypes.c_uint32 * 10, bo_handles=ctypes.c_uint64, count=ctypes.c_uint32,
                           flags=ctypes.c_uint32, perfmon=ctypes.c_uint32, pad=ctypes.c_uint32,
                           extensions=ctypes.c_uint64)
SubmitTfu = v3d_drm._struct("SubmitTfu", words=ctypes.c_uint32 * 22)
assert ctypes.sizeof(SubmitCl) == 72 and ctypes.sizeof(SubmitTfu) == 88

# A binning list that starts properly, so that what follows is executed.
BIN_PREFIX = bytes([119, 0, 120, 0x40, 0x1b, 0, 0, 63, 0, 63, 0, 19, 6])


def submit_cl(device, bo, bin_range, render_range, flags=0):
    handles = (ctypes.c_uint32 * 1)(bo.handle)
    submit = SubmitCl(bo_handles=ctypes.addressof(handles), count=1, flags=flags)
    submit.words[:] = [*bin_range, *render_range, 0, 0, 0, bo.address, bo.size, bo.address]
    device.ioctl(v3d_drm.READ_WRITE, SUBMIT_CL, submit)


def garbage(random_source, size, device_addresses):
    """Random bytes with many plausible opcodes and addresses among them."""
    opcodes = [16, 17, 20, 21, 23, 26, 27, 29, 30, 32, 34, 36, 38, 44, 64, 66, 74, 84, 92, 96, 107, 119, 120, 121, 124]
    data = bytearray(random_source.randbytes(size))
    for _ in range(size // 16):
        data[random_source.randrange(size)] = random_source.choice(opcodes)
        at = random_source.randrange(size - 4)
        data[at:at + 4] = struct.pack("<I", random_source.choice(device_addresses) + random_source.randrange(4096))
    return data


def attack(device, random_source, rounds):
    size = 1 << 16
    bo = device.bo(size)
    for _ in range(rounds):
        data = garbage(random_source, size, [bo.address, bo.address + 0x8000, 0, 0xfffff000])
        data[:len(BIN_PREFIX)] = BIN_PREFIX
        bo.words[:] = memoryview(bytes(data)).cast("I")
        kind = random_source.randrange(5)
        start = bo.address + random_source.randrange(0, 0x4000)
        if kind == 0:
            submit_cl(device, bo, (bo.address, bo.address + 0x1000), (start, start + 0x800))
        elif kind == 1:
            submit_cl(device, bo, (start, start + 64), (start, start), flags=1)
        elif kind == 2:
            cfg = [random_source.getrandbits(32) for _ in range(7)]
            cfg[0:3] = [random_source.randrange(1, 5) << 16] * 3
            cfg[4] = random_source.randrange(200)
            cfg[5] = (start & ~7) | random_source.randrange(8)
            device.submit_csd(cfg, [bo])
        elif kind == 3:
            tfu = SubmitTfu()
            tfu.words[:] = [random_source.getrandbits(32) for _ in range(7)] + [0] * 15
            tfu.words[1] = tfu.words[5] = bo.address
            tfu.words[6] = random_source.randrange(1, 64) | random_source.randrange(1, 64) << 16
            tfu.words[11] = bo.handle
            try:
                device.ioctl(v3d_drm.WRITE, SUBMIT_TFU, tfu)
            except OSError:
                pass
        else:
            bad = SubmitCl(bo_handles=random_source.getrandbits(47), count=random_source.getrandbits(32),
                           flags=random_source.getrandbits(3), extensions=random_source.getrandbits(47))
            try:
                device.ioctl(v3d_drm.READ_WRITE, SUBMIT_CL, bad)
            except OSError as error:
                assert error.errno in (errno.EINVAL, errno.EFAULT, errno.ENOENT, errno.ENOMEM), error
        try:
            device.wait(bo, 20)
        except OSError as error:
            assert error.errno == errno.ETIME, error


def main():
    random_source = random.Random(int(sys.argv[1]))
    device = v3d_drm.Device(v3d_drm.RENDER)
    attack(device, random_source, 150)
    hoard = [device.bo(8 << 20) for _ in range(8)]
    for bo in hoard:
        bo.words[0] = 1
    program = device.bo(qpu_program.SIZE)
    qpu_program.load(program, "here:\n b here\n nop\n nop\n nop\n")
    for jobs in itertools.count():  # each is reset at last
        device.submit_csd(qpu_program.config(device, program, 24), [program])
        if jobs == 0:
            print("endless", flush=True)
        device.wait(program, 600)


if __name__ == "__main__":
    main()
