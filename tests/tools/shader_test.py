#!/usr/bin/env python3
"""What tools/shader and shader_db put beside a shader, and what they read and tell of profiles and of Mesa's compiler; no driver is run.

usage: shader_test.py SOURCE_FOLDER [unittest options]
"""
import copy
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, os.path.join(SOURCE, "tools", "scripts"))
# pylint: disable=wrong-import-position
from shader_parts import comparison, spirv  # noqa: E402
from shader_parts.companion import Failure, Unknown, companion, covering  # noqa: E402
from shader_parts.figures import diff_of, figures_of, text_of  # noqa: E402
from shader_parts.programs import programs_of, shader_test_programs  # noqa: E402
# pylint: enable=wrong-import-position

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
    "board": "rpi5", "jobs": [{"clocks": 10, "qpus": 2, "resident": 30, "bound": "latency", "shaders": [{"shader": 0}, {"shader": 1}]}],
    "shaders": [{"stage": "coordinate", "batches": 1, "instructions": 9, "stalls": [0, 0], "at": []},
                {"stage": "fragment", "batches": 10, "instructions": 20, "stalls": [120, 0],
                 "at": [{"text": "fadd", "issued": 10, "stalls": [0, 0]}, {"text": "fmul", "issued": 10, "stalls": [120, 0]}]}]}


def result(profile, kind="fragment"):
    return {"file": "a.frag", "board": "rpi5", "shaders": figures_of(profile, LOG, kind), "untimed": []}


