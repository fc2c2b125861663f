#!/usr/bin/env python3
"""Runs samples/qpu/fft256.py's program on the QPUs of a Raspberry Pi 0 to 3, as programs do that are not Mesa's: memory from
the firmware's mailbox, which is mapped by /dev/mem, and two QPUs that EXECUTE_QPU starts.

    samples/qpu/fft256.py > fft256.qasm
    v3demu asm --chip 2.1 --check -o fft256.bin fft256.qasm
    v3demu run --device rpi3 -- samples/qpu/mailbox.py fft256.bin
"""
import array
import cmath
import fcntl
import math
import mmap
import os
import struct
import sys

PROPERTY = 0xc0046400  # _IOWR(100, 0, char *) of systems of 32 bits
ALLOCATE, LOCK, UNLOCK, RELEASE, EXECUTE_QPU, ENABLE_QPU = 0x3000c, 0x3000d, 0x3000e, 0x3000f, 0x30011, 0x30012
DIRECT = 4  # MEM_FLAG: past the GPU's cache
COUNT, TRANSFORMS, QPUS = 256, 8, 2
BYTES = 8 * COUNT  # of a transform's numbers


class Mailbox:
    def __init__(self):
        self.fd = os.open("/dev/vcio", os.O_RDWR)

    def ask(self, tag, *words):
        """The first word of the answer."""
        request = struct.pack(f"<5I{len(words) + 1}I", 24 + 4 * len(words), 0, tag, 4 * len(words), 4 * len(words), *words, 0)
        answer = struct.unpack_from("<6I", fcntl.ioctl(self.fd, PROPERTY, request))
        if answer[1] != 0x80000000:
            raise OSError(f"the firmware refuses 0x{tag:x}: 0x{answer[1]:08x}")
        return answer[5]


class Memory:
    """Of the firmware's: `address` is what the QPUs know it by."""

    def __init__(self, mailbox, size):
        self.mailbox = mailbox
        self.handle = mailbox.ask(ALLOCATE, size, 4096, DIRECT)
        if not self.handle:
            raise MemoryError(f"the firmware has no {size} bytes")
        self.address = mailbox.ask(LOCK, self.handle)
        memory = os.open("/dev/mem", os.O_RDWR | os.O_SYNC)
        self.map = mmap.mmap(memory, size, offset=self.address & 0x3fffffff)
        os.close(memory)
        self.words, self.floats = memoryview(self.map).cast("I"), memoryview(self.map).cast("f")

    def close(self):
        self.words.release()
        self.floats.release()
        self.map.close()
        self.mailbox.ask(UNLOCK, self.handle)
        self.mailbox.ask(RELEASE, self.handle)


def put(memory, at, kind, values):
    """Returns where they are for the QPUs."""
    data = array.array(kind, values).tobytes()
    memory.map[at:at + len(data)] = data
    return memory.address + at


def table():
    for k in range(16):
        for part in (math.cos, lambda angle: -math.sin(angle)):
            yield from (part(2 * math.pi * k * lane / COUNT) for lane in range(16))


def fft(x):
    """What is expected, by the definition in doubles."""
    if len(x) == 1:
        return x
    even, odd = fft(x[::2]), fft(x[1::2])
    turned = [cmath.exp(-2j * math.pi * k / len(x)) * odd[k] for k in range(len(odd))]
    return [a + b for a, b in zip(even, turned)] + [a - b for a, b in zip(even, turned)]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], "rb") as file:
        code = array.array("I", file.read())
    mailbox = Mailbox()
    if mailbox.ask(ENABLE_QPU, 1):
        sys.exit("no QPUs")
    size = 0x8000 + 2 * TRANSFORMS * BYTES
    memory = Memory(mailbox, size)
    program = put(memory, 0, "I", code)
    twiddles = put(memory, 0x4000, "f", table())
    inputs, outputs = 0x8000, 0x8000 + TRANSFORMS * BYTES
    numbers = [[cmath.rect(1 + n % 7, 0.1 * n * (t + 1)) for n in range(COUNT)] for t in range(TRANSFORMS)]
    for t, x in enumerate(numbers):
        put(memory, inputs + t * BYTES, "f", [n.real for n in x] + [n.imag for n in x])
    programs = []
    for q in range(QPUS):
        mine = range(q, TRANSFORMS, QPUS)
        uniforms = [32 * q, twiddles, int(q == 0), len(mine)]
        for t in mine:
            uniforms += [memory.address + inputs + t * BYTES, memory.address + outputs + t * BYTES]
        programs += [put(memory, 0x6000 + 0x400 * q, "I", uniforms), program]
    result = mailbox.ask(EXECUTE_QPU, QPUS, put(memory, 0x7000, "I", programs), 0, 1000)
    if result:
        sys.exit(f"the programs did not end: 0x{result:08x}")
    wrong = right = 0
    for t, x in enumerate(numbers):
        at = (outputs + t * BYTES) // 4
        got = [complex(memory.floats[at + k], memory.floats[at + COUNT + k]) for k in range(COUNT)]
        for a, b in zip(got, fft(x)):
            wrong, right = wrong + abs(a - b) ** 2, right + abs(b) ** 2
    memory.close()
    mailbox.ask(ENABLE_QPU, 0)
    error = math.sqrt(wrong / right)
    print(f"{TRANSFORMS} transforms of {COUNT} numbers, relative error {error:.2e}")
    sys.exit(error > 1e-6)


if __name__ == "__main__":
    main()
