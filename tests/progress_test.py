#!/usr/bin/env python3
"""progress of packaging/common.sh: the log is whole, the build's status counts, and how far it is can be seen.
usage: progress_test.py SOURCE_FOLDER"""
import os
import pty
import subprocess
import sys
import tempfile
import unittest

COMMON = os.path.join(sys.argv[1], "packaging", "common.sh")
BUILD = "printf '%s\\n' 'entering' '[1/3] CC a.c' 'a.c:1: warning' '[2/3] CC b.c' '[3/3] LD c'"
LOG = "entering\n[1/3] CC a.c\na.c:1: warning\n[2/3] CC b.c\n[3/3] LD c\n"


class ProgressTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="v3demu-test-")
        self.addCleanup(folder.cleanup)
        self.log = os.path.join(folder.name, "log")

    def run_build(self, build, stderr=subprocess.PIPE, seconds="30"):
        script = f". '{COMMON}'; set -euo pipefail; {{ {build}; }} 2>&1 | progress '{self.log}' || exit 9"
        done = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, stderr=stderr, text=True, check=False,
                              env=dict(os.environ, V3DEMU_PROGRESS_SECONDS=seconds))
        with open(self.log, encoding="utf-8") as log:
            return done, log.read()

    def test_log_is_whole_and_failure_counts(self):
        done, log = self.run_build(BUILD)
        self.assertEqual((done.returncode, done.stdout, done.stderr, log), (0, "", "", LOG))
        done, log = self.run_build(BUILD + "; false")
        self.assertEqual((done.returncode, log), (9, LOG))

    def test_lines_elsewhere(self):
        done, _ = self.run_build(BUILD, seconds="0")
        self.assertEqual(done.stderr, "".join(f"    {n} of 3 steps, 0 min\n" for n in (1, 2, 3)))

    def test_steps_are_bold_on_a_terminal_only(self):
        script = f". '{COMMON}'; step building it"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "==> building it\n")
        self.assertEqual(self.on_terminal(lambda theirs: subprocess.run(["bash", "-c", script], stderr=theirs, check=True)),
                         "\033[1m==> building it\033[0m\r\n")

    def test_one_line_on_a_terminal(self):
        shown = self.on_terminal(lambda theirs: self.run_build(BUILD, stderr=theirs))
        self.assertNotIn("\n", shown)
        self.assertTrue(shown.startswith("\r\033[K    1 of 3 steps"), repr(shown))
        self.assertTrue(shown.endswith("    3 of 3 steps, 0 min\r\033[K"), repr(shown))

    @staticmethod
    def on_terminal(run):
        """What is shown by something that is run with a terminal."""
        ours, theirs = pty.openpty()
        run(theirs)
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 4096):  # comes in pieces
                shown += piece
        except OSError:  # nobody writes any more
            pass
        os.close(ours)
        return shown.decode()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
