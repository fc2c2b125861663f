#!/usr/bin/env python3
"""What the GPU reads of a pixmap that the X server has: DRI3's BufferFromPixmap gives a buffer of it."""
import os

from x11_client import Client

CREATE_PIXMAP, BUFFER_FROM_PIXMAP = 53, 3
WIDTH, HEIGHT, DEPTH = 70, 9, 24

x = Client(os.environ["DISPLAY"])
dri3 = x.extension("DRI3")
x.answer(dri3, 0, x.pack("II", 1, 2))
pixmap = x.new_id()
assert x.error(CREATE_PIXMAP, DEPTH, x.pack("IIHH", pixmap, x.root, WIDTH, HEIGHT)) == 0
reply = x.answer(dri3, BUFFER_FROM_PIXMAP, x.pack("I", pixmap))
assert reply[0] == 1 and reply[1] == 1, reply[:32]
size, stride = x.unpack("I", reply, 8), x.unpack("H", reply, 16)
assert stride >= 4 * WIDTH and size == stride * HEIGHT, reply[:32]