class Companion(unittest.TestCase):
    def test_a_vertex_shader_gives_all_that_a_fragment_shader_reads(self):
        text = companion(FRAGMENT, "fragment")
        self.assertTrue(text.startswith("#version 310 es\n"))
        for line in ("layout(location = 1) flat out highp ivec2 cell;", "centroid out highp vec3 normal;", "out highp float weights[2];"):
            self.assertIn(line, text)
        self.assertNotIn("this", text)
        self.assertIn("weights[1] = ", text)

    def test_a_line_may_have_more_than_one(self):
        text = companion("#version 300 es\nuniform float k; in vec2 a; flat in int b;\nfloat f(in vec2 no) { return no.x; }\nvoid main() {}", "fragment")
        self.assertIn("out highp vec2 a;\nflat out highp int b;\n", text)
        self.assertNotIn("no;", text)

    def test_no_two_numbers_of_what_it_reads_are_the_same(self):
        values = re.findall(r"x \* 0\.5 \+ (\d+)\.0", companion(FRAGMENT, "fragment"))
        self.assertEqual((len(values), len(set(values))), (7, 7))  # the compiler would make one of equal ones

    def test_a_fragment_shader_reads_all_that_a_vertex_shader_gives(self):
        text = companion("attribute vec4 p;\nvarying vec2 uv;\nvarying mat3 m;\nvoid main() {}", "vertex")
        self.assertIn("gl_FragColor = vec4(0.5) + vec4(uv.x + uv.y) + vec4(m[0][0] + m[0][1]", text)
        self.assertIn("m[2][2]);", text)
        self.assertNotIn("#version", text)
        self.assertIn("vec4(float(id))", companion("#version 300 es\nflat out int id;\nvoid main() {}", "vertex"))
        self.assertEqual(companion("#version 310 es\nvoid main() {}", "compute"), "")

    def test_desktop_glsl_has_its_own_words(self):
        text = companion("#version 330\nin vec2 a;\nout vec4 c;", "fragment")
        self.assertTrue(text.startswith("#version 330\nin vec4 v3demu_position;\nout vec2 a;\n"), text)
        self.assertIn("gl_FragColor", companion("#version 120\nvarying vec2 a;", "vertex"))

    def test_a_vertex_shader_covers_the_picture_with_all_its_outputs(self):
        text = covering("#version 140\nout vec2 a;\nvoid main (void) { a = vec2(1.0); gl_Position = vec4(0.0); }\n")
        self.assertIn("void v3demu_main() { a", text)
        self.assertTrue(text.endswith("in vec4 v3demu_position;\nvoid main() {\n  v3demu_main();\n  gl_Position = v3demu_position;\n}\n"))
        with self.assertRaisesRegex(Failure, "no main"):
            covering("void other() {}")

    def test_what_it_does_not_know_is_named(self):
        for text, kind, reason in (("#version 310 es\nin B { vec2 a; } b;", "fragment", "blocks"),
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
                    programs_of(path)


PROGRAM = """[require]
GLSL >= 1.30
[vertex shader]
in vec4 p; out vec2 a;
void main() { gl_Position = p; a = p.xy; }
[fragment shader]
#version 140
in vec2 a; out vec4 c;
void main() { c = a.xyxy; }
[test]
draw rect -1 -1 2 2
"""


class ShaderTest(unittest.TestCase):
    def test_each_stage_is_run_with_the_programs_own_other(self):
        vertex, fragment = shader_test_programs(PROGRAM)
        self.assertEqual([(one.kind, one.api) for one in (vertex, fragment)], [("vertex", "gl"), ("fragment", "gl")])
        self.assertTrue(vertex.own.startswith(b"#version 130\nin vec4 p;"))
        self.assertTrue(fragment.own.startswith(b"#version 140\n"))
        self.assertEqual(vertex.other, fragment.own)
        self.assertIn(b"v3demu_main(); gl_Position = p;".replace(b"(); ", b"() { "), fragment.other)

    def test_a_lone_stage_gets_one(self):
        (fragment,) = shader_test_programs("[require]\nGLSL ES >= 3.00\n[fragment shader]\nin highp vec2 a;\nvoid main() {}\n")
        self.assertEqual(fragment.api, "es")
        self.assertIn(b"out highp vec2 a;", fragment.other)
        (compute,) = shader_test_programs("[compute shader]\n#version 310 es\nvoid main() {}\n")
        self.assertEqual((compute.kind, compute.other), ("compute", b""))

    def test_a_vertex_shader_may_only_pass_through(self):
        for head, word in (("", b"attribute"), ("#version 140\n", b"in"), ("#version 300 es\n", b"in")):
            text = f"[vertex shader passthrough]\n[fragment shader]\n{head}void main() {{}}\n[vertex data]\npiglit_vertex/float/2\n1.0 1.0\n"
            vertex, fragment = shader_test_programs(text)
            self.assertIn(word + b" vec4 piglit_vertex;", vertex.own)
            self.assertEqual(vertex.own.split(b"\n")[0], fragment.own.split(b"\n")[0])

    def test_stages_that_are_not_known_are_named(self):
        for stage in ("geometry shader", "vertex shader spirv", "vertex program"):
            with self.assertRaisesRegex(Unknown, stage):
                shader_test_programs(f"[{stage}]\nvoid main() {{}}\n")
        with self.assertRaises(Failure):
            shader_test_programs("[require]\nGLSL >= 1.10\n")


def module_of(model, ports, descriptors=()):
    """A module with an input or output of each (storage, location, base, size), and uniform blocks."""
    to = spirv._Writer()  # pylint: disable=protected-access
    interface = [to.variable(to.vector(base, size), storage, location=location) for storage, location, base, size in ports]
    for place, binding in descriptors:
        matrix = to.declare(spirv.TYPE_MATRIX, to.vector("float", 4), 4)
        block = to.declare(spirv.TYPE_STRUCT, to.number("int"), matrix)
        name = to.variable(block, spirv.UNIFORM)
        for what, value in ((spirv.SET, place), (spirv.BINDING, binding)):
            to.op(to.decorations, spirv.DECORATE, name, what, value)
        for member, offset in enumerate((0, 16)):
            to.op(to.decorations, spirv.MEMBER_DECORATE, block, member, spirv.OFFSET, offset)
        to.op(to.decorations, spirv.MEMBER_DECORATE, block, 1, spirv.MATRIX_STRIDE, 16)
    return to.module(model, interface)


class Spirv(unittest.TestCase):
    def test_reads_what_a_module_wants(self):
        data = module_of(4, [(spirv.INPUT, 1, "float", 2), (spirv.INPUT, 0, "int", 1), (spirv.OUTPUT, 0, "float", 4)], [(1, 3)])
        module = spirv.Module(data)
        self.assertEqual((module.kind, module.entry), ("fragment", b"main"))
        self.assertEqual(module.ports(spirv.INPUT), [spirv.Port(0, "int", 1), spirv.Port(1, "float", 2)])
        self.assertEqual(module.ports(spirv.OUTPUT), [spirv.Port(0, "float", 4)])
        (block,) = module.descriptors()
        self.assertEqual((block.set, block.binding, block.type, block.count), (1, 3, spirv.UNIFORM_BLOCK, 1))
        self.assertEqual(struct.unpack("<i12x16f", block.contents[:80]), (1, *[1.0] * 16))
        self.assertIsNone(module.push_constants())
        swapped = struct.pack(f">{len(data) // 4}I", *struct.unpack(f"<{len(data) // 4}I", data))
        self.assertEqual(spirv.Module(swapped).data, data)

    def test_the_module_beside_gives_or_takes_all(self):
        ports = [("float", 4), ("uint", 3), ("int", 1)]
        fragment = spirv.Module(module_of(4, [(spirv.INPUT, at, *port) for at, port in enumerate(ports)]))
        beside = spirv.Module(spirv.module_beside(fragment))
        self.assertEqual(("vertex", beside.ports(spirv.OUTPUT)), (beside.kind, fragment.ports(spirv.INPUT)))
        vertex = spirv.Module(module_of(0, [(spirv.OUTPUT, at, *port) for at, port in enumerate(ports)]))
        beside = spirv.Module(spirv.module_beside(vertex))
        self.assertEqual(("fragment", beside.ports(spirv.INPUT)), (beside.kind, vertex.ports(spirv.OUTPUT)))
        self.assertEqual(spirv.module_beside(spirv.Module(module_of(5, []))), b"")

    @unittest.skipUnless(shutil.which("spirv-val"), "spirv-val is not installed")
    def test_the_module_beside_is_valid(self):
        for model, storage in ((4, spirv.INPUT), (0, spirv.OUTPUT)):
            module = spirv.Module(module_of(model, [(storage, 0, "float", 3), (storage, 1, "int", 2), (storage, 3, "uint", 1)]))
            done = subprocess.run(["spirv-val", "--target-env", "vulkan1.1", "-"], input=spirv.module_beside(module), capture_output=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_what_is_cut_or_not_known_is_named(self):
        whole = module_of(4, [])
        for data, reason in ((b"x" * 40, "no SPIR-V"), (whole[:-2], "no SPIR-V"), (whole[:-12], "begins no instruction"), (whole[:20] + b"\0" * 8, "begins no instruction"),
                             (module_of(3, []), "one entry point")):
            with self.assertRaisesRegex(Failure, reason):
                spirv.Module(data)


def run_of(*shaders):
    """A run of shader-db with files of (name, instructions, clocks)."""
    return {"files": [{"file": name, "shaders": [{"stage": "fragment", "instructions": instructions, "threads": 4, "spills": 0, "fills": 0,
                                                  "clocks_per_batch": clocks, "occupancy": 2.0, "hazards": {}, "stalls": {"TMU": 0.5}}]}
                      for name, instructions, clocks in shaders]}


class Comparison(unittest.TestCase):
    def test_tells_totals_and_what_was_helped_and_hurt(self):
        old, new = run_of(("a", 10, 100.0), ("b", 20, 50.0), ("c", 5, 9.0)), run_of(("a", 8, 90.0), ("b", 20, 60.0), ("d", 1, 1.0))
        text = comparison.report(old, new)
        for block in ("total inst in shared programs: 30 -> 28 (-6.67%)\ninst in affected programs: 10 -> 8 (-20.00%)\nhelped: 1\nHURT: 0\n",
                      "total threads in shared programs: 8 -> 8 (+0.00%)\n\n", "helped: 1\nHURT: 1\n",
                      "          50 ->         60   +20.00%  b - fragment\n         100 ->         90   -10.00%  a - fragment",
                      "LOST:   1\n  c - fragment\nGAINED: 1\n  d - fragment"):
            self.assertIn(block, text)

    def test_says_whether_the_mean_is_surely_not_0(self):
        def told(changes):
            old = run_of(*((str(at), 100, 1.0) for at in range(len(changes))))
            return comparison.report(old, run_of(*((str(at), 100 + change, 1.0) for at, change in enumerate(changes))))
        self.assertIn("Inst are helped.", told([-10, -11, -9, -10, -12]))
        self.assertIn("Inst are HURT.", told([10, 11, 9, 10, 12]))
        self.assertIn("Inconclusive result (value mean confidence interval includes 0).", told([10, -11, 9, -10]))

    def test_more_threads_help(self):
        old, new = run_of(("a", 1, 1.0)), run_of(("a", 1, 1.0))
        new["files"][0]["shaders"][0]["threads"] = 2
        self.assertIn("threads in affected programs: 4 -> 2 (-50.00%)\nhelped: 0\nHURT: 1\n", comparison.report(old, new))

    def test_code_that_changed_is_named_though_no_figure_did(self):
        old, new = (run_of(*((str(at), 1, 1.0) for at in range(5))) for _ in range(2))
        self.assertNotIn("code:", comparison.report(old, new))  # of a former version, which kept no hashes
        for at in range(5):
            old["files"][at]["shaders"][0]["code_hash"] = new["files"][at]["shaders"][0]["code_hash"] = str(at)
        self.assertIn("code: the same in all 5 shared programs\n", comparison.report(old, new))
        for at in (1, 3, 4):
            new["files"][at]["shaders"][0]["code_hash"] = "other"
        self.assertIn("code: other in 3 of 5 shared programs; v3demu shader --diff shows it\n  1 - fragment\n  3 - fragment\n  1 more\n",
                      comparison.report(old, new, 2))

    def test_quantiles_of_t(self):
        for freedom, value in ((5, 2.5706), (10, 2.2281), (30, 2.0423)):
            self.assertAlmostEqual(comparison.quantile_of_t(0.975, freedom), value, delta=0.01)


FAKE = """#!/usr/bin/env python3
import json, os, sys
words = sys.argv[1:]
if words[0] == "asm":
    sys.stderr.write("-:1: undefined: tmu-underflow: instruction 0: no\\n-:2: undefined: tmu-underflow: instruction 1: no\\n")
    sys.exit(1)
own = open(words[-2]).read()
if "fail" in own:
    sys.exit("it does not compile")
sys.stderr.write(os.environ["TOLD"])
profile = json.loads(os.environ["PROFILE"])
if "wrong" in words[words.index("--mesa") + 1]:
    profile["shaders"][1]["at"][0]["text"] += " ; ftrunc"
profile["shaders"][1]["stalls"][0] += len(own) if "slow" in os.path.basename(words[words.index("--mesa") + 1]) else 0
json.dump(profile, open(words[words.index("--json") + 1], "w"))
"""


class ShaderDb(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.fake = self.write("v3demu", FAKE)
        os.chmod(self.fake, 0o755)
        for number in range(5):
            self.write(f"db/{number}.frag", FRAGMENT)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def shader_db(self, *options, mesa="fast"):
        done = subprocess.run([sys.executable, os.path.join(SOURCE, "tools", "shader_db"), "--v3demu", self.fake, "--mesa", mesa,
                               os.path.join(self.folder, "db"), *options], env=os.environ | {"TOLD": LOG, "PROFILE": json.dumps(PROFILE)},
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def test_tells_of_each_in_the_order_of_names_whatever_the_number_of_processes(self):
        status, text, said = self.shader_db("--jobs", "1")
        self.assertEqual((status, said), (0, ""))
        self.assertEqual([line.split(" - ")[0] for line in text.splitlines()], [f"{number}.frag" for number in range(5)])
        self.assertEqual(text.splitlines()[0], "0.frag - fragment shader: 2 inst, 2 threads, 1 loops, 7 uniforms, 8 max-temps, 3:4 spills:fills, 5 sfu-stalls, "
                         "7 inst-and-stalls, 1 nops, 20 clocks, 2 hazards, 1.5 occupancy, 12 TMU-stalls")
        self.assertEqual(self.shader_db("--jobs", "4"), (status, text, said))

    def test_two_mesas_and_a_former_run_compare(self):
        former = os.path.join(self.folder, "former.json")
        status, text, said = self.shader_db("--against", "slow", "--json", former)
        self.assertEqual((status, said), (0, ""))
        self.assertRegex(text, r"total clocks in shared programs: 100 -> \d")
        self.assertIn("HURT: 5\n", text)
        self.assertIn("Clocks are HURT.", text)
        self.assertIn("helped: 5\n", self.shader_db("--against", former)[1])
        status, text, said = self.shader_db("--against", former, "--device", "rpi4")
        self.assertEqual(status, 1)
        self.assertIn("is of rpi5, this run of rpi4", said)
        other = self.write("other.json", '{"format": "v3demu shader 2"}')
        self.assertEqual(self.shader_db("--against", other), (1, "", f"v3demu shader-db: {other}: it is not what v3demu shader-db --json of this version writes\n"))

    def test_a_mesa_that_makes_another_instruction_is_seen_though_it_takes_as_long(self):
        status, text, _ = self.shader_db("--against", "wrong")
        self.assertEqual(status, 0)
        self.assertNotIn("HURT", text)
        self.assertIn("code: other in 5 of 5 shared programs; v3demu shader --diff shows it\n  0.frag - fragment\n", text)
        self.assertIn("code: the same in all 5 shared programs", self.shader_db("--against", "fast")[1])

    def test_what_fails_is_named_and_fails_it_and_what_is_not_known_is_named(self):
        self.write("db/sub/geometry.shader_test", "[geometry shader]\nvoid main() {}\n")
        status, text, said = self.shader_db()
        self.assertEqual((status, len(text.splitlines()), said), (0, 5, "v3demu shader-db: sub/geometry.shader_test: [geometry shader] is not known here\n"))
        self.write("db/bad.frag", "fail")
        status, text, said = self.shader_db()
        self.assertEqual((status, len(text.splitlines())), (1, 5))
        self.assertIn("v3demu shader-db: bad.frag: it does not compile\n", said)

    def test_two_files_of_one_name_in_reports_are_refused(self):
        first, other = os.path.join(self.folder, "db", "3.frag"), self.write("other/3.frag", FRAGMENT)
        said = f"v3demu shader-db: {first} and {other} would both be told of as 3.frag\n"
        for path in (other, os.path.dirname(other)):
            self.assertEqual(self.shader_db(path), (1, "", said))
        self.assertEqual(self.shader_db(first), self.shader_db(), "a file that is named twice is one")


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

    def test_what_no_run_of_it_wrote_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.json")
            for text, reason in (("{", ""), ("[]", "it is not what v3demu shader --json of this version writes\n"),
                                 ('{"format": "v3demu shader-db 1"}', "it is not what v3demu shader --json of this version writes\n")):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                done = subprocess.run([sys.executable, os.path.join(SOURCE, "tools", "shader"), path], capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertTrue(done.stderr.startswith(f"v3demu shader: {path}: {reason}"), done.stderr)


if __name__ == "__main__":
    unittest.main()
