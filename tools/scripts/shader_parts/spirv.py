"""What a SPIR-V module with one shader has to be given, and the module of the stage beside it."""
import dataclasses
import itertools
import struct

from .companion import Failure, Unknown

MAGIC = 0x07230203
KINDS = {0: "vertex", 4: "fragment", 5: "compute"}  # execution models
(ENTRY_POINT, TYPE_INT, TYPE_FLOAT, TYPE_VECTOR, TYPE_MATRIX, TYPE_IMAGE, TYPE_SAMPLER, TYPE_SAMPLED_IMAGE, TYPE_ARRAY,
 TYPE_RUNTIME_ARRAY, TYPE_STRUCT, TYPE_POINTER, CONSTANT, SPEC_CONSTANT, VARIABLE, DECORATE, MEMBER_DECORATE) = (
     15, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 32, 43, 50, 59, 71, 72)
IS_TYPE = range(19, 40)
UNIFORM_CONSTANT, INPUT, UNIFORM, OUTPUT, PUSH_CONSTANT, STORAGE_BUFFER = 0, 1, 2, 3, 9, 12  # storage classes
BUFFER_BLOCK, ARRAY_STRIDE, MATRIX_STRIDE, BUILT_IN, FLAT, LOCATION, COMPONENT, BINDING, SET, OFFSET = (
    3, 6, 7, 11, 14, 30, 31, 33, 34, 35)  # decorations
# Vulkan's types of descriptors.
SAMPLER, COMBINED, SAMPLED_IMAGE, STORAGE_IMAGE, UNIFORM_TEXELS, STORAGE_TEXELS, UNIFORM_BLOCK, STORAGE_BLOCK = range(8)
DIM_BUFFER, DIM_SUBPASS = 5, 6
MOST_OF_BLOCK = 1 << 16  # bytes of a uniform block that are filled


@dataclasses.dataclass(frozen=True)
class Port:
    """An input or output between stages, or of a stage."""
    location: int
    base: str  # float, int or uint
    size: int


@dataclasses.dataclass(frozen=True)
class Image:
    dimension: int
    depth: bool
    layered: bool
    multisampled: bool
    format: int  # of SPIR-V; 0: none
    base: str


@dataclasses.dataclass(frozen=True)
class Descriptor:
    set: int
    binding: int
    type: int
    count: int
    image: Image
    contents: bytes  # of a uniform block


