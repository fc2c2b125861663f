"""Processes that report rounds (victim.py, control.py), and what their latency says."""
import collections
import json
import math
import os
import subprocess
import sys
import threading
import time

from . import FOLDER

BOUND = 1.0  # seconds: the most that a victim's round may take beside any client
# On a machine that is itself slow, so many times what a round of the control takes beside the same attack, or a round of
# the victim without one. On an idle machine of two cores a victim's round takes 2 to 8 ms and the control's 1 ms.
SLOWNESS = 20
CONTROL_ROUND = 0.003  # seconds, beside a few others on two cores
HANG = 60.0  # seconds without an end of a round

Round = collections.namedtuple("Round", "at took")


def percentile(values, percent):
    """The nearest-rank one; 0 of nothing."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)] if ordered else 0.0


class Witness:
    """A child that reports rounds. slowness: so many rounds of others it takes for one. least_bound: seconds that a round
    may take on any machine."""

    def __init__(self, script, environment, arguments=(), name=None, slowness=1, least_bound=BOUND):
        self.name = name or os.path.splitext(script)[0]
        self.slowness, self.least_bound = slowness, least_bound
        self.wrong = None
        self._rounds, self._lock, self._closing = [], threading.Lock(), False
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [sys.executable, "-B", os.path.join(FOLDER, script), *arguments], env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.started = time.monotonic()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            said = json.loads(line)
            with self._lock:
                if "wrong" in said:
                    self.wrong = said["wrong"]
                else:
                    self._rounds.append(Round(said["at"], said["took"]))
        if not self._closing and self.wrong is None:
            self.wrong = "ended by itself: " + self.process.stderr.read()[-2000:]

    def rounds(self, begin=0.0, end=math.inf):
        """Those under way in a span of CLOCK_MONOTONIC."""
        with self._lock:
            return [r for r in self._rounds if r.at < end and r.at + r.took > begin]

    def count(self):
        with self._lock:
            return len(self._rounds)

    def took(self, begin=0.0, end=math.inf):
        return [r.took for r in self.rounds(begin, end)]

    def bound(self, control, alone):
        """Seconds, from the longest rounds of the control beside the attack and of this without it."""
        return max(self.least_bound, SLOWNESS * control, SLOWNESS * alone)

    def pids(self):
        """Its own and those of its children."""
        found = {self.process.pid}
        try:
            with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as file:
                found |= set(map(int, file.read().split()))
        except OSError:
            pass
        return found

    def slow(self):
        """How many times slower than an idle machine this one is, as far as a control says; at most 6."""
        return min(6.0, max(1.0, percentile(self.took(), 50) / CONTROL_ROUND))

    def silent(self):
        """Seconds since the last round ended."""
        with self._lock:
            last = self._rounds[-1] if self._rounds else None
        return time.monotonic() - (last.at + last.took if last else self.started)

    def wait_for(self, rounds, patience=HANG):
        """Whether so many more come; it is wrong when they do not."""
        want, until = self.count() + rounds, time.monotonic() + patience
        while self.count() < want and self.wrong is None and time.monotonic() < until:
            time.sleep(0.01)
        if self.count() < want and self.wrong is None:
            self.wrong = f"hangs: no round for {self.silent():.1f} s"
        return self.wrong is None

    def close(self):
        self._closing = True
        try:
            self.process.stdin.close()
            self.process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self._reader.join(5)
