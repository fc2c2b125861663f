#!/usr/bin/env python3
"""A program that draws through Mesa, again and again: each picture has to be the first one, which is no blank one.

usage: mesa_victim.py FOLDER PROGRAM...       PROGRAM takes the path of the PPM that it writes

Prints and ends as victim.py does; a round is the whole life of the program.
"""
import json
import os
import select
import subprocess
import sys
import time

PAUSE = 0.2  # seconds
COLORS = 100  # of the first picture, at least
PATIENCE = 300


def main():
    folder, program = sys.argv[1], sys.argv[2:]
    os.makedirs(folder, exist_ok=True)
    path, first = os.path.join(folder, "picture.ppm"), None
    while not select.select([sys.stdin], [], [], PAUSE)[0]:
        at = time.monotonic()
        wrong = None
        try:
            done = subprocess.run([*program, path], capture_output=True, text=True, timeout=PATIENCE, check=False)
            wrong = done.stderr[-500:] or f"exit status {done.returncode}" if done.returncode else None
        except subprocess.TimeoutExpired:
            wrong = f"hangs: no picture in {PATIENCE} s"
        took = time.monotonic() - at
        if not wrong:
            with open(path, "rb") as file:
                picture = file.read()
            pixels = picture.split(b"255\n", 1)[-1]
            first = first or picture
            if picture != first:
                wrong = "the picture is another than the first one"
            elif len({pixels[i:i + 3] for i in range(0, len(pixels), 3)}) < COLORS:
                wrong = "the picture is blank"
        print(json.dumps({"at": at, "wrong": wrong} if wrong else {"at": at, "took": took}), flush=True)
        if wrong:
            sys.exit(1)


if __name__ == "__main__":
    main()
