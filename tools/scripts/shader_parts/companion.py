"""The other stage of a shader's program, and the text that drivers get of a file."""
import os
import re
import shutil
import subprocess

KINDS = {".vert": "vertex", ".frag": "fragment", ".comp": "compute"}
SPIRV_KINDS = {0: "vertex", 4: "fragment", 5: "compute"}  # execution models
SPIRV_MAGIC, OP_ENTRY_POINT = 0x07230203, 15

VARYING = re.compile(
    r"^[ \t]*(layout\s*\([^)]*\)\s*)?((?:(?:flat|smooth|centroid|sample|invariant)\s+)*)(in|out|varying)\s+"
    r"(?:(?:lowp|mediump|highp)\s+)?(\w+)\s+(\w+)\s*(\[\s*\d+\s*\])?\s*;", re.M)
TYPES = {"float", "int", "uint", *(kind + str(n) for kind in ("vec", "ivec", "uvec") for n in (2, 3, 4)), "mat2", "mat3", "mat4"}


class Failure(Exception):
    """Nothing can be said of the shader; the text says why."""


def _spirv(path, data):
    """A module as GLSL, and its kind. SPIR-V has no way into OpenGL ES but this."""
    order = "little" if int.from_bytes(data[:4], "little") == SPIRV_MAGIC else "big"
    words = [int.from_bytes(data[at:at + 4], order) for at in range(0, len(data) - len(data) % 4, 4)]
    at, models = 5, []
    while at < len(words):
        length, opcode = words[at] >> 16, words[at] & 0xFFFF
        if opcode == OP_ENTRY_POINT and at + 1 < len(words):
            models.append(words[at + 1])
        at += max(1, length)
    kinds = {SPIRV_KINDS.get(model) for model in models}
    if len(models) != 1 or None in kinds:
        raise Failure(f"{path}: one entry point of a vertex, fragment or compute shader is wanted")
    if not shutil.which("spirv-cross"):
        raise Failure(f"{path}: SPIR-V is translated to GLSL by spirv-cross, which is not installed (sudo apt install spirv-cross)")
    done = subprocess.run(["spirv-cross", "--es", "--version", "310", path], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"{path}: spirv-cross: {(done.stderr.strip().splitlines() or ['it failed'])[-1]}")
    return done.stdout, kinds.pop()


def read_shader(path):
    """(text in GLSL, kind) of a file."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    ending = os.path.splitext(path)[1]
    if ending == ".spv":
        if len(data) < 20 or SPIRV_MAGIC not in (int.from_bytes(data[:4], "little"), int.from_bytes(data[:4], "big")):
            raise Failure(f"{path}: it is no SPIR-V module")
        return _spirv(path, data)
    if ending not in KINDS:
        raise Failure(f"{path}: its name should end with {', '.join(KINDS)} or .spv")
    try:
        return data.decode(), KINDS[ending]
    except UnicodeDecodeError as error:
        raise Failure(f"{path}: {error}") from error


def version_of(text):
    found = re.search(r"^\s*#version\s+(\d+)(?:\s+(es))?", text, re.M)
    if found and not found[2] and found[1] != "100":
        raise Failure(f"GLSL {found[1]} is not OpenGL ES': #version 100, 300 es, 310 es")
    return int(found[1]) if found else 100


def varyings(text, direction):
    """(declaration's qualifiers, type, name, array) of what goes between the stages."""
    bare = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    if re.search(rf"^\s*(layout\s*\([^)]*\)\s*)?{direction}\s+\w+\s*\{{", bare, re.M):
        raise Failure("blocks of inputs and outputs are not known here; single ones are")
    found = [match.groups(default="") for match in VARYING.finditer(bare) if match[3] in (direction, "varying")]
    for _, _, _, kind, name, _ in found:
        if kind not in TYPES:
            raise Failure(f"{name}: an input or output of type {kind} is not known here")
    return [(layout + qualifiers.replace("invariant ", ""), kind, name, array) for layout, qualifiers, _, kind, name, array in found]


def companion(text, kind):
    """The stage that goes with it: a vertex shader that gives a fragment shader all that it reads, or a fragment shader
    that reads all that a vertex shader gives; nothing for compute shaders."""
    if kind == "compute":
        return ""
    version, old = version_of(text), version_of(text) == 100
    head = "" if old else f"#version {version} es\n"
    names = varyings(text, "in" if kind == "fragment" else "out")
    if kind == "fragment":
        word = "varying" if old else "out"
        lines = [f"{qualifiers}{word} highp {of} {name}{array};" for qualifiers, of, name, array in names]
        body = [_assignment(of, name, array) for _, of, name, array in names]
        return (head + f"{'attribute' if old else 'in'} highp vec4 v3demu_position;\n" + "\n".join(lines) +
                "\nvoid main() {\n  gl_Position = v3demu_position;\n" + "".join(f"  {line}\n" for line in body) + "}\n")
    word = "varying" if old else "in"
    lines = [f"{qualifiers}{word} highp {of} {name}{array};" for qualifiers, of, name, array in names]
    target = "gl_FragColor" if old else "v3demu_color"
    terms = ["vec4(0.5)"] + [f"vec4({_scalar(of, name + ('[0]' if array else ''))})" for _, of, name, array in names]
    return (head + "precision highp float;\nprecision highp int;\n" + "\n".join(lines) +
            ("" if old else "\nout vec4 v3demu_color;") + f"\nvoid main() {{\n  {target} = {' + '.join(terms)};\n}}\n")


def _assignment(of, name, array):
    whole = "v3demu_position.x * 0.5 + 0.5"
    value = f"{of}({whole})"
    if not array:
        return f"{name} = {value};"
    return " ".join(f"{name}[{at}] = {value};" for at in range(int(array.strip("[] \t"))))


def _scalar(of, name):
    part = name + ("[0].x" if of.startswith("mat") else ".x" if of[-1] in "234" else "")
    return part if of in ("float",) or of.startswith(("vec", "mat")) else f"float({part})"
