#!/usr/bin/env python3
"""The files that the pages for readers name exist, and packaging/demo builds the programs that the pages for users call.
usage: docs_test.py SOURCE_FOLDER"""
import os
import re
import sys

root = sys.argv[1]
missing = []
pages = ("docs/one_draw.md", "docs/architecture.md", "docs/security.md", "CONTRIBUTING.md", "README.md")
for page in pages:
    with open(os.path.join(root, page), encoding="utf-8") as file:
        text = file.read()
    names = re.findall(r"`((?:daemon|docs|gpu|ioctl|packaging|samples|shim|tests|tools|bench)/[\w./-]+)`", text)
    names += re.findall(r"\]\(((?!http)[\w./-]+)\)", text)
    assert names, page
    missing += [f"{page}: {name}" for name in names if not os.path.exists(os.path.join(root, name))]

with open(os.path.join(root, "CMakeLists.txt"), encoding="utf-8") as file:
    programs = " ".join(re.findall(r"(?:add_custom_target|add_dependencies)\(programs ([^)]*)\)", file.read())).split()
assert "v3demu" in programs
for page in ["README.md"] + [os.path.join("docs", name) for name in os.listdir(os.path.join(root, "docs"))
                             if name.endswith(".md")]:
    with open(os.path.join(root, page), encoding="utf-8") as file:
        called = re.findall(r"build/release/bin/(\w+)", file.read())
    missing += [f"{page}: packaging/demo does not build {name}" for name in called if name not in programs]
sys.exit("\n".join(missing) or 0)
