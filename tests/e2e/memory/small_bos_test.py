#!/usr/bin/env python3
"""Small buffer objects share descriptors and mappings of the daemon (ioctl/memory/slab.h); programs cannot tell.

Runs with the preload library. V3DEMU_DAEMON and V3DEMU name the programs.
"""
import ctypes
import mmap
import os
import re
import resource
import socket
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "qpu_programs"))
import kernels  # pylint: disable=wrong-import-position
import qpu_program  # pylint: disable=wrong-import-position
import v3d_drm  # pylint: disable=wrong-import-position

PRIME_HANDLE_TO_FD, PRIME_FD_TO_HANDLE, GET_BO_OFFSET = 0x2d, 0x2e, 0x45
Prime = v3d_drm.structure("Prime", handle=v3d_drm.U32, flags=v3d_drm.U32, fd=ctypes.c_int32)
BoOffset = v3d_drm.structure("BoOffset", handle=v3d_drm.U32, offset=v3d_drm.U32)
UNTOUCHED = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
DESCRIPTORS = 1024


def status():
    return subprocess.run([os.environ["V3DEMU"], "status"], env=UNTOUCHED, check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def mmu_faults():
    lines = [line.split() for line in status().splitlines()]
    names = next(line for line in lines if "faults" in line)
    return int([line for line in lines if str(os.getpid()) in line][-1][names.index("faults")])  # the newest node's


class SmallBosTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        subprocess.run([os.environ["V3DEMU_DAEMON"], "--exit-when-idle", "10"], env=UNTOUCHED, check=True)
        daemon = int(re.match(r"v3demud pid (\d+)", status()).group(1))
        resource.prlimit(daemon, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))

    def setUp(self):
        self.device = v3d_drm.Device(v3d_drm.RENDER)
        self.addCleanup(os.close, self.device.fd)
        self.program = self.device.bo(qpu_program.SIZE)

    def create(self, size=4096):
        created = self.device.ioctl(v3d_drm.READ_WRITE, v3d_drm.CREATE_BO, v3d_drm.CreateBo(size=size))
        return created.handle, created.offset

    def map(self, handle, size=4096):
        offset = self.device.ioctl(v3d_drm.READ_WRITE, v3d_drm.MMAP_BO, v3d_drm.MmapBo(handle=handle)).offset
        return mmap.mmap(self.device.fd, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, offset=offset)

    def close_bo(self, handle):
        self.device.ioctl(v3d_drm.WRITE, v3d_drm.GEM_CLOSE, v3d_drm.GemClose(handle=handle))

    def gpu_store(self, address, value, device=None, program=None):
        device, program = device or self.device, program or self.program
        qpu_program.load(program, kernels.STORE, [address, value])
        device.submit_csd(qpu_program.config(device, program, 1), [program])
        device.wait(program, 60)

    def export(self, handle):
        return self.device.ioctl(v3d_drm.READ_WRITE, PRIME_HANDLE_TO_FD,
                                 Prime(handle=handle, flags=os.O_CLOEXEC | os.O_RDWR)).fd

    def test_a_hundred_thousand(self):
        count = 100_000
        bos = [self.create() for _ in range(count)]
        self.assertEqual(len({address for _, address in bos}), count)
        chosen = bos[::9973]
        for value, (_, address) in enumerate(chosen, 1):
            self.gpu_store(address, value)
        for value, (handle, _) in enumerate(chosen, 1):
            with self.map(handle) as memory:
                self.assertEqual(struct.unpack("<16I", memory[:64]), (value,) * 16)
        self.assertEqual(mmu_faults(), 0)
        for handle, _ in bos[1::2]:
            self.close_bo(handle)
        for handle, _ in bos[::2]:
            self.close_bo(handle)
        handle, _ = self.create()
        with self.map(handle) as memory:
            self.assertEqual(memory[:], bytes(4096))

    def test_mappings_outlive_their_objects(self):
        kept = []
        for i in range(3000):
            handle, address = self.create(4096 * (1 + i % 4))
            memory = self.map(handle)
            self.assertEqual(memory[:], bytes(4096), "a new object")
            memory[:] = struct.pack("<I", i) * 1024
            if i % 500 == 7:
                self.gpu_store(address, i)
            self.close_bo(handle)
            kept.append(memory)
            if i % 3 == 0:
                kept.pop(0).close()
        for memory in kept:
            words = set(struct.unpack("<1024I", memory[:]))
            self.assertEqual(len(words), 1)
            memory.close()

    def test_export_takes_nothing_else_along(self):
        bos = [self.create() for _ in range(5)]
        maps = [self.map(handle) for handle, _ in bos]
        for i, memory in enumerate(maps):
            memory[:] = bytes([i + 1]) * 4096
        fd = self.export(bos[2][0])
        self.assertEqual(os.lseek(fd, 0, os.SEEK_END), 4096)
        self.assertEqual(os.fstat(fd).st_size, 4096)
        for i, memory in enumerate(maps):
            self.assertEqual(memory[:], bytes([i + 1]) * 4096)
        with mmap.mmap(fd, 4096) as shared:
            self.assertEqual(shared[:], maps[2][:])
            maps[2][100] = 0xa5  # the mapping that was there before
            self.assertEqual(shared[100], 0xa5)
            shared[200] = 0x5a
            self.assertEqual(maps[2][200], 0x5a)
            self.gpu_store(bos[2][1], 77)
            self.assertEqual(struct.unpack("<16I", shared[:64]), (77,) * 16)
            self.assertEqual(struct.unpack("<16I", maps[2][:64]), (77,) * 16)
            maps[3][0] = 9
            self.gpu_store(bos[1][1], 78)
            self.assertEqual(shared[64:100], bytes([3]) * 36)
        os.close(fd)

    def test_objects_are_mapped_again_after_an_export(self):
        bos = [self.create() for _ in range(6)]
        first = [self.map(handle) for handle, _ in bos]
        fd = self.export(bos[2][0])
        again = [self.map(handle) for handle, _ in bos]
        with mmap.mmap(fd, 4096) as shared:
            for i, (one, other) in enumerate(zip(first, again)):
                one[i] = i + 1
                self.assertEqual(other[i], i + 1)
            self.assertEqual(shared[2], 3)
            self.close_bo(bos[2][0])
            for _ in range(300):  # also where it was
                with self.map(self.create()[0]) as memory:
                    self.assertEqual(memory[:], bytes(4096))
                    memory[:] = b"x" * 4096
            self.assertEqual(shared[2], 3)
            self.assertEqual(shared[3], 0)
        os.close(fd)

    def test_mappings_keep_their_place_and_protection(self):
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
        maps_before = [self.map(self.create()[0]) for _ in range(3)]
        handle, _ = self.create()
        offset = self.device.ioctl(v3d_drm.READ_WRITE, v3d_drm.MMAP_BO, v3d_drm.MmapBo(handle=handle)).offset
        place = libc.mmap(None, 3 * 4096, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        map_fixed = 0x10
        self.assertEqual(libc.mmap(place + 4096, 4096, mmap.PROT_READ, mmap.MAP_SHARED | map_fixed, self.device.fd, offset),
                         place + 4096)
        with self.map(handle) as memory:
            memory[5] = 77
        self.assertEqual(ctypes.c_ubyte.from_address(place + 4096 + 5).value, 77)
        with open("/proc/self/maps", encoding="ascii") as maps:
            rights = {int(line.split("-")[0], 16): line.split()[1] for line in maps}
        self.assertEqual((rights[place], rights[place + 4096], rights[place + 8192]), ("---p", "r--s", "---p"))
        for memory in maps_before:
            self.assertEqual(memory[:], bytes(4096))

    def test_other_processes_share_what_is_exported(self):
        handle, address = self.create(8192)
        memory = self.map(handle, 8192)
        memory[:] = b"\x11" * 8192
        here, there = socket.socketpair()
        child = os.fork()
        if child == 0:
            # A process with a device of its own: imports, writes with CPU and GPU, and looks at what comes.
            error = 1
            try:
                here.close()
                fd = socket.recv_fds(there, 1, 1)[1][0]
                device = v3d_drm.Device(v3d_drm.RENDER)
                imported = device.ioctl(v3d_drm.READ_WRITE, PRIME_FD_TO_HANDLE, Prime(fd=fd)).handle
                offset = device.ioctl(v3d_drm.READ_WRITE, GET_BO_OFFSET, BoOffset(handle=imported)).offset
                self.gpu_store(offset + 4096, 5, device, device.bo(qpu_program.SIZE))
                with mmap.mmap(fd, 8192) as shared:
                    assert shared[:4096] == b"\x11" * 4096
                    shared[1] = 0x22
                    there.send(b"a")
                    assert there.recv(1) == b"b"
                    assert shared[2] == 0x33 and struct.unpack_from("<I", shared, 64)[0] == 6
                error = 0
            finally:
                os._exit(error)
        there.close()
        fd = self.export(handle)
        socket.send_fds(here, [b"f"], [fd])
        self.assertEqual(here.recv(1), b"a")
        self.assertEqual(memory[1], 0x22)
        self.assertEqual(struct.unpack_from("<16I", memory, 4096), (5,) * 16)
        memory[2] = 0x33
        self.gpu_store(address + 64, 6)
        here.send(b"b")
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        here.close()
        os.close(fd)

    def test_between_objects_is_nothing(self):
        (_, first), (hole, middle), (last, address) = self.create(), self.create(), self.create()
        self.assertEqual((first + 4096, middle + 4096), (middle, address))
        self.close_bo(hole)
        before = mmu_faults()
        self.gpu_store(middle, 1)
        self.assertGreater(mmu_faults(), before)
        with self.map(last) as memory:
            self.assertEqual(memory[:], bytes(4096))
        before = mmu_faults()
        self.gpu_store(address + 4096, 1)
        self.assertGreater(mmu_faults(), before)


if __name__ == "__main__":
    unittest.main()
