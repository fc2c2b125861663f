"""A small assembler for the QPU of V3D 7.1.

One instruction per line, in the notation of Mesa's disassembler with the parts divided by ';':

    loop:                                  # a label
        shl rf1, rf2, 2 ; fmul rf3, rf4.l, rf5 ; ldtmu.rf6
        sub.pushz rf7, rf7, 1
        b.anyna loop                       # three delay slots follow

The first operation of a line belongs to the add ALU and the second to the mul ALU; a line with one operation uses
the mul ALU only if the add ALU lacks it. Parts that are signals (thrsw, ldunif, ldtmu.rf6, ...) may stand anywhere.
"end" stands for the eight words that end a program.

Only what the programs of this folder need is here, and a little more; unknown names raise AsmError.
"""

import re
import struct


class AsmError(Exception):
    pass


MAGIC = {
    "quad": 5, "-": 6, "tlb": 7, "tlbu": 8, "unifa": 9, "tmud": 11, "tmua": 12, "tmuau": 13, "sync": 16,
    "syncu": 17, "syncb": 18, "tmuc": 32, "tmus": 33, "tmut": 34, "tmur": 35, "tmui": 36, "tmub": 37,
    "tmudref": 38, "tmuoff": 39, "tmusf": 41, "tmuslod": 42, "rep": 55,
}

FLOAT_UNPACK = {"abs": 0, "": 1, "l": 2, "h": 3}
MOVE_UNPACK = {**FLOAT_UNPACK, "sat": 4, "nsat": 5, "max0": 6}
INT_UNPACK = {"": 0, "ul": 1, "uh": 2, "il": 3, "ih": 4}
PACK = {"": 0, "l": 1, "h": 2}

# Add ALU. Float operations: base opcode, to which pack and unpack codes are added.
ADD_FLOAT = {"fadd": 0, "faddnf": 0, "vfpack": 48, "fsub": 64, "fmin": 128, "fmax": 128, "fcmp": 192}
ADD_ORDERED = {"faddnf": True, "fmax": True, "fadd": False, "fmin": False}  # needs key(a) > key(b)
ADD_INT = {
    "add": 56, "sub": 60, "min": 120, "max": 121, "umin": 122, "umax": 123, "shl": 124, "shr": 125, "asr": 126,
    "ror": 127, "and": 181, "or": 182, "xor": 183, "vadd": 184, "vsub": 185, "vpack": 247, "v8pack": 248,
    "v10pack": 250, "v11fpack": 251, "rotq": 252, "rot": 253, "shuffle": 254,
}
# Pairs of halves: base opcode, to which the unpack code of operand a is added, and how many codes there are.
ADD_HALVES = {"vfadd": (48, 5), "vfsub": (112, 8), "vfmin": (176, 5), "vfcmp": (208, 8), "vfmax": (240, 5)}
HALF_UNPACK = {"": 0, "ff": 1, "ll": 2, "hh": 3, "swp": 4, "u5": 5, "u6": 6, "u7": 7}
# One operand or none: opcode and the code in raddr_b.
ADD_UNARY = {
    "not": (186, 0), "neg": (186, 1), "flapush": (186, 2), "flbpush": (186, 3), "flpop": (186, 4),
    "clz": (186, 5), "setmsf": (186, 6), "recip": (188, 32), "rsqrt": (188, 33), "exp": (188, 34),
    "log": (188, 35), "sin": (188, 36), "rsqrt2": (188, 37), "ballot": (188, 38), "bcastf": (188, 39),
    "alleq": (188, 40), "allfeq": (188, 41), "vfmov": (191, 0), "vfabs": (191, 5), "vfneg": (191, 10),
    "vfnab": (191, 15),
}
ADD_NULLARY = {
    "nop": 0, "tidx": 1, "eidx": 2, "lr": 3, "vfla": 4, "vflna": 5, "vflb": 6, "vflnb": 7, "msf": 10,
    "barrierid": 14, "tmuwt": 15, "flafirst": 17, "flnafirst": 18, "setnnmode_uu": 48, "setnnmode_su": 49,
    "setnnmode_us": 50, "setnnmode_ss": 51,
}
# Conversions of opcode 245: group; the low bits of raddr_b are the pack code, or 3 for the integer results.
ADD_ROUND = {"fround": 0, "ftrunc": 1, "ffloor": 2, "fceil": 3}
ADD_TO_INT = {"ftoin": 0, "ftoiz": 1, "ftouz": 2, "ftoc": 3}
ADD_FROM_INT = {"itof": 32, "utof": 36}

