#!/usr/bin/env python3
"""tools/profile_gate on profiles made here: what fails, what passes, and what goes together.

usage: profile_gate_test.py SOURCE_FOLDER [unittest options]
"""
import copy
import json
import os
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.abspath(sys.argv.pop(1))
TOOL = os.path.join(SOURCE, "tools", "profile_gate")
MS = 1_000_000


def shader(stage, address, instructions, stalls, *text):
    return {"name": f"{stage} {address}", "stage": stage, "instructions": instructions, "stalls": [stalls, 0],
            "at": [{"text": line} for line in text]}


def profile(frames=(10, 10, 10), clocks=(100, 900)):
    """Of frames that take so many milliseconds, with two draws each."""
    made, jobs, end = [], [], 0
    for number, ms in enumerate(frames, 1):
        end += ms * MS
        made.append({"number": number, "client": 1, "begin_ns": max(0, end - 2 * ms * MS), "end_ns": end})
        draws = [{"number": at, "clocks": count} for at, count in enumerate(clocks)]
        jobs.append({"kind": "render", "frame": number, "clocks": 1, "draws": draws, "shaders": []})
    return {"format": "v3demu profile 1", "board": "rpi5", "description": "a board", "end_ns": end, "frames": made, "jobs": jobs,
            "shaders": [shader("vertex", "0x10", 100, 0, "nop"), shader("fragment", "0x20", 1000, 400, "fadd", "fmul"),
                        shader("fragment", "0x40", 10, 0, "nop", "nop")]}


class Gate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_gate(self, *profiles, options=()):
        files = []
        for number, one in enumerate(profiles):
            files.append(os.path.join(self.folder, f"{number}.json"))
            with open(files[-1], "w", encoding="utf-8") as file:
                file.write(one if isinstance(one, str) else json.dumps(one))
        done = subprocess.run([sys.executable, TOOL, *files, *options], capture_output=True, text=True, check=False)
        self.log = done.stderr
        return done.returncode, done.stdout

    def test_a_slower_shader_fails_it_though_frames_are_as_fast(self):
        after = profile()
        after["shaders"][1]["stalls"][0] += 440  # 10 % of 4400 clocks
        status, text = self.run_gate(profile(), after, options=["--fail-above", "5%"])
        self.assertEqual(status, 3, self.log)
        self.assertIn("1 slower by more than 5 %:\n- fragment 0x20: +10.00 %\n", text)
        self.assertIn("| fragment 0x20 | 4400 clocks | 4840 clocks | +10.00 % | **slower** |", text)
        self.assertEqual(self.run_gate(profile(), after, options=["--fail-above", "10%"])[0], 0)
        self.assertEqual(self.run_gate(profile(), after)[0], 0, "without a limit it tells alone")
        self.assertEqual(self.run_gate(after, profile(), options=["--fail-above", "5%"])[0], 0, "faster is no fault")

    def test_equal_profiles_pass_at_nothing(self):
        first = self.run_gate(profile(), profile(), options=["--fail-above", "0%"])
        self.assertEqual(first[0], 0, first[1])
        self.assertIn("| each frame | 10.000 ms | 10.000 ms | +0.00 % |", first[1])
        self.assertEqual(first, self.run_gate(profile(), profile(), options=["--fail-above", "0%"]))

    def test_frames_and_draws_are_seen_each(self):
        status, text = self.run_gate(profile(), profile((10, 12, 9)), options=["--fail-above", "5%"])
        self.assertEqual(status, 3)
        self.assertIn("1 slower by more than 5 %:\n- frame 2: +20.00 %", text)
        status, text = self.run_gate(profile(), profile(clocks=(111, 900)), options=["--fail-above", "5%"])
        self.assertEqual((status, text.count("draw 0: +11.00 %")), (3, 3))

    def test_what_hardly_counts_decides_nothing(self):
        after = profile()
        after["shaders"][2]["instructions"] *= 1.1  # less than a hundredth of all clocks
        self.assertEqual(self.run_gate(profile(), after, options=["--fail-above", "5%"])[0], 0)

    def test_shaders_go_together_by_their_code_and_else_by_their_order(self):
        after = profile()
        after["shaders"].reverse()
        for number, one in enumerate(after["shaders"]):
            one["name"] = f"{one['stage']} 0x{number}00"
        self.assertEqual(self.run_gate(profile(), after, options=["--fail-above", "0%"])[0], 0)
        after["shaders"][1]["at"].append({"text": "nop"})
        after["shaders"][1]["instructions"] += 500
        text = self.run_gate(profile(), after, options=["--fail-above", "5%"])[1]
        self.assertIn("- fragment 0x20 (other code): +45.45 %", text)
        after["shaders"].append(shader("compute", "0x90", 5000, 0, "nop"))
        self.assertIn("| compute 0x90 (new) | - | 20000 clocks |", self.run_gate(profile(), after)[1])

    def test_a_budget_is_of_each_frame(self):
        self.assertEqual(self.run_gate(profile(), options=["--budget", "10ms"])[0], 0, self.log)
        status, text = self.run_gate(profile((10, 16, 10)), options=["--budget", "15.9ms"])
        self.assertEqual((status, text), (3, "budget of 15.900 ms on rpi5: 1 of 3 frames take longer\n- frame 2: 16.000 ms\n"))
        compute = profile(()) | {"end_ns": 4 * MS}
        self.assertEqual(self.run_gate(compute, options=["--budget", "3999us"])[0], 3)
        self.assertEqual(self.run_gate(compute, options=["--budget", "4ms"])[0], 0)

    def test_what_cannot_be_compared_is_an_error(self):
        other = copy.deepcopy(profile()) | {"board": "rpi4"}
        for pair, reason in (((profile(), other), "one is of rpi5, the other of rpi4"), ((profile(), "{"), "1.json: "),
                             ((profile(), '{"format": "x"}'), "1.json: it is no profile")):
            self.assertEqual(self.run_gate(*pair)[0], 1)
            self.assertIn(reason, self.log)
        for options in (["--fail-above", "x"], ["--budget", "16"]):
            self.assertEqual(self.run_gate(profile(), options=options)[0], 2)


if __name__ == "__main__":
    unittest.main()
