"""Attacks on what only a Raspberry Pi 0 to 3 has: frames that the kernel checks, purgeable memory, sequence numbers, the
firmware's mailbox and the registers behind /dev/mem."""
import array
import contextlib
import os
import struct
import threading
import time

from . import board, expensive, vc4_drm, wire
from .assault import Unexpected, attack
from .jobs import IN_FLIGHT
from .vc4_drm import READ_WRITE, U32, U64

FIRMWARE_CALLS = 9  # FirmwareCall of ioctl/link/firmware.h
MAP_REGISTERS, WRITE_REGISTER = 7, 8
SRQPC, SRQUA, SRQCS = 0x430, 0x434, 0x43c
QPUS = 12
# Of a second in milliseconds, and as much as a word holds.
TIMEOUTS = (0, 1, 1000, 0xffffffff)

# Reads a word in each lane's page, on and on, of pages of which none is mapped. Uniforms: the first page, bytes to the next.
UNMAPPED_READS = """
    mov r1, uni
    mov r2, uni
    load_imm r3, nop, 12
    mov r0, elem
    shl r0, r0, r3
    add r0, r0, r1
again:
""" + 50 * """
    add r0, r0, r2
    mov tmu0_s, r0
    load_tmu0
""" + "branch again\nnop\nnop\nnop\nend\n"
# Stores 128 rows of 128 words to as many pages, each time elsewhere.
UNMAPPED_STORES = """
    mov r1, uni
    mov r2, uni
    load_imm vw_setup, nop, 0x80004000
    load_imm vw_setup, nop, 0xc000ffff
again:
    mov vw_addr, r1
    add r1, r1, r2
    branch again
    nop
    nop
    nop
    end
"""


@attack(point=4, processes=2, boards=(board.VIDEOCORE,))
def endless_stages(a):
    """Programs without end in each stage of a frame."""
    device = a.device()
    image, vertices = device.bo(4 * 64 * 64), device.bo(4096)
    vertices.words[:3] = memoryview(array.array("I", [0, 4096, 4096 << 16]))
    texts = (vc4_drm.FRAGMENT.format(7), vc4_drm.VERTEX, vc4_drm.COORDINATE)
    while a.going():
        for stage in range(3):
            programs = [device.shader(vc4_drm.assembled(vc4_drm.ENDLESS if n == stage else text)) for n, text in enumerate(texts)]
            binning = vc4_drm.start(1, 1) + vc4_drm.draw_state(64) + vc4_drm.draw(vc4_drm.TRIANGLES, 3) + vc4_drm.FINISH
            seqno = device.submit([image.handle, *programs, vertices.handle], 0, 64, binning, vc4_drm.record(1, 2, 3, 4),
                                  vc4_drm.UNIFORMS_OF_ENDLESS, shader_rec_count=1)
            for handle in programs:
                device.close_handle(handle)
        device.wait_seqno(seqno, 300)


def run_everywhere(a, text, uniforms):
    """A user program on all QPUs, again and again."""
    mailbox = a.mailbox()
    memory = vc4_drm.Memory(mailbox, 1 << 16)
    code = memory.put(0, vc4_drm.assembled(text))
    pairs = [(memory.put(0x8000 + 0x100 * qpu, uniforms(qpu)), code) for qpu in range(QPUS)]
    while a.going():
        mailbox.execute(memory, pairs, 1000)


@attack(point=4, processes=2, boards=(board.VIDEOCORE,))
def unmapped_reads(a):
    """User programs each instruction of which reads sixteen unmapped pages: a signal and a mapping of the host for each."""
    run_everywhere(a, UNMAPPED_READS, lambda qpu: [a.random.randrange(1 << 31) & ~0xfff, 1 << 16])


@attack(point=4, processes=2, boards=(board.VIDEOCORE,))
def unmapped_stores(a):
    """The longest transfers from the VPM, with strides, to unmapped pages."""
    run_everywhere(a, UNMAPPED_STORES, lambda qpu: [a.random.randrange(1 << 31) & ~0xfff, 1 << 24])


LONG_PROGRAM, PROGRAMS = 20_000, 60  # words of one, which is run to its end once
CHARGED = 8 << 20  # bytes of them, at least


