#!/usr/bin/env python3
"""What bench/compare says where programs of its tables are not built, and what it writes. usage: compare_test.py TREE"""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
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


class ResultsTest(unittest.TestCase):
    """The samples of a run, with what must be known of the machine."""

    def setUp(self):
        sys.path.insert(0, os.path.dirname(COMPARE))
        sys.dont_write_bytecode = True
        loader = importlib.machinery.SourceFileLoader("compare", COMPARE)
        self.compare = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare", loader))
        loader.exec_module(self.compare)

    def save(self, **options):
        with tempfile.TemporaryDirectory() as folder:
            self.compare.RESULTS = pathlib.Path(folder, "bench", "results")
            given = {name: pathlib.Path(folder, value) if value != "-" else pathlib.Path(value) for name, value in options.items()}
            options = types.SimpleNamespace(runs=3, **{"json": None, **given})
            context = {**self.compare.machine_context(options), "cpu": "A  Processor(R) 9 @ 2.10GHz", "date": "2026-01-02 03:04 UTC"}
            with contextlib.redirect_stdout(io.StringIO()):
                self.compare.save(options, {"context": context, "programs": [{"name": "saxpy", "seconds": {"lavapipe": [1, 2]}}]})
            return {str(file.relative_to(folder)): json.loads(file.read_text("ascii"))
                    for file in pathlib.Path(folder).rglob("*.json")}

    def test_a_run_writes_a_file_of_its_own(self):
        ((name, result),) = self.save().items()
        self.assertEqual(name, "bench/results/2026-01-02-03-04-a-processor-r-9-2-10ghz.json")
        context = result["context"]
        self.assertEqual((context["runs"], context["cpus"], len(context["load_before"])), (3, os.cpu_count(), 3))
        self.assertRegex(context["command"], "^bench/compare")
        self.assertIn("revision", context)
        self.assertEqual(result["programs"], [{"name": "saxpy", "seconds": {"lavapipe": [1, 2]}}])

    def test_or_the_file_that_is_named_or_none(self):
        self.assertEqual(list(self.save(json="mine.json")), ["mine.json"])
        self.assertEqual(self.save(json="-"), {})

    def test_the_revision_is_that_of_the_tree(self):
        describe = subprocess.run(["git", "-C", os.path.dirname(COMPARE), "rev-parse", "--short=12", "HEAD"], capture_output=True,
                                  text=True, check=False)
        expected = describe.stdout.strip() if describe.returncode == 0 else None
        revision = self.compare.revision()
        self.assertEqual(revision and revision.removesuffix("-dirty"), expected)

    def test_results_that_are_kept_say_where_they_are_from(self):
        kept = list(self.compare.RESULTS.glob("*.json"))
        self.assertTrue(kept)
        for file in kept:
            context = json.loads(file.read_text("utf-8"))["context"]
            for field in ("cpu", "date", "command", "revision"):
                self.assertIn(field, context, file.name)


if __name__ == "__main__":
    unittest.main()
