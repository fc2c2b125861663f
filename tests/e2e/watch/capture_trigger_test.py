#!/usr/bin/env python3
"""`v3demu capture --trigger` holds the jobs between two signals, or two lines of a terminal, and replays alone.

usage: capture_trigger_test.py V3DEMU
"""
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import unittest

if sys.argv[1:2] == ["--client"]:
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "qpu_programs"))
    import qpu_program
    import v3d_drm
else:
    V3DEMU = os.path.abspath(sys.argv[1])


def client(control):
    """A job for each line that comes from a pipe; says when it is over."""
    device = v3d_drm.Device(v3d_drm.RENDER)
    program = device.bo(qpu_program.SIZE)
    qpu_program.load(program, "nop\nend")
    print("ready", flush=True)
    with open(control, encoding="ascii") as lines:
        for _ in lines:
            device.submit_csd(qpu_program.config(device, program, 1), [program])
            device.wait(program)
            print("done", flush=True)


class CaptureTriggerTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="t")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.capture, self.control = (os.path.join(self.folder, name) for name in ("x.v3dcap", "control"))
        os.mkfifo(self.control)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder}
        self.environment.pop("V3DEMU_SOCKET", None)

    def start(self, stdin):
        self.run = subprocess.Popen(
            [V3DEMU, "capture", "--trigger", "-o", self.capture, "--mesa", "system", "--", sys.executable, "-B",
             os.path.abspath(__file__), "--client", self.control],
            env=self.environment, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(self.run.stdout.readline(), "ready\n")
        self.told = self.run.stderr.readline()
        self.jobs = open(self.control, "w", encoding="ascii")  # pylint: disable=consider-using-with

    def work(self, jobs):
        for _ in range(jobs):
            self.jobs.write("\n")
            self.jobs.flush()
            self.assertEqual(self.run.stdout.readline(), "done\n")

    def finish(self):
        self.jobs.close()
        _, rest = self.run.communicate(timeout=60)
        return self.run.returncode, rest

    def check_three_jobs(self, trigger):
        self.work(2)
        trigger()
        self.assertEqual(self.run.stderr.readline(), "v3demu capture: begins\n")
        self.work(3)
        trigger()
        self.assertEqual(self.run.stderr.readline(), "v3demu capture: ends\n")
        self.work(2)
        status, rest = self.finish()
        self.assertEqual(status, 0, rest)
        self.assertRegex(rest, r"x\.v3dcap, 3 jobs, ")
        replayed = subprocess.run([V3DEMU, "replay", self.capture], capture_output=True, text=True, check=False)
        self.assertEqual(replayed.returncode, 0, replayed.stderr)
        self.assertEqual(len(re.findall(r"^job \d: compute client 1  done", replayed.stdout, re.M)), 3, replayed.stdout)

    def test_signals_begin_and_end(self):
        self.start(subprocess.DEVNULL)
        self.assertEqual(self.told, f"v3demu capture: kill -USR1 {self.run.pid} begins the capture, and ends it\n")
        self.check_three_jobs(lambda: self.run.send_signal(signal.SIGUSR1))

    def test_lines_of_a_terminal_begin_and_end(self):
        ours, theirs = pty.openpty()
        self.start(theirs)
        os.close(theirs)
        self.assertIn("Enter, or kill -USR1", self.told)
        self.check_three_jobs(lambda: os.write(ours, b"\n"))
        os.close(ours)

    def test_a_capture_without_jobs_is_an_error(self):
        self.start(subprocess.DEVNULL)
        self.work(1)
        status, rest = self.finish()
        self.assertEqual(status, 1)
        self.assertIn("no job was captured", rest)


if __name__ == "__main__":
    if sys.argv[1] == "--client":
        client(sys.argv[2])
    else:
        unittest.main(argv=sys.argv[:1])
