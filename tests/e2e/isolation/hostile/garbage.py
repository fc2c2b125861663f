#!/usr/bin/env python3
"""A client that means ill: garbage control lists, shaders, dispatches and TFU jobs, wild addresses, bad ioctl arguments;
then a job without end, in the middle of which it waits to be killed.

usage: garbage.py SEED        prints "endless" when the last job runs
"""
import errno
import itertools
import os
import random
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from hostile import drm, lists  # pylint: disable=wrong-import-position
import qpu_program  # pylint: disable=wrong-import-position

# What a binning list begins with, so that what follows is executed.
BIN_PREFIX = lists.start_binning(64, 64)


def submit_cl(device, bo, bin_range, render_range, flags=0):
    device.submit_cl([bo], bin_range, render_range, (bo.address, bo.size, bo.address), flags=flags)


def garbage(random_source, size, device_addresses):
    """Random bytes with many plausible opcodes and addresses among them."""
    opcodes = [16, 17, 20, 21, 23, 26, 27, 29, 30, 32, 34, 36, 38, 44, 64, 66, 74, 84, 92, 96, 107, 119, 120, 121, 124]
    data = bytearray(random_source.randbytes(size))
    for _ in range(size // 16):
        data[random_source.randrange(size)] = random_source.choice(opcodes)
        at = random_source.randrange(size - 4)
        data[at:at + 4] = struct.pack("<I", random_source.choice(device_addresses) + random_source.randrange(4096))
    return data


def attack(device, random_source, rounds, patience=20):
    """patience: seconds for which it waits for a job."""
    memory = 1 << 16
    bo = device.bo(memory)
    for _ in range(rounds):
        data = garbage(random_source, memory, [bo.address, bo.address + 0x8000, 0, 0xfffff000])
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
            icfg, iis, ica, iua, ioc = (random_source.getrandbits(32) for _ in range(5))
            size = random_source.randrange(1, 64) | random_source.randrange(1, 64) << 16
            try:
                device.submit_tfu([bo], icfg=icfg, iia=bo.address, iis=iis, ica=ica, iua=iua, ioa=bo.address, ios=size,
                                  ioc=ioc)
            except OSError:
                pass
        else:
            bad = drm.SubmitCl(bo_handles=random_source.getrandbits(47), bo_handle_count=random_source.getrandbits(32),
                               flags=random_source.getrandbits(3), extensions=random_source.getrandbits(47))
            try:
                device.ioctl(drm.READ_WRITE, drm.SUBMIT_CL, bad)
            except OSError as error:
                assert error.errno in (errno.EINVAL, errno.EFAULT, errno.ENOENT, errno.ENOMEM), error
        try:
            device.wait(bo, patience)
        except OSError as error:
            assert error.errno == errno.ETIME, error


def main():
    random_source = random.Random(int(sys.argv[1]))
    device = drm.Device()
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
