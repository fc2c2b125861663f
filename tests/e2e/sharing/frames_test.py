#!/usr/bin/env python3
"""Frames from process to process, kept in order by the fences of their buffers alone.

  frames_test.py V3DEMU V3DEMUD MESA TEST PROGRAMS [NUMBER]

TEST: a name of TESTS below; PROGRAMS: the folder of frame_relay and frame_window; NUMBER: of frames; in `ends` of kills, in
`compositor` of rounds of three. The long ones: `frames ... 10000`, `ends ... 700`, `compositor ... 100`.
Exit status: 0 as it should be, 1 not, 77 a program is not installed.
"""
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
KMS = os.path.join(os.path.dirname(HERE), "kms")
sys.path.insert(0, KMS)
from kms_test import PATIENCE, expect, expect_nothing_left, main, need, wait_until  # pylint: disable=wrong-import-position
from windows_test import Weston, draws  # pylint: disable=wrong-import-position


def start_pair(display, programs, produce=(), consume=(), both=()):
    """A producer and a consumer, each started by itself."""
    display.environment["E2E_DEVICE"] = "V3D"
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pair = []
    for role, end, options in zip(("produce", "consume"), ends, (produce, consume)):
        command = [display.v3demu, "run", "--mesa", display.mesa, "--", f"{programs}/frame_relay", role, str(end.fileno())]
        pair.append(subprocess.Popen([*command, *options, *both], env=display.environment, pass_fds=[end.fileno()],
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        end.close()
    display.running += pair
    return pair


def relay(display, programs, **options):
    """What the consumer says: (frames, stale, newer, torn)."""
    producer, consumer = start_pair(display, programs, **options)
    said = [program.communicate(timeout=4 * PATIENCE)[0] for program in (producer, consumer)]
    expect(producer.returncode == 0 and consumer.returncode in (0, 1), f"{producer.returncode} {consumer.returncode}: {said}")
    counts = tuple(int(number) for number in re.findall(r"\d+", said[1]))
    expect(len(counts) == 4 and (consumer.returncode == 0) == (sum(counts[1:]) == 0), said)
    return counts


def frames(display, programs, number=300):
    expect(relay(display, programs, both=["--frames", str(number)]) == (number, 0, 0, 0), "wrong frames")


def linear(display, programs, number=100):
    options = ["--frames", str(number), "--linear", "--buffers", "2"]
    expect(relay(display, programs, both=options) == (number, 0, 0, 0), "wrong frames")


def faults(display, programs, number=24):
    """That wrong ones are seen: where either side says too early that it has submitted, the fence comes too late."""
    options = ["--frames", str(number)]
    _, stale, _, torn = relay(display, programs, both=options, produce=["--fault", "early"])
    expect(stale + torn > 0, "nothing stale where the producer does not wait")
    _, _, newer, torn = relay(display, programs, both=options, consume=["--fault", "early"])
    expect(newer + torn > 0, "nothing overwritten where the consumer does not wait")


def readers(display, programs, number=60):
    """Who reads the memory itself has three ways to wait; without, it sees what is not there yet."""
    options = ["--frames", str(number), "--linear", "--work", "400"]
    _, stale, _, torn = relay(display, programs, both=options, consume=["--reader", "none"])
    expect(stale + torn > 0, "nothing stale where nobody waits")
    for reader in "sync", "sync-file", "poll":
        seen = relay(display, programs, both=options, consume=["--reader", reader])
        expect(seen == (number, 0, 0, 0), f"{reader}: {seen}")


def ends(display, programs, number=6):
    """One side is killed at any moment: the other goes on with the buffers that both had, and ends well."""
    order = random.Random(20261125)
    for i in range(number):
        pair = start_pair(display, programs, both=["--frames", "65000", "--work", "20"])
        time.sleep(order.uniform(0, 1.2))
        killed, other = (pair, pair[::-1])[i % 2]
        killed.kill()
        said = other.communicate(timeout=PATIENCE)[0]
        expect(other.returncode == 0, f"{i}: {other.returncode} {said}")
        killed.communicate()
        display.running.clear()
    expect_nothing_left(display)
    frames(display, programs, 30)
    expect_nothing_left(display)


def compositor(display, programs, number=3):
    """weston, a client in it, or a viewer of the screen is killed at any moment: what can go on does, and nothing is left."""
    for program in "weston", "weston-simple-egl":
        need(program)
    order = random.Random(20261126)
    keeper = start_pair(display, programs, both=["--frames", "65000"])  # somebody else, whom nothing of it concerns
    for i in range(number):
        socket_name, picture = f"kill-{i}", f"{display.folder}/%d.png"
        seat = display.start(sys.executable, f"{KMS}/weston_seat.py", "weston", "--backend=drm-backend.so", "--idle-time=0",
                             "--continue-without-input", f"--socket={socket_name}", f"--log={display.folder}/weston.log")
        while not os.path.exists(f"{display.folder}/{socket_name}"):
            expect(seat.poll() is None, "weston does not start")
            time.sleep(0.02)
        client = display.start("weston-simple-egl", WAYLAND_DISPLAY=socket_name)
        viewer = subprocess.Popen([display.v3demu, "screen", "--png", picture, "--frames", "1000000"], env=display.environment,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        display.running.append(viewer)
        time.sleep(order.uniform(0, 1))
        with open(f"/proc/{seat.pid}/task/{seat.pid}/children", encoding="ascii") as children:
            victims = [client.pid, int(children.read().split()[0]), viewer.pid]
        for pid in order.sample(victims, 3):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # a client ends with its compositor
            time.sleep(order.uniform(0, 0.1))
            expect(all(program.poll() is None for program in keeper), f"{i}: a bystander ended")
        for program in seat, client, viewer:
            program.wait(PATIENCE)
            display.running.remove(program)
    for program in keeper:
        program.kill()
        program.communicate()
    expect_nothing_left(display)
    frames(display, programs, 30)


def window(display, programs, number=60):
    """From a client through Xwayland to another client; the compositor, who shows them, rests for a while amid."""
    need("Xwayland")
    display.environment["E2E_DEVICE"] = "V3D"
    weston = Weston(display)
    program = weston.start(f"{programs}/frame_window", "--frames", str(number))
    wait_until(lambda: draws(display, "frame_window"), display.status)
    weston.process.send_signal(signal.SIGSTOP)
    time.sleep(0.5)
    weston.process.send_signal(signal.SIGCONT)
    text = program.communicate(timeout=PATIENCE)[0]
    expect(re.search(rf"^{number} frames looked at, 0 stale, 0 torn", text, re.M), text)


TESTS = {test.__name__: test for test in (frames, linear, faults, readers, ends, compositor, window)}

if __name__ == "__main__":
    sys.exit(main(TESTS))
