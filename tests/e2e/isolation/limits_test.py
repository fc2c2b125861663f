#!/usr/bin/env python3
"""What clients share cannot be used up: a client at a limit gets the kernel's errno there, another client notices nothing
at that very time, and everything is back when the greedy one is gone. Also when the host itself has no more.

usage: limits_test.py V3DEMUD                        runs everything against a daemon of its own
       limits_test.py --attack NAME SOCKET COUNT      one greedy client: prints the errno that it ran into, waits
"""
import array
import errno
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

from hostile.wire import (ADOPT, COMMAND, FD_IOCTL, HELLO, IOCTL, IOCTL_REPLY_BYTES, MAGIC, MMAP, OPEN, PROTOCOL,
                          ioctl_request)

CREATE_BO, GEM_CLOSE = 0xc0106442, 0x40086409
SYNCOBJ_CREATE, SYNCOBJ_WAIT, SYNCOBJ_HANDLE_TO_FD, SYNCOBJ_FD_TO_HANDLE = 0xc00864bf, 0xc02864c3, 0xc01864c1, 0xc01864c2
PERFMON_CREATE, PRIME_FD_TO_HANDLE = 0xc0286448, 0xc00c642e
RENDER_NODE = 128


class Refused(Exception):
    """An answer with an errno; 0 when the connection ended."""


