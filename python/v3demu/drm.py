"""The V3D kernel interface as far as compute programs need it: nothing but ioctl() and mmap()."""

import array
import ctypes
import fcntl
import mmap
import os

U32, U64 = ctypes.c_uint32, ctypes.c_uint64


def structure(name, /, **fields):
    """A structure of the kernel's interface: the names and the types of its members, in their order."""
    return type(name, (ctypes.Structure,), {"_fields_": list(fields.items())})


GemClose = structure("GemClose", handle=U32, pad=U32)
WaitBo = structure("WaitBo", handle=U32, pad=U32, timeout_ns=U64)
CreateBo = structure("CreateBo", size=U32, flags=U32, handle=U32, offset=U32)
MmapBo = structure("MmapBo", handle=U32, flags=U32, offset=U64)
GetParam = structure("GetParam", param=U32, pad=U32, value=U64)
SubmitCsd = structure("SubmitCsd", cfg=U32 * 7, coef=U32 * 4, bo_handles=U64, bo_handle_count=U32, in_sync=U32,
                      out_sync=U32, perfmon_id=U32, extensions=U64, flags=U32, pad=U32)
SyncobjCreate = structure("SyncobjCreate", handle=U32, flags=U32)
SyncobjHandle = structure("SyncobjHandle", handle=U32, flags=U32, fd=ctypes.c_int32, pad=U32)
SyncFileInfo = structure("SyncFileInfo", name=ctypes.c_char * 32, status=ctypes.c_int32, flags=U32, num_fences=U32,
                         pad=U32, sync_fence_info=U64)
# As kernels before 5.15 declared it; programs built against them still pass it.
OldSubmitCsd = structure("OldSubmitCsd", cfg=U32 * 7, coef=U32 * 4, bo_handles=U64, bo_handle_count=U32, in_sync=U32,
                         out_sync=U32)
assert ctypes.sizeof(SubmitCsd) == 88 and ctypes.sizeof(OldSubmitCsd) == 72

WRITE, READ_WRITE = 1, 3
GEM_CLOSE, WAIT_BO, CREATE_BO, MMAP_BO, GET_PARAM, SUBMIT_CSD = 0x09, 0x41, 0x42, 0x43, 0x44, 0x47
SYNCOBJ_CREATE, SYNCOBJ_HANDLE_TO_FD, EXPORT_SYNC_FILE = 0xbf, 0xc1, 1
SYNC_IOC_FILE_INFO = READ_WRITE << 30 | ctypes.sizeof(SyncFileInfo) << 16 | ord(">") << 8 | 4
PARAM_HUB_IDENT3, PARAM_CORE0_IDENT0, PARAM_CORE0_IDENT1 = 3, 4, 5
PARAM_CONTEXT_RESETS = 16  # Linux 7.3

CARD = "/dev/dri/by-path/platform-1002000000.v3d-card"
RENDER = "/dev/dri/renderD128"


class Bo:
    """A buffer object: GPU address, and its memory as a view of 32-bit words."""

    def __init__(self, device, size):
        self._device = device
        create = device.ioctl(READ_WRITE, CREATE_BO, CreateBo(size=size))
        self.handle, self.address, self.size = create.handle, create.offset, size
        offset = device.ioctl(READ_WRITE, MMAP_BO, MmapBo(handle=self.handle)).offset
        self._map = mmap.mmap(device.fd, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, offset=offset)
        self._bytes = memoryview(self._map)
        self.words, self.floats = self._bytes.cast("I"), self._bytes.cast("f")

    def close(self):
        for view in (self.words, self.floats, self._bytes):
            view.release()
        self._map.close()
        self._device.ioctl(WRITE, GEM_CLOSE, GemClose(handle=self.handle))


class Device:
    def __init__(self, path, fd=None):
        """Opens the node, or takes a descriptor of it."""
        self.fd = os.open(path, os.O_RDWR | os.O_CLOEXEC) if fd is None else fd
        self._bos = []
        ident = self.param(PARAM_CORE0_IDENT1)
        self.qpus = (ident >> 4 & 15) * (ident >> 8 & 15)
        self.version = (self.param(PARAM_CORE0_IDENT0) >> 24) * 10 + (ident & 15)  # 71 or 42
        self.revision = self.param(PARAM_HUB_IDENT3) >> 8 & 255

    def close(self):
        for bo in self._bos:
            bo.close()
        os.close(self.fd)

    def ioctl(self, direction, number, argument):
        request = direction << 30 | ctypes.sizeof(argument) << 16 | ord("d") << 8 | number
        fcntl.ioctl(self.fd, request, argument, True)
        return argument

    def param(self, number):
        return self.ioctl(READ_WRITE, GET_PARAM, GetParam(param=number)).value

    def bo(self, size):
        self._bos.append(Bo(self, size))
        return self._bos[-1]

    def submit_csd(self, cfg, bos, old_struct=False, out_sync=0):
        handles = array.array("I", [bo.handle for bo in bos])
        submit = (OldSubmitCsd if old_struct else SubmitCsd)()
        submit.cfg[:] = cfg
        submit.out_sync = out_sync
        submit.bo_handles, submit.bo_handle_count = handles.buffer_info()
        self.ioctl(WRITE, SUBMIT_CSD, submit)

    def syncobj(self):
        return self.ioctl(READ_WRITE, SYNCOBJ_CREATE, SyncobjCreate()).handle

    def status(self, syncobj):
        """Of the fence in the syncobj: 1 when it has signalled, 0 before, or a negative errno."""
        export = SyncobjHandle(handle=syncobj, flags=EXPORT_SYNC_FILE)
        fd = self.ioctl(READ_WRITE, SYNCOBJ_HANDLE_TO_FD, export).fd
        try:
            info = SyncFileInfo()
            fcntl.ioctl(fd, SYNC_IOC_FILE_INFO, info, True)
            return info.status
        finally:
            os.close(fd)

    def wait(self, bo, seconds=60):
        self.ioctl(READ_WRITE, WAIT_BO, WaitBo(handle=bo.handle, timeout_ns=int(seconds * 1e9)))


def csd_config(device, code, uniforms, batches, grid, wg_size=16, wgs_per_sg=1, batches_per_sg=1, threads=2):
    """CFG0..CFG6 of a dispatch. `threads` per QPU: 2 or 4."""
    exact = device.version >= 71 and device.revision >= 6  # older ones take the number of batches minus 1
    return [grid[0] << 16, grid[1] << 16, grid[2] << 16,
            wg_size & 255 | (wgs_per_sg & 15) << 8 | (batches_per_sg - 1) << 12,
            batches if exact else batches - 1, code | (threads == 4), uniforms]
