"""The interface of a Raspberry Pi 0 to 3: the driver vc4's ioctls, the firmware's mailbox, and as much of frames and programs
as attacks and victims need. Structures as the kernel has them (ioctl/abi/vc4.h)."""
import array
import ctypes
import fcntl
import functools
import mmap
import os
import struct
import subprocess

import v3d_drm
from v3d_drm import READ_WRITE, U32, U64

from . import drm

U8, U16 = ctypes.c_uint8, ctypes.c_uint16
struct_of = drm.struct_of

Surface = struct_of("Surface", 12, hindex=U32, offset=U32, bits=U16, flags=U16)
SURFACES = ("color_read", "color_write", "zs_read", "zs_write", "msaa_color_write", "msaa_zs_write")
SubmitCl = struct_of("SubmitCl", 176, bin_cl=U64, shader_rec=U64, uniforms=U64, bo_handles=U64, bin_cl_size=U32,
                     shader_rec_size=U32, shader_rec_count=U32, uniforms_size=U32, bo_handle_count=U32, width=U16, height=U16,
                     min_x_tile=U8, min_y_tile=U8, max_x_tile=U8, max_y_tile=U8, **{name: Surface for name in SURFACES},
                     clear_color=U32 * 2, clear_z=U32, clear_s=U8, pad=U8 * 3, flags=U32, seqno=U64, perfmonid=U32, in_sync=U32,
                     out_sync=U32, pad2=U32)
WaitSeqno = struct_of("WaitSeqno", 16, seqno=U64, timeout_ns=U64)
CreateBo = struct_of("CreateBo", 16, size=U32, flags=U32, handle=U32, pad=U32)
CreateShaderBo = struct_of("CreateShaderBo", 24, size=U32, flags=U32, data=U64, handle=U32, pad=U32)
GemMadvise = struct_of("GemMadvise", 16, handle=U32, madv=U32, retained=U32, pad=U32)
PerfmonCreate = struct_of("PerfmonCreate", 24, id=U32, ncounters=U32, events=U8 * 16)

SUBMIT_CL, WAIT_SEQNO, WAIT_BO, CREATE_BO, MMAP_BO, CREATE_SHADER_BO = 0x40, 0x41, 0x42, 0x43, 0x44, 0x45
GEM_MADVISE, PERFMON_CREATE, PERFMON_DESTROY = 0x4b, 0x4c, 0x4d
NO_SURFACE, USE_CLEAR_COLOR, WILL_NEED, DONT_NEED, FOR_EVER = 0xffffffff, 1, 0, 1, (1 << 64) - 1
TILE = 64  # pixels each way

# _IOWR(100, 0, char *) of systems of 32 bits, and the tags of the mailbox.
PROPERTY = 0xc0046400
ALLOCATE, LOCK, UNLOCK, RELEASE, EXECUTE_QPU, ENABLE_QPU = 0x3000c, 0x3000d, 0x3000e, 0x3000f, 0x30011, 0x30012
DIRECT = 4  # MEM_FLAG: past the GPU's cache
PHYSICAL = 0x3fffffff  # of a bus address


