#!/usr/bin/env python3
"""GPU errors of a program are told by `v3demu run`, its exit status and `v3demu status`, on a daemon of the test's own.

usage: gpu_errors_test.py V3DEMU
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "..", "qpu_programs")
if sys.argv[1:2] == ["--client"]:
    sys.path.insert(0, PROGRAMS)
    import qpu_program
    import v3d_drm
else:
    V3DEMU = os.path.abspath(sys.argv[1])

GPU_ERROR = 3  # --fail-on-gpu-error
NOWHERE = 0xfffff000
CODE = {
    "hang": "loop:\nb loop\nnop\nnop\nnop\nend",
    "fault": "nop ; ldunifrf.rf1\nnop\nmov tmud, rf1\nmov tmua, rf1 ; thrsw\nnop\nnop\ntmuwt -\nend",
    "good": "nop\nend",
    "unwritten": "mov rf5, rf20\nend",
}


def client(kinds):
    """A program that does one of these after the other, and ends well."""
    device = v3d_drm.Device(v3d_drm.RENDER)
    for kind in kinds:
        program = device.bo(qpu_program.SIZE)
        qpu_program.load(program, CODE[kind], [NOWHERE])
        device.submit_csd(qpu_program.config(device, program, 1), [program])
        device.wait(program)


class OwnDaemon(unittest.TestCase):
    debug = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="e")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.environment = {**os.environ, "V3DEMU_SOCKET": os.path.join(self.folder, "socket")}
        self.environment.pop("V3DEMU_DEVICE", None)
        if self.debug:
            self.environment["V3DEMU_DEBUG"] = self.debug
        said = os.path.join(self.folder, "said")
        with open(said, "w", encoding="utf-8") as log:
            self.daemon = subprocess.Popen([V3DEMU, "serve", "--reset-after", "0.01"], env=self.environment, stderr=log)
        self.addCleanup(self.end_daemon)
        while self.daemon.poll() is None and os.stat(said).st_size == 0:  # it says when programs can connect
            time.sleep(0.01)

    def end_daemon(self):
        self.daemon.terminate()
        self.daemon.wait()

    def run_client(self, *kinds, options=(), shell=None):
        program = [sys.executable, "-B", os.path.abspath(__file__), "--client", *kinds]
        command = [V3DEMU, "run", "--mesa", "system", *options, "--", *(shell or ()), *program]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False, timeout=120)

    def status(self):
        return subprocess.run([V3DEMU, "status"], env=self.environment, capture_output=True, text=True, check=True).stdout


class StrictTest(OwnDaemon):
    debug = "strict"

    def test_each_run_fails_for_a_broken_rule(self):
        for _ in range(2):  # also where the daemon has seen it before
            bad = self.run_client("unwritten", options=("--strict",))
            self.assertEqual(bad.returncode, GPU_ERROR, bad.stderr)
            self.assertIn("GPU errors: 1 job broke rules of QPU programs\n", bad.stderr)
            self.assertRegex(bad.stderr, r"\n  rule: python\S* \(pid \d+\), csd job \d+: compute program at 0x[0-9a-f]{8}: "
                                         r'undefined: unwritten: instruction 0, "mov rf5, rf20')
        good = self.run_client("good", options=("--strict",))
        self.assertEqual(good.returncode, 0, good.stderr)
        self.assertIn("2 jobs with broken rules", self.status())


class GpuErrorsTest(OwnDaemon):
    def test_a_daemon_that_is_not_strict_is_refused(self):
        bad = self.run_client("good", options=("--strict",))
        self.assertNotIn(bad.returncode, (0, GPU_ERROR), bad.stderr)
        self.assertIn("is not strict", bad.stderr)

    def test_errors_are_summed_up_behind_the_program(self):
        done = self.run_client("hang", "fault", "hang", "good")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("v3demu run: GPU errors: 2 jobs hung and were reset, 1 job accessed memory that is not mapped "
                      "(MMU fault)\n", done.stderr)
        self.assertRegex(done.stderr, r"\n  hang: python\S* \(pid \d+\), csd job \d+: compute program at 0x[0-9a-f]{8} "
                                      r"(does not end|makes no progress) at pc 0x[0-9a-f]{8} \((nop.*|b .*)\) after \d+ ")
        self.assertRegex(done.stderr, r"\n  fault: .*0xfffff000, in the compute program at 0x[0-9a-f]{5}000, "
                                      r"at pc 0x[0-9a-f]{5}018 \(mov tmua, rf1.*thrsw\)\n")

    def test_errors_are_the_exit_status_where_that_is_asked_for(self):
        fail = ("--fail-on-gpu-error",)
        self.assertEqual(self.run_client("good", options=fail).returncode, 0)
        bad = self.run_client("fault", options=fail)
        self.assertEqual(bad.returncode, GPU_ERROR, bad.stderr)
        self.assertIn("GPU errors: 1 job accessed memory", bad.stderr)
        # The program's own status comes first, and its signals reach who looks.
        self.assertEqual(self.run_client("fault", options=fail, shell=("sh", "-c", '"$@"; exit 7', "sh")).returncode, 7)
        self.assertEqual(self.run_client(options=fail, shell=("sh", "-c", "kill -TERM $$")).returncode, -signal.SIGTERM)

    def test_a_run_answers_for_its_own_programs_only(self):
        bad = self.run_client("fault")
        good = self.run_client("good", options=("--fail-on-gpu-error",))
        self.assertIn("GPU errors", bad.stderr)
        self.assertEqual((good.returncode, good.stderr), (0, ""))

    def test_a_run_in_a_run_tells_both(self):
        inner = (V3DEMU, "run", "--mesa", "system", "--")
        done = self.run_client("fault", options=("--fail-on-gpu-error",), shell=inner)
        self.assertEqual(done.returncode, GPU_ERROR, done.stderr)

    def test_errors_are_counted_beyond_what_is_remembered(self):
        done = self.run_client(*["fault"] * 40)
        self.assertIn("GPU errors: 40 jobs accessed memory", done.stderr)
        self.assertIn("  35 more; ", done.stderr)
        status = self.status()
        self.assertIn("GPU errors: 0 hangs, 40 jobs with MMU faults, 0 refused jobs, "
                      "0 jobs with broken rules; the last 16:\n", status)
        self.assertEqual(len(re.findall(r"^  [0-9.]+ s ago, python\S* \(pid \d+\), csd job \d+: fault: ", status, re.M)), 16)

    def test_signals_reach_the_program(self):
        command = [V3DEMU, "run", "--mesa", "system", "--fail-on-gpu-error", "--", "sh", "-c",
                   "trap 'echo caught; exit 5' USR1; echo ready; while :; do sleep 0.05; done"]
        with subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, text=True) as run:
            self.assertEqual(run.stdout.readline(), "ready\n")
            run.send_signal(signal.SIGUSR1)
            self.assertEqual(run.stdout.read(), "caught\n")
        self.assertEqual(run.returncode, 5)


if __name__ == "__main__":
    if sys.argv[1] == "--client":
        client(sys.argv[2:])
    else:
        unittest.main(argv=sys.argv[:1])
