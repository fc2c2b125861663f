"""A recording by libv3drec.so: how it is made, compared, and changed."""
import ctypes
import json
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from capture_records import CHUNK, HEADER_BYTES, JOB, MAPS, PAGE, PAGE_BYTES, SETS, records  # noqa: E402  pylint: disable=wrong-import-position


class Recorder:
    def __init__(self, v3demu, library, folder, options=()):
        self.v3demu, self.library, self.folder, self.options = v3demu, library, folder, list(options)
        os.makedirs(folder, exist_ok=True)

    def run(self, name, command, stdin=None, **variables):
        """The program's end, with the path of a recording that is new if there is one."""
        path = os.path.join(self.folder, name + ".v3dcap")
        if os.path.exists(path):
            os.remove(path)
        environment = os.environ | {"LD_PRELOAD": self.library, "V3DREC_FILE": path} | variables
        done = subprocess.run([self.v3demu, "run", *self.options, "--", *command], capture_output=True, text=True, timeout=300,
                              stdin=stdin, env=environment, check=False)
        return done, path

    def replay(self, path, *options):
        return subprocess.run([self.v3demu, "replay", *options, path], capture_output=True, text=True, timeout=300, check=False)

    def compare(self, path):
        """Status and what is compared."""
        done = self.replay(path, "--compare", "--json")
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)["jobs"]


def read_packed(path):
    with open(path, "rb") as file:
        return file.read()


def read(path):
    """The data with all pages as they are."""
    data = read_packed(path)
    plain = [data[:HEADER_BYTES]]
    for at, kind, payload in records(data):
        if kind == CHUNK:
            plain += [struct.pack("<II", PAGE, PAGE_BYTES) + page for page in decompressed(payload)]
        else:
            plain.append(data[at:at + 8] + payload)
    return b"".join(plain)


def decompressed(chunk):
    """The pages of a record of compressed ones."""
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    zstd.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    count, = struct.unpack_from("<I", chunk)
    pages_of_it = ctypes.create_string_buffer(count * PAGE_BYTES)
    got = zstd.ZSTD_decompress(pages_of_it, len(pages_of_it), chunk[4:], len(chunk) - 4)
    assert got == count * PAGE_BYTES, got
    return [pages_of_it.raw[at:at + PAGE_BYTES] for at in range(0, got, PAGE_BYTES)]


def pages(data):
    """Of each page, from number 1 on, where it begins."""
    return [at + 8 for at, kind, _ in records(data) if kind == PAGE]


def place_of(data, job, address):
    """Where the memory at an address stands as the job of that number found it, if a page of the recording has it."""
    numbers, jobs = {}, 0
    for _, kind, payload in records(data):
        if kind == MAPS:
            numbers.clear()
        elif kind == SETS:
            words = struct.unpack(f"<{len(payload) // 4}I", payload)
            numbers.update(zip(words[1::2], words[2::2]))
        elif kind == JOB:
            jobs += 1
            if jobs == job:
                return pages(data)[numbers[address & -PAGE_BYTES] - 1] + address % PAGE_BYTES
    raise KeyError(f"job {job}")


def replaced(data, at, new, path):
    """Writes the data with other bytes at a place."""
    with open(path, "wb") as file:
        file.write(data[:at] + new + data[at + len(new):])
    return path


def planted(recorder, data, name, job, places):
    """A recording in which the job finds other bytes, by address. @return its path"""
    path = os.path.join(recorder.folder, name + ".v3dcap")
    for address, new in places.items():
        replaced(data, place_of(data, job, address), new, path)
        data = read_packed(path)
    return path


def flipped(data, at, bit, path):
    """Writes the data with one bit flipped."""
    changed = bytearray(data)
    changed[at] ^= 1 << bit
    with open(path, "wb") as file:
        file.write(changed)
    return path
