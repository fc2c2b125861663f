"""An X client of bytes: whatever a test wants to send, and what comes back."""
import array
import os
import socket
import struct

PATIENCE = 60
QUERY_EXTENSION, GET_INPUT_FOCUS, NO_OPERATION, CREATE_WINDOW = 98, 43, 127, 1
BAD_REQUEST, BAD_VALUE, BAD_MATCH, BAD_DRAWABLE, BAD_ALLOC, BAD_LENGTH, BAD_IMPLEMENTATION = 1, 2, 8, 9, 11, 16, 17


class Gone(Exception):
    """The proxy has closed the connection."""


class Client:
    def __init__(self, display, order="<"):
        self.order = order
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(f"\0/tmp/.X11-unix/X{display.lstrip(':')}")
        self.sequence, self.events = 0, []
        self.descriptors = None  # a list keeps those that come
        self.socket.sendall(self.pack("BxHHHHxx", ord("l" if order == "<" else "B"), 11, 0, 0, 0))
        head = self.receive(8)
        assert head[0] == 1, head
        body = self.receive(4 * self.unpack("H", head, 6))
        self.next_id = self.unpack("I", body, 4)
        vendor, formats = self.unpack("H", body, 16), body[21]
        self.root = self.unpack("I", body, 32 + (vendor + 3 & ~3) + 8 * formats)

    def pack(self, form, *values):
        return struct.pack(self.order + form, *values)

    def unpack(self, form, data, at):
        return struct.unpack_from(self.order + form, data, at)[0]

    def receive(self, size):
        data = b""
        while len(data) < size:
            try:
                more, descriptors = socket.recv_fds(self.socket, size - len(data), 16)[:2]
            except ConnectionError as error:
                raise Gone from error
            if not more:
                raise Gone
            data += more
            if self.descriptors is not None:
                self.descriptors += descriptors
            else:
                for descriptor in descriptors:
                    os.close(descriptor)
        return data

    def new_id(self):
        self.next_id += 1
        return self.next_id

    def send(self, data, descriptors=()):
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        try:
            sent = self.socket.sendmsg([data], rights)
            self.socket.sendall(data[sent:])
        except ConnectionError as error:
            raise Gone from error

    def request(self, major, minor, body=b"", descriptors=()):
        """@return its sequence number"""
        body += b"\0" * (-len(body) % 4)
        self.send(self.pack("BBH", major, minor, 1 + len(body) // 4) + body, descriptors)
        self.sequence += 1
        return self.sequence & 0xffff

    def response(self):
        """The next error or reply; events are kept."""
        while True:
            packet = self.receive(32)
            kind = packet[0] & 0x7f
            if kind in (1, 35):
                packet += self.receive(4 * self.unpack("I", packet, 4))
            if kind < 2:
                return packet
            self.events.append(packet)

    def answer(self, major, minor, body=b"", descriptors=()):
        """Of a request that has a reply, that, or an error."""
        number = self.request(major, minor, body, descriptors)
        packet = self.response()
        assert self.unpack("H", packet, 2) == number, (packet, number)
        return packet

    def error(self, major, minor, body=b"", descriptors=()):
        """The code of the error that a request without a reply gets; 0: none."""
        number = self.request(major, minor, body, descriptors)
        code = 0
        barrier = self.request(GET_INPUT_FOCUS, 0)
        while (packet := self.response())[0] == 0:
            assert self.unpack("H", packet, 2) == number and packet[10] == major, (packet, number, major)
            code = packet[1]
        assert self.unpack("H", packet, 2) == barrier, (packet, barrier)
        return code

    def extension(self, name):
        reply = self.answer(QUERY_EXTENSION, 0, self.pack("Hxx", len(name)) + name.encode())
        assert reply[0] == 1 and reply[8] == 1, f"no {name}"
        return reply[9]

    def window(self, width=9, height=9):
        """One whose events of size and place are asked for."""
        window, override_redirect, event_mask, structure = self.new_id(), 1 << 9, 1 << 11, 1 << 17
        body = self.pack("IIhhHHHHIIII", window, self.root, 0, 0, width, height, 0, 1, 0, override_redirect | event_mask, 1,
                         structure)
        assert self.error(CREATE_WINDOW, 0, body) == 0
        return window

    def event(self, fits):
        """Waits for one."""
        while True:
            for number, event in enumerate(self.events):
                if fits(event):
                    return self.events.pop(number)
            self.answer(GET_INPUT_FOCUS, 0)
