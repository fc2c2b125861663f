#!/usr/bin/env python3
"""The files and headings that the pages for readers name exist, packaging/demo builds the programs that the pages for users call,
their commands can be typed as they stand, README.md is short, and the newest version of CHANGELOG.md is that of CMakeLists.txt.
usage: docs_test.py SOURCE_FOLDER"""
import os
import re
import sys

root = sys.argv[1]
missing = []


def read(name):
    with open(os.path.join(root, name), encoding="utf-8") as file:
        return file.read()


def anchors(name):
    """Of the headings of a page, as forges make them."""
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in re.findall(r"(?m)^#+ +(.*)", read(name))}


pages = ("docs/one_draw.md", "docs/architecture.md", "docs/security.md", "CONTRIBUTING.md", "README.md")
for page in pages:
    with open(os.path.join(root, page), encoding="utf-8") as file:
        text = file.read()
    names = re.findall(r"`((?:daemon|docs|gpu|ioctl|packaging|samples|shim|tests|tools|bench)/[\w./-]+)`", text)
    names += re.findall(r"\]\(((?!http)[\w./-]+)\)", text)
    assert names, page
    missing += [f"{page}: {name}" for name in names if not os.path.exists(os.path.join(root, name))]


user_pages = ["README.md"] + [f"docs/{name}" for name in os.listdir(os.path.join(root, "docs")) if name.endswith(".md")]
for page in user_pages:
    for name, anchor in re.findall(r"\]\(((?!http)[\w./-]*)(?:#([\w-]+))?\)", read(page)):
        target = os.path.normpath(os.path.join(os.path.dirname(page), name)) if name else page
        if not os.path.exists(os.path.join(root, target)):
            missing.append(f"{page}: {name}")
        elif anchor and anchor not in anchors(target):
            missing.append(f"{page}: {target} has no heading {anchor}")

cmake = read("CMakeLists.txt")
programs = " ".join(re.findall(r"(?:add_custom_target|add_dependencies)\(programs ([^)]*)\)", cmake)).split()
assert "v3demu" in programs
built = set()
for folder in ("bench", "samples", "tests", "tools"):
    for where, _, names in os.walk(os.path.join(root, folder)):
        if "CMakeLists.txt" in names:
            built |= set(re.findall(r"add_executable\((\w+)", read(os.path.join(where, "CMakeLists.txt"))))
assert "vulkan_samples" in built and "vulkan_bench" in built
where_to_type = "build/release/bin"  # in the PATH: said on each page, or the line that puts it there
for page in user_pages + ["CONTRIBUTING.md"]:
    blocks = re.findall(r"(?ms)^```sh\n(.*?)^```", read(page))
    text = "".join(blocks)
    missing += [f"{page}: {line}: examples call v3demu by the PATH, and stay in the folder of the clone"
                for line in re.findall(r"(?m)^.*build/release/bin/v3demu .*$|^cd .*$", text)]
    if re.search(r"(?m)^v3demu ", text) and where_to_type not in read(page):
        missing.append(f"{page} does not say where its commands are typed")
for page in user_pages:
    for block in re.findall(r"(?ms)^```sh\n(.*?)^```", read(page)):
        missing += [f"{page}: {name} cannot be called" for name in re.findall(r"(?m)^((?:packaging|tests|tools)/[\w./-]+)", block)
                    if not os.access(os.path.join(root, name), os.X_OK)]
        if "packaging/setup" in block:  # which builds all
            continue
        called = set(re.findall(r"build/release/bin/(\w+)", block)) | (built & set(re.findall(r"(?<![\w/.-])\w+", block)))
        missing += [f"{page}: packaging/demo does not build {name}" for name in sorted(called) if name not in programs]

if len(read("README.md").splitlines()) >= 120:
    missing.append("README.md has 120 lines or more: what it says belongs into a page of docs/")
version = re.search(r"project\(v3demu VERSION ([\d.]+)", cmake)[1]
newest = re.search(r"(?m)^## (?!Not yet released$)(\S+)", read("CHANGELOG.md"))[1]
if newest != version:
    missing.append(f"the newest version of CHANGELOG.md is {newest}, and CMakeLists.txt says {version}")
sys.exit("\n".join(missing) or 0)
