#!/usr/bin/env python3
"""cmake/compile_header: what is compiled is the header that is there, whatever was compiled of it before.
usage: compile_header_test.py SOURCE_FOLDER COMPILER"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

LAUNCHER, COMPILER = os.path.abspath(os.path.join(sys.argv[1], "cmake", "compile_header")), sys.argv[2]
SETTINGS = {"CCACHE_SLOPPINESS": "pch_defines,time_macros,include_file_mtime,include_file_ctime", "CCACHE_NOHASHDIR": "1"}


class CompileHeaderTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="v3demu-test-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_here(self, *words):
        return subprocess.run(words, cwd=self.folder, capture_output=True, text=True, check=False,
                              env=os.environ | SETTINGS | {"CCACHE_DIR": os.path.join(self.folder, "store")})

    def test_removes_the_output_and_passes_on_the_status(self):
        old = os.path.join(self.folder, "old output")
        with open(old, "w", encoding="utf-8"):
            pass
        done = self.run_here(LAUNCHER, "sh", "-c", 'ls; echo "$*"; exit 3', "sh", "-x", "c++-header", "-o", old, "-c", "x")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (3, f"-x c++-header -o {old} -c x\n", ""))

    @unittest.skipUnless(shutil.which("ccache"), "ccache is not installed")
    def test_a_compiled_header_that_came_back_hides_no_change(self):
        compiled, kept = (os.path.join(self.folder, name) for name in ("h.hxx.gch", "kept"))

        def compile_with(name):
            for file, text in (("h.hxx", f"extern int {name};\n"), ("h.cxx", ""), ("use.cc", f"int* use() {{ return &{name}; }}\n")):
                with open(os.path.join(self.folder, file), "w", encoding="utf-8") as out:
                    out.write(text)
            for words in ((LAUNCHER, "ccache", COMPILER, "-x", "c++-header", "-include", "h.hxx", "-o", "h.hxx.gch", "-c", "h.cxx"),
                          (COMPILER, "-include", "h.hxx", "-c", "use.cc")):
                done = self.run_here(*words)
                self.assertEqual((done.returncode, done.stderr), (0, ""), name)

        compile_with("first")
        shutil.copyfile(compiled, kept)
        compile_with("second")
        shutil.copyfile(kept, compiled)  # as ccache brings back what a checkout of an earlier revision compiles
        compile_with("third")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