@attack(point=5, seconds=5, shared=False, boards=(board.VIDEOCORE,))
def decoded_programs(a):
    """Frames with many programs, all of which are kept decoded while the last one does not end."""
    device = a.device()
    image, vertices = device.bo(4096), device.bo(4096)
    nops = vc4_drm.assembled("nop")
    fragment, vertex, endless = (device.shader(vc4_drm.assembled(text)) for text in
                                 (vc4_drm.FRAGMENT.format(7), vc4_drm.VERTEX, vc4_drm.ENDLESS))
    programs = [device.shader(nops * LONG_PROGRAM + vc4_drm.assembled("end")) for _ in range(PROGRAMS)]
    handles = [image.handle, fragment, vertex, vertices.handle, *programs, endless]
    binning = vc4_drm.start(1, 1) + vc4_drm.draw_state(32) + vc4_drm.draw(vc4_drm.TRIANGLES, 3) * (PROGRAMS + 1) + vc4_drm.FINISH
    records = b"".join(vc4_drm.record(1, 2, 4 + n, 3) for n in range(PROGRAMS + 1))
    most = 0
    while a.going():
        for _ in range(IN_FLIGHT):
            device.submit(handles, 0, 32, binning, records, vc4_drm.UNIFORMS_OF_ENDLESS, shader_rec_count=PROGRAMS + 1)
        for _ in range(20):
            most = max(most, expensive.charged(a, "derived-bytes"))
            time.sleep(0.02)
    while most < CHARGED and time.monotonic() < a.until + 2:  # of a slow machine; soon it is killed
        most = max(most, expensive.charged(a, "derived-bytes"))
    if most < CHARGED:
        raise Unexpected(f"{most} bytes are charged for {PROGRAMS} programs of {LONG_PROGRAM} words")


