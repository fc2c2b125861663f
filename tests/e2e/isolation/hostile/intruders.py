"""Other users, daemons that are none, and pointers that lead nowhere."""
import array
import ctypes
import errno
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

import v3d_drm

from . import board, drm, wire
from .assault import HUNG_UP, Unexpected, attack

STRANGER = 65534  # nobody


def as_user(uid, work):
    """Runs work() in a child of another user; its exit status."""
    child = os.fork()
    if child == 0:
        status = 99
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            status = work() or 0
        except Unexpected as problem:
            print(problem, file=sys.stderr, flush=True)
            status = 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@attack(point=1, root=True, boards=board.ALL)
def other_user(a):
    """Connects although the folder was opened to all; asks for nodes, status and the daemon's end."""
    folder = os.path.dirname(a.socket)
    door = os.open(folder, os.O_RDONLY)

    def close_to_all():
        """As the daemon makes them; an attacker that was killed may have left them open."""
        os.chmod(folder, 0o700)
        os.chmod(a.socket, 0o600)

    def intrude():
        for op, payload in ((wire.OPEN, struct.pack("<Ii", 128, 2)), (wire.COMMAND, b"status"), (wire.COMMAND, b"shutdown")):
            for greet in (True, False):
                try:
                    connection = wire.Connection(a.socket, greet)
                    connection.ask(op, payload)
                    raise Unexpected(f"another user's request {op} is answered")
                except (OSError, AssertionError):
                    pass

    def locked_out():
        try:
            wire.Connection(a.socket)
        except PermissionError:
            return
        raise Unexpected("another user reaches the socket")

    while a.going():
        fcntl.flock(door, fcntl.LOCK_EX)  # there may be several of these attackers
        close_to_all()
        problems = [as_user(STRANGER, locked_out)]
        try:
            os.chmod(folder, 0o755)
            os.chmod(a.socket, 0o666)
            problems.append(as_user(STRANGER, intrude))
        finally:
            close_to_all()
            fcntl.flock(door, fcntl.LOCK_UN)
        if any(problems):
            raise Unexpected("see above")
        time.sleep(0.05)


OPEN_NODE = """
import errno, os, sys
try:
    os.open("/dev/dri/renderD128", os.O_RDWR)
except OSError as error:
    sys.exit(0 if error.errno in (errno.ENODEV, errno.ENOENT, errno.ENXIO, errno.EACCES, errno.EPERM) else str(error))
sys.exit("the node opens")
"""


def serve_until(listener, until):
    """Takes connections; the bytes that came."""
    got = b""
    listener.settimeout(0.05)
    while time.monotonic() < until:
        try:
            connection, _ = listener.accept()
            connection.settimeout(0.5)
            got += connection.recv(4096)
        except (socket.timeout, ConnectionResetError):
            pass
    return got


@attack(point=1, root=True, seconds=3, boards=board.ALL)
def pretender(a):
    """Another user owns the folder in /tmp that a program without XDG_RUNTIME_DIR looks for, and serves a socket there."""
    owner = STRANGER
    uid = 200_000 + a.random.randrange(100_000)
    while os.path.exists(folder := f"/tmp/v3demu-{uid}"):
        uid += 1
    python = shutil.which("python3", path="/usr/bin:/bin")
    library = os.environ.get("LD_PRELOAD", "")
    if not python or not library:
        return
    with tempfile.TemporaryDirectory(prefix="v3demu-pretender-") as public:
        # The library where that user can read it.
        os.chmod(public, 0o755)
        shim = shutil.copy(library, os.path.join(public, "libv3demu.so"))
        os.chmod(shim, 0o755)
        os.mkdir(folder, 0o755)
        try:
            with socket.socket(socket.AF_UNIX) as listener:
                as_user_path = os.path.join(folder, "socket")
                listener.bind(as_user_path)
                os.chmod(as_user_path, 0o777)
                os.chown(as_user_path, owner, owner)
                os.chown(folder, owner, owner)
                listener.listen(8)

                def open_node():
                    environment = {"LD_PRELOAD": shim, "PATH": "/usr/bin:/bin", "V3DEMU_DAEMON": "/bin/false"}
                    done = subprocess.run([python, "-c", OPEN_NODE], env=environment, capture_output=True, text=True,
                                          check=False)
                    if done.returncode:
                        raise Unexpected("in a folder of another user: " + done.stderr)
                child = os.fork()
                if child == 0:
                    os._exit(as_user(uid, open_node))
                got = serve_until(listener, time.monotonic() + 2)
                status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                if got or status:
                    raise Unexpected(f"a program talks to another user's socket: {got[:40]}, exit status {status}")
        finally:
            shutil.rmtree(folder)


