"""Objects, mappings, descriptors and address spaces without end, and memory that changes under the daemon."""
import collections
import contextlib
import ctypes
import errno
import fcntl
import os
import socket
import threading
import time

import qpu_program
import v3d_drm

from . import board, drm, jobs, wire
from .assault import HUNG_UP, Unexpected, attack, raise_descriptors

OBJECTS = 100_000  # of a page each, which a kernel gives to one client
FILL = "tmuwt - ; ldunifrf.rf1\n mov tmud, 7\n mov tmua, rf1\n tmuwt -\nend\n"
F_ADD_SEALS, F_GET_SEALS, F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW = 1033, 1034, 1, 2, 4


# An object of which a submit takes the handle alone.
Named = collections.namedtuple("Named", "handle")


def create_until_refused(a, device, most, size=4096):
    handles = []
    with a.refusals():
        while a.going() and len(handles) < most:
            handles.append(device.create(size)[0])
    return handles


@attack(point=2, seconds=12, shared=False)
def many_objects(a):
    """As many small objects as it is given; a kernel gives 100,000."""
    device = a.device()
    handles = create_until_refused(a, device, OBJECTS)
    if len(handles) < OBJECTS and a.going() and a.plenty:
        raise Unexpected(f"only {len(handles)} objects of a page")
    for handle in handles[::2]:
        device.close_handle(handle)
    create_until_refused(a, device, OBJECTS, 8192)


@attack(point=2, seconds=6, processes=2, shared=False)
def objects_of_two(a):
    """Two clients share out what there is between them, in sizes that leave holes."""
    device = a.device()
    handles = []
    while a.going():
        with a.refusals():
            while a.going():
                handles.append(device.create(4096 << a.random.randrange(6))[0])
                if a.random.random() < 0.3:
                    device.close_handle(handles.pop(a.random.randrange(len(handles))))
        for handle in handles[::3]:
            device.close_handle(handle)
        handles = [handle for at, handle in enumerate(handles) if at % 3]


@attack(point=2, seconds=6, shared=False, boards=board.ALL)
def imports_everywhere(a):
    """Each of 600 objects in each of 200 nodes: mappings that no limit of one node counts."""
    raise_descriptors()
    device = a.device()
    fds = [device.export(handle) for handle in create_until_refused(a, device, 600)]
    nodes = []
    with a.refusals():
        while a.going() and len(nodes) < 200:
            nodes.append(a.device())
            for fd in fds:
                nodes[-1].import_fd(fd)
    a.hold()


@attack(point=5, seconds=4, processes=2, shared=False, boards=board.ALL)
def address_spaces(a):
    """A window of 4 GiB for each open node."""
    raise_descriptors()
    nodes = []
    while a.going() and len(nodes) < 4000:
        with a.refusals(errno.ENODEV):
            nodes.append(a.device())
            nodes[-1].create(4096)
    a.hold()


@attack(point=5, seconds=4, processes=2, shared=False, boards=board.ALL)
def exported_descriptors(a):
    """Syncobjs and sync_files as descriptors, each of which takes one of the daemon's."""
    raise_descriptors()
    device = a.device()
    syncobj = device.syncobj(flags=1)
    held = []
    with a.refusals():
        while a.going():
            held.append(device.export_syncobj(syncobj, flags=len(held) % 2))
    a.hold()


@attack(point=5, boards=board.ALL)
def many_handles(a):
    """Syncobjs without end."""
    device = a.device()
    with a.refusals():
        while a.going():
            device.syncobj()
    a.hold()


@attack(point=5)
def large_objects(a):
    """Every size from a page to the whole address space, all of them reserved and none touched."""
    device = a.device()
    while a.going():
        handles = []
        with a.refusals(errno.EINVAL):
            while a.going():
                handles.append(device.create(a.random.choice((1 << 20, 1 << 26, 1 << 30, (1 << 32) - 4096, 0xffffffff)))[0])
        for handle in handles:
            device.close_handle(handle)


