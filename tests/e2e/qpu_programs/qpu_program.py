"""A program in a buffer object: code at its start, uniforms behind."""

import array

import qpu_asm
import v3d_drm

SIZE = 1 << 16  # of the buffer object
UNIFORMS = 0x8000


def load(program, text, uniforms=()):
    """Writes the code of a text for qpu_asm, and the uniforms as 32-bit words, into a buffer object of SIZE bytes."""
    for at, words in ((0, array.array("I", qpu_asm.to_bytes(qpu_asm.assemble(text)))),
                      (UNIFORMS // 4, array.array("I", (value & 0xffffffff for value in uniforms)))):
        program.words[at:at + len(words)] = memoryview(words)


def config(device, program, batches, grid=None, **options):
    """CFG0..CFG6 that dispatch a loaded program; the default grid has a workgroup for each batch."""
    return v3d_drm.csd_config(device, program.address, program.address + UNIFORMS, batches, grid or (batches, 1, 1),
                              **options)
