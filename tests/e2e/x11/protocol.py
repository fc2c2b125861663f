#!/usr/bin/env python3
"""DRI3 and Present of v3demu-x11, request by request, with buffers of the emulated GPU that this fills itself.

  v3demu run -- protocol.py

Exit status: 0 every answer, event and pixel was as the protocols say, 1 not.
"""
import ctypes
import mmap
import os
import re
import socket
import struct
import sys
import time
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "qpu_programs"))
from v3d_drm import READ_WRITE, U32, Device  # pylint: disable=wrong-import-position
from x11_client import (BAD_DRAWABLE, BAD_IMPLEMENTATION, BAD_LENGTH, BAD_MATCH, GET_INPUT_FOCUS,  # pylint: disable=wrong-import-position
                        PATIENCE, Client)

PUT_IMAGE, GET_IMAGE, COPY_AREA, CREATE_GC, MAP_WINDOW, CONFIGURE_WINDOW, FREE_PIXMAP, CREATE_PIXMAP = 72, 73, 62, 55, 8, 12, 54, 53
GRAB_SERVER, UNGRAB_SERVER = 36, 37
CONFIGURE_NOTIFY, GENERIC = 22, 35
PRESENT_CONFIGURE, PRESENT_COMPLETE, PRESENT_IDLE = 0, 1, 2
COPY, SKIP = 0, 2
ASYNC = 1
PRIME_HANDLE_TO_FD = 0x2d
WIDTH, HEIGHT, STRIDE = 24, 16, 128


class PrimeHandle(ctypes.Structure):
    _fields_ = [("handle", U32), ("flags", U32), ("fd", ctypes.c_int32)]


class Fence:
    """As libxshmfence keeps it: a word that is 1 when it is triggered."""

    def __init__(self, session, triggered=False):
        descriptor = os.memfd_create("fence")
        os.ftruncate(descriptor, 4096)
        self.memory = mmap.mmap(descriptor, 4096)
        self.id = session.x.new_id()
        x = session.x
        assert x.error(session.dri3, 4, x.pack("IIBxxx", session.x.root, self.id, triggered), [descriptor]) == 0
        os.close(descriptor)

    def triggered(self):
        return struct.unpack_from("i", self.memory)[0] == 1

    def trigger(self):
        struct.pack_into("i", self.memory, 0, 1)


class Picture:
    """A pixmap of the GPU: its pixels as this process sees them, and its id."""

    def __init__(self, session, width=WIDTH, height=HEIGHT):
        self.width, self.height = width, height
        self.buffer = session.device.bo(8192)
        dma_buf = session.device.ioctl(READ_WRITE, PRIME_HANDLE_TO_FD,
                                       PrimeHandle(handle=self.buffer.handle, flags=os.O_CLOEXEC | os.O_RDWR)).fd
        self.id, x = session.x.new_id(), session.x
        body = x.pack("IIBxxxHHIIIIIIIIBBxxQ", self.id, x.root, 1, width, height, STRIDE, 64, 0, 0, 0, 0, 0, 0, 24, 32, 0)
        assert x.error(session.dri3, 7, body, [dma_buf]) == 0
        os.close(dma_buf)

    def line(self, y):
        return (64 + y * STRIDE) // 4

    def fill(self, seed):
        for y in range(self.height):
            for x in range(self.width):
                self.buffer.words[self.line(y) + x] = seed << 16 | y << 8 | x

    def pixels(self):
        return [self.buffer.words[self.line(y) + x] & 0xffffff for y in range(self.height) for x in range(self.width)]


def expected(seed, width=WIDTH, height=HEIGHT):
    return [seed << 16 | y << 8 | x for y in range(height) for x in range(width)]


