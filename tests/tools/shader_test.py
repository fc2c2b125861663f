#!/usr/bin/env python3
"""What tools/shader puts beside a shader, and what it reads of profiles and of Mesa's compiler; it runs nothing.

usage: shader_test.py SOURCE_FOLDER [unittest options]
"""
import copy
import os
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, os.path.join(SOURCE, "tools", "scripts"))
from shader_parts.companion import Failure, companion, read_shader  # noqa: E402  pylint: disable=wrong-import-position
from shader_parts.figures import diff_of, figures_of, text_of  # noqa: E402  pylint: disable=wrong-import-position

FRAGMENT = """#version 310 es
precision highp float;
layout(location = 1) flat in mediump ivec2 cell;
centroid in vec3 normal; // in vec4 not_this;
in float weights[2];
/* in vec2 nor_this; */
out vec4 color;
void main() { color = vec4(normal, weights[0]) * float(cell.x); }
"""
LOG = """SHADER-DB-a - MESA_SHADER_VERTEX_BIN shader: 9 inst, 4 threads, 0 loops, 5 uniforms, 6 max-temps, 0:0 spills:fills, 0 sfu-stalls, 9 inst-and-stalls, 2 nops
SHADER-DB-a - MESA_SHADER_FRAGMENT shader: 99 inst, 4 threads, 0 loops, 5 uniforms, 6 max-temps, 0:0 spills:fills, 0 sfu-stalls, 99 inst-and-stalls, 2 nops
SHADER-DB-a - MESA_SHADER_FRAGMENT shader: 2 inst, 2 threads, 1 loops, 7 uniforms, 8 max-temps, 3:4 spills:fills, 5 sfu-stalls, 7 inst-and-stalls, 1 nops
"""
PROFILE = {
    "stalls": ["TMU", "SFU"],
    "jobs": [{"clocks": 10, "bound": "latency", "shaders": [{"shader": 0}, {"shader": 1}]}],
    "shaders": [{"stage": "coordinate", "batches": 1, "instructions": 9, "stalls": [0, 0], "at": []},
                {"stage": "fragment", "batches": 10, "instructions": 20, "stalls": [120, 0],
                 "at": [{"text": "fadd", "issued": 10, "stalls": [0, 0]}, {"text": "fmul", "issued": 10, "stalls": [120, 0]}]}]}


def result(profile, kind="fragment"):
    return {"file": "a.frag", "board": "rpi5", "shaders": figures_of(profile, LOG, kind)}


class Companion(unittest.TestCase):
    def test_a_vertex_shader_gives_all_that_a_fragment_shader_reads(self):
        text = companion(FRAGMENT, "fragment")
        self.assertTrue(text.startswith("#version 310 es\n"))
        for line in ("layout(location = 1) flat out highp ivec2 cell;", "centroid out highp vec3 normal;", "out highp float weights[2];"):
            self.assertIn(line, text)
        self.assertNotIn("this", text)
        self.assertIn("weights[1] = ", text)

    def test_a_fragment_shader_reads_all_that_a_vertex_shader_gives(self):
        text = companion("attribute vec4 p;\nvarying vec2 uv;\nvarying mat3 m;\nvoid main() {}", "vertex")
        self.assertIn("gl_FragColor = vec4(0.5) + vec4(uv.x) + vec4(m[0].x);", text)
        self.assertNotIn("#version", text)
        self.assertIn("vec4(float(id))", companion("#version 300 es\nflat out int id;\nvoid main() {}", "vertex"))
        self.assertEqual(companion("#version 310 es\nvoid main() {}", "compute"), "")

    def test_what_it_does_not_know_is_named(self):
        for text, kind, reason in (("#version 450\nin vec2 a;", "fragment", "GLSL 450"), ("#version 310 es\nin B { vec2 a; } b;", "fragment", "blocks"),
                                   ("#version 310 es\nin S a;", "fragment", "type S")):
            with self.assertRaisesRegex(Failure, reason):
                companion(text, kind)

    def test_files_are_told_by_their_names(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, data, reason in (("a.glsl", b"", "should end with"), ("a.spv", b"x" * 40, "no SPIR-V"), ("none.frag", None, "No such file"),
                                       ("a.frag", b"\xff", "decode")):
                path = os.path.join(folder, name)
                if data is not None:
                    with open(path, "wb") as file:
                        file.write(data)
                with self.assertRaisesRegex(Failure, reason):
                    read_shader(path)


class Figures(unittest.TestCase):
    def test_the_compilers_last_word_and_the_models_clocks_go_together(self):
        (fragment,) = figures_of(PROFILE, LOG, "fragment")
        self.assertEqual([fragment[name] for name in ("instructions", "threads", "spills", "fills", "clocks_per_batch", "bound", "job_bound")],
                         [2, 2, 3, 4, 20.0, "TMU", "latency"])
        self.assertEqual(fragment["shares"], {"issue": 0.4, "TMU": 0.6})
        (coordinate,) = figures_of(PROFILE, LOG, "vertex")
        self.assertEqual((coordinate["stage"], coordinate["instructions"], coordinate["bound"]), ("coordinate", 9, "issue"))

    def test_the_text_has_each_instruction_with_its_clocks(self):
        text = text_of(result(PROFILE))
        self.assertIn("fragment: 2 instructions, 2 threads, 7 uniforms, 8 max temps, 3 spills, 4 fills", text)
        self.assertIn("predicted: 20.00 clocks of a QPU for 16 lanes (issue 40.0 %, TMU 60.0 %); bound by TMU, its job by latency", text)
        self.assertIn("      4.00    12.00  fmul", text)

    def test_a_diff_tells_figures_and_code(self):
        changed = copy.deepcopy(PROFILE)
        changed["shaders"][1]["stalls"] = [20, 0]
        changed["shaders"][1]["at"][1]["text"] = "fmax"
        text = diff_of(result(PROFILE), result(changed))
        self.assertRegex(text, r"clocks per batch +20\.0 +10\.0 \(-50\.00 %\)")
        self.assertRegex(text, r"spills +3 +same")
        self.assertIn("bound by TMU, now by issue", text)
        self.assertIn("  -fmul\n  +fmax", text)


class Command(unittest.TestCase):
    def test_errors_are_one_message(self):
        done = subprocess.run([sys.executable, os.path.join(SOURCE, "tools", "shader"), "/nothing.frag"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (1, "", "v3demu shader: /nothing.frag: No such file or directory\n"))


if __name__ == "__main__":
    unittest.main()
