#!/usr/bin/env python3
"""What bench/compare says where programs of its tables are not built. usage: compare_test.py TREE"""
import os
import subprocess
import sys
import tempfile
import unittest

COMPARE = os.path.join(sys.argv.pop(1), "bench", "compare")


class CompareTest(unittest.TestCase):
    def run_only(self, only, *built):
        with tempfile.TemporaryDirectory() as build:
            os.mkdir(os.path.join(build, "bin"))
            for name in built:
                with open(os.path.join(build, "bin", name), "w", encoding="ascii", opener=lambda p, f: os.open(p, f, 0o755)):
                    pass
            done = subprocess.run([sys.executable, "-B", COMPARE, "--only", only, "--build", build], capture_output=True,
                                  text=True, check=False)
            return done.returncode, done.stderr.replace(build, "BUILD")

    def test_programs_that_are_not_built_are_named_with_how_to_build_them(self):
        self.assertEqual(self.run_only("peaks", "v3demu", "v3demud"), (
            1, "compare: not built: host_peak, qpu_bench; packaging/setup makes BUILD ready, then: "
               "cmake --build BUILD --target host_peak qpu_bench\n"))
        status, text = self.run_only("draw_one")
        self.assertEqual(status, 1)
        self.assertIn("--target v3demu v3demud vulkan_bench\n", text)


if __name__ == "__main__":
    unittest.main()
