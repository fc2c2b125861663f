"""The programs of measurements.json, written again: the same instructions per turn, unroll, strides, configuration of lookups and
place of the loop in the instruction cache as the ones that were measured; what they compute is checked.

Each function takes the version of the chip (71, 42) and sizes, and returns a Program. Uniforms may name buffers: an Address.
"""
import array
import dataclasses

VEC4 = 0xfc                        # configuration of a lookup: four words of each lane
PREFETCH = 0x80
ALIGNED_TO = 512                   # instructions: 4 KiB
UNIFORMS = -1                      # as a buffer: the uniforms themselves


@dataclasses.dataclass(frozen=True)
class Address:
    """Of a buffer: its number, and bytes from its start."""
    buffer: int
    offset: int = 0


@dataclasses.dataclass(frozen=True)
class Program:
    text: str
    uniforms: tuple                # words or Addresses
    sizes: tuple                   # of the buffers, in bytes
    dispatch: dict                 # batches, and arguments of v3d_drm.csd_config
    fill: object = None            # fill(buffers): before it runs
    problem: object = None         # problem(buffers): what is wrong after it, "" if nothing


def _aligned(lines, place):
    """With nops, up to instruction `place` of 4 KiB."""
    return lines + ["nop"] * ((place - len(lines)) % ALIGNED_TO)


def _lines(*texts):
    return [line.strip() for text in texts for line in (text if isinstance(text, list) else text.strip().split("\n"))]


def _rewind(words):
    """The last uniform: back over those of a turn, and over itself."""
    return -4 * (words + 1) & 0xffffffff


def _config(*lookups):
    return sum(byte << 8 * place for place, byte in enumerate(lookups))


# After the last access to the TMU, and before the end of the thread.
SYNCHRONISE = ["barrierid syncb ; nop ; thrsw", "nop", "nop"]
# Of V3D 7.1 and of 4.2: where a value from the TMU goes, and a move on the add ALU.
VALUE = {71: "rf1", 42: "r0"}


def _copy(version, to, register):
    return f"mov {to}, {register}" if version >= 71 else f"or {to}, {register}, {register}"


def _thread_offset(version, batches, shift, registers):
    """The lines that add to each of the registers (number of the QPU * 16 + lane) << shift."""
    a, b = ("rf1", "rf2") if version >= 71 else ("r0", "r1")
    if batches == 1:
        first = ["sub rf8, rf8, rf8"]
    else:
        first = [f"tidx {a}", f"shr {a}, {a}, 2", f"and rf8, {a}, 15"]
    text = first + [f"shl {a}, rf8, 4", f"eidx {b}", f"add {a}, {a}, {b}", f"shl {a}, {a}, {shift}"]
    return text + [" ; ".join(f"add {register}, {register}, {a}" for register in registers)]


def _strides(batches):
    """log2 of the vectors from one turn of a QPU to its next: 12 QPUs step over 8, and four of them repeat others' work."""
    return {1: 0, 8: 3, 12: 3}[batches]


