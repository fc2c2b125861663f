#!/usr/bin/env python3
"""v3demu shader with Mesa, and v3demu profile's gate on shaders that are as fast and slower.

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


class Gate(Fixture):
    def profile(self, name, more):
        text = self.write(name + ".frag", FRAGMENT % more)
        vertex = self.write("other.vert", "#version 310 es\nin vec4 v3demu_position;\nout vec2 place;\n"
                            "void main() { gl_Position = v3demu_position; place = v3demu_position.xy; }\n")
        done = run("profile", "--mesa", MESA, "-o", self.path(name), "--", sys.executable, "-B", DRAW, "fragment", text, vertex)
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

    def test_options_that_do_not_go_together_are_refused(self):
        for words in (["--fail-above", "5%", "x.v3dcap"], ["--compare", "a"], ["--compare", "a", "b", "c"]):
            self.assertEqual(run("profile", *words).returncode, 2, words)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
