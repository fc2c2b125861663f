#!/usr/bin/env python3
"""A client of v3demu-x11 that breaks rules, in either byte order.

  attacks.py DISPLAY

Exit status: 0 each attack was answered as the protocol says, 1 not.
"""
import os
import random
import socket
import struct
import sys
import time

from x11_client import (BAD_ALLOC, BAD_DRAWABLE, BAD_IMPLEMENTATION, BAD_LENGTH, BAD_MATCH, BAD_REQUEST, BAD_VALUE,
                        GET_INPUT_FOCUS, NO_OPERATION, PATIENCE, QUERY_EXTENSION, Client, Gone)


def memory(size):
    descriptor = os.memfd_create("attack")
    os.ftruncate(descriptor, size)
    return descriptor


def versions(display):
    """Both byte orders are spoken."""
    for order in "<>":
        client = Client(display, order)
        for name in "DRI3", "Present":
            reply = client.answer(client.extension(name), 0, client.pack("II", 1, 2))
            assert (client.unpack("I", reply, 8), client.unpack("I", reply, 12)) == (1, 2), reply
        dri3, present, window = client.extension("DRI3"), client.extension("Present"), client.window()
        reply = client.answer(dri3, 6, client.pack("IBBxx", window, 24, 32))
        assert len(reply) == 48 and client.unpack("I", reply, 12) == 1 and client.unpack("Q", reply, 40) == 0, reply
        # A frame of the clock, as an event.
        context = client.new_id()
        assert client.error(present, 3, client.pack("III", context, window, 2)) == 0
        assert client.error(present, 2, client.pack("IIxxxxQQQ", window, 77, 0, 0, 0)) == 0
        while not client.events:
            client.answer(GET_INPUT_FOCUS, 0)
        event = client.events.pop(0)
        assert event[1] == present and client.unpack("I", event, 12) == context and client.unpack("I", event, 20) == 77, event


def wrong_values(display):
    client = Client(display)
    dri3, present, window = client.extension("DRI3"), client.extension("Present"), client.window()
    dead = client.new_id()
    assert client.answer(dri3, 1, client.pack("II", dead, 0))[:2] == bytes([0, BAD_DRAWABLE])
    assert client.error(dri3, 99) == BAD_REQUEST and client.error(present, 99) == BAD_REQUEST
    for minor in 3, 8:
        assert client.answer(dri3, minor, client.pack("I", dead))[:2] == bytes([0, BAD_DRAWABLE])
    assert client.answer(dri3, 5, client.pack("II", window, dead))[:2] == bytes([0, BAD_IMPLEMENTATION])
    assert client.error(present, 1, b"short") == BAD_LENGTH
    assert client.error(present, 3, client.pack("III", client.new_id(), dead, 7)) == BAD_DRAWABLE
    assert client.error(present, 2, client.pack("IIxxxxQQQ", window, 0, 0, 2, 2)) == BAD_VALUE
    # A pixmap's memory that is none of the GPU's, or that did not come; more than one plane; another layout.
    for descriptors, planes, modifier, code in [((memory(65536),), 1, 0, BAD_ALLOC), ((), 1, 0, BAD_VALUE),
                                                ((memory(65536),) * 4, 4, 0, BAD_VALUE), ((memory(65536),), 1, 7, BAD_VALUE)]:
        body = client.pack("IIBxxxHHIIIIIIIIBBxxQ", client.new_id(), window, planes, 64, 64, 256, 0, 0, 0, 0, 0, 0, 0, 24, 32,
                           modifier)
        assert client.error(dri3, 7, body, descriptors) == code, (planes, modifier)
    assert client.error(dri3, 4, client.pack("IIBxxx", window, client.new_id(), 0)) == BAD_MATCH


def truncated_fences(display):
    """The page of a fence goes while the proxy uses it."""
    client = Client(display)
    dri3, sync, window = client.extension("DRI3"), client.extension("SYNC"), client.window()
    page, fence = memory(4096), client.new_id()
    assert client.error(dri3, 4, client.pack("IIBxxx", window, fence, 0), [page]) == 0
    assert client.answer(sync, 18, client.pack("I", fence))[8] == 0
    assert client.error(sync, 15, client.pack("I", fence)) == 0
    assert client.answer(sync, 18, client.pack("I", fence))[8] == 1
    assert client.error(sync, 19, client.pack("I", fence)) == BAD_IMPLEMENTATION
    os.ftruncate(page, 0)
    assert client.error(sync, 16, client.pack("I", fence)) == BAD_MATCH  # an empty page is not triggered
    for minor in 15, 16:
        assert client.error(sync, minor, client.pack("I", fence)) == 0
    assert client.error(sync, 17, client.pack("I", fence)) == 0
    for _ in range(4):
        other = client.new_id()
        assert client.error(dri3, 4, client.pack("IIBxxx", window, other, 0), [memory(0)]) == 0
        assert client.error(sync, 15, client.pack("I", other)) == 0


