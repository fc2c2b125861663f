#!/usr/bin/env python3
"""Runs samples/qpu/double.qasm, assembled, on 1024 floats: with the kernel's interface alone, no driver.

    v3demu asm --check -o double.bin samples/qpu/double.qasm
    v3demu run -- samples/qpu/double.py double.bin
"""
import array
import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))
from v3demu import drm  # noqa: E402  pylint: disable=wrong-import-position

COUNT = 1024
UNIFORMS = 0x800  # in the buffer object of the program, after the code

if len(sys.argv) != 2:
    sys.exit(__doc__)
with open(sys.argv[1], "rb") as file:
    code = array.array("I", file.read())
device = drm.Device(drm.RENDER)
program, x, y = device.bo(4096), device.bo(4 * COUNT), device.bo(4 * COUNT)
program.words[:len(code)] = memoryview(code)
program.words[UNIFORMS // 4:UNIFORMS // 4 + 2] = memoryview(array.array("I", [x.address, y.address]))
for i in range(COUNT):
    x.floats[i] = i
workgroups = COUNT // 16
device.submit_csd(drm.csd_config(device, program.address, program.address + UNIFORMS, workgroups, (workgroups, 1, 1)),
                  [program, x, y])
device.wait(y)
print(y.floats[:4].tolist(), "...", y.floats[COUNT - 1])
right = all(y.floats[i] == 2 * i for i in range(COUNT))
device.close()
sys.exit(not right)
