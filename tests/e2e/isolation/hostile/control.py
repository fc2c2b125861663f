#!/usr/bin/env python3
"""What the machine itself costs: rounds of work and of waiting for another process, as long as a victim's and without the
daemon. Prints and ends as victim.py does."""
import json
import os
import select
import sys
import time

PAUSE = 0.02  # seconds
TURNS = 20


def echo(source, target):
    while data := os.read(source, 1):
        os.write(target, data)
    os._exit(0)


def main():
    there, back = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(there[1])
        echo(there[0], back[1])
    os.close(there[0])
    while not select.select([sys.stdin], [], [], PAUSE)[0]:
        at = time.monotonic()
        for _ in range(TURNS):
            os.write(there[1], b".")
            os.read(back[0], 1)
            sum(range(2000))
        print(json.dumps({"at": at, "took": time.monotonic() - at}), flush=True)


if __name__ == "__main__":
    main()