@functools.cache
def assembled(text):
    """Words of a program."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run([os.environ["V3DEMU"], "asm", "--chip", "2.1", "--format", "bin", "-"], input=text.encode(),
                          capture_output=True, check=True, env=environment)
    return done.stdout


class Bo:
    """A buffer object, and its memory as a view of 32-bit words."""

    def __init__(self, device, size):
        self._device, self.size = device, size
        self.handle = device.create(size)[0]
        offset = device.ioctl(READ_WRITE, MMAP_BO, v3d_drm.MmapBo(handle=self.handle)).offset
        self._map = mmap.mmap(device.fd, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, offset=offset)
        self.words = memoryview(self._map).cast("I")

    def close(self):
        self.words.release()
        self._map.close()
        self._device.close_handle(self.handle)


class Device(drm.Node):
    """An open node; counter() is called for every ioctl."""

    def __init__(self, path=v3d_drm.RENDER, counter=lambda: None, fd=None):
        self._counter, self._bos = counter, []
        self.fd = os.open(path, os.O_RDWR | os.O_CLOEXEC) if fd is None else fd

    def close(self):
        for bo in self._bos:
            bo.close()
        os.close(self.fd)

    def ioctl(self, direction, number, argument):
        self._counter()
        fcntl.ioctl(self.fd, drm.request(direction, number, argument), argument, True)
        return argument

    def create(self, size):
        """The handle of an object that nobody maps here, and no address."""
        return self.ioctl(READ_WRITE, CREATE_BO, CreateBo(size=size)).handle, 0

    def bo(self, size):
        self._bos.append(Bo(self, size))
        return self._bos[-1]

    def shader(self, words):
        """The handle of a program's object."""
        data = ctypes.create_string_buffer(words, len(words))
        made = CreateShaderBo(size=len(words), data=ctypes.addressof(data))
        return self.ioctl(READ_WRITE, CREATE_SHADER_BO, made).handle

    def advise(self, handle, needed):
        """Whether its contents are still there."""
        advice = GemMadvise(handle=handle, madv=WILL_NEED if needed else DONT_NEED)
        return bool(self.ioctl(READ_WRITE, GEM_MADVISE, advice).retained)

    def submit(self, handles, target, side, binning=b"", records=b"", uniforms=b"", **fields):
        """Renders a square frame of so many pixels to the object of that index. records: see record(). Returns the seqno."""
        texts = [ctypes.create_string_buffer(data, len(data)) for data in (binning, records, uniforms)]
        named = array.array("I", handles)
        submit = SubmitCl(width=side, height=side, flags=USE_CLEAR_COLOR, **fields)
        (submit.bin_cl, submit.shader_rec, submit.uniforms) = (ctypes.addressof(text) for text in texts)
        submit.bin_cl_size, submit.shader_rec_size, submit.uniforms_size = len(binning), len(records), len(uniforms)
        submit.bo_handles, submit.bo_handle_count = named.buffer_info()
        submit.max_x_tile = submit.max_y_tile = min(255, -(-side // TILE) - 1)
        for name in SURFACES:
            getattr(submit, name).hindex = NO_SURFACE
        submit.color_write.hindex, submit.color_write.bits = target, 4  # rows of 8888
        return self.ioctl(READ_WRITE, SUBMIT_CL, submit).seqno

    def wait_seqno(self, seqno, seconds):
        self.ioctl(READ_WRITE, WAIT_SEQNO, WaitSeqno(seqno=seqno, timeout_ns=int(seconds * 1e9)))

    def wait(self, bo, seconds=60):
        self.ioctl(READ_WRITE, WAIT_BO, v3d_drm.WaitBo(handle=bo.handle, timeout_ns=int(seconds * 1e9)))


# Of a bin list: what is between start() and FINISH.
FINISH = b"\x07\x04"


def start(tiles_x, tiles_y):
    return bytes([112]) + bytes(12) + bytes([tiles_x, tiles_y, 0, 6])


def draw_state(half):
    """Both faces, positions as the programs say, in a window of so many pixels each way around its middle."""
    sixteenths = min(half * 16, 0x7fff)
    return (bytes([96, 3, 0x70, 0]) + bytes([102]) + struct.pack("<4H", 0, 0, 2 * half, 2 * half) +
            bytes([103]) + struct.pack("<hh", 0, 0) + bytes([105]) + struct.pack("<ff", sixteenths, sixteenths) +
            bytes([106]) + struct.pack("<ff", 1.0, 0.0))


def draw(mode, count, bits=1):
    """An array with the next record; bits: of how many attributes."""
    return bytes([64]) + struct.pack("<I", bits) + bytes([33, mode]) + struct.pack("<II", count, 0)


LINES, TRIANGLES = 1, 4
SIZE_OF_ATTRIBUTE = 4


def record(fragment, vertex, coordinate, vertices, stride=SIZE_OF_ATTRIBUTE):
    """Of programs and one attribute by their indices in the list of handles."""
    used = struct.pack("<HBBII", 0, 1, SIZE_OF_ATTRIBUTE, 0, 0)
    return (struct.pack("<4I", fragment, vertex, coordinate, vertices) + struct.pack("<III", 1, 0, 0) + used + used +
            struct.pack("<IBBBB", 0, SIZE_OF_ATTRIBUTE - 1, stride, 0, 0))


# Passes positions on: two numbers of 16 bits in sixteenths of a pixel, as they are in memory.
COORDINATE = """
    load_imm vr_setup, nop, 0x00101a00
    load_imm vw_setup, nop, 0x00001a00
    mov r0, vpm_read
    load_imm r1, nop, 0x3f800000
    mov vpm, r1
    mov vpm, r1
    mov vpm, r1
    mov vpm, r1
    mov vpm, r0
    mov vpm, 0
    mov vpm, r1
    end
"""
VERTEX = COORDINATE.replace("    mov vpm, r1\n", "", 4)
# Stores a colour, the same everywhere.
FRAGMENT = "load_imm r0, nop, 0x{:08x}\nnop ; nop ; sbwait\nmov tlb_color_all, r0\nend\n"
# For ever, in any stage. Kernels want the address of the uniforms in one word of these.
ENDLESS = "nop\nnop\nagain:\nbranch again\nnop\nnop\nnop\nend\n"
UNIFORMS_OF_ENDLESS = bytes(4)


class Mailbox:
    """The firmware, as programs ask it that run code on the QPUs by themselves."""

    def __init__(self, counter=lambda: None):
        self._counter = counter
        self.fd = os.open("/dev/vcio", os.O_RDWR | os.O_CLOEXEC)

    def ask(self, tag, *words):
        """The first word of the answer."""
        self._counter()
        size = 4 * len(words)
        asked = struct.pack(f"<5I{len(words) + 1}I", 24 + size, 0, tag, size, size, *(word & 0xffffffff for word in words), 0)
        answer = struct.unpack_from("<6I", fcntl.ioctl(self.fd, PROPERTY, asked))
        if answer[1] != 0x80000000:
            raise OSError(f"the firmware refuses {tag:#x}: {answer[1]:#010x}")
        return answer[5]

    def enable(self):
        if self.ask(ENABLE_QPU, 1):
            raise OSError("the firmware gives the QPUs no power")

    def execute(self, memory, programs, milliseconds):
        """programs: pairs of bus addresses, uniforms and code, which are put at the end of the memory."""
        pairs = memory.put(memory.size - 0x200, [word for pair in programs for word in pair])
        return self.ask(EXECUTE_QPU, len(programs), pairs, 1, milliseconds)


class Memory:
    """Of the firmware's; address: what QPUs know it by."""

    def __init__(self, mailbox, size):
        self._mailbox, self.size = mailbox, size
        self.handle = mailbox.ask(ALLOCATE, size, 4096, DIRECT)
        if not self.handle:
            raise MemoryError(f"the firmware has no {size} bytes")
        self.address = mailbox.ask(LOCK, self.handle)
        fd = os.open("/dev/mem", os.O_RDWR | os.O_SYNC)
        self.map = mmap.mmap(fd, size, offset=self.address & PHYSICAL)
        os.close(fd)

    def put(self, at, words):
        """The address of the words; or of bytes."""
        data = words if isinstance(words, bytes) else array.array("I", (word & 0xffffffff for word in words)).tobytes()
        self.map[at:at + len(data)] = data
        return self.address + at

    def close(self):
        self.map.close()
        self._mailbox.ask(RELEASE, self.handle)
