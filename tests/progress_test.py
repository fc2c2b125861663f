#!/usr/bin/env python3
"""What scripts share in packaging/common.sh. progress: the log is whole, the build's status counts, and how far it is can be
seen. within: what takes too long ends and is named, in all scripts.
usage: progress_test.py SOURCE_FOLDER"""
import glob
import os
import pty
import re
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


class WithinTest(unittest.TestCase):
    def within(self, *words):
        done = subprocess.run(["bash", "-c", f". '{COMMON}'; set -euo pipefail; within \"$@\"", "sh", *words],
                              capture_output=True, text=True, check=False, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def test_status_and_output_are_those_of_the_command(self):
        self.assertEqual(self.within("60", "sh", "-c", "echo out; exit 3"), (3, "out\n", ""))

    def test_names_what_took_too_long(self):
        self.assertEqual(self.within("0.2", "sleep", "50"), (124, "", "v3demu: ended after 0.2 seconds: sleep 50\n"))

    def test_names_what_died(self):
        status, out, said = self.within("60", "sh", "-c", "kill -SEGV $$")
        self.assertEqual((status, out), (139, ""))
        self.assertTrue(said.endswith("v3demu: died of signal SEGV: sh -c kill -SEGV $$\n"), said)

    def test_steps_that_can_hang_have_a_limit(self):
        # Where a command begins, perhaps after variables.
        unlimited = re.compile(
            r"(?:^|&&|\|\||[|;({!]|\b(?:then|do|else|if)\b)\s*(?:\w+=\S+ )*"
            r"(?:apt-get|debootstrap|dpkg-deb|dpkg-source|dpkg-shlibdeps|ninja|cmake|chroot|unshare|lintian|convert|compare"
            r"|clang-tidy-14|clang-format-14|umount|\"\$v3demu\"|\"\$build/bin/\S+) ")
        found = []
        for path in glob.glob(os.path.join(os.path.dirname(COMMON), "**"), recursive=True):
            if not os.path.isfile(path) or os.path.basename(path) == "check":  # it counts its minutes itself
                continue
            with open(path, encoding="utf-8") as file:
                text = file.read()
            if not text.startswith("#!/usr/bin/env bash") and path != COMMON:
                continue
            commands = re.sub(r"\\\n", " ", re.sub(r"^\s*#.*$", "", text, flags=re.M))
            found += [f"{path}: {line.strip()}" for line in commands.splitlines() if unlimited.search(line)]
        self.assertEqual(found, [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
