#!/usr/bin/env python3
"""Prints a program for the QPUs of VideoCore IV (Raspberry Pi 0 to 3): Fourier transforms of 256 complex numbers, each
by two times 16 transforms of 16 numbers, one in each lane. samples/qpu/mailbox.py runs it.

    samples/qpu/fft256.py > fft256.qasm
    v3demu asm --chip 2.1 --check -o fft256.bin fft256.qasm

Uniforms: first of the 32 rows of the VPM that are its own (0 or 32); the table; whether it waits for another such program,
which does not; how many transforms; for each, where it reads and where it writes. Both are 256 real parts, then 256
imaginary ones. The table has for each row k of 16 the cosines, then the negative sines of 2 pi k lane / 256.
"""
import math

REVERSED = [int(f"{n:04b}"[::-1], 2) for n in range(16)]


def print_transform():
    """Of 16 rows: real parts in ra0 to ra15, imaginary ones in rb0 to rb15, which are in the order of reversed bits."""
    half = 1
    while half < 16:
        print("  nop")
        for first in range(0, 16, 2 * half):
            for k in range(half):
                print_butterfly(first + k, first + k + half, k * 8 // half)
        half *= 2


def print_butterfly(a, b, turn):
    """a, b = a + w b, a - w b, where w is `turn` sixteenths of a turn back. w b: r0, r1."""
    if turn == 0:
        print(f"  mov r0, ra{b} ; mov r1, rb{b}")
    elif turn == 4:  # -i
        print(f"  mov r0, rb{b} ; nop")
        print("  load_imm r2, nop, 0xbf800000")
        print(f"  nop ; fmul r1, ra{b}, r2")
    else:
        angle = -2 * math.pi * turn / 16
        print(f"  load_imm r2, nop, {bits(math.cos(angle))}")
        print(f"  load_imm r3, nop, {bits(math.sin(angle))}")
        print_product(b)
    print(f"  fsub ra{b}, ra{a}, r0")
    print(f"  fadd ra{a}, ra{a}, r0")
    print(f"  fsub rb{b}, rb{a}, r1")
    print(f"  fadd rb{a}, rb{a}, r1")


def print_product(n):
    """r0, r1 = row n times r2, r3"""
    print(f"  nop ; fmul r0, ra{n}, r2")
    print(f"  nop ; fmul r1, rb{n}, r3")
    print(f"  fsub r0, r0, r1 ; fmul r1, rb{n}, r2")
    print(f"  nop ; fmul r3, ra{n}, r3")
    print("  fadd r1, r1, r3")


def bits(value):
    import struct
    return "0x%08x" % struct.unpack("<I", struct.pack("<f", value))


def print_setup(port, word, shift=0, more=0):
    """A word for the VPM or its DMA, in which the program's first row is at bit `shift`."""
    print(f"  load_imm r0, nop, 0x{word + (more << shift):08x}")
    if shift:
        print(f"  shl r1, ra16, {shift}")
        print(f"  add {port}, r0, r1")
    else:
        print(f"  add {port}, r0, ra16")


def print_rows(order, word):
    """Reads 16 real and 16 imaginary rows."""
    for file, more in (("ra", 0), ("rb", 16)):
        print_setup("vr_setup", word, more=more)
        for n in order:
            print(f"  mov {file}{n}, vpm_read")
    print("  nop")


def print_program():
    print("  mov ra16, uni")
    print("  mov r0, uni")
    print("  shl r1, elem, 2")
    print("  add ra17, r0, r1")
    print("  load_imm ra18, nop, 64")
    print("  mov ra20, uni")
    print("  mov ra19, uni")
    print("transform:")
    print("  mov r2, uni")
    for more in (0, 16):
        print_setup("vr_setup", 0x83001000, shift=4, more=more)  # 16 rows of 16 words
        print("  mov vr_addr, r2")
        print("  mov nop, vpm_ld_wait")
        print("  load_imm r3, nop, 1024")
        print("  add r2, r2, r3")
    print_rows(REVERSED, 0x1a00)
    print_transform()
    print("  nop")

    print("# times the table, and turned by 90 degrees")
    print_setup("vw_setup", 0x1a00)
    print("  mov vpm, ra0")
    for n in range(1, 16):
        print(f"  load_imm r0, nop, {128 * n}")
        print("  add r0, r0, ra17")
        print("  mov tmu0_s, r0")
        print("  add tmu0_s, r0, ra18")
        print("  load_tmu0")
        print("  mov r2, r4 ; load_tmu0")
        print("  mov r3, r4")
        print_product(n)
        print("  mov vpm, r0")
        print(f"  mov rb{n}, r1")
    print_setup("vw_setup", 0x1a00, more=16)
    for n in range(16):
        print(f"  mov vpm, rb{n}")
    print_rows(REVERSED, 0x1200)
    print_transform()
    print("  nop")

    print("  mov r2, uni")
    for file, more in (("ra", 0), ("rb", 16)):
        print_setup("vw_setup", 0x1a00, more=more)
        for n in range(16):
            print(f"  mov vpm, {file}{n}")
        print_setup("vw_setup", 0x80000000 | 16 << 23 | 16 << 16 | 1 << 14, shift=7, more=more)
        print("  load_imm vw_setup, nop, 0xc0000000")
        print("  mov vw_addr, r2")
        print("  mov nop, vpm_st_wait")
        print("  load_imm r3, nop, 1024")
        print("  add r2, r2, r3")
    print("  sub.sf ra19, ra19, 1")
    print("  branch.any_zc transform")
    print("  nop\n  nop\n  nop")

    print("  mov.sf nop, ra20")
    print("  branch.all_zs giver")
    print("  nop\n  nop\n  nop")
    print("  sacq 0")
    print("  mov host_int, 1")
    print("  end")
    print("giver:")
    print("  srel 0")
    print("  end")


print_program()
