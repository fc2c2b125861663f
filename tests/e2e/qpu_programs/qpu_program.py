"""A program in a buffer object: code at its start, uniforms after it.

One text serves both chips where it keeps to what they share. For the rest there are lines of our own:

    workgroup_x rf1         # one of the three numbers of the workgroup, from the payload registers
    copy tmua, rf2 ; ...    # a move on the add ALU
"""

import array
import functools
import os
import re
import subprocess

import qpu_asm
import v3d_drm

SIZE = 1 << 16  # of the buffer object
UNIFORMS = 0x8000

# Where the numbers of the workgroup stand: register by version, and which half of it.
WORKGROUP = {"x": ({71: "rf3", 42: "rf0"}, "ul"), "y": ({71: "rf3", 42: "rf0"}, "uh"), "z": ({71: "rf2", 42: "rf2"}, "ul")}


def _workgroup(version, axis, to):
    registers, half = WORKGROUP[axis]
    source = registers[version]
    if version >= 71:
        return f"mov {to}, {source}.{half}"
    first = f"shl {to}, {source}, 8\nshl {to}, {to}, 8\nshr {to}, {to}, 8" if half == "ul" else f"shr {to}, {source}, 8"
    return f"{first}\nshr {to}, {to}, 8"


def translated(text, version):
    """The text without lines of our own."""
    text = re.sub(r"workgroup_([xyz]) (\w+)", lambda m: _workgroup(version, *m.groups()), text)
    return re.sub(r"copy (\w+), (\w+)", r"mov \1, \2" if version >= 71 else r"or \1, \2, \2", text)


@functools.cache
def assembled(text, version):
    """The code: by the assembler of this folder, for V3D 4.2 by that of v3demu, which $V3DEMU names."""
    text = translated(text, version)
    if version >= 71:
        return qpu_asm.to_bytes(qpu_asm.assemble(text))
    done = subprocess.run([os.environ["V3DEMU"], "asm", "--chip", "4.2", "--format", "bin", "-"], input=text.encode(),
                          capture_output=True, check=False)
    if done.returncode != 0:
        raise qpu_asm.AsmError(done.stderr.decode())
    return done.stdout


def load(program, text, uniforms=(), version=71):
    """Writes the code of a text, and the uniforms as 32-bit words, into a buffer object of SIZE bytes."""
    for at, words in ((0, array.array("I", assembled(text, version))),
                      (UNIFORMS // 4, array.array("I", (value & 0xffffffff for value in uniforms)))):
        program.words[at:at + len(words)] = memoryview(words)


def config(device, program, batches, grid=None, **options):
    """CFG0..CFG6 that dispatch a loaded program; the default grid has a workgroup for each batch."""
    return v3d_drm.csd_config(device, program.address, program.address + UNIFORMS, batches, grid or (batches, 1, 1),
                              **options)
