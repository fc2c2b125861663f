"""Requests that are unfinished, enormous, senseless or never listened to."""
import array
import contextlib
import errno
import os
import re
import select
import socket
import struct
import threading
import time

import v3d_drm

from . import ROOT, board, drm, wire
from .assault import HUNG_UP, Unexpected, attack, raise_descriptors

MEBIBYTE = 1 << 20
UNFINISHED = 20  # connections with a request of nearly the largest size
COPIES = 131_072
LINGERING = 200
ANSWER = 2.5  # seconds until whoever sends such a descriptor is answered; less than siege.GRACE


def push(connection, data, patience=0.5):
    """Sends as much as is taken; the number of bytes."""
    sent = 0
    connection.socket.setblocking(False)
    room = select.poll()  # select() takes no descriptors beyond 1023
    room.register(connection.socket, select.POLLOUT)
    while sent < len(data) and room.poll(patience * 1000):
        try:
            sent += connection.socket.send(data[sent:sent + MEBIBYTE])
        except BlockingIOError:
            continue
    return sent


@attack(point=6, seconds=8, shared=False, boards=board.ALL)
def unfinished_requests(a):
    """Twenty of nearly 64 MiB each, none of which ends."""
    size = wire.MAX_PAYLOAD - MEBIBYTE
    data = memoryview(wire.message(wire.IOCTL, os.urandom(MEBIBYTE) * (size // MEBIBYTE))[:-1])
    held = []
    for _ in range(UNFINISHED):
        if not a.going():
            break
        try:
            held.append(a.connection())
            push(held[-1], data)
        except OSError:
            a.counters.add("exhaustions")
    time.sleep(0.5)


@attack(point=5, seconds=3, processes=2, shared=False, boards=board.ALL)
def unfinished_descriptors(a):
    """As many descriptors as requests can hold, in requests that never end: 20,000 in both processes."""
    raise_descriptors()
    source = os.open("/dev/null", os.O_RDONLY)
    held = []
    for _ in range(10_000 // wire.MAX_FDS):
        if not a.going():
            break
        try:
            held.append(a.connection())
            held[-1].send(wire.message(wire.IOCTL, b"\0" * 8, size=4096), [source] * wire.MAX_FDS)
        except OSError:
            a.counters.add("exhaustions")
    a.hold()


@attack(point=5, seconds=3, processes=2, shared=False, boards=board.ALL)
def connection_flood(a):
    """Each of 3,000 connections takes a thread of the daemon."""
    raise_descriptors()
    held = []
    while a.going() and len(held) < 3000:
        try:
            held.append(a.connection(greet=len(held) % 2 == 0))
        except OSError:
            a.counters.add("exhaustions")
            time.sleep(0.01)
    a.hold()


@attack(point=5, seconds=3, shared=False, boards=board.ALL)
def knocks(a):
    """Connections through the descriptor of a node, as many as are taken: with and without a word, of kinds that are none, and
    some that lead to the node itself. Every other node is shut or talked to afterwards."""
    raise_descriptors()
    connection = a.connection()
    held = []
    turn = 0
    while a.going():
        turn += 1
        try:
            _, fd = connection.open()
            node = socket.socket(fileno=fd)
            node.setblocking(False)
            for kind in (socket.SOCK_STREAM, socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
                mine, theirs = socket.socketpair(socket.AF_UNIX, kind)
                socket.send_fds(node, [b"k"], [theirs.fileno()])
                theirs.close()
                if len(held) < 1000:
                    held.append(mine)
                if turn % 2:
                    mine.send(wire.message(wire.IOCTL, b"x", size=100))
            socket.send_fds(node, [b"k"], [node.fileno()])
            if turn % 4 == 1:
                node.shutdown(socket.SHUT_WR)
            elif turn % 4 == 3:
                node.send(b"words")
            node.close()
        except (OSError, *HUNG_UP):
            a.counters.add("exhaustions")
            time.sleep(0.01)
    a.hold()


def lingering(listener, seconds):
    """Both ends of a connection; the first closes when all that it holds was read, or after the seconds."""
    sender = socket.create_connection(listener.getsockname())
    receiver, _ = listener.accept()
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, seconds))
    sender.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            sender.send(bytes(MEBIBYTE))
    return sender, receiver


@attack(point=3, seconds=3)
def descriptors_that_linger(a):
    """Sockets whose close takes half a minute, where a BO is asked for and where no descriptor belongs. Who sends them is
    answered, or hung up on."""
    listener = socket.create_server(("127.0.0.1", 0))
    held = []
    while a.going() and len(held) < LINGERING:
        sender, receiver = lingering(listener, 30)
        held.append(receiver)
        with contextlib.suppress(*(error for error in HUNG_UP if error is not socket.timeout)):
            connection = a.connection()
            connection.socket.settimeout(ANSWER if a.undisturbed else 30)
            token, _ = connection.open()
            payload = wire.ioctl_payload(token, drm.READ_WRITE, drm.PRIME_FD_TO_HANDLE, drm.PrimeHandle(fd=0), num_fds=1)
            for op, content in ((wire.IOCTL, payload), (wire.COMMAND, b"status")):
                try:
                    # Behind another question, so that the daemon is the last that has it.
                    connection.send(wire.message(wire.COMMAND, b"status"))
                    connection.send(wire.message(op, content), [sender.fileno()])
                    # In a thread: should the daemon have been faster, it is this program that has to wait.
                    threading.Thread(target=sender.close, daemon=True).start()
                    connection.answer()
                    connection.answer()
                except socket.timeout as error:
                    raise Unexpected("no answer to who sends a socket that lingers") from error
                except OSError as error:
                    if isinstance(error, HUNG_UP):
                        raise
                sender, receiver = lingering(listener, 30)
                held.append(receiver)
        threading.Thread(target=sender.close, daemon=True).start()
    a.hold()


def version_argument():
    return drm.Version(name_len=1 << 20, name=0x10000, date_len=1 << 20, date=0x20000, desc_len=1 << 20, desc=0x30000)


@attack(point=7, boards=board.ALL)
def millions_of_segments(a):
    """Two million empty ones; then as many as are taken, adjoining and overlapping, written to and read from."""
    while a.going():
        for count, size in ((2_000_000, 0), (1 << 16, 1), (1 << 16, 64)):
            try:
                connection = a.connection()
                token, fd = connection.open()
                table = struct.pack("<QII", 0x10000, size, wire.OUT) * (count // 2)
                table += b"".join(struct.pack("<QII", 0x10000 + 16 * i, size, wire.OUT) for i in range(count // 2))
                payload = wire.ioctl_payload(token, v3d_drm.READ_WRITE, drm.VERSION, version_argument(),
                                             num_segments=count) + table
                connection.ask(wire.IOCTL, payload)
            except HUNG_UP:
                pass
            except OSError as error:
                if error.errno not in (errno.EPROTO, errno.EFAULT, errno.ENOMEM, errno.EINVAL, errno.E2BIG):
                    raise Unexpected(f"{error} for {count} segments") from error
            finally:
                connection.close()
            os.close(fd)


@attack(point=7, seconds=4, processes=2, boards=board.ALL)
def wait_on_copies(a):
    """SYNCOBJ_WAIT on 131,072 copies of one handle; the client does not stay for the answer."""
    connection = a.connection()
    token, _ = connection.open()
    made = connection.ioctl(token, v3d_drm.READ_WRITE, v3d_drm.SYNCOBJ_CREATE, v3d_drm.SyncobjCreate())
    handles = array.array("I", [made.handle]) * COPIES
    while a.going():
        address = 0x1000
        for flags in (0, drm.WAIT_ALL | drm.WAIT_FOR_SUBMIT, drm.WAIT_FOR_SUBMIT):
            waiter = a.connection()
            wait = drm.SyncobjWait(handles=address, count_handles=COPIES, timeout_ns=1 << 62, flags=flags)
            waiter.send(wire.message(wire.IOCTL, wire.ioctl_payload(
                token, v3d_drm.READ_WRITE, drm.SYNCOBJ_WAIT, wait, [(address, wire.IN, handles.tobytes())])))
            a.counters.add("ioctls")
            time.sleep(0.02)
            waiter.close()


@attack(point=6, processes=2, boards=board.ALL)
def unread_replies(a):
    """Asks on and on and never reads; the pieces of its requests come late."""
    held = []
    while a.going():
        try:
            connection = a.connection()
            token, _ = connection.open()
            held.append(connection)
            segments = [(0x10000 * i, wire.OUT, MEBIBYTE) for i in range(1, 4)]
            data = wire.message(wire.IOCTL, wire.ioctl_payload(token, v3d_drm.READ_WRITE, drm.VERSION, version_argument(),
                                                               segments))
            for at in range(0, len(data), 16):
                connection.send(data[at:at + 16])
            push(connection, data * 100, patience=0.01)
        except HUNG_UP:
            pass
        except OSError as error:
            if error.errno not in drm.REFUSALS:
                raise
            a.counters.add("exhaustions")
        for connection in held[:-50]:
            connection.close()
        held = held[-50:]


@attack(point=6, processes=2, boards=board.ALL)
def nonsense(a):
    """Bytes, operations, sizes and descriptors at random."""
    source = os.open("/dev/null", os.O_RDONLY)
    while a.going():
        connection = a.connection(greet=a.random.random() < 0.9)
        try:
            for _ in range(a.random.randrange(1, 10)):
                payload = a.random.randbytes(a.random.choice((0, 3, 16, 24, 100, 5000)))
                size = a.random.choice((None, None, None, 0, 1 << 20, 0xffffffff))
                data = bytearray(wire.message(a.random.randrange(10), payload, size))
                if a.random.random() < 0.2:
                    data[a.random.randrange(16)] ^= 1 << a.random.randrange(8)
                fds = [source, connection.socket.fileno()] * a.random.choice((0, 0, 1, 8))
                connection.send(bytes(data), fds)
                a.counters.add("ioctls")
                if a.random.random() < 0.5 and select.select([connection.socket], [], [], 0.01)[0]:
                    connection.socket.recv(1 << 16)
        except HUNG_UP:
            pass
        finally:
            connection.close()


def known_requests():
    """The request words that tests/fuzz knows, and of sync_file and dma-buf descriptors."""
    with open(os.path.join(ROOT, "tests", "fuzz", "ioctls.cc"), encoding="utf-8") as file:
        table = re.search(r"kRequests\[\] = \{(.*?)\}", file.read(), re.S).group(1)
    return [int(word, 16) for word in re.findall(r"0x[0-9a-f]{8}", table)]


FD_REQUESTS = (0xc0303e03, 0xc0383e04, 0x40103e05, 0x40086200, 0x40046201, 0xc0086202, 0x40086203)
WORDS = (0, 0, 1, 1, 2, 3, 4, 8, 16, 63, 64, 4096, 0xffffffff, 0x80000000, 0x7fffffff, 0xfffff000)
MEMORY, MEMORY_SIZE = 0x7000_0000_0000, 4096


def random_argument(random, size):
    """Words that a handle, a count, a flag, an address or a pointer may be."""
    words = []
    while 4 * len(words) < size:
        kind = random.randrange(10)
        if kind < 6:
            words.append(random.choice(WORDS))
        elif kind < 8:
            words.append(random.getrandbits(32))
        elif kind < 9:
            words.append(1 << random.randrange(32))
        else:
            address = MEMORY + 8 * random.randrange(64)
            if len(words) % 2:  # pointers are aligned
                words.append(0)
            words += [address & 0xffffffff, address >> 32]
    return struct.pack(f"<{len(words)}I", *words)[:size]


class Hoard:
    """Connections, nodes and objects for ioctls at random; all that a client of one thread has."""

    def __init__(self, a):
        self.a = a
        self.requests = known_requests()
        self.connection = None
        self.nodes = []
        self.fds = [os.open("/dev/null", os.O_RDONLY)]

    def connect(self):
        if self.connection:
            self.connection.close()
        self.connection = self.a.connection()
        self.connection.socket.settimeout(0.3)  # a wait is given up then
        while len(self.nodes) < 3:
            token, fd = self.connection.open((128, 0, 1)[len(self.nodes)])
            self.nodes.append(token)
            self.fds.append(fd)
            if len(self.nodes) < 3:
                for _ in range(8):
                    self.connection.ioctl(token, v3d_drm.READ_WRITE, v3d_drm.CREATE_BO, v3d_drm.CreateBo(size=4096))

    def call(self):
        """One ioctl. Descriptors that come with the answer are kept for later arguments, forty of them."""
        random = self.a.random
        on_fd = random.random() < 0.1
        request = random.choice(FD_REQUESTS if on_fd else self.requests)
        if random.random() < 0.03:
            request ^= 1 << random.randrange(32)
        size = request >> 16 & 0x3fff
        segments = [struct.pack("<QII", MEMORY, MEMORY_SIZE, wire.IN | wire.OUT) + random_argument(random, MEMORY_SIZE)]
        if random.random() < 0.1:
            segments *= random.randrange(4)
        fds = random.choices(self.fds, k=random.choice((0, 1, 1, 2)))
        token = random.choice(self.nodes) if random.random() < 0.98 else random.getrandbits(64)
        payload = wire.ioctl_request(token, request, size, len(segments), len(fds),
                                     [random.randrange(3) for _ in range(16)], random.choice((0, 0, 1, 2, 1 << 31)))
        payload += random_argument(random, size) + b"".join(segments)
        try:
            self.connection.ask(wire.FD_IOCTL if on_fd else wire.IOCTL, payload,
                                fds + [random.choice(self.fds)] if on_fd else fds)
        except HUNG_UP:
            self.connect()
        except OSError:
            pass  # refused; the next
        finally:
            self.fds += self.connection.fds
            self.connection.fds = []
        while len(self.fds) > 40:
            os.close(self.fds.pop(random.randrange(len(self.fds))))


@attack(point=5, seconds=3, processes=2)
def random_ioctls(a):
    hoard = Hoard(a)
    hoard.connect()
    while a.going():
        hoard.call()
