"""The protocol between preload library and daemon, spoken without the library: also badly (ioctl/link/wire.h)."""
import array
import ctypes
import os
import re
import socket
import struct

from . import ROOT, drm

with open(os.path.join(ROOT, "ioctl", "link", "wire.h"), encoding="utf-8") as _file:
    _header = _file.read()


def _constant(name):
    """Of wire.h, where the one truth is."""
    text = re.search(rf"\b{name} =\s+(0x[0-9a-f]+|\d+)u?(?: << (\d+))?", _header)
    return int(text.group(1), 0) << int(text.group(2) or 0)


MAGIC, PROTOCOL, MAX_PAYLOAD, MAX_FDS = map(_constant, ("kMagic", "kProtocol", "kMaxPayload", "kMaxFds"))
HELLO, OPEN, ADOPT, IOCTL, FD_IOCTL, MMAP, COMMAND, FIRMWARE = map(
    _constant, ("kHello", "kOpen", "kAdopt", "kIoctl", "kFdIoctl", "kMmap", "kCommand", "kFirmware"))
IN, OUT = 1, 2
RENDER_MINOR = 128


def message(op, payload=b"", size=None):
    """size: what the header claims instead of the payload's."""
    return struct.pack("<IIIi", MAGIC, op, len(payload) if size is None else size, 0) + payload


class Connection:
    """A control connection."""

    def __init__(self, path, greet=True, counter=lambda: None):
        self._counter = counter
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(20)
        try:
            self.socket.connect(path)
            if greet:
                self.ask(HELLO, struct.pack("<Ii16s", PROTOCOL, os.getpid(), b"hostile"))
        except OSError:
            self.socket.close()
            raise

    def close(self):
        self.socket.close()

    def send(self, data, fds=()):
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        sent = self.socket.sendmsg([data], rights)
        if sent < len(data):
            self.socket.sendall(data[sent:])

    def receive(self, size):
        data = b""
        while len(data) < size:
            more, rights, _, _ = self.socket.recvmsg(size - len(data), 1024)
            if not more:
                raise ConnectionResetError("the daemon closed the connection")
            data += more
            for level, kind, content in rights:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    self.fds += array.array("i", content[:len(content) & ~3])
        return data

    def ask(self, op, payload=b"", fds=()):
        """The reply's payload; its descriptors are in self.fds. An OSError of the errno in the reply."""
        self.send(message(op, payload), fds)
        return self.answer()

    def answer(self):
        """As ask(), to what was sent before."""
        self._counter()
        self.fds = []
        magic, _, size, error = struct.unpack("<IIIi", self.receive(16))
        assert magic == MAGIC
        self.payload = self.receive(size)
        if error:
            raise OSError(error, os.strerror(error))
        return self.payload

    def open(self, minor=RENDER_MINOR):
        """Token and descriptor."""
        token, = struct.unpack_from("<Q", self.ask(OPEN, struct.pack("<Ii", minor, os.O_RDWR)))
        return token, self.fds[0]

    def ioctl(self, token, direction, number, argument, segments=(), fds=()):
        self.ask(IOCTL, ioctl_payload(token, direction, number, argument, segments, len(fds)), fds)
        out = self.payload[IOCTL_REPLY_BYTES:IOCTL_REPLY_BYTES + ctypes.sizeof(argument)]
        ctypes.memmove(ctypes.addressof(argument), out, len(out))
        return argument


IOCTL_REPLY_BYTES = struct.calcsize("<6I")


def ioctl_request(token, request, arg_size, num_segments, num_fds, fd_numbers=range(16), sync_file_of=0):
    return struct.pack("<QIIII16iII", token, request, arg_size, num_segments, num_fds, *fd_numbers, sync_file_of, 0)


def ioctl_payload(token, direction, number, argument, segments=(), num_fds=0, num_segments=None):
    """segments: (address, flags, bytes or size)."""
    parts = [ioctl_request(token, drm.request(direction, number, argument), ctypes.sizeof(argument),
                           len(segments) if num_segments is None else num_segments, num_fds), bytes(argument)]
    for address, flags, content in segments:
        size = len(content) if flags & IN else content
        parts.append(struct.pack("<QII", address, size, flags))
        if flags & IN:
            parts.append(content)
    return b"".join(parts)
