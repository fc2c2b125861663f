#!/usr/bin/env python3
"""Each counter that is called exact has code that counts it. usage: counters_test.py SOURCE_FOLDER"""
import glob
import os
import re
import sys

ROOT = sys.argv[1]
DEFINITIONS = os.path.join(ROOT, "gpu", "perf", "counters.h")
TABLE = os.path.join(ROOT, "gpu", "perf", "counter_table.cc")


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def main():
    enumerators = dict(re.findall(r"^  (k\w+) = (\d+),$", re.search(r"enum Counter.*?\{(.*?)\};", text_of(DEFINITIONS), re.S)[1], re.M))
    rows = re.findall(r"^    \{([A-Z]), \"([\w-]+)\"", text_of(TABLE).split("kTable42")[0], re.M)
    code = "\n".join(text_of(path) for path in glob.glob(os.path.join(ROOT, "gpu", "**", "*.cc"), recursive=True) +
                     glob.glob(os.path.join(ROOT, "gpu", "**", "*.h"), recursive=True) if path not in (DEFINITIONS, TABLE))
    exact = {number for number, (letter, _) in enumerate(rows) if letter == "E"}
    problems = [f"{rows[number][1]} is called exact and has no name in counters.h"
                for number in sorted(exact - {int(n) for n in enumerators.values()})]
    problems += [f"{name} is called exact, and no code counts it" for name, number in enumerators.items()
                 if int(number) in exact and not re.search(rf"\b{name}\b", code)]
    if len(rows) != 93 or len(exact) < 10:
        problems.append(f"the table is not understood: {len(rows)} rows, {len(exact)} exact ones")
    sys.exit("\n".join(problems) or 0)


if __name__ == "__main__":
    main()