@attack(point=4, processes=2, boards=(board.VIDEOCORE,))
def large_frames(a):
    """Lines through all tiles that there are, with the largest surfaces for them, loaded and stored."""
    device = a.device()
    side, tiles = 4096, 104  # as many as the kernel lets through
    image, vertices = device.bo(4 * side * side), device.bo(1 << 16)
    corners = [0, 0x7fff7fff] * (vertices.size // 8)
    vertices.words[:] = memoryview(array.array("I", corners))
    programs = [device.shader(vc4_drm.assembled(text)) for text in
                (vc4_drm.FRAGMENT.format(7), vc4_drm.VERTEX, vc4_drm.COORDINATE)]
    binning = (vc4_drm.start(tiles, tiles) + vc4_drm.draw_state(side // 2) +
               vc4_drm.draw(vc4_drm.LINES, len(corners)) + vc4_drm.FINISH)
    load = vc4_drm.Surface(hindex=0, offset=0, bits=1, flags=0)
    while a.going():
        for _ in range(IN_FLIGHT):
            seqno = device.submit([image.handle, *programs, vertices.handle], 0, side, binning, vc4_drm.record(1, 2, 3, 4),
                                  shader_rec_count=1, color_read=load)
        device.wait_seqno(seqno, 300)


PURGEABLE = 3000  # objects of a page


@attack(point=7, processes=2, seconds=4, boards=(board.VIDEOCORE,))
def purges(a):
    """Many objects that are not needed, in use and mapped while a lack of memory purges them."""
    device, mapped = a.device(), []
    handles = [device.create(4096)[0] for _ in range(PURGEABLE)]
    for _ in range(16):
        mapped.append(device.bo(4096))
    while a.going():
        for handle in handles:
            device.advise(handle, False)
        for bo in mapped:
            with contextlib.suppress(OSError):  # it has been purged
                device.submit([bo.handle], 0, 16)
            device.advise(bo.handle, False)
            bo.words[0] = 1
        with a.refusals():
            hoard = []
            try:
                while a.going():
                    hoard.append(device.create(64 << 20)[0])
            finally:
                for handle in hoard:
                    device.close_handle(handle)
        for at, handle in enumerate(handles):
            if not device.advise(handle, True):
                device.close_handle(handle)
                handles[at] = device.create(4096)[0]


SLEEPERS = 200
TIMES = (0, 1, (1 << 62), (1 << 63) - 1, 1 << 63, (1 << 64) - 2, (1 << 64) - 1)


@attack(point=7, seconds=3, boards=(board.VIDEOCORE,))
def waits_for_nothing(a):
    """Many threads that wait for jobs of numbers that nobody has, for all times that there are."""
    device = a.device()
    token, _ = (opener := a.connection()).open()

    def sleep(seqno, timeout_ns):
        with contextlib.suppress(OSError):
            connection = a.connection()
            connection.socket.settimeout(None)
            connection.ioctl(token, READ_WRITE, vc4_drm.WAIT_SEQNO, vc4_drm.WaitSeqno(seqno=seqno, timeout_ns=timeout_ns))

    for n in range(SLEEPERS):
        seqno = a.random.choice(((1 << 64) - 1, 1 << 63, 1 << 40))
        threading.Thread(target=sleep, args=(seqno, TIMES[n % len(TIMES)]), daemon=True).start()
    image = device.bo(4096)
    while a.going():
        device.wait_seqno(device.submit([image.handle], 0, 16), 60)
    opener.close()


@attack(point=5, seconds=3, processes=2, boards=(board.VIDEOCORE,))
def mailbox_storm(a):
    """Memory of the firmware that comes, goes and is run while it goes; handles, addresses and counts that do not exist."""
    mailbox = a.mailbox()
    memory = vc4_drm.Memory(mailbox, 1 << 16)
    code = memory.put(0, vc4_drm.assembled(UNMAPPED_STORES))
    end = memory.put(0x4000, vc4_drm.assembled("end"))
    uniforms = memory.put(0x8000, [memory.address, 4096])

    def release_under_way():
        for _ in range(2):
            held = mailbox.ask(vc4_drm.ALLOCATE, 1 << 20, 4096, vc4_drm.DIRECT)
            mailbox.ask(vc4_drm.LOCK, held)
            mailbox.ask(vc4_drm.RELEASE, held)

    while a.going():
        other = threading.Thread(target=release_under_way)
        other.start()
        mailbox.execute(memory, [(uniforms, code), (uniforms, end)], 2)
        other.join()
        for handle in (0, memory.handle + 1, 0xffffffff):
            if mailbox.ask(vc4_drm.LOCK, handle) == memory.address or not mailbox.ask(vc4_drm.RELEASE, handle):
                raise Unexpected(f"handle {handle:#x}, which nobody was given, is locked or released")
        for count in (65, 1 << 20, 0xffffffff):
            if not mailbox.ask(vc4_drm.EXECUTE_QPU, count, memory.address, 0, a.random.choice(TIMEOUTS)):
                raise Unexpected(f"{count} programs are executed")
        for where in (0, 0xfffffffc, memory.address - 4, memory.address + memory.size - 4, 0x7e000000):
            if not mailbox.ask(vc4_drm.EXECUTE_QPU, 1, where, 0, 1):
                raise Unexpected(f"a list of programs at {where:#x} is executed")
        hoard = []
        while a.going() and (handle := mailbox.ask(vc4_drm.ALLOCATE, 4096 << a.random.randrange(12), 1, 0)):
            hoard.append(handle)
        for handle in hoard:
            mailbox.ask(vc4_drm.RELEASE, handle)


@attack(point=5, seconds=3, processes=2, boards=(board.VIDEOCORE,), refused=True)
def random_firmware(a):
    """Requests for the firmware with any numbers, programs that registers start among them, on a connection of its own."""
    connection = a.connection()
    token, _ = connection.open()
    memory = vc4_drm.Memory(a.mailbox(), 1 << 16)
    code = memory.put(0, vc4_drm.assembled(UNMAPPED_READS))

    def ask(call, *words):
        words = [word & 0xffffffff for word in (*words, 0, 0, 0)[:3]]
        with contextlib.suppress(OSError):
            connection.ask(wire.FIRMWARE, struct.pack("<Q6I", token, call, *words, a.random.choice((0, 0, 64, 4096)), 0))
        for fd in connection.fds:
            os.close(fd)

    numbers = (0, 1, 4, 4096, 1 << 20, 1 << 31, 0xffffffff, memory.address, code, SRQPC, SRQUA, SRQCS)
    while a.going():
        ask(a.random.randrange(FIRMWARE_CALLS + 1), *(a.random.choice(numbers) for _ in range(3)))
        for _ in range(8):
            ask(WRITE_REGISTER, 4 * a.random.randrange(0x400), a.random.choice(numbers))
        for register, value in ((SRQUA, memory.address), (SRQPC, code)):
            ask(WRITE_REGISTER, register, value)


@attack(point=5, seconds=3, processes=2, boards=(board.VIDEOCORE,), refused=True)
def random_vc4_ioctls(a):
    """All ioctls of the driver with any numbers, and frames most of which is right."""
    device = a.device()
    sizes = {0x40: 176, 0x45: 24, 0x46: 160, 0x4c: 24, 0x4d: 4}
    numbers = (0, 0, 1, 1, 2, 3, 4, 7, 64, 4096, 1 << 20, 1 << 31, 0xffffffff)
    image = device.bo(4 * 64 * 64)
    data = (U32 * 4096)()
    while a.going():
        for _ in range(200):
            number = a.random.randrange(0x40, 0x50)
            words = sizes.get(number, 16) // 4
            argument = (U32 * words)(*(a.random.choice(numbers) for _ in range(words)))
            for at in (0, 2):
                if a.random.random() < 0.3 and len(argument) > at + 1:
                    argument[at], argument[at + 1] = struct.unpack("<II", U64(vc4_drm.ctypes.addressof(data)))
            if number == vc4_drm.WAIT_SEQNO or number == vc4_drm.WAIT_BO:
                argument[2] = argument[3] = 0
            with contextlib.suppress(OSError):
                device.ioctl(READ_WRITE, number, argument)
        garbled = a.random.randbytes(64)
        with contextlib.suppress(OSError):
            device.submit([image.handle], 0, 64, vc4_drm.start(1, 1) + garbled + vc4_drm.FINISH, a.random.randbytes(256),
                          a.random.randbytes(256), shader_rec_count=a.random.randrange(4))
