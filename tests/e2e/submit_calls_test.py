#!/usr/bin/env python3
"""How many socket and futex calls of the preload library an empty submit costs that is waited for (V3DEMU_COUNT=1).

  submit_calls_test.py V3DEMU MESA SUBMITS

A submit over the socket is two calls; a wait is one each time it sleeps: until the fence is there, until it signals, and where
it does either just then. Through a channel, and where the answer stands in shared memory, it is none: 1.3 to 2 calls on a quiet
machine, of which the test knows nothing. The least of some runs counts.
"""
import os
import re
import subprocess
import sys

MOST, SUBMITS, RUNS = 5.0, 3000, 5


def counted(v3demu, mesa, program, submits):
    command = [v3demu, "run", "--mesa", mesa, "--", program, str(submits)]
    environment = {**os.environ, "V3DEMU_COUNT": "1"}
    environment.pop("DISPLAY", None)  # for which v3demu-x11 would run, and count its own
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    found = re.findall(r"^v3demu: (\d+) requests, (\d+) socket calls, (\d+) futex calls$", result.stderr, re.M)
    if result.returncode != 0 or not found:
        sys.exit(f"{' '.join(command)}: exit status {result.returncode}\n{result.stderr}")
    return [int(number) for number in found[-1]]


def cost(*command):
    """Requests, and calls, of each submit."""
    few, many = (counted(*command, n) for n in (100, 100 + SUBMITS))
    requests, socket, futex = ((b - a) / SUBMITS for a, b in zip(few, many))
    print(f"each submit: {requests:.2f} requests, {socket:.2f} socket calls, {futex:.2f} futex calls")
    return requests, socket + futex


def main():
    for _ in range(RUNS):
        requests, calls = cost(*sys.argv[1:])
        if requests < 0.9:
            sys.exit("submits were not counted")
        if calls <= MOST:
            return
    sys.exit(f"more than {MOST:.0f} calls")


main()