class Module:
    """A module, read."""

    def __init__(self, data):
        if len(data) < 20 or len(data) % 4 or MAGIC not in (int.from_bytes(data[:4], "little"), int.from_bytes(data[:4], "big")):
            raise Failure("it is no SPIR-V module")
        order = "<" if int.from_bytes(data[:4], "little") == MAGIC else ">"
        words = struct.unpack(f"{order}{len(data) // 4}I", data)
        self.data = struct.pack(f"<{len(words)}I", *words)
        self.types, self.constants, self.variables, entries = {}, {}, [], []
        self.decorations, self.members = {}, {}
        for opcode, operands in self._instructions(words):
            try:
                self._take(opcode, operands, entries)
            except IndexError as error:
                raise Failure(f"instruction {opcode} is cut") from error
        if len(entries) != 1 or entries[0][0] not in KINDS:
            raise Unknown("one entry point of a vertex, fragment or compute shader is wanted")
        self.kind, self.entry = KINDS[entries[0][0]], entries[0][1]

    def _instructions(self, words):
        at = 5
        while at < len(words):
            length = words[at] >> 16
            if not length or at + length > len(words):
                raise Failure(f"word {at} begins no instruction")
            yield words[at] & 0xFFFF, words[at + 1:at + length]
            at += length

    def _take(self, opcode, operands, entries):
        if opcode == ENTRY_POINT:
            text = struct.pack(f"<{len(operands) - 2}I", *operands[2:])
            entries.append((operands[0], text.split(b"\0")[0]))
        elif opcode in IS_TYPE:
            self.types[operands[0]] = (opcode, *operands[1:])
        elif opcode in (CONSTANT, SPEC_CONSTANT):
            self.constants[operands[1]] = operands[2]
        elif opcode == VARIABLE:
            self.variables.append((operands[1], operands[0], operands[2]))
        elif opcode == DECORATE:
            self.decorations.setdefault(operands[0], {})[operands[1]] = operands[2] if len(operands) > 2 else True
        elif opcode == MEMBER_DECORATE:
            self.members.setdefault(operands[0], {}).setdefault(operands[1], {})[operands[2]] = operands[3] if len(operands) > 3 else True

    def _type(self, name):
        if name not in self.types:
            raise Failure(f"%{name} is no type")
        return self.types[name]

    def _pointee(self, pointer):
        return self._type(pointer)[2]

    def _numbers(self, name):
        """(base, count) of a scalar or vector of 32 bits."""
        kind = self._type(name)
        base, count = (self._type(kind[1]), kind[2]) if kind[0] == TYPE_VECTOR else (kind, 1)
        if base[0] not in (TYPE_INT, TYPE_FLOAT) or base[1] != 32:
            raise Unknown("inputs and outputs of others than 32-bit numbers are not known here")
        return ("float" if base[0] == TYPE_FLOAT else "int" if base[2] else "uint"), count

    def ports(self, storage):
        """Inputs or outputs with a location. A matrix or an array has one for each of its parts."""
        found = []
        for name, pointer, of in self.variables:
            decorations = self.decorations.get(name, {})
            pointee = self._pointee(pointer)
            if of != storage or BUILT_IN in decorations:
                continue
            if LOCATION not in decorations:
                if self._type(pointee)[0] == TYPE_STRUCT and any(BUILT_IN in member for member in self.members.get(pointee, {}).values()):
                    continue  # gl_PerVertex
                raise Unknown("an input or output has no location of its own: blocks are not known here")
            if decorations.get(COMPONENT):
                raise Unknown("inputs and outputs that share a location are not known here")
            count = 1
            while self._type(pointee)[0] in (TYPE_ARRAY, TYPE_MATRIX):
                kind = self._type(pointee)
                count, pointee = count * (self._length(kind[2]) if kind[0] == TYPE_ARRAY else kind[2]), kind[1]
            base, size = self._numbers(pointee)
            found += [Port(decorations[LOCATION] + part, base, size) for part in range(count)]
        return sorted(found, key=lambda port: port.location)

    def _length(self, constant):
        if constant not in self.constants:
            raise Failure("an array's length is no constant")
        return self.constants[constant]

    def descriptors(self):
        found = []
        for name, pointer, storage in self.variables:
            if storage not in (UNIFORM_CONSTANT, UNIFORM, STORAGE_BUFFER):
                continue
            pointee, count, decorations = self._pointee(pointer), 1, self.decorations.get(name, {})
            while self._type(pointee)[0] in (TYPE_ARRAY, TYPE_RUNTIME_ARRAY):
                kind = self._type(pointee)
                count, pointee = count * (self._length(kind[2]) if kind[0] == TYPE_ARRAY else 1), kind[1]
            descriptor, image = self._descriptor(pointee, storage)
            contents = self._ones(pointee) if descriptor == UNIFORM_BLOCK else b""
            found.append(Descriptor(decorations.get(SET, 0), decorations.get(BINDING, 0), descriptor, count, image, contents))
        places = {}
        for one in found:  # two variables may stand for one descriptor
            places.setdefault((one.set, one.binding), one)
        return [places[place] for place in sorted(places)]

    def _descriptor(self, pointee, storage):
        if storage == STORAGE_BUFFER:
            return STORAGE_BLOCK, None
        if storage == UNIFORM:
            return (STORAGE_BLOCK if BUFFER_BLOCK in self.decorations.get(pointee, {}) else UNIFORM_BLOCK), None
        kind = self._type(pointee)
        if kind[0] == TYPE_SAMPLER:
            return SAMPLER, None
        combined = kind[0] == TYPE_SAMPLED_IMAGE
        kind = self._type(kind[1]) if combined else kind
        if kind[0] != TYPE_IMAGE:
            raise Unknown(f"a descriptor of type {kind[0]} is not known here")
        sampled, dimension, depth, layered, multisampled, use, form = kind[1:8]
        image = Image(dimension, depth == 1, bool(layered), bool(multisampled), form, self._numbers(sampled)[0])
        if dimension == DIM_SUBPASS:
            raise Unknown("input attachments are not known here")
        if dimension == DIM_BUFFER:
            return (STORAGE_TEXELS if use == 2 else UNIFORM_TEXELS), image
        return (COMBINED if combined else STORAGE_IMAGE if use == 2 else SAMPLED_IMAGE), image

    def push_constants(self):
        """What they are; None: there are none."""
        blocks = [self._pointee(pointer) for _, pointer, storage in self.variables if storage == PUSH_CONSTANT]
        return self._ones(blocks[0]) if blocks else None

    def _ones(self, block):
        """A uniform block all of whose numbers are 1."""
        contents = bytearray(MOST_OF_BLOCK)
        for at, data in self._numbers_of(block, 0, 0):
            if at + len(data) <= len(contents):
                contents[at:at + len(data)] = data
        return bytes(contents)

    def _numbers_of(self, name, at, matrix_stride):
        """(place, bytes) of each number of a type that lies there."""
        kind = self._type(name)
        if kind[0] in (TYPE_INT, TYPE_FLOAT):
            yield at, (1).to_bytes(kind[1] // 8, "little") if kind[0] == TYPE_INT else struct.pack({16: "<e", 32: "<f", 64: "<d"}[kind[1]], 1.0)
        elif kind[0] in (TYPE_VECTOR, TYPE_MATRIX, TYPE_ARRAY):
            stride = self._stride(name, kind, matrix_stride)
            for part in range(min(self._length(kind[2]) if kind[0] == TYPE_ARRAY else kind[2], MOST_OF_BLOCK // max(1, stride))):
                yield from self._numbers_of(kind[1], at + part * stride, matrix_stride)
        elif kind[0] == TYPE_STRUCT:
            for number, member in enumerate(kind[1:]):
                decorations = self.members.get(name, {}).get(number, {})
                yield from self._numbers_of(member, at + decorations.get(OFFSET, 0), decorations.get(MATRIX_STRIDE, 0))

    def _stride(self, name, kind, matrix_stride):
        if kind[0] == TYPE_ARRAY:
            return self.decorations.get(name, {}).get(ARRAY_STRIDE, 16)
        return matrix_stride if kind[0] == TYPE_MATRIX else self._type(kind[1])[1] // 8


class _Writer:
    """A module with one function, main."""

    def __init__(self):
        self.names, self.head, self.decorations, self.types, self.body = itertools.count(1), [], [], [], []
        self.known = {}

    @staticmethod
    def op(place, opcode, *operands):
        place += [(len(operands) + 1) << 16 | opcode, *operands]

    def declare(self, opcode, *operands, result_type=None):
        """A type or constant, once."""
        key = (opcode, result_type, *operands)
        if key not in self.known:
            name = self.known[key] = next(self.names)
            self.op(self.types, opcode, *([result_type] if result_type else []), name, *operands)
        return self.known[key]

    def number(self, base):
        return self.declare(TYPE_FLOAT, 32) if base == "float" else self.declare(TYPE_INT, 32, int(base == "int"))

    def vector(self, base, size):
        return self.number(base) if size == 1 else self.declare(TYPE_VECTOR, self.number(base), size)

    def constant(self, value):
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        return self.declare(CONSTANT, bits, result_type=self.number("float"))

    def variable(self, of, storage, **decorations):
        name = next(self.names)
        self.op(self.types, VARIABLE, self.declare(TYPE_POINTER, storage, of), name, storage)
        for what, value in decorations.items():
            code = {"location": LOCATION, "built_in": BUILT_IN, "flat": FLAT}[what]
            self.op(self.decorations, DECORATE, name, code, *([] if value is True else [value]))
        return name

    def compute(self, opcode, of, *operands):
        name = next(self.names)
        self.op(self.body, opcode, of, name, *operands)
        return name

    def module(self, model, interface):
        main, void, label = next(self.names), self.declare(19), next(self.names)
        function = self.declare(33, void)
        head = []
        self.op(head, 17, 1)  # capability Shader
        self.op(head, 14, 0, 1)  # memory model Logical, GLSL450
        self.op(head, ENTRY_POINT, model, main, *struct.unpack("<2I", b"main\0\0\0\0"), *interface)
        if model == 4:
            self.op(head, 16, main, 7)  # execution mode OriginUpperLeft
        tail = []
        self.op(tail, 54, void, main, 0, function)
        self.op(tail, 248, label)
        tail += self.body
        self.op(tail, 253)
        self.op(tail, 56)
        words = [MAGIC, 0x00010000, 0, next(self.names), 0, *head, *self.decorations, *self.types, *tail]
        return struct.pack(f"<{len(words)}I", *words)


COMPOSITE_CONSTRUCT, COMPOSITE_EXTRACT, LOAD, STORE, FADD, FMUL, TO_UINT, TO_INT, FROM_INT, FROM_UINT, SHIFT, AND = (
    80, 81, 61, 62, 129, 133, 109, 110, 111, 112, 195, 199)


def _vertex_beside(inputs):
    """Its triangle covers the picture. No two numbers that it gives are the same: the compiler makes one of those that are."""
    to = _Writer()
    real, whole = to.number("float"), to.number("int")
    one = to.declare(CONSTANT, 1, result_type=whole)
    index, position = to.variable(whole, INPUT, built_in=42), to.variable(to.vector("float", 4), OUTPUT, built_in=0)
    loaded = to.compute(LOAD, whole, index)
    corner = []
    for bit in (to.compute(AND, whole, loaded, one), to.compute(SHIFT, whole, loaded, one)):
        scaled = to.compute(FMUL, real, to.compute(FROM_INT, real, bit), to.constant(4.0))
        corner.append(to.compute(FADD, real, scaled, to.constant(-1.0)))
    vertex = to.compute(COMPOSITE_CONSTRUCT, to.vector("float", 4), *corner, to.constant(0.0), to.constant(1.0))
    to.op(to.body, STORE, position, vertex)
    interface, numbers = [index, position], itertools.count(1)
    for port in inputs:
        parts = [to.compute(FADD, real, corner[0], to.constant(1.0 + next(numbers) / 64)) for _ in range(port.size)]
        if port.base != "float":
            parts = [to.compute(TO_INT if port.base == "int" else TO_UINT, to.number(port.base), part) for part in parts]
        of = to.vector(port.base, port.size)
        value = parts[0] if port.size == 1 else to.compute(COMPOSITE_CONSTRUCT, of, *parts)
        interface.append(to.variable(of, OUTPUT, location=port.location))
        to.op(to.body, STORE, interface[-1], value)
    return to.module(0, interface)


def _fragment_beside(outputs):
    """It reads all that the vertex shader gives."""
    to = _Writer()
    real, total = to.number("float"), to.constant(0.5)
    color = to.variable(to.vector("float", 4), OUTPUT, location=0)
    interface = [color]
    for port in outputs:
        of, flat = to.vector(port.base, port.size), {} if port.base == "float" else {"flat": True}
        interface.append(to.variable(of, INPUT, location=port.location, **flat))
        value = to.compute(LOAD, of, interface[-1])
        for part in range(port.size):
            number = value if port.size == 1 else to.compute(COMPOSITE_EXTRACT, to.number(port.base), value, part)
            if port.base != "float":
                number = to.compute(FROM_INT if port.base == "int" else FROM_UINT, real, number)
            total = to.compute(FADD, real, total, number)
    to.op(to.body, STORE, color, to.compute(COMPOSITE_CONSTRUCT, to.vector("float", 4), *[total] * 4))
    return to.module(4, interface)


def module_beside(module):
    """The other stage of a module's program, as a module; empty for compute shaders."""
    if module.kind == "compute":
        return b""
    return _vertex_beside(module.ports(INPUT)) if module.kind == "fragment" else _fragment_beside(module.ports(OUTPUT))
