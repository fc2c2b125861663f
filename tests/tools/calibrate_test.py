#!/usr/bin/env python3
"""tools/calibrate with a v3demu that says what a test wants. usage: calibrate_test.py SOURCE_FOLDER"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = sys.argv.pop(1)
REPLAYED = """job 1: compute client 1  done      predicted {gpu:.3f} ms, {all:.3f} ms with its submit
  bound by DRAM: QPUs issue 7.6 %, TMUs 22.6 %, L2T 22.6 %, DRAM 96.5 % of {clocks} clocks at 500 MHz
  QPUs: 0.25 threads each; stalled  TMU 15.3 %  all threads wait 0.0 %
"""
# Notes what it is called with; what replay says stands in a file beside it.
V3DEMU = """#!/bin/sh
echo "$*" >> "$(dirname "$0")/calls"
[ "$1" = capture ] && exit "$(cat "$(dirname "$0")/status")"
cat "$(dirname "$0")/replayed"
"""


def row(**changes):
    return {"id": "A-1", "board": "rpi4", "clock_mhz": 500, "seconds": 0.01605, "said": "8 MB/s", "what": "a sum", "source": "somewhere",
            "file": "sum.py", "work": "much", "program": "summation", "arguments": {"words": 8192, "batches": 8},
            "reduced": {"words": 1024, "batches": 4}} | changes


MEASURED = {"name": "sfu", "parameters": {"used": "next"}, "unit": "clk", "right": True, "median": 12.0, "min": 11.9, "max": 12.2, "repetitions": 5,
            "constants": "sfu_stall", "work": 1000, "jobs": [[0, 1], [1, 2]]}
BOARD = {"program": "v3dprobe", "format": 1, "quick": False, "board": "Raspberry Pi 4 Model B", "kernel": "6.12", "machine": "aarch64",
         "chip": {"version": 42, "revision": 14, "slices": 2, "qpus": 8}, "idents": [], "reported_mhz": 0.0, "rows": [MEASURED], "clock_mhz": 499.9, "questions": []}


class Calibrate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="v3demu-test-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.mkdir(os.path.join(self.folder, "bin"))
        self.write("bin/v3demu", V3DEMU)
        os.chmod(os.path.join(self.folder, "bin/v3demu"), 0o755)
        self.write("bin/status", "0")
        self.write("bin/replayed", REPLAYED.format(gpu=1.0, all=1.05, clocks=500000))
        self.rows([row()])

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def rows(self, rows, absent=()):
        self.write("rows.json", json.dumps({"measurements": rows, "scenes": {"board": "rpi5-16", "rows": [], "sources": []}, "not_reproduced": list(absent)}))

    def calibrate(self, *options, status=0):
        done = subprocess.run([os.path.join(ROOT, "tools", "calibrate"), "--build", self.folder, "--measurements",
                               os.path.join(self.folder, "rows.json"), *options], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def calls(self):
        with open(os.path.join(self.folder, "bin", "calls"), encoding="utf-8") as file:
            return file.read()

    def test_a_part_is_scaled_and_the_submit_is_not(self):
        result, = json.loads(self.calibrate("--json"))
        self.assertEqual(result["scale"], 16)
        self.assertAlmostEqual(result["predicted"], 0.016 + 0.00005)
        self.assertAlmostEqual(result["error"], 0)
        self.assertEqual((result["clocks"], result["clock_mhz"], result["bound"]), (500000, 500, "DRAM"))
        self.assertIn('"words": 1024', self.calls())

    def test_the_full_size_is_not_scaled(self):
        result, = json.loads(self.calibrate("--json", "--full", status=1))
        self.assertAlmostEqual(result["predicted"], 0.00105)
        self.assertIn('"words": 8192', self.calls())

    def test_rows_beyond_the_limit_fail(self):
        self.rows([row(), row(id="A-2", seconds=0.02)])
        self.assertRegex(self.calibrate(status=1), r"A-2 .* -19\.\d%  DRAM +<- beyond the limit")
        self.assertNotIn("beyond", self.calibrate("--within", "20"))
        self.calibrate("--only", "A-1")

    def test_another_board_runs_the_rows_of_its_chip(self):
        self.rows([row(), row(id="B-1", board="rpi5")])
        result, = json.loads(self.calibrate("--json", "--device", "rpi5-16"))
        self.assertEqual((result["id"], result["board"]), ("B-1", "rpi5-16"))
        self.assertIn("--device rpi5-16", self.calls())

    def test_where_the_clock_is_not_known_the_other_one_is_shown(self):
        self.rows([row(other_clock_mhz=800)])
        result, = json.loads(self.calibrate("--json"))
        self.assertEqual(result["other"]["clock_mhz"], 800)
        self.assertIn("at 800 MHz", self.calibrate())
        self.assertIn("replay --time --clock 800 ", self.calls())
        self.assertIn("replay --time --clock 500 ", self.calls())

    def test_what_does_not_run_is_no_result(self):
        self.assertIn("no such row", self.calibrate("--only", "C-*", status=2))
        self.write("bin/replayed", "job 1: compute client 1  done       no prediction: a batch hangs\n")
        self.assertIn("A-1: no prediction", self.calibrate(status=2))
        self.write("bin/status", "3")
        self.assertIn("ended with 3", self.calibrate(status=2))
        self.assertIn("No such file", self.calibrate("--build", "/nowhere", status=2))

    def test_the_list_names_what_is_not_reproduced(self):
        absent = {"id": "A-9", "said": "1 s", "source": "somewhere", "file": "a.py", "what": "a copy", "why": "the CPU does it"}
        self.rows([row()], [absent])
        self.assertRegex(self.calibrate("--list"), r"A-1 .*sum\.py.*\nA-9 +not reproduced, the CPU does it")

    def test_a_board_file_that_is_damaged_is_refused_in_one_line(self):
        whole = json.dumps(BOARD)
        short = {key: value for key, value in MEASURED.items() if key != "work"}
        for text, message in (
                (whole[:len(whole) // 2], "is no whole output of v3dprobe"), ("", "is no whole output"), ("[]", "is no output of v3dprobe"),
                (json.dumps({**BOARD, "program": "other"}), "is no output of v3dprobe"),
                (json.dumps({**BOARD, "format": 2}), "is of another version of v3dprobe: format 2, not 1"),
                (json.dumps({**BOARD, "rows": {}}), '"rows" is missing, or not what v3dprobe writes'),
                (json.dumps({**BOARD, "rows": [MEASURED, short]}), 'row 2: "work" is missing'),
                (json.dumps({**BOARD, "rows": [{**MEASURED, "median": "12"}]}), 'row 1: "median" is missing, or not'),
                (json.dumps({**BOARD, "chip": {**BOARD["chip"], "qpus": 9}}), "no board has V3D 4.2 with 9 QPUs; --device chooses one")):
            self.write("board.json", text)
            printed = self.calibrate("--board", os.path.join(self.folder, "board.json"), status=2)
            self.assertIn(message, printed)
            self.assertEqual(printed.count("\n"), 1, printed)
        self.assertIn("No such file", self.calibrate("--board", "/nowhere.json", status=2))

    def test_a_search_finds_constants_and_leaves_what_nothing_decides_at_its_guess(self):
        sys.path.insert(0, os.path.join(ROOT, "tools", "scripts"))
        from calibrate_parts import fit  # pylint: disable=import-outside-toplevel

        class Sum(fit.Row):
            """So much of each constant."""
            def __init__(self, name, published, **parts):
                super().__init__(name, "scenes", "rpi5", "sums", published)
                self.parts = parts

            def times(self, points):
                return [0.1 + sum(part * self.names(at)[constant] for constant, part in self.parts.items()) for at in points]

        rows = [Sum("a", 1.1, depth_write=0.01), Sum("b", 1.4, depth_write=0.01, ptb_primitive=0.02), Sum("c", 2.1, depth_write=0.02)]
        search = fit.Fit(rows)
        at, times = search.fitted({**fit.guesses(), "depth_write@rpi5": 120}, lambda text: None)
        self.assertLess(search.rms(times), 0.02)
        self.assertAlmostEqual(at["depth_write@rpi5"], 100, delta=3)
        self.assertAlmostEqual(at["ptb_primitive@rpi5"], 15, delta=2)
        self.assertEqual(at["texture_lookup@rpi5"], fit.guesses()["texture_lookup@rpi5"])
        (_, without, errors), = search.left_out([("b",)])
        self.assertEqual(without["ptb_primitive@rpi5"], fit.guesses()["ptb_primitive@rpi5"])
        self.assertAlmostEqual(errors["b"], (0.1 + 1.0 + 0.08) / 1.4 - 1, delta=0.02)
        self.assertEqual(dict(search.deciders(at))["ptb_primitive@rpi5"][0], (1.0, "b"))

    def test_a_frame_takes_what_its_jobs_take_in_their_order(self):
        sys.path.insert(0, os.path.join(ROOT, "tools", "scripts"))
        from calibrate_parts import replayed, scenes  # pylint: disable=import-outside-toplevel
        frames = scenes.Frames.__new__(scenes.Frames)
        frames.foreign, frames.chained, frames.number = {"bin": 0, "chained": 0}, 2, 1

        def of(samples, *times):
            kinds = ("bin", "render", "tfu") * 2
            return frames.of([(replayed.Job(kind, time, 0, "", 0, 0, 0, samples and kind == "bin"), time) for kind, time in zip(kinds, times)])

        self.assertEqual(of(False, 1, 3, 2, 1, 3, 2), 5)
        self.assertEqual(of(False, 7, 3, 2, 7, 3, 2), 7)
        self.assertEqual(of(True, 1, 3, 2, 1, 3, 2), 6)

    def test_bin_jobs_take_memory_from_the_jobs_beside_them(self):
        sys.path.insert(0, os.path.join(ROOT, "tools", "scripts"))
        from calibrate_parts import replayed, scenes  # pylint: disable=import-outside-toplevel

        def job(kind, milliseconds, memory, samples=False):
            return replayed.Job(kind, milliseconds, 0, "", 0, 0, memory, samples)

        self.assertEqual(scenes.beside([job("bin", 2, 1), job("render", 3, 2), job("tfu", 1, 1)]), 250)
        self.assertEqual(scenes.beside([job("bin", 2, 1, samples=True), job("render", 3, 2, samples=True)]), 0)

    def test_rows_of_the_table_are_whole(self):
        with open(os.path.join(ROOT, "tools", "scripts", "calibrate_parts", "measurements.json"), encoding="utf-8") as file:
            table = json.load(file)
        sys.path.insert(0, os.path.join(ROOT, "tools", "scripts"))
        from calibrate_parts import programs  # pylint: disable=import-outside-toplevel
        for each in table["measurements"]:
            self.assertEqual(set(row()) - set(each), set() if "reduced" in each else {"reduced"}, each["id"])
            version = 42 if each["board"] == "rpi4" else 71
            program = getattr(programs, each["program"])(version, **each["arguments"])
            self.assertTrue(program.text.endswith("end"), each["id"])
            self.assertEqual(list(each.get("reduced", each["arguments"])), list(each["arguments"]))
        for each in table["scenes"]["rows"]:
            self.assertTrue(1 <= len(each["fps"]) <= len(table["scenes"]["sources"]) and min(each["fps"]) > 0, each["id"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
