"""Compiles a shader with the driver by OpenGL and draws, or dispatches, once: run under v3demu profile by tools/shader.

usage: draw.py es|gl KIND FILE COMPANION

Uniforms are 1, buffers 0, textures of 64 x 64; a fragment shader covers 128 x 128 pixels, a vertex shader has 4096 vertices
and a compute shader 64 groups.
"""
import ctypes as c
import sys

from sizes import GROUPS, SIDE, TEXELS, VERTICES

FLOAT, INT, UINT = 0x1406, 0x1404, 0x1405
# Uniforms: function, numbers in one.
VALUES = {FLOAT: ("glUniform1fv", 1), 0x8B50: ("glUniform2fv", 2), 0x8B51: ("glUniform3fv", 3), 0x8B52: ("glUniform4fv", 4),
          INT: ("glUniform1iv", 1), 0x8B53: ("glUniform2iv", 2), 0x8B54: ("glUniform3iv", 3), 0x8B55: ("glUniform4iv", 4),
          0x8B56: ("glUniform1iv", 1), 0x8B57: ("glUniform2iv", 2), 0x8B58: ("glUniform3iv", 3), 0x8B59: ("glUniform4iv", 4),
          UINT: ("glUniform1uiv", 1), 0x8DC6: ("glUniform2uiv", 2), 0x8DC7: ("glUniform3uiv", 3), 0x8DC8: ("glUniform4uiv", 4)}
MATRICES = {0x8B5A: ("glUniformMatrix2fv", 4), 0x8B5B: ("glUniformMatrix3fv", 9), 0x8B5C: ("glUniformMatrix4fv", 16)}
FLAT, DEEP, CUBE, LAYERS = 0x0DE1, 0x806F, 0x8513, 0x8C1A
RGBA8, RGBA8I, RGBA8UI, DEPTH16 = 0x8058, 0x8D8E, 0x8D7C, 0x81A5
SAMPLERS = {0x8B5E: (FLAT, RGBA8), 0x8B5F: (DEEP, RGBA8), 0x8B60: (CUBE, RGBA8), 0x8DC1: (LAYERS, RGBA8),
            0x8B62: (FLAT, DEPTH16), 0x8DC4: (LAYERS, DEPTH16), 0x8DC5: (CUBE, DEPTH16),
            0x8DCA: (FLAT, RGBA8I), 0x8DCB: (DEEP, RGBA8I), 0x8DCC: (CUBE, RGBA8I), 0x8DCF: (LAYERS, RGBA8I),
            0x8DD2: (FLAT, RGBA8UI), 0x8DD3: (DEEP, RGBA8UI), 0x8DD4: (CUBE, RGBA8UI), 0x8DD7: (LAYERS, RGBA8UI)}
STAGES = {"vertex": 0x8B31, "fragment": 0x8B30, "compute": 0x91B9}
BLOCKS = ((0x8A11, 12), (0x90D2, 4))  # of uniforms and of storage, with so many bindings

egl, gl = c.CDLL("libEGL.so.1"), c.CDLL("libGLESv2.so.2")


def make_context(api):
    """The newest version that there is; in OpenGL a core profile, where there is one."""
    egl.eglGetPlatformDisplay.restype = egl.eglCreateContext.restype = c.c_void_p
    display = c.c_void_p(egl.eglGetPlatformDisplay(0x31DD, None, None))  # without surfaces
    if not egl.eglInitialize(display, None, None):
        sys.exit("no EGL display")
    egl.eglBindAPI(0x30A0 if api == "es" else 0x30A2)
    versions = (((3, (0x3098, 3, 0x30FB, 1)), (2, (0x3098, 2))) if api == "es" else
                ((4, (0x3098, 3, 0x30FB, 3, 0x30FD, 1)), (3, ())))
    for version, attributes in versions:
        context = egl.eglCreateContext(display, None, None, (c.c_int * 7)(*attributes, *[0x3038] * (7 - len(attributes))))
        if context and egl.eglMakeCurrent(display, None, None, c.c_void_p(context)):
            return version
    sys.exit("no context of OpenGL" + (" ES" if api == "es" else ""))


def compile_stage(kind, text, what):
    shader, source = gl.glCreateShader(STAGES[kind]), c.c_char_p(text.encode())
    if not shader:
        sys.exit(f"the driver has no {kind} shaders in this version of OpenGL")
    gl.glShaderSource(shader, 1, c.byref(source), None)
    gl.glCompileShader(shader)
    ok, log = c.c_int(), c.create_string_buffer(8192)
    gl.glGetShaderiv(shader, 0x8B81, c.byref(ok))
    if not ok.value:
        gl.glGetShaderInfoLog(shader, len(log), None, log)
        sys.exit(f"{what}: {log.value.decode(errors='replace').strip() or 'it does not compile'}")
    return shader


def link(shaders):
    program = gl.glCreateProgram()
    for shader in shaders:
        gl.glAttachShader(program, shader)
    gl.glLinkProgram(program)
    ok, log = c.c_int(), c.create_string_buffer(8192)
    gl.glGetProgramiv(program, 0x8B82, c.byref(ok))
    if not ok.value:
        gl.glGetProgramInfoLog(program, len(log), None, log)
        sys.exit(log.value.decode(errors="replace").strip() or "it does not link")
    gl.glUseProgram(program)
    return program


