"""What every attack is given, and the list of attacks."""
import collections
import contextlib
import mmap
import os
import random
import resource
import socket
import struct
import time

from . import board, drm, vc4_drm, wire

# What is counted, in the order of the counter file.
KINDS = ("ioctls", "captures", "kills", "forks", "exhaustions")

# run: called with an Assault. point: of the list in docs/security.md. seconds: in a short run; it ends by itself or is
# killed then. processes: so many at once. shared: other attacks may run beside it. root: it needs to be root. boards: on which
# it makes sense. charged: bytes of the daemon's memory that it is after and each of its processes may have. refused: whether
# it sends jobs that are refused; those of others would not reach what they are after then.
Attack = collections.namedtuple("Attack", "name group point run seconds processes shared root boards charged refused")
ATTACKS = {}
SHORTAGE = "HOSTILE_SHORTAGE"  # in the environment of attackers of a daemon that lacks something
UNDISTURBED = "HOSTILE_UNDISTURBED"  # in that of attackers that have all their time, and no other attack beside them


def attack(point, seconds=2.0, processes=1, shared=True, root=False, boards=(board.DEFAULT,), charged=0,
           refused=False):
    def add(run):
        group = run.__module__.rpartition(".")[2]
        ATTACKS[run.__name__] = Attack(run.__name__, group, point, run, seconds, processes, shared, root,
                                      frozenset(boards), charged, refused)
        return run
    return add


class Unexpected(Exception):
    """An answer that no client must get."""


class Counters:
    """Numbers in a file, which outlive the process that counts."""

    def __init__(self, path):
        size = 8 * len(KINDS)
        with open(path, "a+b") as file:
            file.truncate(size)
            self._map = mmap.mmap(file.fileno(), size)

    def add(self, kind, more=1):
        at = 8 * KINDS.index(kind)
        struct.pack_into("<Q", self._map, at, struct.unpack_from("<Q", self._map, at)[0] + more)

    @staticmethod
    def read(path):
        with open(path, "rb") as file:
            content = file.read().ljust(8 * len(KINDS), b"\0")  # empty when it died before it began
        return collections.Counter(dict(zip(KINDS, struct.unpack(f"<{len(KINDS)}Q", content))))


class Assault:
    def __init__(self, seed, seconds, counters):
        self.random = random.Random(seed)
        self.until = time.monotonic() + seconds
        self.counters = counters
        self.socket = os.environ.get("V3DEMU_SOCKET", "")
        self.plenty = SHORTAGE not in os.environ  # a healthy daemon gives what a kernel gives
        self.undisturbed = UNDISTURBED in os.environ  # what an attack is to reach it does

    def going(self):
        return time.monotonic() < self.until

    def hold(self):
        """Until somebody kills it or its time is over."""
        while self.going():
            time.sleep(0.05)

    def _ioctl(self):
        self.counters.add("ioctls")

    def device(self, path=drm.v3d_drm.RENDER, fd=None):
        return (vc4_drm if board.is_videocore() else drm).Device(path, self._ioctl, fd)

    def mailbox(self):
        """Of a Raspberry Pi 0 to 3, with the QPUs on."""
        mailbox = vc4_drm.Mailbox(self._ioctl)
        mailbox.enable()
        return mailbox

    def connection(self, greet=True):
        return wire.Connection(self.socket, greet, self._ioctl)

    def status(self):
        connection = self.connection()
        try:
            return connection.ask(wire.COMMAND, b"status").decode()
        finally:
            connection.close()

    @contextlib.contextmanager
    def refusals(self, *more):
        """Around what a limit may refuse; counts that it did."""
        try:
            yield
        except OSError as error:
            if error.errno not in (*drm.REFUSALS, *more):
                raise Unexpected(f"{error}, which is no answer of a limit") from error
            self.counters.add("exhaustions")


def raise_descriptors():
    """As many as the process may have; returns the number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 20000) if hard != resource.RLIM_INFINITY else 20000, hard))
    return max(soft, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


# That the daemon hung up is a fair answer to nonsense.
HUNG_UP = (BrokenPipeError, ConnectionResetError, ConnectionRefusedError, socket.timeout)
