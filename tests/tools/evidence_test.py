#!/usr/bin/env python3
"""tools/evidence with made-up summaries: what it stores, what the page says, and what it does not take. usage: evidence_test.py TREE"""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import sys
import tempfile
import unittest

ROOT = sys.argv.pop(1)
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "bench", "measure"))
from questions import QUESTIONS, UNASKED  # noqa: E402  pylint: disable=wrong-import-position

LOADER = importlib.machinery.SourceFileLoader("evidence", os.path.join(ROOT, "tools", "evidence"))
EVIDENCE = importlib.util.module_from_spec(importlib.util.spec_from_loader("evidence", LOADER))
LOADER.exec_module(EVIDENCE)
BY_NAME = {question.name: question for question in QUESTIONS}


def answer(name, alternative):
    """As a board prints it whose words are those of an alternative, or of none."""
    words = next((words for text, words, _ in BY_NAME[name].rows() if text == alternative), [0x12345] * BY_NAME[name].num_words())
    return {"name": name, "answer": alternative, "assumed": BY_NAME[name].assumed, "words": " ".join(f"{word:08x}" for word in words)}


def probe(**changes):
    return {"program": "v3dprobe", "format": 1, "board": "Made-up Pi 5 Rev 1.0", "kernel": "6.12.1", "machine": "aarch64",
            "chip": {"version": 71, "revision": 7, "slices": 3, "qpus": 12}, "idents": [], "rows": [],
            "questions": [answer("coverage", BY_NAME["coverage"].assumed), answer("faddnf", "NaN is 0"), answer("smul24", "none of the alternatives")],
            **changes}


def job(number, **changes):
    return {"job": number, "kind": "render", "client": 1, "end": "done", "equal": True, "pages": 3, "images": [], "memory": [], **changes}


def comparison(*jobs, **changes):
    return {"program": "v3demu replay --compare", "format": 1, "version": "1.0.0", "profile": "rpi4", "chip": {"version": 42, "revision": 14, "qpus": 8},
            "jobs": list(jobs), **changes}


IMAGE = {"address": 4096, "width": 64, "height": 64, "pixels": 3, "x": 1, "y": 2, "here": 1, "recorded": 2, "largest": 1}
PLACE = {"address": 4096, "bytes": 4096, "words": 3, "first": 4100, "here": 1, "recorded": 2, "largest": 1, "largest_float": 0}