class Client:
    """One control connection (ioctl/link/wire.h)."""

    def __init__(self, path):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(60)
        self.socket.connect(path)
        try:
            self.ask(HELLO, struct.pack("<Ii16s", PROTOCOL, os.getpid(), b"limits"))
        except OSError as error:
            raise Refused(0) from error

    def tell(self, op, payload, fds=(), claimed=None):
        header = struct.pack("<IIIi", MAGIC, op, len(payload) if claimed is None else claimed, 0)
        data = header + payload
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            sent = self.socket.sendmsg([data], control)
            self.socket.sendall(data[sent:])
        except BrokenPipeError:
            pass  # the answer says why

    def take(self, size):
        data, fds = b"", []
        while len(data) < size:
            part, control, _, _ = self.socket.recvmsg(size - len(data), socket.CMSG_SPACE(4 * 20))
            for _, kind, content in control:
                if kind == socket.SCM_RIGHTS:
                    fds += array.array("i", content[:len(content) // 4 * 4])
            if not part:
                raise Refused(0)
            data += part
        return data, fds

    def ask(self, op, payload, fds=()):
        self.tell(op, payload, fds)
        header, given = self.take(16)
        _, _, size, error = struct.unpack("<IIIi", header)
        data, more = self.take(size)
        if error:
            raise Refused(error)
        return data, given + more

    def open(self):
        data, fds = self.ask(OPEN, struct.pack("<Ii", RENDER_NODE, os.O_RDWR))
        return struct.unpack("<Q", data[:8])[0], fds[0]

    @staticmethod
    def payload(token, request, arg, segments=(), fds=()):
        numbers = (list(fds) + [0] * 16)[:16]
        head = ioctl_request(token, request, len(arg), len(segments), len(fds), numbers)
        return head + arg + b"".join(struct.pack("<QII", at, len(data), 1) + data for at, data in segments)

    def ioctl(self, token, request, arg, segments=(), fds=()):
        data, given = self.ask(IOCTL, self.payload(token, request, arg, segments, fds), fds)
        return data[IOCTL_REPLY_BYTES:IOCTL_REPLY_BYTES + len(arg)], given

    def create_bo(self, token, size=4096):
        return struct.unpack("<4I", self.ioctl(token, CREATE_BO, struct.pack("<4I", size, 0, 0, 0))[0])[2]

    def create_syncobj(self, token):
        return struct.unpack("<2I", self.ioctl(token, SYNCOBJ_CREATE, struct.pack("<2I", 0, 1))[0])[0]

    def export_sync_file(self, token, syncobj):
        return self.ioctl(token, SYNCOBJ_HANDLE_TO_FD, struct.pack("<2IiIQ", syncobj, 1, -1, 0, 0))[1][0]

    def status(self):
        return self.ask(COMMAND, b"status")[0].decode()


# --- what a greedy client does: each step takes more of something

def more_nodes(client):
    while True:
        yield client.open()


def more_spaces(client):
    while True:
        token, fd = client.open()
        client.create_bo(token)
        yield fd


def on_a_node(step):
    def steps(client):
        token, fd = client.open()
        while True:
            yield step(client, token), fd
    return steps


def more_sync_files(client):
    token, fd = client.open()
    syncobj = client.create_syncobj(token)
    while True:
        yield client.export_sync_file(token, syncobj), fd


def more_imports(client):
    """Memory of the client's own that the daemon keeps."""
    token, fd = client.open()
    while True:
        memory = os.memfd_create("import", os.MFD_ALLOW_SEALING)
        os.ftruncate(memory, 1 << 20)
        fcntl_add_seals(memory, 7)
        client.ioctl(token, PRIME_FD_TO_HANDLE, struct.pack("<IIi", 0, 0, memory), (), [memory])
        os.close(memory)
        yield fd


def fcntl_add_seals(fd, seals):
    import fcntl  # pylint: disable=import-outside-toplevel
    fcntl.fcntl(fd, 1033, seals)


def more_connections(client):
    while True:
        yield Client(client.path)


def more_unfinished(client, token, request, arg, segments=(), fds=()):
    """Requests that stop one byte short, until a whole one like them is not kept."""
    data = Client.payload(token, request, arg, segments, fds)
    while True:
        try:
            other = Client(client.path)
        except Refused:  # what was not yet counted when it was looked at fills the limit: nor is there room for a connection
            pass
        else:
            other.tell(IOCTL, data[:-1], fds, len(data))
            time.sleep(0.01)
            yield other
        try:
            client.ioctl(token, request, arg, segments, fds)
        except Refused as refused:
            if refused.args[0] not in (errno.ENOENT, errno.EINVAL):  # what is wrong with one that is kept
                raise


def more_unfinished_bytes(client):
    token, _fd = client.open()
    handles = b"\0" * (1 << 20)
    wait = struct.pack("<QqIIIIQ", 0x1000, 0, len(handles) // 4, 0, 0, 0, 0)
    yield from more_unfinished(client, token, SYNCOBJ_WAIT, wait, [(0x1000, handles)])


def more_unfinished_descriptors(client):
    token, _fd = client.open()
    null = [os.open("/dev/null", os.O_RDONLY) for _ in range(16)]
    yield from more_unfinished(client, token, PRIME_FD_TO_HANDLE, struct.pack("<IIi", 0, 0, null[0]), (), null)


ATTACKS = {
    "bos": (on_a_node(Client.create_bo), errno.ENOMEM),
    "bo-bytes": (on_a_node(lambda client, token: client.create_bo(token, 256 << 20)), errno.ENOMEM),
    "descriptors": (more_sync_files, errno.EMFILE),
    "open-nodes": (more_nodes, errno.EMFILE),
    "address-spaces": (more_spaces, errno.ENOMEM),
    "syncobjs": (on_a_node(Client.create_syncobj), errno.ENOMEM),
    "perfmons": (on_a_node(lambda client, token: client.ioctl(token, PERFMON_CREATE,
                                                              struct.pack("<2I32s", 0, 1, b""))), errno.ENOMEM),
    "mappings": (on_a_node(Client.create_bo), errno.ENOMEM),
    "imports": (more_imports, errno.ENOMEM),
    "connections": (more_connections, errno.ENOMEM),
    "request-bytes": (more_unfinished_bytes, errno.ENOMEM),
    "request-descriptors": (more_unfinished_descriptors, errno.EMFILE),
}

# Small enough to be reached soon; all but the one of the attack stay far away.
LIMITS = {"bos": "3000", "syncobjs": "3000", "perfmons": "3000", "open-nodes": "200", "address-spaces": "100",
          "bo-bytes": str(2 << 30), "connections": "300", "request-bytes": "16777216", "descriptors": "1000:4000"}
DAEMON_LIMITS = {name: {name: value} for name, value in LIMITS.items()}
DAEMON_LIMITS.update({"mappings": {"mappings": "2000:8000"}, "imports": {"bo-bytes": "67108864"},
                      "request-descriptors": {"descriptors": "600:4000"}})


def attack(name, path, count):
    """Greedy for ever; `count` processes are."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, max(8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    for _ in range(int(count) - 1):
        if os.fork() == 0:
            break
    held, error = [], None
    try:
        for thing in ATTACKS[name][0](Client(path)):
            held.append(thing)
    except Refused as refused:
        error = refused.args[0]
    os.write(1, f"{error} {len(held)}\n".encode())  # in one piece, beside others
    time.sleep(600)


class Daemon:
    def __init__(self, program, limits):
        self.folder = tempfile.TemporaryDirectory()
        self.path = self.folder.name + "/socket"
        self.log = open(self.folder.name + "/log", "w+b")
        options = [word for name, value in limits.items() for word in ("--limit", f"{name}={value}")]
        self.process = subprocess.Popen([program, "--foreground", "--socket", self.path, *options], stderr=self.log)
        while not os.path.exists(self.path):
            assert self.process.poll() is None
            time.sleep(0.01)

    def count(self):
        """Descriptors, mappings, threads, KiB of memory."""
        base = f"/proc/{self.process.pid}/"
        status = open(base + "status", encoding="ascii").read()
        with open(base + "maps", encoding="ascii") as maps:
            mappings = len(maps.readlines())
        return (len(os.listdir(base + "fd")), mappings, len(os.listdir(base + "task")),
                int(status.split("VmRSS:")[1].split()[0]))

    def check_idle(self, idle):
        """Everything is back, soon."""
        for _ in range(100):
            now = self.count()
            # Arenas of the allocator stay, empty; and the one thread that closes foreign descriptors, from the first of these on.
            if now[0] <= idle[0] and now[1] <= idle[1] + 80 and now[2] <= idle[2] + 1 and now[3] <= idle[3] + 12 * 1024:
                return now
            time.sleep(0.1)
        folder = f"/proc/{self.process.pid}/fd/"
        links = [os.readlink(folder + number) for number in os.listdir(folder)]
        sys.exit(f"not everything came back: {idle} before, {now} now (fds, maps, threads, KiB); open: {links}\n"
                 f"{self.text()[-2000:]}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def stop(self):
        assert self.process.poll() is None, f"the daemon ended: {self.text()[-3000:]}"
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(20) == 0

    def text(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")


def victim_round(path):
    """What a small program does. @return seconds of its slowest step"""
    slowest = 0.0

    def timed(call, *args):
        nonlocal slowest
        begin = time.monotonic()
        result = call(*args)
        slowest = max(slowest, time.monotonic() - begin)
        return result
    client = timed(Client, path)
    for _ in range(2):
        token, fd = timed(client.open)
        for _ in range(16):
            timed(client.create_bo, token, 65536)
        syncobjs = [timed(client.create_syncobj, token) for _ in range(16)]
        wait = struct.pack("<QqIIIIQ", 0x1000, 0, len(syncobjs), 1, 0, 0, 0)
        timed(client.ioctl, token, SYNCOBJ_WAIT, wait, [(0x1000, struct.pack("<16I", *syncobjs))])
        os.close(timed(client.export_sync_file, token, syncobjs[0]))
        os.close(fd)
    client.socket.close()
    return slowest


def run_attack(program, name, attackers):
    with Daemon(program, DAEMON_LIMITS.get(name, {})) as daemon:
        victim_round(daemon.path)
        time.sleep(0.3)
        idle = daemon.count()
        greedy = subprocess.Popen([sys.executable, "-B", __file__, "--attack", name, daemon.path, str(attackers)],
                                  stdout=subprocess.PIPE, text=True, start_new_session=True)
        try:
            held = []
            for _ in range(attackers):
                error, count = greedy.stdout.readline().split()
                held.append(int(count))
                if error != str(ATTACKS[name][1]):
                    sys.exit(f"{name}: the client got errno {error} after {count}\n{daemon.text()[-2000:]}")
            slowest = victim_round(daemon.path)
            high = daemon.count()
        finally:
            os.killpg(greedy.pid, signal.SIGKILL)
            greedy.wait()
        if slowest > 1:
            sys.exit(f"{name}: the other client waited {slowest:.2f} s")
        now = daemon.check_idle(idle)
        victim_round(daemon.path)
        daemon.stop()
    print(f"{name}: {held} held, errno {ATTACKS[name][1]}; fds, maps, threads, KiB: {idle} idle, {high} then, {now} after;"
          f" the other's slowest step took {slowest * 1000:.0f} ms", flush=True)


def run_without_memory(program):
    """The host gives the daemon no more memory: clients get ENOMEM, the daemon lives, and goes on when there is."""
    with Daemon(program, {}) as daemon:
        victim_round(daemon.path)
        client = Client(daemon.path)
        token, fd = client.open()
        refusals = 0
        for spare in (0, 1 << 12, 1 << 16, 1 << 20, 4 << 20):
            status = open(f"/proc/{daemon.process.pid}/status", encoding="ascii").read()
            size = int(status.split("VmSize:")[1].split()[0]) << 10
            resource.prlimit(daemon.process.pid, resource.RLIMIT_AS, (size + spare, resource.RLIM_INFINITY))
            for attempt in (lambda: Client(daemon.path), client.open, lambda: client.create_bo(token, 1 << 20),
                            lambda: [client.create_syncobj(token) for _ in range(5000)],
                            lambda: client.ioctl(token, SYNCOBJ_WAIT, struct.pack("<QqIIIIQ", 0x1000, 0, 1 << 19, 1, 0, 0, 0),
                                                 [(0x1000, b"\1\0\0\0" * (1 << 19))])):
                try:
                    attempt()
                except Refused as refused:
                    refusals += 1
                    if refused.args[0] not in (errno.ENOMEM, errno.EMFILE):
                        sys.exit(f"no memory: errno {refused.args[0]}\n{daemon.text()[-2000:]}")
            resource.prlimit(daemon.process.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            victim_round(daemon.path)
        if refusals < 3:
            sys.exit("the limit of memory was never felt")
        client.socket.close()
        os.close(fd)
        daemon.stop()
        print(f"no memory: {refusals} refusals, the daemon lives", flush=True)


def main():
    if sys.argv[1] == "--attack":
        attack(*sys.argv[2:])
        return
    names = sys.argv[2:] or [*ATTACKS, "no-memory"]
    for name in names:
        if name == "no-memory":
            run_without_memory(sys.argv[1])
        else:
            run_attack(sys.argv[1], name, 1)
    if not sys.argv[2:]:
        run_attack(sys.argv[1], "descriptors", 5)


if __name__ == "__main__":
    main()
