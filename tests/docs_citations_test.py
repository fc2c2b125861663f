"""Every file and section of docs/ that the tree cites exists, and each chapter of docs/hardware lists its contents.

usage: docs_citations_test.py ROOT

A citation is the name of a Markdown file, perhaps followed by numbers of sections ("qpu.md 3.4", "cle-and-tiles.md 4, 5",
"compute-and-timing.md 17 to 19") or by a heading in quotes. A bare name is a chapter of docs/hardware or stands beside the file that
cites it; inside docs/hardware, "qpu 3.4", "drm 2.6", "cle", "tex", "cmp" and "vc4-abi 1" cite chapters, too.
"""
import os
import re
import subprocess
import sys

CHAPTERS = {"drm": "drm-abi.md", "qpu": "qpu.md", "cle": "cle-and-tiles.md", "tex": "texture.md", "cmp": "compute-and-timing.md",
            "vc4-abi": "vc4-abi.md", "vc4-qpu": "vc4-qpu.md", "vc4-graphics": "vc4-graphics.md", "vc4-timing": "vc4-timing.md"}
NUMBERS = r"\d+(?:\.\d+)*(?:(?:, | and | or | to )\d+(?:\.\d+)*)*"
CITATION = re.compile(r"(?<![\w/.-])((?:[\w.-]+/)*[\w-]+\.md)\b(?:\)?,? \"([^\"\n]+)\"| (" + NUMBERS + r")(?![\w%]))?")
SHORT = re.compile(r"(?<![\w.-])(" + "|".join(sorted(CHAPTERS, key=len, reverse=True)) + r") (" + NUMBERS + r")(?![\w%])")
TEXT = (".md", ".cc", ".h", ".c", ".def", ".py", ".txt", ".cmake", ".yml", ".1", ".7", ".8")


def headings(path):
    """Numbers and texts of a file's headings."""
    numbers, texts = set(), set()
    for line in open(path, encoding="utf-8"):
        match = re.match(r"#+ +(?:Part [A-Z]: *)?(.*)", line)
        if match:
            texts.add(match[1].strip())
            number = re.match(r"(\d+(?:\.\d+)*)\.? ", match[1])
            if number:
                numbers.add(number[1])
    return numbers, texts


def slug(heading):
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


class Checker:
    def __init__(self, root):
        self.root = root
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, capture_output=True, text=True, check=False)
        self.files = [f for f in listed.stdout.splitlines() if os.path.isfile(os.path.join(root, f))]
        self.known = {f: headings(os.path.join(root, f)) for f in self.files if f.endswith(".md")}
        self.faults, self.citations = [], 0

    def find(self, name, citing):
        beside = os.path.normpath(os.path.join(os.path.dirname(citing), name))
        for candidate in (name, "docs/hardware/" + name, "docs/" + name, beside):
            if candidate in self.known:
                return candidate
        return None

    def cite(self, citing, line, target, numbers, text):
        self.citations += 1
        known_numbers, known_texts = self.known[target]
        for number in re.findall(r"\d+(?:\.\d+)*", numbers or ""):
            if number not in known_numbers:
                self.faults.append(f"{citing}:{line}: {target} has no section {number}")
        if text and not any(known.startswith(text) for known in known_texts):
            self.faults.append(f'{citing}:{line}: {target} has no heading "{text}"')

    def check_file(self, name):
        chapter = name.startswith("docs/hardware/")
        for line, content in enumerate(open(os.path.join(self.root, name), encoding="utf-8", errors="replace"), 1):
            for match in CITATION.finditer(content):
                target = self.find(match[1], name)
                if target:
                    self.cite(name, line, target, match[3], match[2])
                elif "/" not in match[1] and not chapter:
                    self.faults.append(f"{name}:{line}: {match[1]} does not exist")
            for match in SHORT.finditer(content) if chapter else ():
                self.cite(name, line, "docs/hardware/" + CHAPTERS[match[1]], match[2], None)

    def check_contents(self, name):
        lines = open(os.path.join(self.root, name), encoding="utf-8").read().splitlines()
        listed = {match[1] for line in lines for match in re.finditer(r"\]\(#([^)]+)\)", line)}
        for line in lines:
            match = re.match(r"## +(.*)", line)
            if match and match[1] != "Contents" and slug(match[1]) not in listed:
                self.faults.append(f'{name}: "{match[1]}" is not among its contents')

    def run(self):
        for name in self.files:
            if name.endswith(TEXT) and name != "tests/docs_citations_test.py" and not name.startswith("tests/fuzz/corpus/"):
                self.check_file(name)
        for name in self.known:
            if name.startswith("docs/hardware/") and not name.endswith("README.md"):
                self.check_contents(name)
        print("\n".join(self.faults) or f"{self.citations} citations in {len(self.files)} files")
        return 1 if self.faults or self.citations < 100 else 0


if __name__ == "__main__":
    sys.exit(Checker(sys.argv[1]).run())
