#!/usr/bin/env python3
"""v3dprobe on an emulated board. Its rows: the programs compute what they should and break no rule, the output is read, and
tools/calibrate --board finds the model where the figures are the model's own. Its questions: each is answered as the model assumes, and what
boards send is read.

usage: board_test.py SOURCE_FOLDER BUILD_FOLDER FOLDER BOARD
"""
import json
import math
import os
import re
import subprocess
import sys
import unittest

SOURCE, BUILD, FOLDER, BOARD = sys.argv[1:5]
sys.path[:0] = [os.path.join(SOURCE, "tools", "scripts"), os.path.join(SOURCE, "bench", "measure")]
from calibrate_parts import boards  # noqa: E402  pylint: disable=wrong-import-position
from evidence_parts import summaries  # noqa: E402  pylint: disable=wrong-import-position
from questions import QUESTIONS  # noqa: E402  pylint: disable=wrong-import-position

V3DEMU, PROBE = (os.path.join(BUILD, "bin", name) for name in ("v3demu", "v3dprobe"))
CLOCK_MHZ = {"rpi5": 960, "rpi4": 500}[BOARD]
QPUS = {"rpi5": 12, "rpi4": 8}[BOARD]
CHIP = {"rpi5": 71, "rpi4": 42}[BOARD]
NAMES = {"clock", "sfu", "rep", "rotation", "product", "alu", "switch", "supergroups", "code", "uniforms", "chase", "stride", "ways", "scatter", "lookup", "gather", "read", "write",
         "copy", "dispatch", "transfer", "frame", "batch", "tfu", "tile", "tile_store", "tile_load"}


