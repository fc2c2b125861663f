"""Which cases each process gets, so that all workers end together.

A process of dEQP makes each group of which it has a case, which may take seconds, so cases stay in their order and processes get many. What these take is not known
before: some groups take a hundred times as long as others. So a worker that finds nothing left has the one that will go on for the longest give back
what it has not begun, and each gets a part of that.
"""
import collections
import math
import threading
import time

WORTH_SECONDS = 3  # what a share has to have left, so that starting other processes for it is worth it
RECENT = 16  # cases of a share by which this is told: neighbours take about as long


class Share:
    """Cases of one worker, whose processes tell how far they are."""

    def __init__(self, cases):
        self.cases = cases
        self.is_wanted = threading.Event()  # by others: no further case is to be begun
        self.num_begun = 0
        self.begins = collections.deque(maxlen=RECENT)  # of cases, in seconds

    def goes_on(self):
        """Asked as each case begins: whether that one is to be run. Where it is not, it and those after it are to be given back."""
        if self.is_wanted.is_set():
            return False
        self.num_begun += 1
        self.begins.append(time.monotonic())
        return True

    def left_seconds(self):
        """What could be given back will take so long, as far as can be told."""
        left = len(self.cases) - self.num_begun
        begins = list(self.begins)  # others ask
        return (time.monotonic() - begins[0]) / len(begins) * left if left > 0 and begins else 0


class Shares:
    """Thread safe."""

    def __init__(self, cases, largest, workers):
        rounds = math.ceil(len(cases) / (largest * workers))
        size = math.ceil(len(cases) / max(1, rounds * workers))
        self.waiting = collections.deque(cases[at:at + size] for at in range(0, len(cases), size or 1))  # cases of each share
        self.changed = threading.Condition()
        self.running = []
        self.num_idle = 0

    def take(self, is_over):
        """A share, or None: all cases are done, or is_over() says so, which is asked twice a second at least."""
        with self.changed:
            while not is_over() and (self.waiting or self.running):
                if self.waiting:
                    share = Share(self.waiting.popleft())
                    self.running.append(share)
                    return share
                self._ask()
                self.num_idle += 1
                self.changed.wait(0.5)
                self.num_idle -= 1
            return None

    def end(self, share, left):
        """A worker has done its share but for the cases that are left."""
        with self.changed:
            self.running.remove(share)
            # Every other case to each, as neighbours take about as long; the worker that gives them takes some, too.
            parts = min(self.num_idle + 1, len(left))
            self.waiting.extendleft(left[at::parts] for at in range(parts))
            self.changed.notify_all()

    def _ask(self):
        """For cases, unless a share is about to be given back already."""
        if any(share.is_wanted.is_set() for share in self.running):
            return
        slowest = max(self.running, key=Share.left_seconds)
        if slowest.left_seconds() >= WORTH_SECONDS:
            slowest.is_wanted.set()