class Session:
    def __init__(self):
        self.x = x = Client(os.environ["DISPLAY"])
        self.dri3, self.present, self.sync = x.extension("DRI3"), x.extension("Present"), x.extension("SYNC")
        x.answer(self.dri3, 1, x.pack("II", x.root, 0))  # its descriptor is thrown away: one more way to leak
        self.device = Device("/dev/dri/renderD128")
        self.window = x.window(WIDTH, HEIGHT)
        self.gc, self.context = x.new_id(), x.new_id()
        assert x.error(CREATE_GC, 0, x.pack("III", self.gc, self.window, 0)) == 0
        assert x.error(MAP_WINDOW, 0, x.pack("I", self.window)) == 0
        assert x.error(self.present, 3, x.pack("III", self.context, self.window, 7)) == 0

    def image(self, drawable, width=WIDTH, height=HEIGHT):
        x = self.x
        reply = x.answer(GET_IMAGE, 2, x.pack("IhhHHI", drawable, 0, 0, width, height, 0xffffffff))
        assert reply[0] == 1, reply
        return [word & 0xffffff for word in struct.unpack_from(f"<{width * height}I", reply, 32)]

    def show(self, picture, serial, update=0, place=(0, 0), wait=0, idle=0, options=0, target=0):
        x = self.x
        return x.error(self.present, 1, x.pack("IIIIIhhIIIIxxxxQQQ", self.window, picture.id, serial, 0, update, *place, 0,
                                               wait, idle, options, target, 0, 0))

    def told(self, kind, serial, window=None):
        """The event of that kind and serial number."""
        def fits(event):
            return (event[0] == GENERIC and event[1] == self.present and self.x.unpack("H", event, 8) == kind
                    and self.x.unpack("I", event, 16) == (window or self.window) and self.x.unpack("I", event, 20) == serial)
        return self.x.event(fits)

    def completed(self, serial):
        """How, and in which frame."""
        event = self.told(PRESENT_COMPLETE, serial)
        return event[11], self.x.unpack("Q", event, 32)


