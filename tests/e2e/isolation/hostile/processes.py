"""Clients that fork, die and multiply."""
import os
import random
import signal
import threading
import time

from . import board, drm, jobs
from .assault import Unexpected, attack

STORM = 8  # children at once, each with a family


def child_of_storm(a, device, seed):
    """Works on what it inherited and on a node of its own, until it is killed or ends in the middle."""
    random_source = random.Random(seed)
    own = a.device()
    work = jobs.work(own, random_source.random() < 0.5, 4)
    forks = 2  # of one child; more, and the host itself runs out of processes
    for _ in range(random_source.randrange(1, 30)):
        work.submit()
        device.create(4096)
        time.sleep(random_source.random() * 0.02)  # what is tried is the daemon, not the host's scheduler
        if forks and random_source.random() < 0.2:
            forks = forks - 1 if os.fork() else 0


def storm(a, violent):
    device = a.device()
    children = {}
    while a.going():
        while len(children) < STORM:
            pid = os.fork()
            if pid == 0:
                os.setpgid(0, 0)
                signal.alarm(20)
                try:
                    child_of_storm(a, device, a.random.getrandbits(32))
                finally:
                    os._exit(0)
            a.counters.add("forks")
            a.random.random()
            children[pid] = time.monotonic()
        time.sleep(a.random.random() * 0.03)
        for pid in a.random.sample(list(children), a.random.randrange(len(children))):
            if violent:
                _end(pid, a)
            if os.waitpid(pid, os.WNOHANG)[0]:
                _end(pid, a)
                del children[pid]
    for pid in children:
        _end(pid, a)
        os.waitpid(pid, 0)


def _end(pid, a):
    try:
        os.killpg(pid, signal.SIGKILL)
        a.counters.add("kills")
    except ProcessLookupError:
        pass


@attack(point=12, seconds=4, boards=board.ALL)
def fork_storm(a):
    storm(a, violent=False)


@attack(point=12, seconds=4, boards=board.ALL)
def kill_storm(a):
    storm(a, violent=True)


@attack(point=5, seconds=3, boards=board.ALL)
def thread_storm(a):
    """Forty threads on one node: each has a connection of its own."""
    device = a.device()
    short = jobs.work(device, False, 2)
    problems = []

    def work():
        try:
            while a.going():
                handle, _ = device.create(8192)
                short.submit()
                short.wait(60)
                device.close_handle(handle)
        except OSError as error:
            if error.errno not in drm.REFUSALS:
                problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise Unexpected(f"in one of forty threads: {problems[0]}")
