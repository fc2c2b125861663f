#!/usr/bin/env python3
"""v3demu exec: a program on buffers, what it prints and saves, and what it says of programs and files that cannot be.

  exec_test.py SOURCE_FOLDER V3DEMU
"""
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

SOURCE, V3DEMU = sys.argv[1:3]
ADD = os.path.join(SOURCE, "samples", "qpu", "add.qasm")
VECTORS = ["--buf", "a=f32[64]=count", "--buf", "b=f32[64]=0.5", "--buf", "c=f32[64]", "--threads", "4"]


def run(*arguments, text=None):
    return subprocess.run([V3DEMU, "exec", *arguments], input=text, capture_output=True, text=True, timeout=120, check=False)


class ExecTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def check_refused(self, what, *arguments, text=None):
        done = run(*arguments, text=text)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertTrue(done.stderr.startswith("v3demu exec: "), done.stderr)
        self.assertIn(what, done.stderr)

    def test_adds_two_vectors(self):
        done = run(ADD, *VECTORS)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "done")  # no hazard before it
        self.assertRegex(lines[1], r"^a: f32\[64\] at 0x[0-9a-f]{8}, unchanged: 0, 1, 2, 3, 4, 5, 6, 7, \.\.\., 63$")
        self.assertRegex(lines[3], r"^c: f32\[64\] at 0x[0-9a-f]{8}: 0\.5, 1\.5, 2\.5, 3\.5, 4\.5, 5\.5, 6\.5, 7\.5, \.\.\., 63\.5$")

    def test_results_are_files_that_it_reads(self):
        path = os.path.join(self.folder, "c.npy")
        self.assertEqual(run(ADD, *VECTORS, "--out", f"c={path}").returncode, 0)
        with open(path, "rb") as file:
            self.assertEqual(struct.unpack("<64f", file.read()[-256:])[-1], 63.5)
        done = run(ADD, "--buf", f"a={path}", "--buf", f"b={path}", "--buf", "c=f32[64]", "--threads", "4", "--uniform", "a", "--uniform", "b",
                   "--uniform", "c+0")
        self.assertIn(": 1, 3, 5, 7, 9, 11, 13, 15, ..., 127\n", done.stdout)

    def test_words_and_text_are_the_same_program(self):
        words = os.path.join(self.folder, "add.bin")
        subprocess.run([V3DEMU, "asm", "-o", words, ADD], check=True)
        self.assertEqual(run(words, *VECTORS).stdout, run(ADD, *VECTORS).stdout)

    def test_time_counters_and_hazards(self):
        told = json.loads(run(ADD, *VECTORS, "--time", "--counters", "--json").stdout)
        self.assertEqual((told["end"], told["hazards"], told["faults"]), ("done", [], 0))
        self.assertGreater(told["ns"], 100)
        self.assertTrue(any("QPU" in name for name in told["counters"]), told["counters"])
        said = run(ADD, *VECTORS, "--time", "--counters").stdout
        self.assertRegex(said, r"on the board: \d+\.\d+ us, \d+\.\d+ us with its submit\n")
        done = run("-", text="mov rf1, 1\nmov recip, rf1\nend\n")
        self.assertIn("hazard: undefined: no-address", done.stdout)

    def test_both_chips(self):
        """Sums of uniforms, as numbers of each kind, which one lane of each thread stores."""
        text = "ldunifrf.rf1\nldunifrf.rf2\nldunifrf.rf3\nadd rf1, rf1, rf2\nmov tmud, rf1\nmov tmua, rf3\ntmuwt -\nend\n"
        for device in ("rpi5", "rpi4"):
            done = run("-", "--device", device, "--buf", "y=i32[1]", "--uniform", "-7", "--uniform=0x20", "--uniform", "y", text=text)
            self.assertRegex(done.stdout, "(?m)^y: .*: 25$")
        self.check_refused("no compute jobs", "-", "--device", "rpi3", text=text)

    def test_accesses_outside_fail_and_are_placed(self):
        done = run(ADD, "--buf", "a=f32[16]", "--uniform", "0xf0000000", "--uniform", "a", "--uniform", "a")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"MMU fault: 1 access to memory that is not mapped, the first at 0xf0000000, in the compute program .*tmua")

    def test_a_program_without_an_end_hangs(self):
        done = run("-", "--json", text="loop:\nb loop\nnop\nnop\nnop\n")
        self.assertEqual((done.returncode, json.loads(done.stdout)["end"]), (1, "hang"))

    def test_traces_show_threads(self):
        said = run(ADD, *VECTORS, "--trace-qpu").stdout
        self.assertIn("==== job 1, compute program at 0x00001000, batch 0,", said)
        self.assertIn("workgroup 3:0:0", run(ADD, *VECTORS, "--trace-qpu=batch=3").stdout)

    def test_what_cannot_be_is_named(self):
        bad = os.path.join(self.folder, "bad.npy")
        with open(bad, "wb") as file:
            file.write(b"\x93NUMPY\x01\x00\xff\xff{   ")
        self.check_refused("bad.npy: it ends inside its header", ADD, "--buf", f"a={bad}")
        self.check_refused("No such file", ADD, "--buf", "a=/nowhere.npy")
        self.check_refused("No such file", "/nowhere.qasm")
        self.check_refused("is no NAME=FILE.npy", ADD, "--buf", "a")
        self.check_refused("two buffers are called", ADD, "--buf", "a=f32[1]", "--buf", "a=f32[1]")
        self.check_refused('"z" is neither a number nor the name', ADD, "--uniform", "z")
        self.check_refused("more than 32 bits", ADD, "--uniform", "4294967296")
        self.check_refused("no NAME=FILE.npy of a buffer", ADD, "--out", "q=x.npy")
        self.check_refused("no whole number of workgroups", ADD, "--workgroup", "32", "--threads", "3")
        self.check_refused("is no X, X,Y", ADD, "--workgroups", "65535,65535")
        self.check_refused("-:1:", "-", text="frobnicate rf1\n")
        self.check_refused("add.qasm is a program for V3D 7.1, not 4.2", ADD, "--device", "rpi4")
        self.check_refused("a new buffer is TYPE[SHAPE]", ADD, "--buf", "a=f32[64")
        for endless in (["/dev/zero"], [ADD, "--buf", "a=/dev/zero"]):
            self.check_refused("/dev/zero: File too large", *endless)
        self.check_refused("more than 512 MiB", ADD, *[f"--buf=b{i}=u8[268435456]" for i in range(3)])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