VICTIM_OF_REPLIES = """
import ctypes, fcntl, os, sys
sys.path.insert(0, sys.argv[1])
from hostile import drm
memory = ctypes.create_string_buffer(b"#" * 4096, 4096)
fd = os.open("/dev/dri/renderD128", os.O_RDWR)
for _ in range(3):
    version = drm.Version(name_len=16, name=ctypes.addressof(memory) + 1024)
    try:
        fcntl.ioctl(fd, drm.request(3, drm.VERSION, version), version, True)
    except OSError:
        pass
content = memory.raw
if content[:1024].strip(b"#") or content[1040:].strip(b"#"):
    sys.exit("memory outside of the segments was written")
"""


def pretend(listener, random_source, until):
    """A daemon of the same user whose replies lie."""
    listener.settimeout(0.05)
    while time.monotonic() < until:
        try:
            connection, _ = listener.accept()
        except socket.timeout:
            continue
        connection.settimeout(1)
        ends = []
        try:
            while True:
                magic, op, size, _ = struct.unpack("<IIIi", connection.recv(16, socket.MSG_WAITALL))
                payload = connection.recv(size, socket.MSG_WAITALL) if size else b""
                reply, fds = lie(op, payload, random_source, ends)
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
                connection.sendmsg([struct.pack("<IIIi", magic, op, len(reply), 0) + reply], rights)
        except (OSError, struct.error):
            connection.close()
        for end in ends:
            end.close()


def lie(op, payload, random_source, ends):
    """A reply and its descriptors: honest but to ioctls."""
    if op == wire.HELLO:
        return struct.pack("<IiII", wire.PROTOCOL, os.getpid(), 71, 0), []
    if op == wire.OPEN:
        ends += socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return struct.pack("<QIIII", 1, 128, 0, 0, 0), [ends[-1].fileno()]
    if op != wire.IOCTL:
        return b"", []
    name, = struct.unpack_from("<Q", payload, 88 + 24)  # of the argument
    argument = payload[88:88 + 64]
    count = random_source.randrange(1, 5)
    writes = b""
    for _ in range(count):
        offset, size = random_source.choice(((16, 8), (-8, 16), (8, 16), (-1024, 100), (0, 1 << 10), (2000, 64)))
        writes += struct.pack("<QII", name + offset, size, 0) + b"!" * size
    patches = [struct.pack("<QII", name + 64, 1, 0), struct.pack("<QII", 1 << 12, 0, 0)][:random_source.randrange(3)]
    return struct.pack("<IIII", len(argument), count, len(patches), 0) + argument + writes + b"".join(patches), []


@attack(point=1, seconds=3, boards=board.ALL)
def wild_replies(a):
    """A daemon that answers with writes outside of what was asked for."""
    # Its owner clears the folder away; under the preload library no program sees what lies in there.
    folder = tempfile.mkdtemp(prefix="liar-", dir=os.path.dirname(a.socket))
    with socket.socket(socket.AF_UNIX) as listener:
        path = os.path.join(folder, "socket")
        listener.bind(path)
        listener.listen(8)
        environment = dict(os.environ, V3DEMU_SOCKET=path)
        children = [subprocess.Popen([sys.executable, "-B", "-c", VICTIM_OF_REPLIES,  # pylint: disable=consider-using-with
                                      os.path.dirname(os.path.dirname(os.path.abspath(__file__)))], env=environment,
                                     stderr=subprocess.PIPE, text=True) for _ in range(2)]
        pretend(listener, a.random, min(a.until, time.monotonic() + 2.5))
        for child in children:
            try:
                _, text = child.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                child.kill()
                raise Unexpected("a program waits for ever for a daemon that hung up") from None
            if child.returncode:
                raise Unexpected(f"a program believes a daemon's lies: {text[-500:]}, exit status {child.returncode}")


