"""Handles and descriptors of one buffer: between files, nodes and processes, dup'ed, inherited through fork and exec, and
received over a socket. Under `v3demu run`: handles_test.py; with an argument it is a child of itself."""
import fcntl
import mmap
import os
import socket
import struct
import subprocess
import sys

V3D, VC4 = "/dev/dri/renderD128", "/dev/dri/card1"
SIZE = 65536
O_RDWR_CLOEXEC = os.O_RDWR | os.O_CLOEXEC


def ioctl(node, request, layout, *values):
    argument = bytearray(struct.pack(layout, *values))
    fcntl.ioctl(node, request, argument)
    return struct.unpack(layout, argument)


def create(node):
    return ioctl(node, 0xC0106442, "IIII", SIZE, 0, 0, 0)[2]  # V3D_CREATE_BO


def create_dumb(node):
    return ioctl(node, 0xC02064B2, "IIIIIIQ", 64, 256, 32, 0, 0, 0, 0)[4]


def export(node, handle):
    return ioctl(node, 0xC00C642D, "IIi", handle, O_RDWR_CLOEXEC, -1)[2]


def take(node, fd):
    return ioctl(node, 0xC00C642E, "IIi", 0, 0, fd)[0]


def drop(node, handle):
    ioctl(node, 0x40086409, "II", handle, 0)


def same_buffer(one, other):
    return os.fstat(one).st_ino == os.fstat(other).st_ino and os.fstat(one).st_dev == os.fstat(other).st_dev


def memory(fd):
    return mmap.mmap(fd, SIZE, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)


def within_a_process(make, path, other_path):
    """From one node to the other and back."""
    node, other = os.open(path, os.O_RDWR), os.open(other_path, os.O_RDWR)
    handle = make(node)
    fd, again = export(node, handle), export(node, handle)
    assert same_buffer(fd, again) and os.lseek(fd, 0, os.SEEK_END) == SIZE
    assert take(node, fd) == handle and take(node, os.dup(again)) == handle
    imported = take(other, fd)
    assert take(other, again) == imported
    back = export(other, imported)
    assert same_buffer(back, fd) and take(node, back) == handle
    memory(fd)[7] = 42
    assert memory(back)[7] == 42
    # An import added no reference: one close, and the handle is gone; the other node's goes on.
    drop(node, handle)
    try:
        export(node, handle)
        raise AssertionError("a closed handle is exported")
    except FileNotFoundError:
        pass
    assert memory(export(other, imported))[7] == 42
    second = take(node, back)
    assert same_buffer(export(node, second), fd)
    return node


def child(inherited_node, inherited_fd, handle, number):
    """Another program, with a file and a buffer of its parent's, and both again by a socket."""
    link = socket.socket(fileno=number)
    _, (node, fd), _, _ = socket.recv_fds(link, 1, 2)
    assert same_buffer(fd, inherited_fd)
    for either in node, inherited_node:  # one file: one space of handles
        assert take(either, fd) == handle and take(either, inherited_fd) == handle
    own = os.open(V3D, os.O_RDWR)
    imported = take(own, fd)
    assert take(own, inherited_fd) == imported and same_buffer(export(own, imported), fd)
    assert memory(fd)[9] == 77
    memory(export(own, imported))[9] = 78
    link.send(b"seen")
    assert link.recv(1) == b""  # the parent has closed all of its
    drop(inherited_node, handle)
    assert memory(export(own, imported))[9] == 78
    print("child: fine")


def between_processes():
    node = os.open(V3D, os.O_RDWR)
    create(node)
    handle = create(node)
    fd = export(node, handle)
    memory(fd)[9] = 77
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    numbers = (node, fd, theirs.fileno())
    with subprocess.Popen([sys.executable, "-B", __file__, *map(str, (node, fd, handle, theirs.fileno()))],
                          pass_fds=numbers) as process:
        theirs.close()
        socket.send_fds(ours, [b"x"], [node, fd])
        assert ours.recv(4) == b"seen"
        assert memory(fd)[9] == 78
        os.close(node)
        os.close(fd)
        ours.close()
    assert process.returncode == 0, process.returncode


if __name__ == "__main__":
    if len(sys.argv) > 1:
        child(*map(int, sys.argv[1:]))
    else:
        within_a_process(create, V3D, VC4)
        within_a_process(create_dumb, VC4, V3D)
        within_a_process(create, V3D, V3D)
        between_processes()
        print("parent: fine")
