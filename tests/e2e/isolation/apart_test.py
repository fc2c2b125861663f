#!/usr/bin/env python3
"""The end of a run is no other run's: while runs are killed, stopped and lose their folders as they start and end, programs with daemons of
their own go on, and of programs that share a daemon none is lost that comes at the moment when it leaves.

usage: apart_test.py V3DEMU V3DEMUD
"""
import concurrent.futures
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

V3DEMU, V3DEMUD = sys.argv[1:]
SECONDS = 5
# Opens a node and asks it, for so long or so often with pauses: an errno of either ends it.
CLIENT = """
import fcntl, os, random, struct, sys, time
def ask(node):
    value = bytearray(struct.pack("<IIQ", 4, 0, 0))  # DRM_V3D_PARAM_V3D_CORE0_IDENT0
    fcntl.ioctl(node, 0xc0106444, value)
    assert struct.unpack("<IIQ", value)[2]
kind, amount = sys.argv[1], float(sys.argv[2])
if kind == "stays":
    node, end = os.open("/dev/dri/renderD128", os.O_RDWR), time.monotonic() + amount
    while time.monotonic() < end:
        ask(node)
        time.sleep(0.005)
else:
    for _ in range(int(amount)):
        child = os.fork()
        if child == 0:  # a process as short as can be
            ask(os.open("/dev/dri/renderD128", os.O_RDWR))
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            sys.exit("a process that came as its daemon left has lost it")
        time.sleep(random.uniform(0.0, 0.06))
"""
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("V3DEMU")}


def start(socket, kind, amount, **variables):
    return subprocess.Popen([V3DEMU, "run", "--", sys.executable, "-c", CLIENT, kind, str(amount)], start_new_session=True, text=True,
                            env=ENVIRONMENT | {"V3DEMU_SOCKET": socket, "V3DEMU_DAEMON": V3DEMUD} | variables,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def ended(process):
    """What went wrong; empty: nothing did."""
    said = process.communicate(timeout=300)[1]
    return f"status {process.returncode}: {said}" if process.returncode else ""


def be_killed_again_and_again(seed):
    chance, end = random.Random(seed), time.monotonic() + SECONDS
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory(prefix="v3demu-apart-", ignore_cleanup_errors=True) as folder:
            process = start(folder + "/socket", "stays", 600)
            time.sleep(chance.uniform(0, 0.3))
            if chance.random() < 0.3:
                subprocess.run([V3DEMU, "stop"], env=ENVIRONMENT | {"V3DEMU_SOCKET": folder + "/socket"}, capture_output=True, check=False)
            try:
                os.killpg(process.pid, chance.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)))
            except ProcessLookupError:
                pass
            try:
                process.communicate(timeout=10)
            except subprocess.TimeoutExpired:  # a SIGINT that comes while Python starts may be lost in what it imports
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate(timeout=300)
    return ""


def main():
    with tempfile.TemporaryDirectory(prefix="v3demu-apart-", ignore_cleanup_errors=True) as folder, concurrent.futures.ThreadPoolExecutor(8) as pool:
        os.makedirs(folder + "/other")
        hasty = os.path.join(folder, "hasty")
        with open(hasty, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nexec {V3DEMUD} --shed --exit-when-idle 0.03\n")
        os.chmod(hasty, 0o755)
        steady = [start(f"{folder}/{name}", "stays", SECONDS) for name in ("socket", "socket-two", "other/socket")]
        sharing = [start(folder + "/shared", "comes", 40, V3DEMU_DAEMON=hasty) for _ in range(3)]
        parts = [pool.submit(ended, process) for process in (*steady, *sharing)] + [pool.submit(be_killed_again_and_again, seed) for seed in (1, 2)]
        wrong = list(filter(None, (part.result() for part in parts)))
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
