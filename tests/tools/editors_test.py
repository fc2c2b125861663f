#!/usr/bin/env python3
"""What tools/editors tells editors: the grammar colours each word of the samples as what it is, and the debugger's
options are those that it reads.

  editors_test.py SOURCE_FOLDER
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom
import zipfile

SOURCE = sys.argv[1]
EXTENSION = os.path.join(SOURCE, "tools", "editors", "vscode")


def load(name):
    with open(os.path.join(EXTENSION, name), encoding="utf-8") as file:
        return json.load(file)


def tokens(line, patterns):
    """(text, scope) as editors find them: the first match from where the last one ended, the first pattern of equals."""
    at, found = 0, []
    while at < len(line):
        matches = [(match.start(), number, match) for number, (_, pattern) in enumerate(patterns) if (match := pattern.search(line, at)) and match.group()]
        if not matches:
            return found
        _, number, match = min(matches)
        found.append((match.group().strip(), patterns[number][0]))
        at = match.end()
    return found


class EditorsTest(unittest.TestCase):
    def setUp(self):
        self.patterns = [(one["name"].split(".")[0] + "." + one["name"].split(".")[1], re.compile(one["match"]))
                         for one in load("syntaxes/qpu.tmLanguage.json")["patterns"]]

    def test_words_have_their_colours(self):
        line = "loop:  sub.pushz rf7, rf7, 1 ; fmul rf4, rf5.l, 0.5 ; ldtmu.rf6 ; thrsw  # all"
        self.assertEqual(tokens(line, self.patterns), [
            ("loop", "entity.name"), ("sub", "keyword.operator"), (".pushz", "storage.modifier"), ("rf7", "variable.language"),
            ("rf7", "variable.language"), ("1", "constant.numeric"), ("fmul", "keyword.operator"), ("rf4", "variable.language"),
            ("rf5", "variable.language"), (".l", "storage.modifier"), ("0.5", "constant.numeric"), ("ldtmu", "storage.type"),
            ("rf6", "variable.language"), ("thrsw", "keyword.control"), ("# all", "comment.line")])

    def test_every_word_of_the_samples_has_a_colour(self):
        for path in glob.glob(os.path.join(SOURCE, "samples", "qpu", "*.qasm")):
            with open(path, encoding="utf-8") as file:
                self.check_words(path, file.read())

    def check_words(self, where, text):
        for line in text.splitlines():
            coloured = tokens(line, self.patterns)
            for word in re.findall(r"[A-Za-z_]\w*", re.sub(r"(#|//).*", "", line)):
                self.assertTrue(any(word in text for text, _ in coloured), f"{where}: {word} in {line}")

    def test_every_word_of_the_tutorials_listings_has_a_colour(self):
        with open(os.path.join(SOURCE, "docs", "qpu.md"), encoding="utf-8") as file:
            page = file.read()
        blocks = re.findall(r"(?ms)^```(\w*)\n(.*?)^```", page)
        listings = [text for language, text in blocks if not language]
        listings += [text for language, code in blocks if language == "python" for text in re.findall(r'(?s)"""\n(.*?)"""', code)]
        listings += [text.replace("\\n", "\n") for text in re.findall(r"printf '(.*?)'", page)]
        self.assertGreaterEqual(len(listings), 8)
        for number, text in enumerate(listings, 1):
            self.check_words(f"listing {number} of docs/qpu.md", text)

    def test_every_name_of_the_instruction_set_has_a_colour(self):
        with open(os.path.join(SOURCE, "gpu", "qpu", "isa", "isa.def"), encoding="utf-8") as file:
            table = file.read()
        for name in re.findall(r'V3D_QPU_OP\(\w+, +"(\w+)"', table):
            self.check_words("an operation", f"  {name} rf1, rf2")
        for name in re.findall(r'V3D_QPU_WADDR\(\w+, +\d+, +\w+, +"(\w+)"', table):
            self.check_words("a register", f"  mov {name}, rf2")
        for name in re.findall(r'V3D_QPU_SIGNAL\(\w+, +"(\w+)"', table):
            self.check_words("a signal", f"  nop ; nop ; {name}")
        for suffix in re.findall(r'V3D_QPU_(?:UNPACK|COND|FLAG_WRITE)\(\w+, "\.(\w+)"', table):
            self.assertIn(("." + suffix, "storage.modifier"), tokens(f"  fmov.{suffix} rf1, rf2", self.patterns))
            self.assertIn(("." + suffix, "storage.modifier"), tokens(f"  fmov rf1, rf2.{suffix}", self.patterns))

    def test_files_and_options_exist(self):
        package = load("package.json")["contributes"]
        for path in (package["grammars"][0]["path"], package["languages"][0]["configuration"]):
            self.assertTrue(os.path.exists(os.path.join(EXTENSION, path)), path)
        self.assertTrue(os.access(os.path.join(EXTENSION, package["debuggers"][0]["program"]), os.X_OK))
        with open(os.path.join(SOURCE, "tools", "debugger", "adapter.cc"), encoding="utf-8") as file:
            launch = re.search(r"Json Adapter::launch\(.*?\n}\n", file.read(), re.S)[0]
        read = set(re.findall(r'arguments\.(?:value|at)\("(\w+)"', launch))
        self.assertEqual(set(package["debuggers"][0]["configurationAttributes"]["launch"]["properties"]), read)

    def test_the_package_has_all_files_and_what_editors_read_first(self):
        with tempfile.TemporaryDirectory() as folder:
            made = [os.path.join(folder, name) for name in ("a.vsix", "b.vsix")]
            for path in made:
                subprocess.run([sys.executable, "-B", os.path.join(SOURCE, "tools", "editors", "make_vsix"), path], check=True, capture_output=True)
            contents = [open(path, "rb").read() for path in made]  # pylint: disable=consider-using-with
            self.assertEqual(*contents)
            with zipfile.ZipFile(made[0]) as package:
                names = package.namelist()
                expected = [os.path.relpath(path, EXTENSION) for path in glob.glob(os.path.join(EXTENSION, "**"), recursive=True) if os.path.isfile(path)]
                self.assertEqual(set(names), {"extension.vsixmanifest", "[Content_Types].xml", *("extension/" + name for name in expected)})
                self.assertEqual(package.getinfo("extension/debug").external_attr >> 16 & 0o111, 0o111)
                identity = xml.dom.minidom.parseString(package.read("extension.vsixmanifest")).getElementsByTagName("Identity")[0]
                described = load("package.json")
                self.assertEqual([identity.getAttribute(name) for name in ("Id", "Version", "Publisher")],
                                 [described[name] for name in ("name", "version", "publisher")])
                types = xml.dom.minidom.parseString(package.read("[Content_Types].xml"))
                ends = {one.getAttribute("Extension").lstrip(".") for one in types.getElementsByTagName("Default")}
                parts = {one.getAttribute("PartName") for one in types.getElementsByTagName("Override")}
                for name in names[2:]:
                    self.assertTrue(name.rsplit(".", 1)[-1] in ends or "/" + name in parts, name)
        done = subprocess.run([sys.executable, "-B", os.path.join(SOURCE, "tools", "editors", "make_vsix"), "/nowhere/x.vsix"], check=False,
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (1, "make_vsix: /nowhere/x.vsix: No such file or directory\n"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
