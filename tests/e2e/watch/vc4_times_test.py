#!/usr/bin/env python3
"""Predicted times on a board with VideoCore IV: v3demu profile of user programs and of OpenGL frames, run --timing with the V3D's own
counters, and run --pace.

usage: vc4_times_test.py V3DEMU MESA_PREFIX FOLDER GL_OFFSCREEN REGISTERS
"""
import os
import re
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLES = os.path.join(HERE, "..", "..", "..", "samples", "qpu")
sys.path.insert(0, HERE)
REGISTERS = sys.argv.pop()
sys.argv.insert(4, "-")  # no program of a DRM driver that computes
import profile_test as base  # noqa: E402
V3DEMU, MESA, FOLDER, _, GL_OFFSCREEN = sys.argv[1:6]
MAILBOX = [sys.executable, "-B", os.path.join(SAMPLES, "mailbox.py")]

# Follows pointers, one after the other: what a board waits for most of the time. Uniforms: where to begin, how many turns.
CHASE = """
    mov r1, uni
    mov r2, uni
loop:
    mov tmu0_s, r1
    load_tmu0
    mov r1, r4
    sub.setf r2, r2, 1
    branch.any_zc loop
    nop
    nop
    nop
    end
"""
LINES, STEP, TURNS = 1 << 12, 1031, 4000
PACED = f"""
import sys, time
sys.path.insert(0, {SAMPLES!r})
from mailbox import *
mailbox = Mailbox()
mailbox.ask(ENABLE_QPU, 1)
memory = Memory(mailbox, 0x2000 + 64 * {LINES})
data = memory.address + 0x2000
with open(sys.argv[1], "rb") as file:
    code = put(memory, 0, "I", array.array("I", file.read()))
for i in range({LINES}):
    put(memory, 0x2000 + 64 * (i * {STEP} % {LINES}), "I", [data + 64 * ((i + 1) * {STEP} % {LINES})])
uniforms = put(memory, 0x1000, "I", [data, {TURNS}])
program = put(memory, 0x1100, "I", [uniforms, code])
start = time.monotonic()
for _ in range(int(sys.argv[2])):
    assert mailbox.ask(EXECUTE_QPU, 1, program, 0, 10000) == 0
print("seconds", time.monotonic() - start)
"""


def v3demu(*arguments, status=0, **environment):
    done = subprocess.run([V3DEMU, *arguments], capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **environment})
    if done.returncode != status:
        raise AssertionError(done.stdout + done.stderr)
    return done.stdout


def assemble(name, text):
    os.makedirs(FOLDER, exist_ok=True)
    path = os.path.join(FOLDER, name)
    with open(path + ".qasm", "w", encoding="ascii") as file:
        file.write(text)
    v3demu("asm", "--chip", "2.1", "-o", path + ".bin", path + ".qasm")
    return path + ".bin"


FFT = assemble("fft256", subprocess.run([sys.executable, "-B", os.path.join(SAMPLES, "fft256.py")], check=True, capture_output=True,
                                        text=True).stdout)
CHASE_BIN = assemble("chase", CHASE)


class UserProgramsProfile(base.ProfileTest):
    program = [*MAILBOX, FFT]

    def test_the_jobs(self):
        (job,) = self.profile["jobs"]
        self.assertEqual((job["kind"], job["end"]), ("compute", "done"))
        self.assertGreater(job["clocks"], 1000)
        self.assertTrue(self.profile["shaders"])
        self.assertEqual(sum(i["issued"] for shader in self.profile["shaders"] for i in shader["at"]), job["instructions"])


@unittest.skipUnless(MESA != "-", "without Mesa")
class GraphicsProfile(base.GraphicsTest):
    program = [GL_OFFSCREEN, "surfaceless"]


class LiveTimes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ["XDG_RUNTIME_DIR"] = os.path.join(FOLDER, "run")
        os.makedirs(os.environ["XDG_RUNTIME_DIR"], mode=0o700, exist_ok=True)
        for name in ("V3DEMU_SOCKET", "V3DEMU_TIMING"):
            os.environ.pop(name, None)

    def paced(self, option, number):
        out = v3demu("run", *option, "--mesa", "system", "--", sys.executable, "-B", "-c", PACED, CHASE_BIN, str(number))
        return float(re.search(r"seconds ([\d.]+)", out)[1])

    def test_jobs_take_their_time(self):
        capture = os.path.join(FOLDER, "chase.v3dcap")
        v3demu("capture", "-o", capture, "--mesa", "system", "--", sys.executable, "-B", "-c", PACED, CHASE_BIN, "1")
        predicted = float(re.search(r"predicted ([\d.]+) ms", v3demu("replay", "--time", capture))[1]) / 1000
        self.assertGreater(predicted, 0.0002)
        number = 5
        self.assertGreaterEqual(self.paced(["--pace"], number), number * (predicted - 1e-6))
        self.assertRegex(v3demu("status", V3DEMU_TIMING="pace"), r"(?m)^timing pace: \d+ jobs predicted \(\d+ csd\), [\d.]+ ms$")

    def test_counters_of_the_model(self):
        """Stalls of lookups, which no execution counts."""
        self.assertIn("stalled 0\n", v3demu("run", "--mesa", "system", "--", REGISTERS, FFT))
        told = v3demu("run", "--timing", "--mesa", "system", "--", REGISTERS, FFT, "timed")
        self.assertGreater(int(re.search(r"stalled (\d+)", told)[1]), 100)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