@attack(point=7, seconds=6, shared=False)
def names_of_many(a):
    """Submits that name as many objects as it is given, all of which another of its nodes knows, too; by several threads."""
    raise_descriptors()
    device, other = a.device(), a.device()
    program = jobs.program(device, "end\n")
    shared = []
    with a.refusals():
        while a.going() and len(shared) < 30_000:
            handle, _ = device.create(4096)
            fd = device.export(handle)
            other.import_fd(fd)
            os.close(fd)
            shared.append(Named(handle))
    config = qpu_program.config(device, program, 1)

    def submit():
        with a.refusals():
            while a.going():
                device.submit_csd(config, [program, *shared])

    threads = [threading.Thread(target=submit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@attack(point=7, seconds=4, processes=2)
def sync_files_of_one_fence(a):
    """As many sync_files of one fence as it is given, which all go when it dies before the fence signals."""
    raise_descriptors()
    device = a.device()
    loop, syncobj = jobs.program(device, jobs.ENDLESS), device.syncobj()
    with a.refusals(errno.EINVAL):  # it ends by a reset
        while a.going():
            device.submit_csd(qpu_program.config(device, loop, 1), [loop], out_sync=syncobj)
            for _ in range(5_000):
                device.export_syncobj(syncobj, flags=1)


@attack(point=5, seconds=4)
def waits_for_many(a):
    """Jobs each of which waits for the jobs of hundreds of nodes, by the fences in one object that all of them know."""
    raise_descriptors()
    device = a.device()
    end = jobs.program(device, "end\n")
    fd = device.export(end.handle)
    nodes = []
    with a.refusals():
        while a.going() and len(nodes) < 300:
            nodes.append(a.device())
            loop = jobs.program(nodes[-1], jobs.ENDLESS)
            nodes[-1].submit_csd(qpu_program.config(nodes[-1], loop, 1), [loop, Named(nodes[-1].import_fd(fd))])
    with a.refusals():
        while a.going():
            device.submit_csd(qpu_program.config(device, end, 1), [end])


def use_import(device, program, fd, size):
    """Imports a descriptor and lets the GPU write its last page. Whether it was taken."""
    try:
        handle = device.import_fd(fd)
    except OSError as error:
        if error.errno not in (*drm.REFUSALS, errno.EINVAL):
            raise Unexpected(f"PRIME_FD_TO_HANDLE: {error}") from error
        return False
    # Its size would not be for ever.
    if not fcntl.fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK:
        raise Unexpected("memory is taken that can be cut")
    offset = device.ioctl(drm.READ_WRITE, 0x45, v3d_drm.GemClose(handle=handle)).pad  # GET_BO_OFFSET
    qpu_program.load(program, FILL, [offset + size - 4096])
    device.submit_csd(qpu_program.config(device, program, 1), [program])
    device.wait(program, 60)
    device.close_handle(handle)
    return True


@attack(point=8, seconds=3)
def seal_race(a):
    """Memory that is cut and sealed while the daemon looks at its seals and its size."""
    device = a.device()
    program = device.bo(qpu_program.SIZE)
    size = 1 << 16
    while a.going():
        fd = os.memfd_create("buffer", os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, size)
        delay = a.random.random() * 2e-4

        def cut(fd=fd, delay=delay):
            time.sleep(delay)
            os.ftruncate(fd, a.random.choice((0, 4096)))
            fcntl.fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

        thread = threading.Thread(target=cut)
        thread.start()
        for _ in range(3):
            use_import(device, program, fd, size)
        thread.join()
        use_import(device, program, fd, size)
        os.close(fd)


@attack(point=8)
def cut_objects(a):
    """Shrinks, grows and punches holes into the memory of an object while a job works on it."""
    libc = ctypes.CDLL(None, use_errno=True)
    device = a.device()
    program = device.bo(qpu_program.SIZE)
    while a.going():
        size = 4096 << a.random.randrange(5)
        handle, address = device.create(size)
        fd = device.export(handle)
        qpu_program.load(program, FILL, [address + size - 4096])
        device.submit_csd(qpu_program.config(device, program, 1), [program])
        for cut in (0, 4096, 1 << 20):
            try:
                os.ftruncate(fd, cut)
            except OSError as error:
                if error.errno not in (errno.EPERM, errno.EINVAL):
                    raise
        libc.fallocate64(fd, 3, ctypes.c_long(0), ctypes.c_long(size))  # PUNCH_HOLE | KEEP_SIZE
        device.wait(program, 60)
        os.close(fd)
        device.close_handle(handle)


def send_over_itself(fd, carried):
    try:
        with socket.socket(fileno=os.dup(fd)) as end:
            socket.send_fds(end, [b"x"], [carried])
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOTSOCK, errno.EDESTADDRREQ, errno.ENOTCONN):
            raise


@attack(point=3, seconds=3)
def own_descriptor(a):
    """DRM descriptors, syncobjs and sync_files sent over themselves and over each other, and over the connection that
    serves them, in requests that do not end."""
    device = a.device()
    loop = jobs.program(device, "end\n")
    syncobj = device.syncobj(flags=1)
    while a.going():
        descriptors = []
        with a.refusals():  # a connection in a queue of its own lives as long as its process, with all that it holds
            descriptors.append(a.device().fd)
            device.create(1 << 20)
            descriptors += [device.export_syncobj(syncobj), device.export_syncobj(syncobj, 1)]
        for fd in descriptors:
            for carried in descriptors:
                send_over_itself(fd, carried)
        with a.refusals(), contextlib.suppress(*HUNG_UP):
            connection = a.connection()
            connection.send(wire.message(wire.IOCTL, b"x", size=100), [*descriptors, connection.socket.fileno()])
            connection.close()
        with a.refusals():
            device.submit_csd(qpu_program.config(device, loop, 1), [loop])
        for fd in descriptors:
            os.close(fd)
