#!/usr/bin/env python3
"""The package in python/: installed by pip without a network, typed, and what it computes; and the Python of docs/qpu.md, as printed.

  python_test.py SOURCE_FOLDER V3DEMU
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE, V3DEMU = sys.argv[1:3]
sys.path.insert(0, os.path.join(SOURCE, "python"))
os.environ["V3DEMU"] = V3DEMU
import numpy as np  # noqa: E402  pylint: disable=wrong-import-position
import v3demu  # noqa: E402  pylint: disable=wrong-import-position


def sample(name):
    with open(os.path.join(SOURCE, "samples", "qpu", name), encoding="utf-8") as file:
        return file.read()


class AssemblyTest(unittest.TestCase):
    def test_words_and_texts(self):
        for chip, name in (("7.1", "add.qasm"), ("2.1", "vc4_double.qasm")):
            words = v3demu.assemble(sample(name), chip)
            self.assertEqual(words.dtype, np.uint64)
            lines = v3demu.disassemble(words, chip)
            self.assertEqual(len(lines), len(words))
            self.assertTrue(np.array_equal(v3demu.assemble("\n".join(lines), chip), words))
        self.assertEqual(v3demu.disassemble([]), [])

    def test_errors(self):
        with self.assertRaisesRegex(v3demu.AssemblyError, r"-:2:1: "):
            v3demu.assemble("nop\nfrobnicate\n")
        self.assertEqual(v3demu.broken_rules(sample("add.qasm")), [])
        self.assertRegex(v3demu.broken_rules("mov rf1, 1\nmov recip, rf1\nend\n")[0], "no-address")
        with self.assertRaises(v3demu.AssemblyError):
            v3demu.broken_rules("frobnicate")


class RunTest(unittest.TestCase):
    def setUp(self):
        self.a = np.arange(64, dtype=np.float32)
        self.arrays = {"a": self.a, "b": np.full(64, 0.25, np.float32), "c": np.zeros((4, 16), np.float32)}

    def test_adds_vectors(self):
        for kernel in (sample("add.qasm"), v3demu.assemble(sample("add.qasm"))):
            run = v3demu.run(kernel, self.arrays, threads=4)
            self.assertEqual((run.end, run.faults, run.hazards, run.ns), ("done", 0, [], None))
            self.assertEqual(set(run), {"a", "b", "c"})
            np.testing.assert_array_equal(run["c"], (self.a + 0.25).reshape(4, 16))
            self.assertFalse(self.arrays["c"].any())  # which stays as it is

    def test_uniforms_time_and_counters(self):
        text = "ldunifrf.rf1\nldunifrf.rf2\nfadd rf1, rf1, rf2\nldunifrf.rf3\nmov tmud, rf1\nmov tmua, rf3\ntmuwt -\nend\n"
        run = v3demu.run(text, {"y": np.zeros(2, np.float32)}, [1.5, np.float32(1e-3), "y+4"], time=True, counters=True)
        np.testing.assert_array_equal(run["y"], np.array([0, np.float32(1.5) + np.float32(1e-3)], np.float32))
        self.assertGreater(run.ns, 0)
        self.assertTrue(run.counters)
        self.assertEqual(run.addresses["y"] % 4096, 0)

    def test_types_and_scalars(self):
        for dtype in (np.float16, np.uint8, np.int16, np.int32):
            run = v3demu.run("nop\nend", {"x": np.arange(5).astype(dtype), "s": np.array(7, dtype)})
            np.testing.assert_array_equal(run["x"], np.arange(5).astype(dtype))
            self.assertEqual(run["s"].shape, ())

    def test_what_cannot_be_is_told(self):
        for what, call in (("of type <f8", lambda: v3demu.run("end", {"x": np.zeros(3)})),
                           ("no whole number", lambda: v3demu.run("end", {}, threads=3, workgroup=32)),
                           ("neither a number", lambda: v3demu.run("end", {}, ["z"])),
                           ("-1|1:1", lambda: v3demu.run("frobnicate", {}))):
            with self.assertRaisesRegex(v3demu.V3demuError, what):
                call()
        self.assertEqual(v3demu.run("loop:\nb loop\nnop\nnop\nnop\n", {}).end, "hang")


class StepsTest(unittest.TestCase):
    def test_registers_per_lane(self):
        arrays = {"a": np.arange(64, dtype=np.float32), "b": np.full(64, 0.25, np.float32), "c": np.zeros(64, np.float32)}
        steps = list(v3demu.steps(sample("add.qasm"), arrays, thread=3, threads=4))
        words = v3demu.assemble(sample("add.qasm"))
        self.assertEqual([step.number for step in steps], list(range(len(steps))))
        self.assertLessEqual(len(steps), len(words))
        index = next(step for step in steps if step.text.startswith("shl rf1, rf1, 2"))
        np.testing.assert_array_equal(index.reads["rf1"], np.arange(48, 64))
        np.testing.assert_array_equal(index.writes["rf1"], 4 * np.arange(48, 64))
        added = next(step for step in steps if step.text.startswith("fadd"))
        np.testing.assert_array_equal(added.registers["rf4"].view(np.float32), np.arange(48, 64) + np.float32(0.25))
        np.testing.assert_array_equal(added.registers["rf2"], np.arange(16))
        self.assertTrue(any("load of 32 bit" in note for step in steps for note in step.notes))

    def test_flags_and_a_loop(self):
        text = "mov rf1, 3\nloop:\nsub.pushz rf1, rf1, 1\nb.anyna loop\nnop\nnop\nnop\nend\n"
        steps = list(v3demu.steps(text, {}, most=20))
        self.assertEqual([step.writes["rf1"][7] for step in steps if step.text.startswith("sub")], [2, 1, 0])
        self.assertEqual(steps[-1].flags[0], 0xffff)
        self.assertEqual(len(list(v3demu.steps(text, {}, most=4))), 4)


class PackageTest(unittest.TestCase):
    def test_pip_installs_it_without_a_network(self):
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "python")
            subprocess.run(["cp", "-r", os.path.join(SOURCE, "python"), source], check=True)  # pip builds in it
            done = subprocess.run([sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-index", "--no-deps", "--target",
                                   os.path.join(folder, "site"), source], capture_output=True, text=True, check=False)
            if "No module named pip" in done.stderr:
                self.skipTest("no pip (package python3-pip)")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(os.path.exists(os.path.join(folder, "site", "v3demu", "py.typed")))
            said = subprocess.run([sys.executable, "-c", "import v3demu; print(len(v3demu.assemble('nop')), v3demu.__file__)"],
                                  capture_output=True, text=True, check=True, cwd=folder,
                                  env=os.environ | {"PYTHONPATH": os.path.join(folder, "site")}).stdout
            self.assertTrue(said.startswith("1 " + folder), said)

    def test_the_version_is_that_of_the_tree(self):
        with open(os.path.join(SOURCE, "CMakeLists.txt"), encoding="utf-8") as tree, \
                open(os.path.join(SOURCE, "python", "pyproject.toml"), encoding="utf-8") as package:
            version = re.search(r"project\(v3demu VERSION ([0-9.]+)", tree.read())[1]
            self.assertIn(f'version = "{version}"', package.read())

    def test_everything_public_is_documented(self):
        for name in v3demu.__all__:
            self.assertTrue(getattr(v3demu, name).__doc__, name)

    def test_the_kernels_interface_needs_no_numpy(self):
        subprocess.run([sys.executable, "-c", "import sys; sys.modules['numpy'] = None; import v3demu.drm; v3demu.drm.csd_config"],
                       check=True, env=os.environ | {"PYTHONPATH": os.path.join(SOURCE, "python")})


class TutorialTest(unittest.TestCase):
    def test_the_first_program_is_the_sample(self):
        with open(os.path.join(SOURCE, "samples", "qpu", "add.qasm"), encoding="utf-8") as file:
            lines = [line for line in file.read().splitlines() if not line.startswith("#")]
        with open(os.path.join(SOURCE, "docs", "qpu.md"), encoding="utf-8") as file:
            self.assertIn("\n```\n" + "\n".join(lines) + "\n```\n", file.read())

    def test_the_python_of_the_page_runs_as_printed(self):
        with open(os.path.join(SOURCE, "docs", "qpu.md"), encoding="utf-8") as file:
            blocks = re.findall(r"(?ms)^```python\n(.*?)^```", file.read())
        self.assertGreater(len(blocks), 2)
        names = {}
        before = os.getcwd()
        os.chdir(SOURCE)
        self.addCleanup(os.chdir, before)
        for block in blocks:
            # What a line prints stands behind it.
            for line in re.findall(r"(?m)^ *print\(.*", block):
                self.assertIn("  # ", line)
            printed = []
            names["print"] = lambda *values, to=printed: to.append(" ".join(map(str, values)))
            exec(compile(block, "docs/qpu.md", "exec"), names)  # pylint: disable=exec-used
            self.assertEqual(printed, re.findall(r"(?m)^ *print\(.*  # (.*)$", block), block)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
