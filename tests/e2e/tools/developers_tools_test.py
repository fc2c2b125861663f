#!/usr/bin/env python3
"""Tools of developers around a program that uses the GPU: the table "Under a developer's tools" in docs/running.md.

usage: developers_tools_test.py V3DEMU FOLDER NAME=PROGRAM...     # plain, asan, tsan: the same program; those that were built
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest


class DevelopersToolsTest(unittest.TestCase):
    def run_program(self, *tool, kind="plain", outside=()):
        if kind not in PROGRAMS:
            self.skipTest(f"the compiler makes no {kind} programs")
        for one in (*outside[:1], *tool[:1]):
            if shutil.which(one) is None:
                self.skipTest(f"no {one}")
        done = subprocess.run([*outside, V3DEMU, "run", "--mesa", "system", "--", *tool, PROGRAMS[kind]], cwd=FOLDER,
                              capture_output=True, text=True, timeout=240, check=False)
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, said)
        self.assertIn("fine\n", said)
        return said

    def test_address_sanitizer(self):
        self.assertEqual(self.run_program(kind="asan"), "fine\n")

    def test_address_sanitizer_of_a_child(self):
        self.assertEqual(self.run_program("env", "A=B", kind="asan"), "fine\n")

    def test_thread_sanitizer(self):
        self.run_program(kind="tsan")

    def test_valgrind(self):
        self.assertEqual(self.run_program("valgrind", "-q", "--leak-check=no", "--error-exitcode=9"), "fine\n")

    def test_gdb(self):
        for arguments in ({"outside": ()}, {"outside": ("gdb",)}):
            gdb = ("gdb", "-batch", "-ex", "set breakpoint pending on", "-ex", "break use_buffers", "-ex", "run",
                   "-ex", "backtrace", "-ex", "delete", "-ex", "continue", "--args")
            said = self.run_program(*gdb) if not arguments["outside"] else self.run_program(outside=gdb)
            self.assertRegex(said, r"use_buffers \(node=")

    def test_gdb_around_the_start_of_the_daemon(self):
        """The one that `run` wakes has left when somebody types "run" in gdb a while later."""
        with tempfile.TemporaryDirectory() as folder:
            self.run_program("gdb", "-batch", "-ex", f"set environment V3DEMU_SOCKET {folder}/socket", "-ex", "run", "--args")
            # Its idle time is not waited for.
            subprocess.run([V3DEMU, "stop"], env={**os.environ, "V3DEMU_SOCKET": f"{folder}/socket"}, check=False, capture_output=True)

    def test_strace(self):
        self.run_program("strace", "-f", "-o", os.path.join(FOLDER, "trace"))
        self.run_program(outside=("strace", "-f", "-o", os.path.join(FOLDER, "trace")))

    def test_heaptrack(self):
        self.run_program("heaptrack", "-o", os.path.join(FOLDER, "heap"))


if __name__ == "__main__":
    V3DEMU, FOLDER = sys.argv[1:3]
    PROGRAMS = dict(argument.split("=", 1) for argument in sys.argv[3:])
    os.makedirs(FOLDER, exist_ok=True)
    unittest.main(argv=sys.argv[:1], verbosity=2)