class Evidence(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="v3demu-test-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_it(self, *options, status=0):
        """What it says of errors."""
        return self.run_alone("--folder", self.path("sent"), "--page", self.path("page.out"), *options, status=status)

    def run_alone(self, *options, status=0):
        errors, sys.argv[1:] = io.StringIO(), options
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            try:
                found = EVIDENCE.main()
            except SystemExit as end:
                found = end.code
        self.assertEqual(found, status, errors.getvalue())
        return errors.getvalue()

    def write(self, name, contents):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(contents if isinstance(contents, str) else json.dumps(contents))
        return self.path(name)

    def page(self):
        with open(self.path("page.out"), encoding="utf-8") as file:
            return file.read()

    def line(self, start):
        return next(line for line in self.page().split("\n") if line.startswith(start))

    def test_the_page_of_this_tree_is_up_to_date(self):
        self.assertEqual(self.run_alone("--check"), "")

    def test_without_boards_it_says_so_and_lists_all_questions(self):
        self.run_it()
        page = self.page()
        self.assertIn("**No board has sent anything yet**", page)
        for question in QUESTIONS:
            self.assertIn(f"| {question.name}: ", page)
        for unasked in UNASKED:
            self.assertIn(f"| {unasked.where} | ", page)
        self.assertNotIn("## Boards", page)

    def test_answers_of_boards_stand_beside_what_the_model_assumes(self):
        self.run_it("--add", self.write("a.json", probe()), "--from", "A. Sender")
        self.run_it("--add", self.write("b.json", probe(kernel="6.6.2")), "--from", "B. Sender")
        self.run_it("--add", self.write("c.json", probe(board="Made-up Pi 500")), "--from", "B. Sender")
        self.assertEqual(sorted(os.listdir(self.path("sent"))),
                         ["a-sender-made-up-pi-5-rev-1-0-1.json", "b-sender-made-up-pi-5-rev-1-0-1.json", "b-sender-made-up-pi-500-1.json"])
        page = self.page()
        self.assertNotIn("No board has sent", page)
        self.assertIn("| Made-up Pi 5 Rev 1.0 | 7.1.7 | 12 | 6.12.1 | A. Sender | 3 answers, 2 not as assumed |", page)
        # Two senders with boards of one kind are one kind of board.
        self.assertTrue(self.line("| 7.1 | qpu 2.2 | ftoc").endswith("| 2 (Made-up Pi 5 Rev 1.0, V3D 7.1.7; Made-up Pi 500, V3D 7.1.7) |  |"))
        self.assertIn("| in nothing |  | NaN is 0: 2 (Made-up Pi 5", self.line("| 7.1 | qpu 2.2 | in what faddnf"))
        self.assertIn("none of the alternatives: 2 (", self.line("| 7.1 | qpu 2.3 | whether"))
        # No board of 4.2 has answered.
        self.assertTrue(any(line.startswith("| 4.2 | qpu 2.2 | coverage: ") for line in page.split("\n")))
        self.run_it("--check")

    def test_answers_are_those_of_this_versions_alternatives(self):
        older = answer("coverage", BY_NAME["coverage"].assumed) | {"answer": "none of the alternatives"}
        self.run_it("--add", self.write("a.json", probe(questions=[older])), "--from", "A")
        self.assertIn("1 answer, 0 not as assumed", self.page())

    def test_comparisons_are_counted_by_what_differs(self):
        sent = comparison(job(1), job(2, equal=False, images=[IMAGE]), job(3, equal=False, images=[{**IMAGE, "largest": 90}, {"no_pixels": "x"}]),
                          job(4, kind="csd", equal=False, memory=[PLACE]), job(5, end="hung", equal=False))
        self.run_it("--add", self.write("a.json", sent), "--from", "A", "--board", "Made-up Pi 4", "--kernel", "6.1")
        self.assertIn("| Made-up Pi 4 | 4.2.14 | 8 | 6.1 | A | 5 jobs compared, 4 different |", self.page())
        for kind, what in (("csd", "memory alone"), ("render", "colours by 1 of 255"), ("render", "colours by more than 4 of 255"), ("render", "equal"),
                           ("render", "ends here as: hung")):
            self.assertIn(f"| 4.2 | {kind} | {what} | 1 | Made-up Pi 4, V3D 4.2.14 |", self.page())

    def test_the_same_entries_make_the_same_page(self):
        for order in ("ab", "ba"):
            for name in order:
                self.run_it("--add", self.write(f"{name}.json", probe(kernel=name)), "--from", name)
            pages = getattr(self, "pages", []) + [self.page()]
            self.pages = pages
            for name in os.listdir(self.path("sent")):
                os.remove(os.path.join(self.path("sent"), name))
        self.assertEqual(*self.pages)

    def test_text_of_a_sender_cannot_break_the_table(self):
        self.run_it("--add", self.write("a.json", probe(board="a | b <script> [x](y)")), "--from", "`A`")
        self.assertIn(r"| a \| b &lt;script> \[x](y) | 7.1.7 | 12 | 6.12.1 | \`A\` |", self.page())

    def test_what_cannot_be_taken_is_named_in_one_line(self):
        one = probe()["questions"][0]
        for contents, message in (
                ("{", "is no whole JSON"), ("[" * 200000, "is no whole JSON"), ("[]", "is an output neither of v3dprobe nor of"),
                ({"program": []}, "is an output neither"), (probe(format=2), "is of another version of v3dprobe: format 2, not 1"),
                (probe(questions=[]), "has no answers"), (probe(machine="x86_64"), "has asked an emulated board"),
                (probe(chip={"version": True, "revision": 7, "qpus": 1}), '"version" is missing'), (probe(questions=[3]), '"name" is missing'),
                (probe(questions=[one, one]), "coverage is there twice"), (probe(questions=[one | {"name": "x"}]), "does not ask 'x'"),
                (probe(questions=[one | {"words": "g"}]), "are not hexadecimal"), (probe(questions=[one | {"words": "00000000"}]), "another number of words"),
                (probe(board="a\nb"), "the board must be a line"), (probe(board="x" * 300), "the board must be a line"),
                (comparison(job(1)), "--board and --kernel do"), (comparison(), "compares no job"),
                (comparison(job(1, images=[3])), 'an image: "width" is missing'), (comparison(job(1, memory=[{}])), 'memory: "words" is missing')):
            text = self.run_it("--add", self.write("bad.json", contents), "--from", "A", status=2)
            self.assertIn(message, text)
            self.assertEqual(text.count("\n"), 1, text)
            self.assertFalse(os.path.exists(self.path("sent")))
        self.assertIn("No such file", self.run_it("--add", self.path("none.json"), "--from", "A", status=2))
        self.assertIn("--from", self.run_it("--add", self.path("none.json"), status=2))
        self.assertIn("says itself", self.run_it("--add", self.write("a.json", probe()), "--from", "A", "--board", "x", "--kernel", "y", status=2))
        self.run_it("--add", self.write("a.json", probe()), "--from", "A")
        self.assertIn("has been added before", self.run_it("--add", self.path("a.json"), "--from", "A", status=2))

    def test_a_page_that_is_not_up_to_date_is_named(self):
        self.assertIn("is not what tools/evidence writes", self.run_it("--check", status=1))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
