"""A program in a buffer object: code at its start, uniforms after it.

The text may have the lines that v3demu.kernels.translated() knows.
"""

import array
import functools
import os
import subprocess

import qpu_asm
import v3d_drm
from v3demu.kernels import translated  # after v3d_drm, which knows where it is

SIZE = 1 << 16  # of the buffer object
UNIFORMS = 0x8000

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