def calibrate(*options, status=0):
    done = subprocess.run([os.path.join(SOURCE, "tools", "calibrate"), "--build", BUILD, *options], capture_output=True, text=True, timeout=600,
                          check=False)
    if done.returncode != status:
        sys.exit(f"calibrate {options}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def probe(*options, **environment):
    environment = {**os.environ, "V3DEMU_SOCKET": os.path.join(FOLDER, "socket"), **environment}
    return subprocess.run([V3DEMU, "run", "--mesa", "system", "--device", BOARD, "--", PROBE, *options], env=environment, capture_output=True,
                          text=True, timeout=600, check=False)


class Questions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.makedirs(FOLDER, exist_ok=True)
        cls.done = probe("--questions")

    def test_each_is_answered_as_the_model_assumes(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        answered = {row["name"]: row for row in json.loads(self.done.stdout)["questions"]}
        self.assertEqual(set(answered), {question.name for question in QUESTIONS if CHIP in question.chips()})
        self.assertEqual([(name, row["answer"]) for name, row in answered.items() if row["answer"] != row["assumed"]], [])

    def test_words_tell_the_alternatives_apart(self):
        words = {row["name"]: [int(word, 16) for word in row["words"].split()] for row in json.loads(self.done.stdout)["questions"]}
        for question in QUESTIONS:
            if CHIP not in question.chips():
                continue
            rows = question.rows()
            self.assertEqual(len(words[question.name]), question.num_words(), question.name)
            self.assertEqual(question.answer_of(words[question.name]), question.assumed, question.name)
            self.assertEqual(len({(tuple(expected), ulps) for _, expected, ulps in rows}), len(rows), f"{question.name}: alternatives are the same")
            self.assertGreater(len(rows), 1, question.name)

    def test_a_recording_of_it_is_compared_for_the_page_of_evidence(self):
        recording = os.path.join(FOLDER, "asked.v3dcap")
        if os.path.exists(recording):
            os.remove(recording)
        probe("--questions", "--only", "recip", LD_PRELOAD=os.path.join(BUILD, "lib", "libv3drec.so"), V3DREC_FILE=recording)
        done = subprocess.run([V3DEMU, "replay", "--compare", "--json", recording], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        path = os.path.join(FOLDER, "compared.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(done.stdout)
        summary = summaries.read(path)
        self.assertEqual((summary["profile"], summary["chip"]["version"], summary["chip"]["qpus"]), (BOARD, CHIP, QPUS))
        self.assertEqual({(job["kind"], job["equal"]) for job in summary["jobs"]}, {("compute", True)})
        # Its own answers are the model's, and no board's.
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.done.stdout)
        with self.assertRaisesRegex(summaries.Failure, "has asked an emulated board"):
            summaries.read(path)

    def test_one_question_alone(self):
        done = probe("--questions", "--only", "recip_bits")
        self.assertEqual([row["name"] for row in json.loads(done.stdout)["questions"]], ["recip_bits"])
        self.assertEqual(probe("--questions", "--rows").returncode, 2)


class Board(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.makedirs(FOLDER, exist_ok=True)
        log = os.path.join(FOLDER, "log")
        if os.path.exists(log):
            os.remove(log)
        done = probe("--quick", "--rows", V3DEMU_DEBUG="hazard", V3DEMU_LOG=log, V3DEMU_SOCKET=os.path.join(FOLDER, "socket_of_rows"))
        cls.status, cls.table = done.returncode, done.stderr
        cls.path = os.path.join(FOLDER, "measured.json")
        with open(cls.path, "w", encoding="utf-8") as file:
            file.write(done.stdout)
        cls.log = ""
        if os.path.exists(log):
            with open(log, encoding="utf-8") as file:
                cls.log = file.read()

    def test_programs_compute_what_they_should(self):
        self.assertEqual(self.status, 0, self.table)
        self.assertNotIn("WRONG", self.table)

    def test_programs_break_no_rule(self):
        self.assertEqual([line for line in self.log.split("\n") if "qpu-hazard" in line], [])

    def test_output_has_all_rows_and_no_more_than_it_says(self):
        results = boards.read(self.path)
        self.assertEqual({row["name"] for row in results["rows"]}, NAMES)
        self.assertEqual(results["chip"]["qpus"], QPUS)
        self.assertEqual(set(results), {"program", "format", *boards.HEAD})
        keys = [boards.key_of(row) for row in results["rows"]]
        self.assertEqual(len(set(keys)), len(keys))
        known = subprocess.run([V3DEMU, "timing"], capture_output=True, text=True, check=True).stdout
        names = set(re.findall(r"^(\w+) ", known, re.M))
        for row in results["rows"]:
            self.assertLessEqual(set(row["constants"].split()), names, row["name"])

    def test_the_models_own_figures_are_predicted(self):
        text, warnings = calibrate("--board", self.path, "--json", status=1)
        self.assertEqual(warnings, f"{self.path}: made with --quick, whose times mean nothing\n")
        predicted = json.loads(text)
        results = boards.read(self.path)
        of = {boards.key_of(row): row["predicted"] for row in predicted}
        for row in results["rows"]:
            row["median"] = of[boards.key_of(row)]
        self.check_predictions(of)
        # One kind of rows is enough to find out that they agree.
        results["quick"] = False
        results["rows"] = [row for row in results["rows"] if row["name"] in ("clock", "chase")]
        chase = next(row for row in results["rows"] if row["name"] == "chase")
        results["rows"].append({**chase, "parameters": {"kilobytes": 3}})
        own = os.path.join(FOLDER, "own.json")
        with open(own, "w", encoding="utf-8") as file:
            json.dump(results, file)
        text, warnings = calibrate("--board", own, "--within", "0.001")
        self.assertIn(f"predicted for {BOARD}", text)
        self.assertEqual(warnings, f"chase kilobytes=3: not predicted for {BOARD}\n")

    def check_predictions(self, of):
        """What the constants of the model say without running it."""
        def at(name, **parameters):
            return of[boards.key_of({"name": name, "parameters": parameters})]

        text = subprocess.run([V3DEMU, "timing", "--device", BOARD], capture_output=True, text=True, check=True).stdout
        constants = {name: int(number) for name, number in re.findall(r"^(\w+) +(\d+)", text, re.M)}
        self.assertAlmostEqual(at("clock", when="first"), CLOCK_MHZ, delta=0.01 * CLOCK_MHZ)
        for name in ("sfu", "rep"):
            self.assertAlmostEqual(at(name, used="next"), 8 + constants[f"{name}_stall"], delta=0.1)
            self.assertAlmostEqual(at(name, used="later"), 12, delta=0.1)
        self.assertAlmostEqual(at("switch", threads_of_a_qpu=2), 12, delta=0.2)
        # A step of a chase: its two instructions, a request and a return, and four quads of a word.
        hit, l2, memory = (at("chase", kilobytes=size) for size in (2, 64, 65536))
        self.assertTrue(32 <= hit <= 48, hit)
        self.assertAlmostEqual(l2 - hit, 40, delta=2)
        self.assertGreater(memory, 1.5 * l2 / CLOCK_MHZ * 1000)
        self.assertAlmostEqual(at("tile_store", format="rgba8, UIF"), constants["tile_write"], delta=5)
        self.assertAlmostEqual(at("dispatch", queued=True), at("dispatch", queued=False), delta=1)
        self.assertFalse([key for key, value in of.items() if not math.isfinite(value)])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