def active(program, count_name, get):
    """(name, type, elements) of uniforms or attributes."""
    count, size, kind, name = c.c_int(), c.c_int(), c.c_uint(), c.create_string_buffer(512)
    gl.glGetProgramiv(program, count_name, c.byref(count))
    for index in range(count.value):
        get(program, index, len(name), None, c.byref(size), c.byref(kind), name)
        yield name.value, kind.value, size.value


def bind_texture(unit, target, form, version):
    texture = c.c_uint()
    gl.glGenTextures(1, c.byref(texture))
    gl.glActiveTexture(0x84C0 + unit)
    gl.glBindTexture(target, texture)
    if version == 2:
        faces = [FLAT] if target == FLAT else range(0x8515, 0x851B)
        for face in faces:
            gl.glTexImage2D(face, 0, 0x1908, TEXELS, TEXELS, 0, 0x1908, 0x1401, bytes(4 * TEXELS * TEXELS))
    elif target in (DEEP, LAYERS):
        gl.glTexStorage3D(target, 1, form, TEXELS, TEXELS, 4)
    else:
        gl.glTexStorage2D(target, 1, form, TEXELS, TEXELS)
    smooth = 0x2601 if form == RGBA8 else 0x2600
    for name in (0x2800, 0x2801):
        gl.glTexParameteri(target, name, smooth)
    if form == DEPTH16:
        gl.glTexParameteri(target, 0x884C, 0x884E)


def set_uniforms(program, version):
    unit = 0
    for name, kind, size in active(program, 0x8B86, gl.glGetActiveUniform):
        place = gl.glGetUniformLocation(program, name)
        if place < 0:
            continue  # of a block
        if kind in VALUES:
            function, count = VALUES[kind]
            number = c.c_float if "f" in function[-3:] else c.c_int
            getattr(gl, function)(place, size, (number * (count * size))(*[1] * (count * size)))
        elif kind in MATRICES:
            function, count = MATRICES[kind]
            getattr(gl, function)(place, size, 0, (c.c_float * (count * size))(*[1] * (count * size)))
        elif kind in SAMPLERS:
            for element in range(size):
                bind_texture(unit, *SAMPLERS[kind], version)
                gl.glUniform1i(place + element, unit)
                unit += 1
        else:
            print(f"uniform {name.decode()}: its type is not known here, and it has no value", file=sys.stderr)


def bind_buffers():
    for target, count in BLOCKS:
        for binding in range(count):
            name, size = c.c_uint(), 1 << 16
            gl.glGenBuffers(1, c.byref(name))
            gl.glBindBuffer(target, name)
            gl.glBufferData(target, c.c_long(size), bytes(size), 0x88E4)
            gl.glBindBufferBase(target, binding, name)


def make_target():
    texture, frame = c.c_uint(), c.c_uint()
    gl.glGenTextures(1, c.byref(texture))
    gl.glBindTexture(FLAT, texture)
    gl.glTexImage2D(FLAT, 0, 0x1908, SIDE, SIDE, 0, 0x1908, 0x1401, None)
    gl.glGenFramebuffers(1, c.byref(frame))
    gl.glBindFramebuffer(0x8D40, frame)
    gl.glFramebufferTexture2D(0x8D40, 0x8CE0, FLAT, texture, 0)
    gl.glViewport(0, 0, SIDE, SIDE)


def give_attributes(program, corners):
    """Buffers of all attributes."""
    for name, kind, _ in active(program, 0x8B89, gl.glGetActiveAttrib):
        place = gl.glGetAttribLocation(program, name)
        if place < 0 or kind not in (FLOAT, 0x8B50, 0x8B51, 0x8B52):
            continue  # built in, or no float: these keep their constant values
        numbers = corners if name == b"v3demu_position" else [1.0] * (4 * VERTICES)
        buffer, data = c.c_uint(), (c.c_float * len(numbers))(*numbers)
        gl.glGenBuffers(1, c.byref(buffer))
        gl.glBindBuffer(0x8892, buffer)
        gl.glBufferData(0x8892, c.c_long(c.sizeof(data)), data, 0x88E4)
        gl.glVertexAttribPointer(place, 4, FLOAT, 0, 0, None)
        gl.glEnableVertexAttribArray(place)


def bind_vertex_array():
    """Core profiles have none by themselves."""
    array = c.c_uint()
    gl.glGenVertexArrays(1, c.byref(array))
    gl.glBindVertexArray(array)


def main():
    api, kind, path, other = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        text = file.read()
    version = make_context(api)
    shaders = [compile_stage(kind, text, kind)]
    if kind != "compute":
        make_target()
        with open(other, encoding="utf-8") as file:
            shaders.append(compile_stage("vertex" if kind == "fragment" else "fragment", file.read(), "the stage beside it"))
    program = link(shaders)
    set_uniforms(program, version)
    if version >= 3:
        bind_buffers()
    if kind == "compute":
        gl.glDispatchCompute(GROUPS, 1, 1)
    else:
        if version == 4:
            bind_vertex_array()
        give_attributes(program, [-1, -1, 0, 1, 3, -1, 0, 1, -1, 3, 0, 1])
        gl.glDrawArrays(*((4, 0, 3) if kind == "fragment" else (0, 0, VERTICES)))
    gl.glFinish()
    if error := gl.glGetError():
        sys.exit(f"OpenGL error 0x{error:x}")


if __name__ == "__main__":
    main()
