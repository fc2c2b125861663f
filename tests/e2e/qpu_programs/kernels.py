"""Hand-written compute kernels that the tests and bench/compute_bench.py share, as text for qpu_program.

SGEMM, SCOPY and SOFTMAX have a text for each version of the chip, 71 and 42: a word of 4.2 reads two registers of the file
at most, so that what is used most stands in accumulators, and either writes to the TMU or loads from it. The others are for 7.1.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "python"))
from v3demu.kernels import LOOKUPS_AHEAD, PLACE_OF_BLOCK, SGEMM, SGEMM_K, SGEMM_SLACK_ROWS, gemm, with_load  # noqa: E402,F401  pylint: disable=wrong-import-position,unused-import

SCOPY_UNROLL = 8         # vectors of 16 floats for each turn of SCOPY
SCOPY_SLACK_BYTES = 64 * SCOPY_UNROLL  # after the source, read and not used

# Each lane stores a value after that of the lane before. Uniforms: address, value.
STORE = """
    eidx rf1
    shl rf1, rf1, 2
    ldunifrf.rf3
    ldunifrf.rf4
    mov tmud, rf4
    add tmua, rf3, rf1
    tmuwt -
end
"""


def _scopy(version):
    """Copies turns * 128 floats in each thread; the parts of the threads follow each other.

    Uniforms: bits of TIDX that do not count, turns, bytes of a thread's part, source, destination.
    """
    text = ["""
        tidx rf9
        ldunifrf.rf10
        shr rf9, rf9, rf10
        ldunifrf.rf10                       # turns
        ldunifrf.rf13
        umul24 rf0, rf9, rf13
        eidx rf1
        shl rf1, rf1, 2
        add rf0, rf0, rf1
        ldunifrf.rf11
        add rf11, rf11, rf0
        ldunifrf.rf12
        add rf12, rf12, rf0
        mov rf14, 4
        shl rf14, rf14, 4
        nop ; thrsw
    """]
    text += ["copy tmua, rf11 ; add rf11, rf11, rf14"] * SCOPY_UNROLL
    text += ["loop:"]
    turn = []
    value = "rf20" if version >= 71 else "r0"
    for _ in range(SCOPY_UNROLL):
        turn += with_load(version, "copy tmua, rf11 ; add rf11, rf11, rf14", f"ldtmu.{value}")
        turn += [f"mov tmud, {value}", "copy tmua, rf12 ; add rf12, rf12, rf14"]
    counted = turn.index(f"mov tmud, {value}")
    turn[counted] = f"sub.pushz rf10, rf10, 1 ; mov tmud, {value}"
    turn.insert(-3, "b.anyna loop")
    text += turn + [f"ldtmu.{value}"] * SCOPY_UNROLL
    return "\n".join(text + ["tmuwt -", "end"])


def _sgemm_rotated():
    """As SGEMM, but for 4.2 alone and by rotation, as kernels for that chip were first written: sixteen elements of a row of A are
    a vector, and each in turn is rotated into lane 0, which r5rep spreads. The last uniform is columns of A / 16.
    """
    text = [PLACE_OF_BLOCK + """\
        shl rf2, rf2, 2
        add rf7, rf7, rf1
        add rf14, rf14, rf1
        add rf4, rf4, rf2
        mov rf13, 4
        shl rf13, rf13, 4                   # 64: bytes of sixteen elements of a row of A
        nop ; thrsw
        nop
        nop
    """]
    text += [f"mov rf{16 + row}, 0" for row in range(16)]
    text += ["loop:", "mov rf10, rf4"]
    for half in range(2):
        text += ["copy tmua, rf7 ; add rf7, rf7, rf6"] * 8
        text += [f"ldtmu.rf{32 + 8 * half + k}" for k in range(8)]
    text += ["copy tmua, rf10 ; add rf10, rf10, rf5"] * 4
    for row in range(16):
        text += ["ldtmu.r0", "copy tmua, rf10 ; add rf10, rf10, rf5" if row < 12 else "nop", "nop ; mov r1, 0"]
        for k in range(16):
            text += [f"fadd rf{16 + row}, rf{16 + row}, r1 ; mov r5rep, r0" + (f" ; rot.{-k}" if k else ""),
                     f"nop ; fmul r1, r5, rf{32 + k}"]
        text += [f"fadd rf{16 + row}, rf{16 + row}, r1"]
    text += ["add rf4, rf4, rf13", "sub.pushz rf9, rf9, 1", "b.anyna loop", "nop", "nop", "nop"]
    for row in range(16):
        text += [f"mov tmud, rf{16 + row}", "copy tmua, rf14 ; add rf14, rf14, rf6"]
    return "\n".join(text + ["tmuwt -", "end"])


SGEMM_ROTATED = _sgemm_rotated()
SCOPY = {version: _scopy(version) for version in (71, 42)}

# C = A B of bytes, sums of 32 bits. As SGEMM, whose words hold four elements of a row of A, and of a column of B; so
# the rows of A are K bytes, and those of B, of which there are K / 4, 4 * columns bytes. K is a multiple of 128.
IGEMM8 = {mode: gemm("v8dot", "add", f"setnnmode_{mode}") for mode in ("uu", "su", "us", "ss")}
IGEMM8_K = 4 * SGEMM_K


def _combined_lanes(add, register, version):
    """Leaves in all lanes of a register what `add` makes of them all. Changes rf8, or r0 and r1 of 4.2."""
    if version >= 71:
        return "\n".join(f"rot rf8, {register}, {n}\n{add} {register}, {register}, rf8" for n in (8, 4, 2, 1))
    steps = (f"nop\nnop ; mov r1, r0 ; rot.{n}\n{add} r0, r0, r1" for n in (8, 4, 2, 1))
    return "\n".join([f"mov r0, {register}", *steps, f"mov {register}, r0"])


def _softmax(version):
    """Softmax of rows of floats: 2 ** (log2(e) * (x - maximum)), divided by its sum.

    A batch computes one row, the one of its workgroup x; lane i has the elements i, i + 16 and so on.
    Uniforms: source, destination, vectors of 16 floats in a row, -infinity, log2(e).
    """
    return "\n".join(["""
        ldunifrf.rf10
        ldunifrf.rf11
        ldunifrf.rf12
        ldunifrf.rf7                        # maximum
        ldunifrf.rf13
        mov rf14, 4
        shl rf14, rf14, 4                   # 64: bytes of a vector
        workgroup_x rf1
        shl rf2, rf12, 6
        umul24 rf1, rf1, rf2
        eidx rf2
        shl rf2, rf2, 2
        add rf1, rf1, rf2
        add rf10, rf10, rf1
        add rf11, rf11, rf1
        copy rf5, rf10 ; mov rf6, rf12
    find_maximum:
        mov tmua, rf5 ; thrsw
        add rf5, rf5, rf14
        sub.pushz rf6, rf6, 1
        ldtmu.rf8
        b.anyna find_maximum
        fmax rf7, rf7, rf8
        nop
        nop
    """, _combined_lanes("fmax", "rf7", version), """
        copy rf5, rf11 ; mov rf6, rf12
        mov rf9, 0                          # sum
    power:
        mov tmua, rf10 ; thrsw
        add rf10, rf10, rf14
        sub.pushz rf6, rf6, 1
        ldtmu.rf8
        fsub rf8, rf8, rf7
        fmul rf8, rf8, rf13
        exp rf8, rf8
        mov tmud, rf8
        b.anyna power
        mov tmua, rf5
        add rf5, rf5, rf14
        fadd rf9, rf9, rf8
        tmuwt -
    """, _combined_lanes("fadd", "rf9", version), """
        recip rf9, rf9
        mov rf6, rf12
    divide:
        mov tmua, rf11 ; thrsw
        sub.pushz rf6, rf6, 1
        nop
        ldtmu.rf8
        fmul tmud, rf8, rf9
        b.anyna divide
        copy tmua, rf11 ; add rf11, rf11, rf14
        nop
        nop
        tmuwt -
    end
"""])


SOFTMAX = {version: _softmax(version) for version in (71, 42)}
