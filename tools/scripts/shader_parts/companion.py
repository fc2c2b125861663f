"""The other stage of a program of which there is one, in GLSL."""
import collections
import itertools
import re

VARYING = re.compile(
    r"(?:^|(?<=;))[ \t]*(layout\s*\([^)]*\)\s*)?((?:(?:flat|smooth|centroid|sample|invariant)\s+)*)(in|out|varying)\s+"
    r"(?:(?:lowp|mediump|highp)\s+)?(\w+)\s+(\w+)\s*(\[\s*\d+\s*\])?\s*;", re.M)
TYPES = {"float", "int", "uint", *(kind + str(n) for kind in ("vec", "ivec", "uvec") for n in (2, 3, 4)), "mat2", "mat3", "mat4"}


Dialect = collections.namedtuple("Dialect", "version es old")  # old: with attributes and varyings


class Failure(Exception):
    """Nothing can be said of the shader; the text says why."""


class Unknown(Failure):
    """It may be a good shader, but is of a kind that is not known here."""


def dialect_of(text):
    """What GLSL a text is; without a line that says so that of OpenGL ES 2."""
    found = re.search(r"^\s*#version\s+(\d+)(?:\s+(\w+))?", text, re.M)
    number = int(found[1]) if found else 100
    es = number == 100 or bool(found and found[2] == "es")
    return Dialect(number, es, number < (300 if es else 130))


def varyings(text, direction):
    """(declaration's qualifiers, type, name, array) of what goes between the stages."""
    bare = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    if re.search(rf"^\s*(layout\s*\([^)]*\)\s*)?{direction}\s+\w+\s*\{{", bare, re.M):
        raise Unknown("blocks of inputs and outputs are not known here; single ones are")
    found = [match.groups(default="") for match in VARYING.finditer(bare) if match[3] in (direction, "varying")]
    for _, _, _, kind, name, _ in found:
        if kind not in TYPES:
            raise Unknown(f"{name}: an input or output of type {kind} is not known here")
    return [(layout + qualifiers.replace("invariant ", ""), kind, name, array) for layout, qualifiers, _, kind, name, array in found]


def _head(dialect, precision=""):
    if not dialect.es:
        return f"#version {dialect.version}\n"
    return ("" if dialect.old else f"#version {dialect.version} es\n") + precision


def companion(text, kind):
    """The stage that goes with it: a vertex shader that gives a fragment shader all that it reads, or a fragment shader
    that reads all that a vertex shader gives; nothing for compute shaders."""
    if kind == "compute":
        return ""
    dialect = dialect_of(text)
    names = varyings(text, "in" if kind == "fragment" else "out")
    high = "highp " if dialect.es else ""
    word = "varying" if dialect.old else "out" if kind == "fragment" else "in"
    lines = "".join(f"{qualifiers}{word} {high}{of} {name}{array};\n" for qualifiers, of, name, array in names)
    if kind == "fragment":
        numbers = itertools.count(1)
        body = "".join(f"  {_assignment(of, name, array, numbers)}\n" for _, of, name, array in names)
        return (_head(dialect) + f"{'attribute' if dialect.old else 'in'} {high}vec4 v3demu_position;\n" + lines +
                "void main() {\n  gl_Position = v3demu_position;\n" + body + "}\n")
    target = "gl_FragColor" if dialect.old else "v3demu_color"
    terms = ["vec4(0.5)"] + [f"vec4({_scalar(of, name + ('[0]' if array else ''))})" for _, of, name, array in names]
    return (_head(dialect, "precision highp float;\nprecision highp int;\n") + lines +
            ("" if dialect.old else "out vec4 v3demu_color;\n") + f"void main() {{\n  {target} = {' + '.join(terms)};\n}}\n")


def covering(text):
    """A vertex shader with all its outputs, whose triangle covers the picture nevertheless."""
    dialect = dialect_of(text)
    renamed, count = re.subn(r"\bvoid\s+main\s*\(\s*(?:void)?\s*\)", "void v3demu_main()", text)
    if not count:
        raise Failure("the vertex shader has no main()")
    return (renamed + f"\n{'attribute' if dialect.old else 'in'} {'highp ' if dialect.es else ''}vec4 v3demu_position;\n"
            "void main() {\n  v3demu_main();\n  gl_Position = v3demu_position;\n}\n")


def _numbers_in(of):
    """Of a vector or a matrix."""
    return int(of[-1]) ** (2 if of.startswith("mat") else 1) if of[-1] in "234" else 1


def _assignment(of, name, array, numbers):
    """No two numbers are the same: the compiler makes one of those that are."""
    def value():
        place = "v3demu_position.x * 0.5"
        parts = [f"{place} + {next(numbers)}.0 / 64.0" for _ in range(_numbers_in(of))]
        if of[0] in "iu":
            parts = [f"{'uint' if of[0] == 'u' else 'int'}({part})" for part in parts]
        return f"{of}({', '.join(parts)})"
    if not array:
        return f"{name} = {value()};"
    return " ".join(f"{name}[{at}] = {value()};" for at in range(int(array.strip("[] \t"))))


def _scalar(of, name):
    """All of it in one number."""
    if of.startswith("mat"):
        parts = [f"{name}[{column}][{row}]" for column in range(int(of[-1])) for row in range(int(of[-1]))]
    else:
        parts = [f"{name}.{part}" for part in "xyzw"[:_numbers_in(of)]] if of[-1] in "234" else [name]
    return " + ".join(parts if of == "float" or of.startswith(("vec", "mat")) else [f"float({part})" for part in parts])
