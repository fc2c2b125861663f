"""Programs to learn from: products of matrices at the speed of the board. They need nothing but Python."""

import re
from typing import List

LOOKUPS_AHEAD = 7  #: of gemm(); the threads of a QPU may queue eight each
SGEMM_K = 32  #: the inner dimension is a multiple of this, the others of 16
SGEMM_SLACK_ROWS = 16 + LOOKUPS_AHEAD  #: rows behind B that gemm() reads and does not use

# Registers of gemm(): where elements of A and the product stand, bytes of a row of A, from the last of sixteen rows to the
# first one's next elements.
_REGISTERS = {71: (("rf10", "rf11"), "rf12", "rf5", "rf8"), 42: (("r0", "r1"), "r2", "r3", "r4")}


# Where the numbers of the workgroup stand: register by version, and which half of it.
_WORKGROUP = {"x": ({71: "rf3", 42: "rf0"}, "ul"), "y": ({71: "rf3", 42: "rf0"}, "uh"), "z": ({71: "rf2", 42: "rf2"}, "ul")}


def _workgroup(version: int, axis: str, to: str) -> str:
    registers, half = _WORKGROUP[axis]
    source = registers[version]
    if version >= 71:
        return f"mov {to}, {source}.{half}"
    first = f"shl {to}, {source}, 8\nshl {to}, {to}, 8\nshr {to}, {to}, 8" if half == "ul" else f"shr {to}, {source}, 8"
    return f"{first}\nshr {to}, {to}, 8"


def translated(text: str, version: int) -> str:
    """The text of a program without lines that both chips share and the assembler does not know.

    workgroup_x rf1         # one of the three numbers of the workgroup, from the payload registers
    copy tmua, rf2 ; ...    # a move on the add ALU
    """
    text = re.sub(r"workgroup_([xyz]) (\w+)", lambda m: _workgroup(version, *m.groups()), text)
    return re.sub(r"copy (\w+), (\w+)", r"mov \1, \2" if version >= 71 else r"or \1, \2, \2", text)


def with_load(version: int, word: str, load: str) -> List[str]:
    """The lines of a word that writes to the TMU, and of a load beside it."""
    return [f"{word} ; {load}"] if version >= 71 else [load, word]


# Which block of C a workgroup computes, and where it begins in A and C; rf1: bytes before its column.
PLACE_OF_BLOCK = """
        ldunifrf.rf4                        # A
        ldunifrf.rf5                        # bytes of a row of A
        ldunifrf.rf7                        # B
        ldunifrf.rf6                        # bytes of a row of B and of C
        ldunifrf.rf14                       # C
        ldunifrf.rf9                        # turns
        workgroup_y rf1
        shl rf1, rf1, 4                     # first row
        umul24 rf2, rf1, rf5
        add rf4, rf4, rf2
        umul24 rf2, rf1, rf6
        add rf14, rf14, rf2
        workgroup_x rf1
        shl rf1, rf1, 4
        eidx rf2
        add rf1, rf1, rf2                   # column
        shl rf1, rf1, 2
"""


def gemm(multiply: str, add: str, first: str = "", version: int = 71) -> str:
    """A program for C = A B, all row-major, of words that `multiply` multiplies and `add` sums up.

    One thread computes 16 x 16 elements: lanes are columns, rf16..rf31 its rows.

    Workgroup x is the block of columns, y that of rows. Uniforms: A, 4 * columns of A (bytes of a row), B, bytes
    of a row of B and of C, C, columns of A / 32.

    Elements of A come as scalars through unifa, sixteen of a row at a time. Rows of B come through the TMU into
    rf32..rf47 and rf48..rf63 by turns: while one half is multiplied, the other is filled, one vector for each row
    of A, always seven lookups ahead.
    """
    element, product, row_of_a, back = _REGISTERS[version]
    text = [first, PLACE_OF_BLOCK + """\
        add rf7, rf7, rf1
        add rf14, rf14, rf1
        mov rf13, 4
        shl rf13, rf13, 4                   # 64: bytes of sixteen elements of a row of A
        shl rf8, rf5, 4
        sub rf8, rf5, rf8
        add rf8, rf8, rf13                  # from the last of sixteen rows to the first one's next elements
        nop ; thrsw
        nop
        nop
    """]
    if version < 71:  # after the thread switch, which loses accumulators
        text += [f"mov {row_of_a}, rf5", f"mov {back}, rf8"]
    text += [f"mov rf{16 + row}, 0" for row in range(16)]
    text += ["copy tmua, rf7 ; add rf7, rf7, rf6"] * LOOKUPS_AHEAD
    for k in range(16):
        text += with_load(version, "copy tmua, rf7 ; add rf7, rf7, rf6", f"ldtmu.rf{32 + k}")
    text += [f"copy unifa, rf4 ; add rf4, rf4, {row_of_a}", "nop", "nop", "nop", "loop:"]
    for half in range(2):
        now, other = (32, 48) if half == 0 else (48, 32)
        for row in range(16):
            # Element k is loaded in word k, multiplied in word k + 1, or k + 2 for the last two, and then added.
            adds, muls, signal = [""] * 19, [""] * 19, [f"ldunifarf.{element[k % 2]}" for k in range(16)] + [""] * 3
            for k in range(16):
                at = k + 1 if k < 14 else k + 2
                muls[at] = f"{multiply} {product}, {element[k % 2]}, rf{now + k}"
                adds[at + 1] = f"{add} rf{16 + row}, rf{16 + row}, {product}"
            muls[15] = "mov unifa, rf4"
            adds[0], muls[0] = "copy tmua, rf7", "add rf7, rf7, rf6"
            adds[16] = f"add rf4, rf4, {row_of_a if row != 14 else back}"
            signal[17] = f"ldtmu.rf{other + row}"
            text += [" ; ".join(part for part in (adds[i] or "nop", muls[i], signal[i]) if part) for i in range(19)]
    text += ["sub.pushz rf9, rf9, 1", "b.anyna loop", "nop", "nop", "nop"]
    text += [f"ldtmu.rf{32 + k}" for k in range(LOOKUPS_AHEAD)]
    for row in range(16):
        text += [f"mov tmud, rf{16 + row}", "copy tmua, rf14 ; add rf14, rf14, rf6"]
    return translated("\n".join(text + ["tmuwt -", "end"]), version)


#: The text of sgemm, C = A B of floats, by the version of the chip: 71 (Pi 5) and 42 (Pi 4).
SGEMM = {version: gemm("fmul", "fadd", version=version) for version in (71, 42)}
