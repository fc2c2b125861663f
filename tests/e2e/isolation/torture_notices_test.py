#!/usr/bin/env python3
"""tools/torture notices what it is there for: daemons that die, hang, leak, complain and give wrong results.

usage: torture_notices_test.py BUILD LEAKY_LIBRARY [unittest options]
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

BUILD, LEAKY = map(os.path.abspath, sys.argv[1:3])
del sys.argv[1:3]
TORTURE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tools", "torture")


class TortureTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="v3demu-torture-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def torture(self, before="", variables="", options=""):
        """Exit status, JSON and text with a daemon that a shell script starts: the real one, and `before`, a command that
        knows it as $$, beside the first attackers."""
        build = os.path.join(self.folder, "build")
        os.makedirs(os.path.join(build, "bin"))
        os.symlink(os.path.join(BUILD, "lib"), os.path.join(build, "lib"))
        os.symlink(os.path.join(BUILD, "bin", "v3demu"), os.path.join(build, "bin", "v3demu"))
        daemon = os.path.join(build, "bin", "v3demud")
        with open(daemon, "w", encoding="utf-8") as file:
            # The daemon that makes the captures stays as it is.
            file.write(f"""#!/bin/sh
case "$*" in *--capture*) exec "{BUILD}/bin/v3demud" "$@" ;; esac
if [ -n "{before}" ]; then
  (until [ -s "$(dirname "$3")/counters-0" ] || ! kill -0 $$; do sleep 0.1; done; {before or "true"}) &
fi
{variables} exec "{BUILD}/bin/v3demud" "$@" {options}
""")
        os.chmod(daemon, 0o755)
        report = os.path.join(self.folder, "report.json")
        done = subprocess.run([sys.executable, "-B", TORTURE, "--build", build, "--minutes", "0.05", "--mesa", "",
                               "--instances", "nonsense:1:2.5", "nonsense:2:2.5", "--json", report, "--hang", "3",
                               "--folder", os.path.join(self.folder, "run")], capture_output=True, text=True, timeout=300, check=False)
        with open(report, encoding="utf-8") as file:
            return done.returncode, json.load(file), done.stdout

    def fails(self, text, **options):
        status, report, said = self.torture(**options)
        self.assertEqual(status, 1, said)
        self.assertTrue(any(text in failure for failure in report["failures"]), said)
        self.assertIn("FAILED: ", said)
        return report, said

    def test_a_healthy_daemon_passes(self):
        status, report, said = self.torture()
        self.assertEqual((status, report["failures"]), (0, []), said)
        self.assertGreater(report["victims"]["victim"]["rounds"], 50)
        self.assertGreater(report["counts"]["ioctls"], 0)
        self.assertEqual(report["daemons"], 1)
        self.assertGreater(report["daemon"]["fds"]["peak"], report["daemon"]["fds"]["start"])

    def test_a_killed_daemon(self):
        _, said = self.fails("the daemon ended: killed by SIGKILL", before="kill -KILL $$")
        self.assertIn("--instances nonsense:1:2.5 nonsense:2:2.5", said)

    def test_leaks(self):
        report, _ = self.fails("after the attack: ", variables=f"LD_PRELOAD={LEAKY}")
        self.assertRegex(report["failures"][0], r"rss \d+ of at most .* fds \d+ of at most ")

    def test_a_wrong_victim(self):
        self.fails("the victim victim: compute: word 0 is 0x0", options="--no-execute")

    def test_a_daemon_that_hangs(self):
        self.fails("hangs", before="kill -STOP $$; sleep 20; kill -CONT $$")

    def test_a_line_of_a_sanitizer(self):
        self.fails("runtime error: one", before="echo x.cc:1:2: runtime error: one >&2")


if __name__ == "__main__":
    unittest.main()
