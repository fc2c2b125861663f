#!/usr/bin/env python3
"""What bench/cases tells of cases that a stand-in for dEQP runs under stand-ins for v3demu and lavapipe. usage: cases_test.py TREE"""
import importlib.machinery
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest

TREE = sys.argv.pop(1)
CASES = os.path.join(TREE, "bench", "cases")
V3DEMU = """#!/bin/sh
case $1 in
run) while [ "$1" != -- ]; do shift; done; shift
  if [ "$1" = sh ]; then exec sh -c 'echo held; exec sleep 60'; fi
  echo >> "$FAKE_DEQP_STATE/starts"; exec "$@" ;;
status) jobs=$(cat "$FAKE_DEQP_STATE/starts" 2> /dev/null | wc -l)
  echo '{"daemons":[{"status":{"pid":'$PPID',"queues":[{"name":"bin","busy_ms":0},{"name":"render","busy_ms":'$jobs'}]}}]}' ;;
esac
"""


class CasesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.makedirs(os.path.join(self.folder, "peer"))
        for name, text in (("peer/.complete", ""), ("peer/version", "1"), ("v3demu", V3DEMU), ("skips.txt", r".*\.crash\d"),
                           ("list.txt", "".join(f"d.{group}.{kind}{number}\n" for group in "ab" for kind in ("pass", "skip", "crash") for number in range(4)))):
            path = os.path.join(self.folder, name)
            with open(path, "w", encoding="utf-8", opener=lambda p, f: os.open(p, f, 0o755)) as file:
                file.write(text)

    def run_it(self, *words, **variables):
        command = [sys.executable, "-B", CASES, "--binary", os.path.join(TREE, "tests", "tools", "fake_deqp.py"), "--v3demu", os.path.join(self.folder, "v3demu"),
                   "--caselist", os.path.join(self.folder, "list.txt"), "--jobs", "1", *words]
        environment = os.environ | {"V3DEMU_CACHE": self.folder, "FAKE_DEQP_STATE": self.folder} | variables
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)

    def test_cases_are_told_by_what_became_of_them(self):
        done = self.run_it("--groups", "d.a.", "--skips", os.path.join(self.folder, "skips.txt"), "--sample", "6", "--rounds", "3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(re.findall(r"round (\d), (\d) cases", done.stdout), [("1", "6"), ("2", "2")])  # of eight
        self.assertIn("4: passes on both", done.stdout)
        self.assertIn("4: skip on both", done.stdout)
        self.assertNotIn("crash", done.stdout)
        self.assertRegex(done.stdout, r"jobs of the GPU: render \d")
        with open(os.path.join(self.folder, "lists"), encoding="utf-8") as file:
            lists = [line.split() for line in file]
        self.assertEqual([len(cases) for cases in lists], [6, 6, 2, 2])
        self.assertEqual(lists, [sorted(cases) for cases in lists], "a process has neighbours one after the other, not the order of a sample")

    def test_lists_without_such_cases_are_refused(self):
        done = self.run_it("--groups", "d.c.")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertTrue(done.stderr.endswith("has no such cases\n"), done.stderr)

    def test_a_suite_that_runs_nothing_is_no_figure(self):
        done = self.run_it(FAKE_DEQP_BROKEN="1")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"^bench/cases: .*fake_deqp.py does not run d\.[ab]\.\w+: .*no device")

    def test_workers_share_what_runs_one_at_a_time(self):
        loader = importlib.machinery.SourceFileLoader("cases", CASES)
        cases = importlib.util.module_from_spec(importlib.util.spec_from_loader("cases", loader))
        loader.exec_module(cases)
        self.assertAlmostEqual(cases.speedup(1, 0.9, [0.1]), 1)
        self.assertAlmostEqual(cases.speedup(16, 1.0, []), 16)
        self.assertAlmostEqual(cases.speedup(16, 0.0, [1.0]), 1)
        self.assertAlmostEqual(cases.speedup(2, 1.0, [1.0]), 1.6)  # whoever comes finds the other there half of the time
        self.assertLess(cases.speedup(12, 0.9, [0.1]), 10)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
