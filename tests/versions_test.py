#!/usr/bin/env python3
"""What packaging/versions accepts and refuses, on small trees. usage: versions_test.py SOURCE_FOLDER"""
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(sys.argv.pop(1), "packaging/versions")
PAGE = """\
| asks which generation | because it is |
|---|---|
| `gpu/isa` `gpu/cle/packet.h` | decoders |
"""
TREE = {"docs/architecture.md": PAGE, "gpu/isa/decode.cc": "switch (generation) {\n", "gpu/cle/packet.h": "int k42 = 1;\n",
        "gpu/run/step.cc": "use(isa(generation).implicit);  // generation >= k71\n"}


class VersionsTest(unittest.TestCase):
    def run_on(self, path=None, text=""):
        """Exit status and output for the tree with a file replaced."""
        with tempfile.TemporaryDirectory() as tree:
            for name, content in {**TREE, **({path: text} if path else {})}.items():
                os.makedirs(os.path.dirname(os.path.join(tree, name)), exist_ok=True)
                with open(os.path.join(tree, name), "w", encoding="utf-8") as file:
                    file.write(content)
            done = subprocess.run([sys.executable, SCRIPT, tree], capture_output=True, text=True, check=False)
            return done.returncode, done.stdout

    def test_accepts_files_that_the_table_names(self):
        self.assertEqual(self.run_on(), (0, ""))

    def test_refuses_questions_elsewhere(self):
        for text in "case Generation::k42:", "switch (profile.generation)", "x == k71", "row & set_of(generation)", "static_cast<int>(p.generation)":
            with self.subTest(text=text):
                self.assertEqual(self.run_on("gpu/run/step.cc", "\n" + text),
                                 (1, "gpu/run/step.cc:2: asks of which generation the chip is\n"))

    def test_refuses_comparisons_with_numbers_everywhere(self):
        for path in "gpu/isa/decode.cc", "gpu/run/step.cc":
            for text in "if (version >= 71)", "a = p.version < 71 ? 1 : 2;", "version_number(generation) == 42", "generation_ >= other", "generation < newest":
                with self.subTest(path=path, text=text):
                    self.assertIn(f"{path}:2: orders generations, or compares a version with a number\n", self.run_on(path, "\n" + text)[1])

    def test_lets_others_hand_it_on(self):
        for text in "Unit unit(memory, profile.generation);", "known.generation == profile.generation", "f(generation_) >> 2":
            with self.subTest(text=text):
                self.assertEqual(self.run_on("gpu/run/step.cc", text), (0, ""))

    def test_refuses_rows_that_nothing_needs(self):
        self.assertEqual(self.run_on("gpu/cle/packet.h", "int x;\n"),
                         (1, "docs/architecture.md: gpu/cle/packet.h does not ask of which generation the chip is\n"))

    def test_refuses_a_page_without_the_table(self):
        self.assertEqual(self.run_on("docs/architecture.md", "")[0], 2)


if __name__ == "__main__":
    unittest.main()
