"""The programs to compile and to run for a file: what v3demu shader and shader-db take."""
import dataclasses
import os
import re

from .companion import Failure, Unknown, companion, covering, dialect_of
from .spirv import Module, module_beside

KINDS = {".vert": "vertex", ".frag": "fragment", ".comp": "compute"}
ENDINGS = (*KINDS, ".spv", ".shader_test")
STAGES = ("vertex", "fragment", "compute")
NO_SHADERS = ("require", "test", "vertex data")
PASSES_THROUGH = "vertex shader passthrough"


@dataclasses.dataclass(frozen=True)
class Program:
    """Of one stage the figures are wanted."""
    kind: str  # of that stage
    api: str  # es, gl or vulkan
    own: bytes
    other: bytes  # the stage beside it


def _encoded(kind, own, other):
    return Program(kind, "es" if dialect_of(own).es else "gl", own.encode(), other.encode())


def _sections(text):
    """(name, text) of each [name] of a shader_test file."""
    parts = re.split(r"^\[([^\]\n]*)\][ \t]*$", text, flags=re.M)
    return [(name.strip().lower(), body) for name, body in zip(parts[1::2], parts[2::2])]


def _with_version(body, required):
    """Text that names its GLSL: files may leave that to [require]."""
    body = body.lstrip("\n")
    if re.search(r"^\s*#version", body, re.M):
        return body
    found = re.search(r"^\s*GLSL\s*(ES)?\s*>=\s*(\d+)\.(\d+)", required, re.M)
    number = int(found[2]) * 100 + int(found[3].ljust(2, "0")) if found else 110
    es = bool(found and found[1])
    return f"#version {number}{' es' if es and number != 100 else ''}\n{body}"


def _passing_through(fragment):
    """Piglit's vertex shader of that name."""
    dialect = dialect_of(fragment)
    head = f"#version {dialect.version}{' es' if dialect.es and dialect.version != 100 else ''}\n"
    return head + f"{'attribute' if dialect.old else 'in'} vec4 piglit_vertex;\nvoid main() {{ gl_Position = piglit_vertex; }}\n"


def shader_test_programs(text):
    """Of a program in the form of piglit and shader-db: one for each stage, with the program's own other stage."""
    sections = _sections(text)
    required = "\n".join(body for name, body in sections if name == "require")
    found = {}
    for name, body in sections:
        if name in NO_SHADERS or name == PASSES_THROUGH:
            continue
        stage = re.fullmatch(r"(.*) shader", name)
        if not stage or stage[1] not in STAGES:
            raise Unknown(f"[{name}] is not known here")
        if stage[1] in found:
            raise Unknown(f"a program of more than one {name} is not known here")
        found[stage[1]] = _with_version(body, required)
    if not found:
        raise Failure("it has no shader")
    if "fragment" in found and any(name == PASSES_THROUGH for name, _ in sections):
        found["vertex"] = _passing_through(found["fragment"])
    programs = []
    if "compute" in found:
        programs.append(_encoded("compute", found["compute"], ""))
    vertex, fragment = found.get("vertex"), found.get("fragment")
    if vertex:
        programs.append(_encoded("vertex", vertex, fragment or companion(vertex, "vertex")))
    if fragment:
        programs.append(_encoded("fragment", fragment, covering(vertex) if vertex else companion(fragment, "fragment")))
    return programs


def programs_of(path):
    """All of a file, by the ending of its name."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise Failure(error.strerror) from error
    ending = os.path.splitext(path)[1]
    if ending == ".spv":
        module = Module(data)
        return [Program(module.kind, "vulkan", module.data, module_beside(module))]
    if ending not in ENDINGS:
        raise Failure(f"its name should end with {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Failure(str(error)) from error
    if ending == ".shader_test":
        return shader_test_programs(text)
    return [_encoded(KINDS[ending], text, companion(text, KINDS[ending]))]
