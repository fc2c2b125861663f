"""Jobs without end, too large, too many, and of the dead."""
import itertools
import os
import re
import signal
import socket
import time

import qpu_program

from . import board, garbage, lists, vc4_drm
from .assault import Unexpected, attack

ENDLESS = "here:\n b here\n nop\n nop\n nop\n"
# Ends, after a while: counts to the uniform in each of many workgroups.
LONG = """
    ldunifrf.rf5
    mov rf1, 0
again:
    add rf1, rf1, 1
    sub.pushz -, rf1, rf5
    b.anyna again
    nop
    nop
    nop
end
"""
IN_FLIGHT = 4
QUEUE_OF_THE_DEAD = 46
GRACE = 6.0  # seconds in which the jobs of a dead client are gone; the kernel gives them one


def program(device, text, uniforms=()):
    made = device.bo(qpu_program.SIZE)
    qpu_program.load(made, text, uniforms, device.version)
    return made


class Dispatches:
    """Jobs of a program that ends at once or never, in so many batches."""

    def __init__(self, device, endless, batches):
        self._device, self.bo = device, program(device, ENDLESS if endless else "end\n")
        self._config = qpu_program.config(device, self.bo, batches)

    def submit(self):
        self._device.submit_csd(self._config, [self.bo])

    def wait(self, seconds):
        self._device.wait(self.bo, seconds)


class Frames:
    """The same of frames, whose coordinate program it is."""

    def __init__(self, device, endless, _batches):
        self._device, self.bo = device, device.bo(4096)
        self._handles = [self.bo.handle, *(device.shader(vc4_drm.assembled(text)) for text in
                                           ("end", vc4_drm.ENDLESS if endless else "end"))]
        self._binning = vc4_drm.start(1, 1) + vc4_drm.draw_state(16) + vc4_drm.draw(vc4_drm.TRIANGLES, 3) + vc4_drm.FINISH

    def submit(self):
        self._device.submit(self._handles, 0, 16, self._binning, vc4_drm.record(1, 1, 2, 0), vc4_drm.UNIFORMS_OF_ENDLESS,
                            shader_rec_count=1)

    def wait(self, seconds):
        self._device.wait(self.bo, seconds)


def work(device, endless, batches=24):
    return (Frames if board.is_videocore() else Dispatches)(device, endless, batches)


@attack(point=4, boards=board.ALL)
def endless_compute(a):
    endless = work(a.device(), True)
    while a.going():
        for _ in range(IN_FLIGHT):
            endless.submit()
        endless.wait(300)


@attack(point=4)
def huge_compute(a):
    device = a.device()
    long = program(device, LONG, [1 << 20])
    while a.going():
        device.submit_csd(qpu_program.config(device, long, 1 << 16, grid=(1 << 8, 1 << 8, 1)), [long])
        device.wait(long, 600)


def submit_lists(a, make_bin, make_render):
    """Functions of the list's address that return its bytes."""
    device = a.device()
    commands, tiles = device.bo(1 << 16), device.bo(1 << 18)
    at = commands.address
    binning, rendering = make_bin(at), make_render(at + 0x4000)
    content = (binning.ljust(0x4000, b"\0") + rendering).ljust(0x8000, b"\0")
    commands.words[:0x2000] = memoryview(content).cast("I")
    while a.going():
        for _ in range(IN_FLIGHT):
            device.submit_cl([commands, tiles], (at, at + len(binning)), (at + 0x4000, at + 0x4000 + len(rendering)),
                             (tiles.address, 1 << 17, tiles.address + (1 << 17)))
        device.wait(commands, 300)


def endless_list(start):
    """A function of an address: the start, then a branch back to what follows it, over a packet that does nothing."""
    return lambda at: start + b"\x01" + lists.branch(at + len(start))


@attack(point=4)
def endless_render(a):
    submit_lists(a, lambda at: lists.empty_bin(64, 64), endless_list(lists.configure(256, 256, 7)))


@attack(point=4)
def endless_tiles(a):
    """A render list that makes progress for ever: it branches back over the tiles that it draws."""
    def make(at):
        generic = lists.generic_tile(at - 0x3000, 64)  # where nothing else is
        drawing = lists.render(64, 64, 7, at + 0x1000, len(generic))[:-1]  # without its end
        again = drawing[:-3] + b"\x01" + drawing[-3:] + lists.branch(at + len(drawing) - 3)
        return again.ljust(0x1000, b"\0") + generic

    submit_lists(a, lambda at: lists.empty_bin(64, 64), make)


@attack(point=4)
def endless_bin(a):
    submit_lists(a, endless_list(lists.start_binning(256, 256)), lambda at: lists.configure(64, 64, 1) + b"\x0d")


@attack(point=4)
def huge_tfu(a):
    """The largest conversions that there are, and larger ones."""
    device = a.device()
    image = device.bo(1 << 20)
    while a.going():
        for _ in range(IN_FLIGHT):
            side = a.random.choice((0x3fff, 0x4000, 0xffff))
            device.submit_tfu([image], icfg=a.random.choice((29, 31)) << 16, iia=image.address, ioa=image.address, iis=0,
                              ios=side << 16 | side, ioc=a.random.choice((0, 6)) << 12 | 0xffff << 16)
        device.wait(image, 600)


@attack(point=5, boards=board.ALL)
def job_flood(a):
    """More jobs than anybody waits for, after one without end."""
    device = a.device()
    short = work(device, False, 1)
    work(device, True).submit()
    for count in itertools.count():
        if not a.going() or count == 200_000:
            break
        with a.refusals():
            short.submit()
    a.hold()


def jobs_of(a, pid):
    """Jobs of a process that have not ended; None when it is not among those whom the status names."""
    row = re.search(r"^jobs (.*)", a.status(), re.M)[1]
    found = re.search(rf"\bpid {pid}\)? (\d+)", row)
    if found:
        return int(found[1])
    return None if row.endswith("...") else 0


@attack(point=4, seconds=20, shared=False, boards=board.ALL)
def queue_of_the_dead(a):
    """As under DRI3: a server opens the node and passes it on; the program is killed with a full queue."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        ours.close()
        fd = socket.recv_fds(theirs, 1, 1)[1][0]
        device = a.device(fd=fd)
        endless = work(device, True)
        for _ in range(QUEUE_OF_THE_DEAD):
            endless.submit()
        theirs.send(b".")
        time.sleep(60)
        os._exit(0)
    theirs.close()
    server_end = a.device()
    socket.send_fds(ours, [b"."], [server_end.fd])
    os.close(server_end.fd)
    ours.recv(1)
    queued = jobs_of(a, child)
    if queued is not None and queued < QUEUE_OF_THE_DEAD:
        raise Unexpected(f"{queued} of {QUEUE_OF_THE_DEAD} jobs are queued before their client is killed")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    a.counters.add("kills")
    killed = time.monotonic()
    while left := jobs_of(a, child):
        if time.monotonic() - killed > GRACE:
            raise Unexpected(f"{left} jobs are queued {GRACE:.0f} s after their client was killed")
        time.sleep(0.2)


@attack(point=4, seconds=3, processes=2, refused=True)
def garbage_jobs(a):
    device = a.device()
    while a.going():
        garbage.attack(device, a.random, 10, patience=2)
