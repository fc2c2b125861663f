"""What v3d_drm lacks: the other submits, syncobjs, PRIME. Structures as the kernel has them (ioctl/abi)."""
import array
import ctypes
import errno

import v3d_drm
from v3d_drm import READ_WRITE, U32, U64, WRITE

I32, I64 = ctypes.c_int32, ctypes.c_int64


def struct_of(name, size, /, **fields):
    made = type(name, (ctypes.Structure,), {"_fields_": list(fields.items())})
    assert ctypes.sizeof(made) == size, name
    return made


SubmitCl = struct_of("SubmitCl", 72, bcl_start=U32, bcl_end=U32, rcl_start=U32, rcl_end=U32, in_sync_bcl=U32,
                     in_sync_rcl=U32, out_sync=U32, qma=U32, qms=U32, qts=U32, bo_handles=U64, bo_handle_count=U32,
                     flags=U32, perfmon_id=U32, pad=U32, extensions=U64)
SubmitTfu = struct_of("SubmitTfu", 88, icfg=U32, iia=U32, iis=U32, ica=U32, iua=U32, ioa=U32, ios=U32, coef=U32 * 4,
                      bo_handles=U32 * 4, in_sync=U32, out_sync=U32, flags=U32, extensions=U64, ioc=U32, pad=U32)
PrimeHandle = struct_of("PrimeHandle", 12, handle=U32, flags=U32, fd=I32)
SyncobjWait = struct_of("SyncobjWait", 40, handles=U64, timeout_ns=I64, count_handles=U32, flags=U32, first_signaled=U32,
                        pad=U32, deadline_ns=U64)
SyncobjArray = struct_of("SyncobjArray", 16, handles=U64, count_handles=U32, pad=U32)
Version = struct_of("Version", 64, major=I32, minor=I32, patch=I32, pad=U32, name_len=U64, name=U64, date_len=U64,
                    date=U64, desc_len=U64, desc=U64)

VERSION, PRIME_HANDLE_TO_FD, PRIME_FD_TO_HANDLE = 0x00, 0x2d, 0x2e
SUBMIT_CL, SUBMIT_TFU = 0x40, 0x46
SYNCOBJ_DESTROY, SYNCOBJ_FD_TO_HANDLE, SYNCOBJ_WAIT, SYNCOBJ_RESET, SYNCOBJ_SIGNAL = 0xc0, 0xc2, 0xc3, 0xc4, 0xc5
WAIT_ALL, WAIT_FOR_SUBMIT = 1, 2
CLOEXEC_RDWR = 0o2000000 | 2

# What a limit or a shortage answers with.
REFUSALS = (errno.ENOMEM, errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.EAGAIN)


def request(direction, number, argument):
    return direction << 30 | ctypes.sizeof(argument) << 16 | ord("d") << 8 | number


class Node:
    """What all nodes can be asked; subclasses have ioctl()."""

    def close_handle(self, handle):
        self.ioctl(WRITE, v3d_drm.GEM_CLOSE, v3d_drm.GemClose(handle=handle))

    def export(self, handle):
        return self.ioctl(READ_WRITE, PRIME_HANDLE_TO_FD, PrimeHandle(handle=handle, flags=CLOEXEC_RDWR)).fd

    def import_fd(self, fd):
        return self.ioctl(READ_WRITE, PRIME_FD_TO_HANDLE, PrimeHandle(fd=fd)).handle

    def syncobj(self, flags=0):
        return self.ioctl(READ_WRITE, v3d_drm.SYNCOBJ_CREATE, v3d_drm.SyncobjCreate(flags=flags)).handle

    def export_syncobj(self, handle, flags=0):
        return self.ioctl(READ_WRITE, v3d_drm.SYNCOBJ_HANDLE_TO_FD, v3d_drm.SyncobjHandle(handle=handle, flags=flags)).fd

    def wait_syncobjs(self, handles, timeout_ns, flags=WAIT_ALL):
        """timeout_ns: of CLOCK_MONOTONIC, absolute."""
        words = array.array("I", handles)
        address, count = words.buffer_info()
        return self.ioctl(READ_WRITE, SYNCOBJ_WAIT,
                          SyncobjWait(handles=address, count_handles=count, timeout_ns=timeout_ns, flags=flags))


class Device(Node, v3d_drm.Device):
    """An open node; counter() is called for every ioctl."""

    def __init__(self, path=v3d_drm.RENDER, counter=lambda: None, fd=None):
        """fd: somebody else's instead of opening."""
        self._counter = counter
        super().__init__(path, fd)

    def ioctl(self, direction, number, argument):
        self._counter()
        return super().ioctl(direction, number, argument)

    def create(self, size):
        """Handle and address of an object that nobody maps here."""
        made = self.ioctl(READ_WRITE, v3d_drm.CREATE_BO, v3d_drm.CreateBo(size=size))
        return made.handle, made.offset

    def submit_cl(self, bos, bin_range, render_range, tile_memory=(0, 0, 0), **fields):
        """Ranges are pairs of addresses; tile_memory: address and size of the tile allocation, address of the state."""
        handles = array.array("I", [bo.handle for bo in bos])
        submit = SubmitCl(**fields)
        submit.bcl_start, submit.bcl_end = bin_range
        submit.rcl_start, submit.rcl_end = render_range
        submit.qma, submit.qms, submit.qts = tile_memory
        submit.bo_handles, submit.bo_handle_count = handles.buffer_info()
        self.ioctl(READ_WRITE, SUBMIT_CL, submit)

    def submit_tfu(self, bos, **fields):
        submit = SubmitTfu(**fields)
        submit.bo_handles[:len(bos)] = [bo.handle for bo in bos]
        self.ioctl(WRITE, SUBMIT_TFU, submit)