def slow_to_close(display):
    """Connections whose last holder waits for a reader that there is none of; the others' answers do not."""
    client, other = Client(display), Client(display)
    dri3, window, linger = client.extension("DRI3"), client.window(), 10
    for minor, code in (4, BAD_MATCH), (7, BAD_ALLOC):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            end = socket.create_connection(listener.getsockname())
            reader = listener.accept()[0]
            end.setblocking(False)
            try:
                while True:
                    end.send(bytes(1 << 16))
            except BlockingIOError:
                end.setblocking(True)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, linger))
            body = client.pack("IIBxxx", window, client.new_id(), 0)
            if minor == 7:
                body = client.pack("IIBxxxHHIIIIIIIIBBxxQ", client.new_id(), window, 1, 64, 64, 256, 0, 0, 0, 0, 0, 0, 0, 24, 32, 0)
            client.request(dri3, minor, body, [end.fileno()])
            end.close()  # the proxy holds it, or will
            begin = time.monotonic()
            other.answer(GET_INPUT_FOCUS, 0)
            assert client.response()[1] == code
            other.answer(GET_INPUT_FOCUS, 0)
            assert time.monotonic() - begin < linger / 2
            reader.close()


def limits(display):
    client = Client(display)
    dri3, present, window, page = client.extension("DRI3"), client.extension("Present"), client.window(), memory(4096)
    codes = [client.error(dri3, 4, client.pack("IIBxxx", window, client.new_id(), 0), [page]) for _ in range(2050)]
    assert codes == [0] * 2048 + [BAD_ALLOC] * 2
    codes = [client.error(present, 3, client.pack("III", client.new_id(), window, 2)) for _ in range(1026)]
    assert codes == [0] * 1024 + [BAD_ALLOC] * 2
    far = 1 << 62
    codes = [client.error(present, 2, client.pack("IIxxxxQQQ", window, 0, far, 0, 0)) for _ in range(1026)]
    assert codes == [0] * 1024 + [BAD_ALLOC] * 2


def silence(display):
    """Requests to which the server says nothing, more than the proxy keeps in mind."""
    client = Client(display)
    dri3, sync, page = client.extension("DRI3"), client.extension("SYNC"), memory(4096)
    for _ in range(10000):
        fence = client.new_id()
        client.request(dri3, 4, client.pack("IIBxxx", client.root, fence, 0), [page])
        client.request(sync, 17, client.pack("I", fence))
    client.answer(GET_INPUT_FOCUS, 0)


def lengths(display):
    client = Client(display)
    dri3, big = client.extension("DRI3"), client.extension("BIG-REQUESTS")
    client.answer(big, 0)
    # Passed on as a whole, and refused as a whole.
    pixels = 1 << 20
    client.send(client.pack("BBHI", NO_OPERATION, 0, 0, 2 + pixels // 4) + bytes(pixels))
    client.send(client.pack("BBHI", dri3, 2, 0, 2 + pixels // 4) + bytes(pixels))
    client.sequence += 2
    assert client.response()[:2] == bytes([0, BAD_LENGTH])
    client.answer(GET_INPUT_FOCUS, 0)
    # 16 GiB that never come.
    client.send(client.pack("BBHI", dri3, 7, 0, 0xffffffff) + bytes(65536))
    client.socket.close()
    for bad in b"x" * 64, b"l" + b"\xff" * 11, b"", b"l":
        raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        raw.settimeout(PATIENCE)
        raw.connect(f"\0/tmp/.X11-unix/X{display.lstrip(':')}")
        raw.sendall(bad)
        raw.shutdown(socket.SHUT_WR)
        try:
            assert raw.recv(1) == b""
        except ConnectionError:
            pass
    client = Client(display)
    try:  # a length of zero
        client.send(bytes(4))
        client.response()
        assert False, "a request of no length is answered"
    except Gone:
        pass
    client = Client(display)
    try:
        for _ in range(8):
            client.send(client.pack("BBH", NO_OPERATION, 0, 1), [memory(0)] * 100)
        while True:
            client.answer(GET_INPUT_FOCUS, 0)
            client.send(client.pack("BBH", NO_OPERATION, 0, 1), [memory(0)] * 100)
    except Gone:
        pass


def deaf(display):
    """A client that asks and never reads makes the proxy keep no more than its limits."""
    client = Client(display)
    present, window = client.extension("Present"), client.window()
    client.error(present, 3, client.pack("III", client.new_id(), window, 2))
    client.socket.settimeout(0.5)
    request = client.pack("BBHIIxxxxQQQ", present, 2, 10, window, 0, 0, 0, 0)
    try:
        for _ in range(400):
            client.socket.sendall(request * 1000)
    except TimeoutError:
        pass
    client.socket.close()


def noise(display):
    """Requests of any kind, length and contents, with any descriptors."""
    order = random.Random(20261125)
    for round_number in range(12):
        client = Client(display, "<>"[round_number % 2])
        majors = [client.extension(name) for name in ("DRI3", "Present", "SYNC", "MIT-SHM")] + [QUERY_EXTENSION, 99, 54]
        window = client.window()
        try:
            for _ in range(150):
                words = order.choice([0, 1, 2, 3, 5, 9, 15, 17, 40, 300])
                values = [order.choice([window, client.root, 0, 1, 0xffffffff, order.getrandbits(32)]) for _ in range(words)]
                descriptors = [memory(order.choice([0, 4096]))] if order.random() < 0.2 else []
                client.request(order.choice(majors), order.randrange(20), client.pack(f"{words}I", *values), descriptors)
                for descriptor in descriptors:
                    os.close(descriptor)
            barrier = client.request(GET_INPUT_FOCUS, 0)
            while client.unpack("H", client.response(), 2) != barrier:
                pass
        except Gone:
            pass
        client.socket.close()


def main():
    (display,) = sys.argv[1:]
    for attack in versions, wrong_values, truncated_fences, slow_to_close, limits, silence, lengths, deaf, noise:
        print(attack.__name__, flush=True)
        attack(display)


if __name__ == "__main__":
    main()
