#!/usr/bin/env python3
"""v3demu shader and shader-db with Mesa, and v3demu profile's gate on shaders that are as fast and slower.

usage: shader_test.py V3DEMU MESA_PREFIX SOURCE_FOLDER FOLDER DEVICE...
"""
import json
import os
import shutil
import subprocess
import sys
import unittest

V3DEMU, MESA, SOURCE, FOLDER = sys.argv[1:5]
DEVICES = sys.argv[5:]
DRAW = os.path.join(SOURCE, "tools", "scripts", "shader_parts", "draw.py")

FRAGMENT = """#version 310 es
precision highp float;
uniform sampler2D image;
uniform float factor;
in vec2 place;
out vec4 color;
void main() { color = texture(image, place) * factor + vec4(place, 0.0, 1.0)%s; }
"""
SLOWER = " + sin(place.x) * cos(place.y)"
ROUNDS = """#version 310 es
precision highp float;
in vec2 place;
out vec4 color;
void main() { vec2 p = place; for (int i = 0; i < %d; ++i) p = p * p + place; color = vec4(p, 0.0, 1.0); }
"""
VERTEX = """#version 300 es
in vec4 position;
uniform mat4 matrix;
flat out int cell;
void main() { gl_Position = matrix * position; cell = gl_VertexID; }
"""
COMPUTE = """#version 310 es
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Values { float values[]; };
void main() { values[gl_GlobalInvocationID.x] += 1.0; }
"""
VULKAN_FRAGMENT = """#version 450
layout(location = 0) in vec2 place;
layout(location = 1) flat in ivec3 cell;
layout(set = 0, binding = 1) uniform sampler2D image;
layout(set = 0, binding = 2, rgba8) uniform readonly image2D other;
layout(set = 0, binding = 3) uniform sampler2DArrayShadow depth;
layout(set = 1, binding = 0) uniform Block { mat4 matrix; } block;
layout(set = 1, binding = 4) buffer Values { float values[]; } buffers[2];
layout(push_constant) uniform Pushed { vec4 factor; } pushed;
layout(location = 0) out vec4 color;
layout(location = 1) out uvec4 number;
void main() {
  color = block.matrix * texture(image, place) * pushed.factor + imageLoad(other, cell.xy) + buffers[1].values[cell.z] +
          texture(depth, vec4(place, 0.0, 0.5));
  number = uvec4(cell, 1);
}
"""
VULKAN_VERTEX = """#version 450
layout(location = 0) in vec3 position;
layout(location = 1) in ivec2 place;
layout(set = 0, binding = 0) uniform Block { mat4 matrix; } block;
layout(location = 0) out vec2 passed;
layout(location = 1) flat out uint number;
void main() { gl_Position = block.matrix * vec4(position, 1.0); passed = vec2(place) + position.xy; number = gl_VertexIndex; }
"""
VULKAN_COMPUTE = """#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Values { float values[]; };
shared float all[64];
void main() {
  all[gl_LocalInvocationIndex] = values[gl_GlobalInvocationID.x];
  barrier();
  values[gl_GlobalInvocationID.x] = all[63 - gl_LocalInvocationIndex];
}
"""
PROGRAM = """[require]
GLSL >= 1.10
[vertex shader]
varying vec3 normal;
void main() { gl_Position = ftransform(); normal = gl_NormalMatrix * gl_Normal; }
[fragment shader]
varying vec3 normal;
void main() { gl_FragColor = vec4(normalize(normal)%s, 1.0); }
[test]
draw rect -1 -1 2 2
"""


def run(*words):
    return subprocess.run([V3DEMU, *words], capture_output=True, text=True, timeout=600, check=False)