def pictures(session):
    """What is presented is what the buffer holds: all of it, a part, somewhere else."""
    picture, fence = Picture(session), Fence(session)
    picture.fill(1)
    assert session.show(picture, 100, idle=fence.id) == 0
    assert session.completed(100)[0] == COPY
    idle = session.told(PRESENT_IDLE, 100)
    assert session.x.unpack("I", idle, 24) == picture.id and session.x.unpack("I", idle, 28) == fence.id, idle
    assert fence.triggered()
    assert session.image(session.window) == expected(1)
    # A region, whose id the client uses for another one at once.
    x = session.x
    xfixes, region = x.extension("XFIXES"), x.new_id()
    x.answer(xfixes, 0, x.pack("II", 5, 0))
    assert x.error(xfixes, 5, x.pack("IhhHHhhHH", region, 2, 3, 4, 5, 10, 0, 100, 2)) == 0
    picture.fill(2)
    assert session.show(picture, 101, update=region) == 0
    x.error(xfixes, 11, x.pack("IhhHH", region, 0, 0, 99, 99))
    session.completed(101)
    new = {(a, b) for a in range(2, 6) for b in range(3, 8)} | {(a, b) for a in range(10, WIDTH) for b in range(2)}
    shown = [(2 if (i % WIDTH, i // WIDTH) in new else 1) << 16 | pixel & 0xffff for i, pixel in enumerate(expected(0))]
    assert session.image(session.window) == shown
    picture.fill(3)
    assert session.show(picture, 102, place=(5, -2)) == 0
    session.completed(102)
    moved = [3 << 16 | (i // WIDTH + 2) << 8 | i % WIDTH - 5 if i % WIDTH >= 5 and i // WIDTH < HEIGHT - 2 else pixel
             for i, pixel in enumerate(shown)]
    assert session.image(session.window) == moved


def frames(session):
    """Targets are kept, of several pictures for one frame the last is shown, and an interval of 0 waits for none."""
    picture, other = Picture(session), Picture(session)
    picture.fill(4)
    other.fill(5)
    assert session.show(picture, 200) == 0
    now = session.completed(200)[1]
    begin = time.monotonic()
    far = now + 12
    for serial, one in (201, picture), (202, other):
        assert session.show(one, serial, target=far) == 0
    assert session.completed(201) == (SKIP, far)
    mode, shown = session.completed(202)
    assert mode == COPY and shown >= far, (mode, shown, far)
    assert time.monotonic() - begin > 0.1, "12 frames in no time"
    assert session.image(session.window) == expected(5)
    for serial in range(203, 209):  # in order
        assert session.show(picture, serial) == 0
    frames_of = [session.completed(serial)[1] for serial in range(203, 209)]
    assert frames_of == sorted(frames_of)
    assert session.show(other, 210, target=frames_of[-1] + 10000) == 0
    assert session.show(picture, 211, options=ASYNC) == 0
    assert session.completed(211)[0] == COPY
    assert session.image(session.window) == expected(4)  # not after the one that waits


def fences(session):
    """A picture waits for its fence; and SYNC's requests act when their turn has come."""
    picture, wait, idle = Picture(session), Fence(session), Fence(session)
    assert session.show(picture, 299) == 0
    session.completed(299)
    picture.fill(6)
    assert session.show(picture, 300, wait=wait.id, idle=idle.id, options=ASYNC) == 0
    time.sleep(0.05)
    session.x.answer(GET_INPUT_FOCUS, 0)
    assert not idle.triggered() and session.image(session.window) != expected(6)
    picture.fill(7)
    wait.trigger()
    session.completed(300)
    assert idle.triggered() and session.image(session.window) == expected(7)
    x = session.x
    assert x.error(session.sync, 16, x.pack("I", idle.id)) == 0 and not idle.triggered()
    assert x.error(session.sync, 16, x.pack("I", idle.id)) == BAD_MATCH
    assert x.error(session.sync, 15, x.pack("I", idle.id)) == 0 and idle.triggered()


def copies(session):
    """CopyArea and GetImage see what the buffer holds; what CopyArea writes, the buffer gets."""
    x, picture = session.x, Picture(session)
    picture.fill(8)
    assert session.image(picture.id) == expected(8)
    picture.fill(9)
    fence = Fence(session)
    x.request(COPY_AREA, 0, x.pack("IIIhhhhHH", picture.id, session.window, session.gc, 0, 0, 0, 0, WIDTH, HEIGHT))
    x.request(session.sync, 15, x.pack("I", fence.id))
    deadline = time.monotonic() + 60
    while not fence.triggered() and time.monotonic() < deadline:
        time.sleep(0.001)
    assert session.image(session.window) == expected(9)
    # From the window into a part of the picture, and beyond it.
    body = b"".join(struct.pack("<I", word) for word in expected(10))
    assert x.error(PUT_IMAGE, 2, x.pack("IIHHhhBBxx", session.window, session.gc, WIDTH, HEIGHT, 0, 0, 0, 24) + body) == 0
    assert x.error(COPY_AREA, 0, x.pack("IIIhhhhHH", session.window, picture.id, session.gc, 0, 0, 20, 10, 9, 9)) == 0
    pixels = picture.pixels()
    for i, pixel in enumerate(expected(9)):
        column, row = i % WIDTH - 20, i // WIDTH - 10
        right = 10 << 16 | row << 8 | column if column >= 0 and row >= 0 else pixel
        assert pixels[i] == right, (i, hex(pixels[i]), hex(right))


def grabs(session):
    """A client that has grabbed the server waits for nothing, and its picture comes with the end of the grab."""
    x, picture = session.x, Picture(session)
    assert session.show(picture, 500) == 0
    session.completed(500)
    picture.fill(12)
    assert x.error(GRAB_SERVER, 0) == 0
    assert session.show(picture, 501, options=ASYNC) == 0
    assert x.error(COPY_AREA, 0, x.pack("IIIhhhhHH", picture.id, session.window, session.gc, 0, 0, 0, 0, 1, 1)) == 0
    assert x.error(UNGRAB_SERVER, 0) == 0
    session.completed(501)
    assert session.image(session.window) == expected(12)


def sizes(session):
    """Present's clients hear of a new size before those of the core protocol do, and once."""
    x = session.x
    for turn in range(1, 30):
        width = WIDTH + turn % 2
        x.error(CONFIGURE_WINDOW, 0, x.pack("IHxxI", session.window, 4, width))
        x.event(lambda event, width=width: event[0] == CONFIGURE_NOTIFY and x.unpack("H", event, 20) == width)
        sizes_told = [x.unpack("H", event, 24) for event in x.events
                      if event[0] == GENERIC and x.unpack("H", event, 8) == PRESENT_CONFIGURE]
        assert sizes_told == [width], (turn, width, sizes_told)
        x.events = [event for event in x.events if event[0] != GENERIC]
    x.error(CONFIGURE_WINDOW, 0, x.pack("IHxxI", session.window, 4, WIDTH))


def take_buffer(session, pixmap, minor=8):
    """The memory of a pixmap, and where its rows begin."""
    x = session.x
    x.descriptors = []
    reply = x.answer(session.dri3, minor, x.pack("I", pixmap))
    assert reply[:2] == b"\1\1", reply
    (descriptor,), x.descriptors = x.descriptors, None
    if minor == 3:
        size, width, height, stride, depth, bits = struct.unpack_from("<IHHHBB", reply, 8)
        assert size == stride * height
        offset = 0
    else:
        width, height, modifier, depth, bits = struct.unpack_from("<HH4xQBB", reply, 8)
        stride, offset = struct.unpack_from("<II", reply, 32)
        assert modifier == 0
    assert (width, height, depth, bits) == (WIDTH, HEIGHT, 24, 32), reply
    memory = mmap.mmap(descriptor, os.fstat(descriptor).st_size)
    os.close(descriptor)
    return memory, [offset + y * stride for y in range(HEIGHT)]


def exports(session):
    """A pixmap of the server gets a buffer that shows the same, and is the same one for whoever asks again."""
    x, pixmap = session.x, session.x.new_id()
    assert x.error(CREATE_PIXMAP, 24, x.pack("IIHH", pixmap, x.root, WIDTH, HEIGHT)) == 0
    body = b"".join(struct.pack("<I", word) for word in expected(13))
    assert x.error(PUT_IMAGE, 2, x.pack("IIHHhhBBxx", pixmap, session.gc, WIDTH, HEIGHT, 0, 0, 0, 24) + body) == 0
    for minor in 3, 8:
        memory, rows = take_buffer(session, pixmap, minor)
        for y, row in enumerate(rows):
            for column in range(WIDTH):
                at = row + 4 * column
                pixel = struct.unpack_from("<I", memory, at)[0] & 0xffffff
                assert pixel == (13 if minor == 3 else 14) << 16 | y << 8 | column, (minor, column, y, hex(pixel))
                struct.pack_into("<I", memory, at, 14 << 16 | y << 8 | column)
    assert session.image(pixmap) == expected(14)
    assert x.error(COPY_AREA, 0, x.pack("IIIhhhhHH", pixmap, session.window, session.gc, 0, 0, 0, 0, WIDTH, HEIGHT)) == 0
    assert session.image(session.window) == expected(14)
    assert session.show(types.SimpleNamespace(id=pixmap), 600) == 0 and session.completed(600)[0] == COPY
    picture = Picture(session)
    picture.fill(15)
    memory, rows = take_buffer(session, picture.id)
    assert rows[0] == 64 and struct.unpack_from("<I", memory, rows[1])[0] & 0xffffff == 15 << 16 | 1 << 8
    assert x.error(FREE_PIXMAP, 0, x.pack("I", pixmap)) == 0
    assert x.answer(session.dri3, 8, x.pack("I", pixmap))[:2] == bytes([0, BAD_DRAWABLE])
    # What the server draws into a window comes to no buffer.
    composite, named = x.extension("Composite"), x.new_id()
    x.answer(composite, 0, x.pack("II", 0, 4))
    assert x.error(composite, 1, x.pack("IBxxx", session.window, 0)) == 0
    assert x.error(composite, 6, x.pack("II", session.window, named)) == 0
    assert x.answer(session.dri3, 8, x.pack("I", named))[:2] == bytes([0, BAD_IMPLEMENTATION])


def freed(session):
    """A picture whose pixmap is freed is shown all the same; then its memory goes."""
    picture = Picture(session)
    picture.fill(11)
    assert session.show(picture, 400) == 0
    assert session.x.error(FREE_PIXMAP, 0, session.x.pack("I", picture.id)) == 0
    assert session.completed(400)[0] == COPY and session.image(session.window) == expected(11)


def put_image(x, pixmap, gc, width, height):
    return x.pack("IIHHhhBBxx", pixmap, gc, width, height, 0, 0, 0, 24)


def image_memory(session):
    """Bytes that the proxy has in common with the server for images of clients."""
    pid = struct.unpack("iii", session.x.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        ranges = re.findall(r"^(\w+)-(\w+) .*v3demu-x11 image", maps.read(), re.M)
    return sum(int(end, 16) - int(begin, 16) for begin, end in ranges)


def images(session):
    """Large ones go by memory, and look and fail like those that go by the socket."""
    x, width, height = session.x, 200, 120
    pixmap = x.new_id()
    assert x.error(CREATE_PIXMAP, 24, x.pack("IIHH", pixmap, x.root, width, height)) == 0
    def words(seed):
        return struct.pack(f"<{width * height}I", *expected(seed, width, height))

    seed = 0
    for order in "<>":
        client = Client(os.environ["DISPLAY"], order)
        head = put_image(client, pixmap, session.gc, width, height)
        for _ in range(4):
            seed += 1
            assert client.error(PUT_IMAGE, 2, head + words(seed)) == 0
            assert session.image(pixmap, width, height) == expected(seed, width, height), seed
        assert image_memory(session) > 0
        dead = put_image(client, client.new_id(), session.gc, width, height)
        assert client.error(PUT_IMAGE, 2, dead + words(0)) == BAD_DRAWABLE
        assert client.error(PUT_IMAGE, 2, head + words(0)[:-4]) == BAD_LENGTH
        # One that goes away at once; its last image is seen.
        seed += 1
        client.request(PUT_IMAGE, 2, head + words(seed))
        client.socket.close()
        end = time.monotonic() + PATIENCE
        while session.image(pixmap, width, height) != expected(seed, width, height):
            assert time.monotonic() < end, seed


def many_images(session):
    """More memory than there is for images: the others go by the socket."""
    most, side, clients = 1 << 28, 2000, []
    x, pixmap = session.x, session.x.new_id()
    assert x.error(CREATE_PIXMAP, 24, x.pack("IIHH", pixmap, x.root, side, side)) == 0
    for seed in range(1, 11):
        client = Client(os.environ["DISPLAY"])
        clients.append(client)
        client.answer(client.extension("BIG-REQUESTS"), 0)
        body = put_image(client, pixmap, session.gc, side, side) + bytes([seed, 2, 3, 0]) * side * side
        for _ in range(3):
            client.send(client.pack("BBHI", PUT_IMAGE, 2, 0, 2 + len(body) // 4) + body)
            client.sequence += 1
            assert client.answer(GET_INPUT_FOCUS, 0)[0] == 1
        reply = x.answer(GET_IMAGE, 2, x.pack("IhhHHI", pixmap, 0, side - 2, side, 2, 0xffffffff))
        assert set(struct.unpack_from(f"<{2 * side}I", reply, 32)) == {seed | 2 << 8 | 3 << 16}, seed
        assert image_memory(session) <= most
    assert image_memory(session) > most - (1 << 25)
    for client in clients:
        client.socket.close()
    end = time.monotonic() + PATIENCE
    while image_memory(session) != 0:
        assert time.monotonic() < end


def main():
    for test in pictures, frames, fences, copies, grabs, sizes, exports, freed, images, many_images:
        print(test.__name__, flush=True)
        test(Session())


if __name__ == "__main__":
    main()