MUL_INT = {"add": 1, "sub": 2, "umul24": 3, "smul24": 9, "multop": 10, "v8dot": 11}

CONDITIONS = {"ifa": 0, "ifb": 1, "ifna": 2, "ifnb": 3}
FLAGS = {
    "pushz": 1, "pushn": 2, "pushc": 3, "andz": 4, "andnz": 5, "nornz": 6, "norz": 7, "andn": 8, "andnn": 9,
    "nornn": 10, "norn": 11, "andc": 12, "andnc": 13, "nornc": 14, "norc": 15,
}

SIGNALS = [
    "", "thrsw", "ldunif", "thrsw ldunif", "ldtmu", "thrsw ldtmu", "ldtmu ldunif", "thrsw ldtmu ldunif", "ldvary",
    "thrsw ldvary", "ldunif ldvary", "thrsw ldvary ldunif", "ldunifrf", "thrsw ldunifrf", "smimm_a", "smimm_b",
    "ldtlb", "ldtlbu", "wrtmuc", "thrsw wrtmuc", "ldvary wrtmuc", "thrsw ldvary wrtmuc", "ucb", None, "ldunifa",
    "ldunifarf", "ldtmu wrtmuc", "thrsw ldtmu wrtmuc", None, None, "smimm_c", "smimm_d",
]
SIGNAL_CODES = {frozenset(names.split()): code for code, names in enumerate(SIGNALS) if names is not None}
SIGNAL_NAMES = frozenset().union(*SIGNAL_CODES)
SIGNALS_WITH_ADDRESS = {"ldtmu", "ldvary", "ldunifrf", "ldunifarf", "ldtlb", "ldtlbu"}

BRANCH_CONDITIONS = {"": 0, "a0": 2, "na0": 3, "alla": 4, "anyna": 5, "anya": 6, "allna": 7}
END = ["nop ; thrsw", "nop ; thrsw", "nop", "nop", "nop ; thrsw", "nop", "nop", "nop"]


def small_immediate(text):
    """The 6-bit code of an immediate operand, or None when the text is no number."""
    try:
        value = int(text, 0)
        if -16 <= value <= 15:
            return value & 31
    except ValueError:
        try:
            value = float(text)
        except ValueError:
            return None
        for exponent in range(-8, 8):
            if value == 2.0 ** exponent:
                return 40 + exponent
    raise AsmError(f"{text} is no small immediate")


class Operand:
    """A source: register or immediate, with its unpack name."""

    def __init__(self, text):
        match = re.fullmatch(r"rf(\d+)(?:\.(\w+))?", text)
        if match and int(match[1]) < 64:
            self.immediate, self.address, self.unpack = False, int(match[1]), match[2] or ""
            return
        code = small_immediate(text)
        if code is None:
            raise AsmError(f"operand {text}")
        self.immediate, self.address, self.unpack = True, code, ""

    def lookup(self, table):
        if self.unpack not in table:
            raise AsmError(f"unpack .{self.unpack}")
        return table[self.unpack]


class Half:
    """One ALU's part of a word: operation, destination, sources, condition or flag write."""

    def __init__(self, text):
        name, _, rest = text.partition(" ")
        self.op, *modifiers = name.split(".")
        self.condition = self.flags = None
        for modifier in modifiers:
            if modifier in CONDITIONS:
                self.condition = CONDITIONS[modifier]
            elif modifier in FLAGS:
                self.flags = FLAGS[modifier]
            else:
                raise AsmError(f"modifier .{modifier}")
        arguments = [a.strip() for a in rest.split(",")] if rest.strip() else []
        self.magic, self.waddr, self.pack = 1, MAGIC["-"], ""
        if arguments:
            self.magic, self.waddr, self.pack = destination(arguments.pop(0))
        self.sources = [Operand(a) for a in arguments]

    def need(self, count):
        if len(self.sources) != count:
            raise AsmError(f"{self.op} takes {count} operands")
        return self.sources

    def pack_code(self):
        if self.pack not in PACK:
            raise AsmError(f"pack .{self.pack}")
        return PACK[self.pack]