# Calls with a pointer that leads nowhere, as functions of libc and the pointer; each has to give EFAULT.
BAD_POINTERS = {
    "access": lambda c, p: c.access(p, 0), "open": lambda c, p: c.open(p, 0), "creat": lambda c, p: c.creat(p, 0),
    "openat": lambda c, p: c.openat(-100, p, 0), "readlink": lambda c, p: c.readlink(p, p, 10),
    "faccessat": lambda c, p: c.faccessat(-100, p, 0, 0), "stat": lambda c, p: c.stat(p, p),
    "lstat": lambda c, p: c.lstat(p, p), "fstatat": lambda c, p: c.fstatat(-100, p, p, 0),
    "statx": lambda c, p: c.statx(-100, p, 0, 0, p), "statfs": lambda c, p: c.statfs(p, p),
    "stat of a node": lambda c, p: c.stat(b"/dev/dri/card0", p),
    "readlink of a node": lambda c, p: c.readlink(b"/sys/class/drm/card0", p, 10),
}


@attack(point=9)
def bad_pointers(a):
    """In paths, results, arguments of ioctls and behind their pointers."""
    libc = ctypes.CDLL(None, use_errno=True)
    device = a.device()
    while a.going():
        bad = ctypes.c_void_p(a.random.choice((1, 8, 4095, 0x7000_0000_0000, (1 << 64) - 4096, (1 << 64) - 1, 1 << 63)))
        for name, call in BAD_POINTERS.items():
            ctypes.set_errno(0)
            if call(libc, bad) != -1 or ctypes.get_errno() != errno.EFAULT:
                raise Unexpected(f"{name} at {bad.value:#x}: errno {ctypes.get_errno()}")
        check_ioctls(a, libc, device, bad.value)


def check_ioctls(a, libc, device, bad):
    for number, make in ((drm.VERSION, lambda: drm.Version(name_len=10, name=bad)),
                         (drm.SYNCOBJ_WAIT, lambda: drm.SyncobjWait(handles=bad, count_handles=2)),
                         (drm.SUBMIT_CL, lambda: drm.SubmitCl(bo_handles=bad, bo_handle_count=3))):
        try:
            device.ioctl(v3d_drm.READ_WRITE, number, make())
            raise Unexpected(f"ioctl {number:#x} with a pointer to {bad:#x} succeeds")
        except OSError as error:
            if error.errno != errno.EFAULT:
                raise Unexpected(f"ioctl {number:#x} with a pointer to {bad:#x}: {error}") from error
    ctypes.set_errno(0)
    a.counters.add("ioctls")
    request = drm.request(v3d_drm.READ_WRITE, v3d_drm.CREATE_BO, v3d_drm.CreateBo())
    if libc.ioctl(device.fd, ctypes.c_ulong(request), ctypes.c_void_p(bad)) != -1 or ctypes.get_errno() != errno.EFAULT:
        raise Unexpected(f"ioctl with its argument at {bad:#x}: errno {ctypes.get_errno()}")


@attack(point=11, processes=2, refused=True)
def log_storm(a):
    """Mistakes of every kind as fast as they can be made: each is worth a line of the log."""
    device = a.device()
    image = device.bo(4096)
    while a.going():
        for _ in range(20):
            try:
                device.submit_tfu([image], icfg=a.random.getrandbits(32), iia=0x10, ioa=0x10, ios=0x00010001,
                                  ioc=a.random.getrandbits(32))
            except OSError:
                pass
            device.submit_cl([image], (image.address, image.address + 64), (image.address, image.address + 64))
        try:
            connection = a.connection(greet=a.random.random() < 0.5)
            connection.send(wire.message(77, b"nonsense"))
            connection.close()
        except HUNG_UP:
            pass
        device.wait(image, 60)
