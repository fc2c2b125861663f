#!/usr/bin/env python3
"""The files that the pages for readers name exist. usage: docs_test.py SOURCE_FOLDER"""
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
sys.exit("\n".join(missing) or 0)