def _pattern(size):
    block = b"".join((i * 0x9e3779b1 & 0xffffffff).to_bytes(4, "little") for i in range(1024))
    return (block * (size // len(block) + 1))[:size]


def scopy(version, words, batches):
    """A turn copies two vectors: two lookups, a prefetch of the next one, two stores."""
    value = VALUE[version]
    head = _lines("ldunifrf.rf5\nldunifrf.rf6\nldunifrf.rf7", _thread_offset(version, batches, 4, ("rf6", "rf7")))
    head += ["nop ; mov rf9, 1", f"shl rf9, rf9, {8 + _strides(batches)}", f"shr rf5, rf5, {7 + _strides(batches)}",
             "nop ; nop ; thrsw", "nop", "nop"]
    four = [f"nop ; nop ; ldtmu.{value}", *[f"nop ; mov tmud, {value} ; ldtmu.{value}"] * 2, f"nop ; mov tmud, {value}",
            f"nop ; nop ; ldtmu.{value}"]
    loop = ["loop:", _copy(version, "tmuau", "rf6") + " ; add rf6, rf6, rf9", _copy(version, "tmua", "rf6") + " ; add rf6, rf6, rf9",
            _copy(version, "tmua", "rf6"), *four, f"sub.pushz rf5, rf5, 1 ; mov tmud, {value}",
            _copy(version, "tmua", "rf7") + " ; add rf7, rf7, rf9", "nop ; mov tmuc, -4", *four[:3], "bu.na0 loop, r:unif",
            f"nop ; mov tmud, {value} ; ldtmu.{value}", f"nop ; mov tmud, {value}",
            _copy(version, "tmua", "rf7") + " ; add rf7, rf7, rf9"]
    uniforms = (words, Address(0), Address(1), _config(VEC4, VEC4, PREFETCH, VEC4), _rewind(1))
    slack = 64 << 10               # the QPUs that repeat work go on beyond the end; so does the prefetch

    def fill(buffers):
        buffers[0][:4 * words] = _pattern(4 * words)

    def problem(buffers):
        return "" if buffers[0][:4 * words] == buffers[1][:4 * words] else "the copy differs"

    return Program("\n".join([*_aligned(head, 259), *loop, *SYNCHRONISE, "end"]), uniforms, (4 * words + slack,) * 2,
                   dict(batches=batches, grid=(16, 1, 1), wgs_per_sg=16, batches_per_sg=16), fill, problem)


def memset(version, words, batches):
    """For 4.2. A turn stores eight vectors."""
    assert version == 42
    head = _lines("ldunifrf.rf0\nldunifrf.rf1\nldunifrf.rf2", _thread_offset(version, batches, 4, ("rf0",)))
    head += ["nop ; mov r0, 1", f"shl rf4, r0, {8 + _strides(batches)}", f"shr rf2, rf2, {4 + _strides(batches) + 5}"]
    loop = ["loop:"]
    for store in range(7):
        loop += ["nop ; mov tmud, rf1"] * 4
        loop += [_copy(version, "tmua" if store % 4 else "tmuau", "rf0") + " ; add rf0, rf0, rf4"]
    loop += ["or tmud, rf1, rf1 ; mov r0, 1", "or tmud, rf1, rf1 ; sub.pushz rf2, rf2, r0", "bu.na0 loop, r:unif",
             "nop ; mov tmud, rf1", "nop ; mov tmud, rf1", "or tmua, rf0, rf0 ; add rf0, rf0, rf4"]
    value = 0x5a5a5a5a
    uniforms = (Address(0), value, words, *[_config(VEC4, VEC4, VEC4, VEC4)] * 2, _rewind(2))

    def problem(buffers):
        return "" if buffers[0] == value.to_bytes(4, "little") * words else "not all is set"

    return Program("\n".join([*_aligned(head, 0), *loop, "end"]), uniforms, (4 * words,),
                   dict(batches=batches, grid=(1, 1, 1), wgs_per_sg=16, batches_per_sg=16), None, problem)


def summation(version, words, batches):
    """For 4.2. A turn takes eight vectors, of which the sums of the lanes are left."""
    assert version == 42
    head = _lines("ldunifrf.rf0\nldunifrf.rf1\nldunifrf.rf2\ntidx r0\nshr r0, r0, 2\nand rf3, r0, 15\nshl r0, rf3, 4",
                  "eidx r1\nadd r0, r0, r1\nshl r0, r0, 2\nshl r0, r0, 2 ; add rf2, rf2, r0\nadd rf1, rf1, r0",
                  f"nop ; mov rf4, 1\nshl rf4, rf4, {8 + _strides(batches)}\nshr rf0, rf0, {9 + _strides(batches)}",
                  "nop ; nop ; thrsw\nsub rf5, r0, r0 ; mov r1, 1\nsub.pushz rf0, rf0, r1 ; mov r2, rf4")
    head = _aligned(head, 170)
    take = "add rf5, rf5, r0{} ; ldtmu.r0"
    step, plain = take.format(" ; add rf1, rf1, r2"), take.format(" ; nop")
    loop = ["loop:", "or tmuau, rf1, rf1 ; add rf1, rf1, rf4", "or tmua, rf1, rf1 ; nop ; ldtmu.r0"]
    for turn in range(3):
        for unit in ("tmuau" if turn == 1 else "tmua", "tmua"):
            loop += [step, plain, plain, take.format(f" ; mov {unit}, rf1")]
    loop += [step, *[plain] * 4, "bu.na0 loop, r:unif", plain, plain, "add rf5, rf5, r0 ; sub.pushz rf0, rf0, r1"]
    tail = ["nop ; mov tmud, rf5", "nop ; mov tmua, rf2", *SYNCHRONISE, "end"]
    uniforms = (words, Address(0), Address(1), *[_config(VEC4, VEC4, VEC4, VEC4)] * 2, _rewind(2))

    def fill(buffers):
        buffers[0][:] = _pattern(4 * words)

    def problem(buffers):
        got = sum(buffers[1].cast("I"))
        block = memoryview(_pattern(4096)).cast("I")
        return "" if (got - sum(block) * (words // 1024)) % (1 << 32) == 0 else "the sum is another one"

    return Program("\n".join([*head, *loop, *tail]), uniforms, (4 * words, 4 * 16 * batches),
                   dict(batches=batches, grid=(1, 1, 1), wgs_per_sg=16, batches_per_sg=16), fill, problem)


ALPHA, BETA, OLD = 3.0, 2.0, 2.0   # OLD: in all of C


def _floats(*values):
    return array.array("f", values).tobytes()


def _bits(value):
    return int.from_bytes(_floats(value), "little")


def _number(i):
    """In all of row i of A, and in all of column i of B: sums of their products are exact."""
    return float(i % 8 + 1)


def _product(text, uniforms, sizes, dispatch, rows, inner, columns):
    def fill(buffers):
        buffers[0][:4 * rows * inner] = b"".join(_floats(_number(i)) * inner for i in range(rows))
        buffers[1][:4 * inner * columns] = _floats(*map(_number, range(columns))) * inner
        buffers[2][:] = _floats(OLD) * (rows * columns)

    def problem(buffers):
        right = [_floats(*(ALPHA * inner * _number(i) * _number(j) + BETA * OLD for j in range(columns))) for i in range(8)]
        wrong = [i for i in range(rows) if buffers[2][4 * columns * i:4 * columns * (i + 1)] != right[i % 8]]
        return f"row {wrong[0]} of the product is another one" if wrong else ""

    return Program("\n".join(text), uniforms, sizes, dispatch, fill, problem)


def sgemm(version, rows, inner, columns):
    """C = alpha A B + beta C. Of 7.1: each batch computes 16 x 16 elements; of 4.2: each a block of 2 x 4 of such tiles."""
    return {71: _sgemm_71, 42: _sgemm_42}[version](rows, inner, columns)


def _sgemm_71(rows, inner, columns):
    """Lane 4 * i + j has four words of row i of B; lane i has four words of row i of A. The sums are turned: lane i has row i."""
    a, b = [f"rf{n}" for n in (3, 4, 5, 6)], [f"rf{n}" for n in (7, 8, 9, 10)]
    head = _lines("""
        mov rf2, rf2.ul ; nop ; ldunif
        itof rf4, rf2
        itof rf5, rf0
        recip rf3, rf5
        nop ; fmul rf1, rf4, rf3
        ffloor rf1, rf1
        ftouz rf1, rf1
        nop ; umul24 rf3, rf1, rf0
        sub rf2, rf2, rf3
        nop ; nop ; ldunifrf.rf9
        nop ; umul24 rf3, rf1, rf9 ; ldunifrf.rf12
        shl rf3, rf3, 4
        add rf12, rf12, rf3 ; nop ; ldunifrf.rf13
        shl rf3, rf2, 6
        nop ; nop ; ldunifrf.rf14
        eidx rf3 ; add rf14, rf14, rf3
        nop ; umul24 rf4, rf3, rf9
        add rf12, rf12, rf4
        shr rf4, rf3, 2
        and rf3, rf3, 3
        shl rf3, rf3, 4 ; umul24 rf4, rf4, rf13
        shl rf13, rf13, 2 ; add rf3, rf3, rf4
        add rf14, rf14, rf3
        not tmuc, 3
        mov tmua, rf12
        not tmuc, 3
        mov tmua, rf14 ; add rf14, rf14, rf13 ; thrsw
        sub rf12, rf12, -16
        nop ; nop ; ldunifrf.rf10
        shl rf0, rf2, 2 ; umul24 rf3, rf1, rf10
        eidx rf0 ; add rf3, rf3, rf0 ; ldunifrf.rf15
        shl rf3, rf3, 4 ; umul24 rf0, rf0, rf10
        add rf15, rf15, rf0 ; nop ; ldunif
        shr rf11, rf0, 2 ; add rf15, rf15, rf3
    """)
    head += [f"xor rf{16 + i}, rf{16 + i}, rf{16 + i} ; sub rf{24 + i}, rf{24 + i}, rf{24 + i} ; ldtmu.{(a + b)[i]}"
             for i in range(8)]
    loop = _lines("""
        loop:
        not tmuc, 3
        mov tmua, rf12
        not tmuc, 3
        mov tmua, rf14 ; add rf14, rf14, rf13 ; thrsw
        sub rf12, rf12, -16
    """)
    loads = dict(zip(range(57, 64), a[:3] + ["rf2"] + b[:3]))  # a[3] is in use until the end
    for step in range(64):
        if step == 63:
            loop.append("b.anyna loop")
        loop.append(f"rot {b[step % 4]}, {b[step % 4]}, 1 ; mov rep, {b[step % 4]}")
        total = f"rf{16 + (step - 1) % 16}"
        load = f" ; ldtmu.{loads[step]}" if step in loads else ""
        loop.append((f"fadd {total}, {total}, rf1" if step else "sub.pushz rf11, rf11, 1") + f" ; fmul rf1, rf0, {a[step // 16]}{load}")
    loop.append("fadd rf31, rf31, rf1 ; mov rf6, rf2 ; ldtmu.rf10")
    tail = _lines("not rf12, 3\nnop ; nop ; ldunifrf.rf13\nmov tmuc, rf12 ; fmul rf16, rf16, rf13 ; ldunifrf.rf14")
    for block in range(4):
        sums = [f"rf{16 + 4 * block + i}" for i in range(4)]
        if block:
            tail.append(f"mov tmuc, rf12 ; fmul {sums[0]}, {sums[0]}, rf13")
        tail += ["mov tmua, rf15 ; nop ; thrsw", *[f"nop ; fmul {total}, {total}, rf13" for total in sums[1:3]],
                 f"nop ; fmul {sums[3]}, {sums[3]}, rf13 ; ldtmu.rf1", "mov tmuc, rf12 ; fmul rf2, rf1, rf14 ; ldtmu.rf1",
                 *[f"fadd tmud, {total}, rf2 ; fmul rf2, rf1, rf14 ; ldtmu.rf1" for total in sums[:2]],
                 f"fadd tmud, {sums[2]}, rf2 ; fmul rf2, rf1, rf14", f"fadd tmud, {sums[3]}, rf2",
                 "mov tmua, rf15" + (" ; sub rf15, rf15, -16" if block < 3 else "")]
    uniforms = (columns // 16, 4 * inner, Address(0), 4 * columns, Address(1), 4 * columns, Address(2), inner,
                _bits(ALPHA), _bits(BETA))
    sizes = (4 * rows * inner + 64, 4 * (inner + 4) * columns, 4 * rows * columns)  # a turn more is loaded
    dispatch = dict(batches=rows // 16 * (columns // 16), grid=(1, 1, 16), wgs_per_sg=24, batches_per_sg=24)
    return _product([*head, *loop, *tail, "tmuwt -", "end"], uniforms, sizes, dispatch, rows, inner, columns)


# Parameters of a batch of 4.2, from rf32 on.
PARAMETERS = "P Q R A A_STRIDE B B_STRIDE C C_STRIDE ALPHA BETA A_NOW B_NOW C_NOW I J K".split()
RF = {name: f"rf{32 + number}" for number, name in enumerate(PARAMETERS)}
FROM_MEMORY = 11


def _sgemm_42(rows, inner, columns):
    """One element of each of 16 rows of A, and 16 of a row of B, in every turn: two lookups, one after the other."""
    def text(lines):
        return [line.format(**RF) for line in _lines(lines)]

    head = text("""
        tidx r0 ; nop ; ldunifrf.rf0
        shr r0, r0, 2
        nop ; mov r1, 15
        and r3, r0, r1 ; nop ; ldunifrf.rf1
        shl r0, rf1, 2
        nop ; umul24 r0, r0, r3
        eidx r1 ; add r0, r0, rf0
        shl r1, r1, 2
        shl r3, 4, 4 ; add r0, r0, r1
        or tmua, r0, r0 ; add r0, r0, r3 ; thrsw
        nop
        nop
        nop ; nop ; ldtmu.r1
    """)
    for number in range(FROM_MEMORY):
        head += ["nop ; mov r5rep, r1" + (f" ; rot.{-number}" if number else ""), f"nop ; mov rf{32 + number}, r5"]
    head += text("""
        add r0, {P}, 15
        shr r0, r0, 4
        shl r0, r0, 4
        add r1, {R}, 15
        shr r1, r1, 4
        shl r1, r1, 6
        nop ; umul24 r3, r0, {A_STRIDE}
        add {A}, {A}, r3
        add {B}, {B}, r1
        nop ; umul24 r3, r0, {C_STRIDE}
        add {C}, {C}, r3
        add {C}, {C}, r1
    """)
    zero = [f"sub rf{i}, r0, r0 ; sub rf{i + 16}, r0, r0" for i in range(16)]
    head += zero + text("""
        add r0, {P}, 15
        shr {I}, r0, 4
        rows:
        add r0, {R}, 15
        shr {J}, r0, 4
        columns:
        shl r0, {I}, 4
        nop ; umul24 r3, r0, {C_STRIDE}
        shl r1, {J}, 6
        sub {C_NOW}, {C}, r3
        sub {C_NOW}, {C_NOW}, r1
        nop ; umul24 r3, r0, {A_STRIDE}
        sub {A_NOW}, {A}, r3
        sub {B_NOW}, {B}, r1
        nop ; mov {K}, {Q}
    """)
    loop = text("""
        loop:
        eidx r0
        nop ; umul24 r1, r0, {A_STRIDE}
        add r1, r1, {A_NOW} ; add {A_NOW}, {A_NOW}, 4
        or tmua, r1, r1 ; nop ; thrsw
        shl r1, r0, 2
        add r1, r1, {B_NOW} ; add {B_NOW}, {B_NOW}, {B_STRIDE}
        or tmua, r1, r1 ; nop ; thrsw
        nop ; nop ; ldtmu.r0
        nop ; mov r5rep, r0
        nop ; nop ; ldtmu.r4
        nop ; fmul r3, r5, r4
    """)
    for i in range(1, 16):
        loop += [f"nop ; mov r5rep, r0 ; rot.{-i}", f"fadd rf{i - 1}, rf{i - 1}, r3 ; fmul r3, r5, r4"]
    counted = ["nop"] * 3
    loop += text("fadd rf15, rf15, r3\nsub.pushz {K}, {K}, 1\nb.anyna loop") + counted
    place = text("eidx r0\nshl r0, r0, 2\nadd r1, {C_NOW}, r0")
    tail = list(place)
    step = text("or tmua, r1, r1 ; add r1, r1, {C_STRIDE} ; thrsw")
    tail += step + text("nop ; fmul rf0, rf0, {ALPHA}")
    for i in range(1, 16):
        tail += step + text(f"nop ; fmul rf{i}, rf{i}, {RF['ALPHA']} ; ldtmu.rf{i + 15}")
    tail += text("or r0, {BETA}, {BETA} ; fmul r3, rf16, {BETA} ; ldtmu.rf31")
    tail += [f"fadd rf{i}, rf{i}, r3 ; fmul r3, rf{i + 17}, r0" for i in range(16)] + place
    for i in range(16):
        tail += [f"nop ; mov tmud, rf{i}", *text("or tmua, r1, r1 ; add r1, r1, {C_STRIDE}"), zero[i], "tmuwt -"]
    for counter, label in (("J", "columns"), ("I", "rows")):
        tail += text(f"sub.pushz {RF[counter]}, {RF[counter]}, 1\nb.anyna {label}") + counted
    row, column = rows // 2, columns // 4  # of a block
    uniforms = [Address(UNIFORMS, 8), FROM_MEMORY]
    for block in range(8):
        i, j = row * (block // 4), column * (block % 4)
        uniforms += [row, inner, column, Address(0, 4 * inner * i), 4 * inner, Address(1, 4 * j), 4 * columns,
                     Address(2, 4 * (columns * i + j)), 4 * columns, _bits(ALPHA), _bits(BETA)]
    sizes = (4 * rows * inner, 4 * inner * columns, 4 * rows * columns)
    dispatch = dict(batches=8, grid=(1, 1, 1), wgs_per_sg=16, batches_per_sg=16)
    return _product([*head, *loop, *tail, "end"], tuple(uniforms), sizes, dispatch, rows, inner, columns)


def nothing(version, batches):
    """Threads that end."""
    del version
    return Program("end", (), (), dict(batches=batches, grid=(1, 1, 1)))
