#!/usr/bin/env python3
"""tools/calibrate on the emulated boards: published times are met, and the same clocks come out every time. Of graphics, two of glmark2's
scenes, where that is installed.

usage: calibrate_test.py SOURCE_FOLDER BUILD_FOLDER
"""
import json
import os
import shutil
import subprocess
import sys

SOURCE, BUILD = sys.argv[1:3]
ROWS = ["P4-3", "P5-3", "X-1"]
SCENES = ["G-1", "G-21"]


def calibrated(*prefix, options=("--only", *ROWS)):
    done = subprocess.run([*prefix, os.path.join(SOURCE, "tools", "calibrate"), "--build", BUILD, *options, "--json"],
                          capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        sys.exit(f"status {done.returncode}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def main():
    first = calibrated()
    if [row["id"] for row in first] != ROWS:
        sys.exit(f"other rows: {first}")
    alone = calibrated("taskset", "-c", str(min(os.sched_getaffinity(0))))
    if alone != first:
        sys.exit(f"on one processor other clocks: {first} {alone}")
    if not shutil.which("glmark2-es2"):
        print("skipping scenes: there is no glmark2-es2")
        return
    scenes = calibrated(options=("--scenes", "--within", "20", "--only", *SCENES))
    if [row["id"] for row in scenes] != SCENES:
        sys.exit(f"other scenes: {scenes}")


if __name__ == "__main__":
    main()
