#!/usr/bin/env python3
"""Installs a build into a prefix with a blank in its name, moves the prefix, and uses what is there.

  install_test.py CMAKE BUILD VERSION LEVELS      LEVELS: as V3DEMU_LEVELS, "v2;v3;v4" or empty
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

CMAKE, BUILD, VERSION, LEVELS = sys.argv[1:5]
LEVELS = LEVELS.split(";") if LEVELS else []
USE_PACKAGE = """cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES NONE)
find_package(v3demu REQUIRED)
get_target_property(preload v3demu::preload IMPORTED_LOCATION)
get_target_property(command v3demu::v3demu IMPORTED_LOCATION)
message(STATUS "preload=${preload} command=${command}")
"""


class MovedPrefix(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="v3demu install ")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        first = os.path.join(cls.folder, "first place")
        subprocess.run([CMAKE, "--install", BUILD, "--prefix", first], check=True, stdout=subprocess.DEVNULL)
        cls.prefix = os.path.join(cls.folder, "second place")
        os.rename(first, cls.prefix)

    def path(self, *parts):
        return os.path.join(self.prefix, *parts)

    def run_program(self, name, *arguments, **variables):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("V3DEMU_")}
        return subprocess.run([self.path("bin", name), *arguments], env=environment | variables, text=True,
                              capture_output=True, timeout=60, check=False)

    def library_folder(self):
        (found,) = [folder for folder, _, files in os.walk(self.prefix) if "v3demu.pc" in files]
        return os.path.dirname(found)

    def test_programs_run(self):
        self.assertIn(VERSION, self.run_program("v3demud", "--version").stdout)
        self.assertIn("run", self.run_program("v3demu", "--help").stdout)

    def test_parts_of_run_are_where_it_looks(self):
        for name in "v3demu-box", "v3demu-x11":
            self.assertTrue(os.access(self.path("libexec", "v3demu", name), os.X_OK), name)

    def test_inspect_finds_its_server(self):
        done = self.run_program("v3demu", "inspect", "--no-browser", "/nothing.v3dcap")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("v3demu inspect: cannot read /nothing.v3dcap", done.stderr)

    @unittest.skipIf(LEVELS, "bin/v3demu starts another program")
    def test_commands_load_few_libraries(self):
        """Loading those of C++ and of HTTP takes longer than to start a program, of which suites start thousands."""
        for name in "v3demu", "v3demud":
            needed = subprocess.check_output(["readelf", "-d", self.path("bin", name)], text=True)
            if re.search(r"lib(asan|ubsan|tsan)\b", needed):
                self.skipTest("sanitizers link what they need")
            for library in "httplib", "libssl", "libstdc++", "libabsl":
                self.assertNotIn(library, needed, name)

    def test_commands_find_their_scripts(self):
        for words, status, said in ((("ci", "--list", "--mesa", "/nothing"), 2, "v3demu ci: "),
                                    (("shader", "/nothing.frag"), 1, "v3demu shader: /nothing.frag: No such file"),
                                    (("profile", "--compare", "/nothing", "/nothing"), 1, "v3demu profile: /nothing: No such file")):
            done = self.run_program("v3demu", *words)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertTrue(done.stderr.startswith(said), done.stderr)

    def test_library_has_its_version(self):
        library = os.path.join(self.library_folder(), "libv3demu.so")
        self.assertEqual(os.path.basename(os.path.realpath(library)), f"libv3demu.so.{VERSION}")
        self.assertIn("[libv3demu.so.0]", subprocess.check_output(["readelf", "-d", library], text=True))

    @unittest.skipUnless(shutil.which("pkg-config"), "pkg-config is not installed")
    def test_pkg_config_finds_the_library(self):
        environment = os.environ | {"PKG_CONFIG_PATH": os.path.join(self.library_folder(), "pkgconfig")}
        query = ["pkg-config", "--variable=preload", "v3demu"]
        found = subprocess.check_output(query, env=environment, text=True).strip().replace("\\ ", " ")
        self.assertTrue(os.path.samefile(found, os.path.join(self.library_folder(), "libv3demu.so")), found)

    def test_cmake_finds_the_package(self):
        source = os.path.join(self.folder, "user")
        os.makedirs(source)
        with open(os.path.join(source, "CMakeLists.txt"), "w", encoding="utf-8") as file:
            file.write(USE_PACKAGE)
        said = subprocess.check_output([CMAKE, "-S", source, "-B", source + " build",
                                        f"-Dv3demu_DIR={self.library_folder()}/cmake/v3demu"], text=True)
        self.assertIn(f"command={self.prefix}/bin/v3demu", said)
        self.assertIn("libv3demu.so", said)

    @unittest.skipUnless(LEVELS, "this build is for one processor")
    def test_an_unknown_level_is_refused_by_name(self):
        result = self.run_program("v3demu", "--help", V3DEMU_LEVEL="v9")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn('"v9"', result.stderr)

    @unittest.skipUnless(LEVELS, "this build is for one processor")
    def test_a_level_that_is_not_installed_is_named(self):
        missing = self.path("libexec", "v3demu", f"v3demud-{LEVELS[0]}")
        os.rename(missing, missing + ".away")
        try:
            result = self.run_program("v3demud", "--version", V3DEMU_LEVEL=LEVELS[0])
        finally:
            os.rename(missing + ".away", missing)
        self.assertEqual(result.returncode, 2)
        self.assertIn(f"v3demud-{LEVELS[0]}", result.stderr)

    @unittest.skipUnless("v4" in LEVELS and shutil.which("qemu-x86_64"), "needs level v4 and qemu-x86_64")
    def test_a_processor_without_the_level_is_told_what_it_lacks(self):
        environment = os.environ | {"V3DEMU_LEVEL": "v4"}
        result = subprocess.run(["qemu-x86_64", "-cpu", "Nehalem", self.path("bin", "v3demud"), "--version"],
                                env=environment, text=True, capture_output=True, timeout=60, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("x86-64-v4", result.stderr)
        self.assertIn("avx512f", result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