class Fixture(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(FOLDER, ignore_errors=True)
        os.makedirs(FOLDER)

    def path(self, name):
        return os.path.join(FOLDER, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)


class Shader(Fixture):
    def shader(self, path, *options):
        done = run("shader", "--mesa", MESA, *options, path)
        self.assertEqual((done.returncode, done.stderr), (0, ""), path)
        return done.stdout

    def test_kinds_become_their_programs_on_each_board(self):
        for device in DEVICES:
            for name, text, stages in (("a.frag", FRAGMENT % "", ["fragment"]), ("a.vert", VERTEX, ["coordinate", "vertex"]),
                                       ("a.comp", COMPUTE, ["compute"])):
                result = json.loads(self.shader(self.write(name, text), "--device", device, "--json", "-"))
                self.assertEqual((result["board"], [shader["stage"] for shader in result["shaders"]]), (device, stages))
                for shader in result["shaders"]:
                    self.assertEqual(len(shader["code"]), shader["instructions"], "the model runs all that Mesa counts")
                    self.assertGreaterEqual(shader["clocks_per_batch"], 4 * shader["instructions"])
                    self.assertIn(shader["threads"], (1, 2, 4))

    def test_varyings_are_not_one_number(self):
        result = json.loads(self.shader(self.write("two.frag", FRAGMENT % ""), "--json", "-"))
        self.assertEqual(sum("ldvary" in one["text"] for one in result["shaders"][0]["code"]), 2)

    @unittest.skipUnless(shutil.which("glslangValidator"), "glslangValidator is not installed")
    def test_modules_are_compiled_by_the_driver_for_vulkan(self):
        for device in DEVICES:
            for name, text, stages in (("m.frag", VULKAN_FRAGMENT, ["fragment"]), ("m.vert", VULKAN_VERTEX, ["coordinate", "vertex"]),
                                       ("m.comp", VULKAN_COMPUTE, ["compute"])):
                module = self.path(name + ".spv")
                subprocess.run(["glslangValidator", "-V", "-o", module, self.write(name, text)], stdout=subprocess.DEVNULL, check=True)
                result = json.loads(self.shader(module, "--device", device, "--json", "-"))
                self.assertEqual((result["board"], [shader["stage"] for shader in result["shaders"]]), (device, stages))
                for shader in result["shaders"]:
                    self.assertEqual(len(shader["code"]), shader["instructions"], "the model runs what Mesa counts")
                    self.assertEqual(shader["hazards"], {})
                if name == "m.frag":  # two numbers of floats, three of integers; what the depth texture and the buffer give is used
                    code = [one["text"] for one in result["shaders"][0]["code"]]
                    self.assertEqual(sum("ldvary" in text for text in code), 5)
                    self.assertGreaterEqual(sum("ldtmu" in text for text in code), 6)

    def test_a_diff_tells_what_a_change_costs(self):
        old, new = self.write("old.frag", FRAGMENT % ""), self.write("new.frag", FRAGMENT % SLOWER)
        self.shader(old, "--json", self.path("old.json"))
        first = self.shader(new, "--diff", self.path("old.json"))
        self.assertRegex(first, r"instructions +\d+ +\d+ \(\+")
        self.assertRegex(first, r"clocks per batch +[\d.]+ +[\d.]+ \(\+")
        self.assertIn("  +", first)
        self.assertEqual(first, self.shader(new, "--diff", old), "the same bytes of a file as of its result")

    def test_what_does_not_compile_says_why(self):
        done = run("shader", "--mesa", MESA, self.write("bad.frag", "void main() { gl_FragColor = nothing; }"))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("`nothing' undeclared", done.stderr)


class ShaderDb(Fixture):
    def folder(self, name, more):
        os.makedirs(self.path(name), exist_ok=True)
        self.write(name + "/a.frag", FRAGMENT % "")
        self.write(name + "/b.comp", COMPUTE)
        self.write(name + "/c.shader_test", PROGRAM % more)
        return self.path(name)

    def test_tells_and_compares_the_same_with_any_number_of_processes(self):
        before, after = self.folder("before", ""), self.folder("after", " + sin(normal) * cos(normal)")
        first = run("shader-db", "--mesa", MESA, "--jobs", "1", "--json", self.path("before.json"), before)
        self.assertEqual((first.returncode, first.stderr), (0, ""))
        told = [line.split(" shader: ")[0] for line in first.stdout.splitlines()]
        self.assertEqual(told, ["a.frag - fragment", "b.comp - compute", "c.shader_test - coordinate", "c.shader_test - vertex", "c.shader_test - fragment"])
        self.assertRegex(first.stdout, r"a\.frag - fragment shader: \d+ inst, 4 threads, .* 0:0 spills:fills, .* nops, [\d.]+ clocks, 0 hazards, .* occupancy")
        second = run("shader-db", "--mesa", MESA, "--jobs", "3", "--against", MESA, before)
        self.assertEqual((second.returncode, second.stderr), (0, ""))
        self.assertIn("total clocks in shared programs: ", second.stdout)
        self.assertNotIn("affected", second.stdout, "the same Mesa gives the same figures")
        third = run("shader-db", "--mesa", MESA, "--against", self.path("before.json"), after)
        self.assertEqual((third.returncode, third.stderr), (0, ""))
        self.assertRegex(third.stdout, r"inst in affected programs: \d+ -> \d+ \(\+[\d.]+%\)\nhelped: 0\nHURT: 1\n")
        self.assertRegex(third.stdout, r"changed most:\n +[\d.]+ -> +[\d.]+ +\+[\d.]+%  c\.shader_test - fragment\n")
        self.assertTrue(third.stdout.endswith("LOST:   0\nGAINED: 0\n"))


class Gate(Fixture):
    def profile(self, name, more, source=FRAGMENT):
        text = self.write(name + ".frag", source % more)
        vertex = self.write("other.vert", "#version 310 es\nin vec4 v3demu_position;\nout vec2 place;\n"
                            "void main() { gl_Position = v3demu_position; place = v3demu_position.xy; }\n")
        done = run("profile", "--mesa", MESA, "-o", self.path(name), "--", sys.executable, "-B", DRAW, "es", "fragment", text, vertex)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.path(name + "/profile.json")

    def test_a_slower_shader_fails_it_and_another_run_does_not(self):
        before, again, slower = self.profile("before", ""), self.profile("again", ""), self.profile("slower", SLOWER)
        done = run("profile", "--compare", before, again, "--fail-above", "1%")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = run("profile", "--compare", before, slower, "--fail-above", "5%", "--table", self.path("comparison.txt"))
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"- fragment 0x[0-9a-f]+ \(other code\): \+\d")
        with open(self.path("comparison.txt"), encoding="utf-8") as file:
            self.assertEqual(file.read(), done.stdout)
        capture = self.path("before/capture.v3dcap")
        self.assertEqual(run("profile", "--compare", capture, before, "--fail-above", "0%").returncode, 0)
        self.assertEqual(run("profile", "--budget", "1s", capture).returncode, 0)
        done = run("profile", "--budget", "1us", capture)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("- frame 1: ", done.stdout)

    def test_a_tenth_more_work_is_seen_whatever_the_host_does(self):
        before = self.profile("before", 20, ROUNDS)
        others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
        try:
            again, slower = self.profile("again", 20, ROUNDS), self.profile("slower", 22, ROUNDS)
        finally:
            for other in others:
                other.kill()
                other.wait()
        done = run("profile", "--compare", before, again, "--fail-above", "0%")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = run("profile", "--compare", before, slower, "--fail-above", "5%")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"- fragment 0x[0-9a-f]+(?: \(other code\))?: \+(9|10)\.\d\d %")

    def test_options_that_do_not_go_together_are_refused(self):
        for words in (["--fail-above", "5%", "x.v3dcap"], ["--compare", "a"], ["--compare", "a", "b", "c"]):
            self.assertEqual(run("profile", *words).returncode, 2, words)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