def destination(text):
    """(magic, address, pack name) of a destination."""
    match = re.fullmatch(r"rf(\d+)(?:\.(\w+))?", text)
    if match and int(match[1]) < 64:
        return 0, int(match[1]), match[2] or ""
    if text in MAGIC:
        return 1, MAGIC[text], ""
    raise AsmError(f"destination {text}")


def in_add_alu(op):
    return any(op in table for table in (ADD_FLOAT, ADD_INT, ADD_HALVES, ADD_UNARY, ADD_NULLARY, ADD_ROUND, ADD_TO_INT,
                                         ADD_FROM_INT, ("mov", "fmov")))


def encode_add(half):
    """(opcode, operand a, operand b); operands are an Operand or a raddr code."""
    op = half.op
    if op in ADD_FLOAT:
        a, b = half.need(2)
        if op in ADD_ORDERED:
            def key(x):
                return x.immediate * 256 + x.lookup(FLOAT_UNPACK) * 64 + x.address
            if (key(a) > key(b)) != ADD_ORDERED[op]:
                a, b = b, a
        return ADD_FLOAT[op] + half.pack_code() * 16 + a.lookup(FLOAT_UNPACK) * 4 + b.lookup(FLOAT_UNPACK), a, b
    if op in ADD_INT:
        a, b = half.need(2)
        return ADD_INT[op], a, b
    if op in ADD_HALVES:
        a, b = half.need(2)
        base, count = ADD_HALVES[op]
        code = a.lookup(HALF_UNPACK)
        if code >= count:
            raise AsmError(f"unpack .{a.unpack} of {op}")
        return base + code, a, b
    if op in ADD_UNARY:
        return ADD_UNARY[op][0], half.need(1)[0], ADD_UNARY[op][1]
    if op in ADD_NULLARY:
        half.need(0)
        return 187, 0, ADD_NULLARY[op]
    if op not in ("mov", "fmov") and not in_add_alu(op):
        raise AsmError(f"the add ALU has no {op}")
    (a,) = half.need(1)
    if op in ADD_ROUND:
        return 245, a, ADD_ROUND[op] << 4 | a.lookup(FLOAT_UNPACK) << 2 | half.pack_code()
    if op in ADD_TO_INT:
        return 245, a, ADD_TO_INT[op] << 4 | a.lookup(FLOAT_UNPACK) << 2 | 3
    if op in ADD_FROM_INT:
        return 246, a, ADD_FROM_INT[op] | half.pack_code()
    if op == "fmov":
        return 249, a, a.lookup(MOVE_UNPACK) << 2 | half.pack_code()
    return 249, a, a.lookup(INT_UNPACK) << 2 | 3


def encode_mul(half):
    """(opcode, operand c, operand d)"""
    op = half.op
    if op == "nop":
        return 14, 0, 63
    if op == "fmul":
        c, d = half.need(2)
        return 16 + half.pack_code() * 16 + c.lookup(FLOAT_UNPACK) * 4 + d.lookup(FLOAT_UNPACK), c, d
    if op in MUL_INT:
        c, d = half.need(2)
        return MUL_INT[op], c, d
    if op not in ("mov", "fmov"):
        raise AsmError(f"the mul ALU has no {op}")
    (c,) = half.need(1)
    if op == "fmov":
        return 14, c, c.lookup(MOVE_UNPACK) << 2 | half.pack_code()
    return 14, c, c.lookup(INT_UNPACK) << 2 | 3


def condition_field(add, mul):
    if add.flags is not None and mul.flags is not None:
        raise AsmError("both ALUs write flags")
    if add.condition is not None and mul.condition is not None:
        return 0x40 | mul.condition << 4 | add.condition
    if mul.condition is not None:
        if add.flags is not None and add.flags > 3:
            return 0x40 | mul.condition << 4 | add.flags
        return 0x30 | mul.condition << 2 | (add.flags or 0)
    if add.condition is not None:
        if (mul.flags or 0) > 3:
            raise AsmError("a condition of the add ALU goes with a push of the mul ALU only")
        return 0x20 | add.condition << 2 | (mul.flags or 0)
    return 0x10 | mul.flags if mul.flags is not None else add.flags or 0


def encode_alu(parts):
    signals, halves, address = set(), [], None
    for part in parts:
        name, _, target = part.partition(".")
        if name not in SIGNAL_NAMES:
            halves.append(Half(part))
            continue
        signals.add(name)
        if name in SIGNALS_WITH_ADDRESS:
            address = destination(target)
    nop = Half("nop")
    if len(halves) > 2:
        raise AsmError("more than two operations")
    if len(halves) == 1 and not in_add_alu(halves[0].op):
        halves.insert(0, nop)
    add, mul = (halves + [nop, nop])[:2]

    op_add, a, b = encode_add(add)
    op_mul, c, d = encode_mul(mul)
    raddr = 0
    for operand, shift, signal in ((a, 6, "smimm_a"), (b, 0, "smimm_b"), (c, 18, "smimm_c"), (d, 12, "smimm_d")):
        if isinstance(operand, Operand):
            if operand.immediate:
                signals.add(signal)
            operand = operand.address
        raddr |= operand << shift
    if frozenset(signals) not in SIGNAL_CODES:
        raise AsmError("no word has the signals " + " ".join(sorted(signals)))

    condition = condition_field(add, mul)
    if address is not None:
        if condition:
            raise AsmError("a signal with a destination takes the place of conditions and flags")
        condition = address[0] << 6 | address[1]
    return (op_mul << 58 | SIGNAL_CODES[frozenset(signals)] << 53 | condition << 46 | mul.magic << 45
            | add.magic << 44 | mul.waddr << 38 | add.waddr << 32 | op_add << 24 | raddr)


def encode_branch(text, index, labels):
    """b, bl (sets the link register), bu (moves the uniform stream by the next uniform, too)."""
    name, _, target = text.partition(" ")
    name, _, condition = name.partition(".")
    target = target.strip()
    word = 2 << 56
    ignore_dead = condition.endswith("p")
    condition = condition[:-1] if ignore_dead else condition
    if condition not in BRANCH_CONDITIONS:
        raise AsmError(f"condition .{condition}")
    word |= BRANCH_CONDITIONS[condition] << 32 | ignore_dead << 21 | (name == "bl") << 23
    if name == "bu":
        word |= 1 << 15 | 1 << 14
    if target == "lri":
        return word | 2 << 12
    if re.fullmatch(r"rf\d+", target):
        return word | 3 << 12 | int(target[2:]) << 6
    if target not in labels:
        raise AsmError(f"label {target}")
    offset = (labels[target] - (index + 4)) * 8 & 0xffffffff
    return word | 1 << 12 | (offset >> 24) << 24 | (offset >> 3 & 0x1fffff) << 35


def assemble(text):
    """The program as a list of 64-bit words."""
    lines, labels = [], {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#")[0].strip()
        if line.endswith(":"):
            labels[line[:-1]] = len(lines)
        elif line == "end":
            lines += [(number, word) for word in END]
        elif line:
            lines.append((number, line))
    words = []
    for index, (number, line) in enumerate(lines):
        parts = [p.strip() for p in line.split(";")]
        try:
            if parts[0].split()[0].split(".")[0] in ("b", "bl", "bu"):
                words.append(encode_branch(parts[0], index, labels))
            else:
                words.append(encode_alu(parts))
        except AsmError as error:
            raise AsmError(f"line {number}: {line}: {error}") from None
    return words


def to_bytes(words):
    return struct.pack(f"<{len(words)}Q", *words)
