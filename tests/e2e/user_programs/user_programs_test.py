"""Programs of VideoCore IV's QPUs through the firmware's mailbox and /dev/mem, good ones and hostile ones.

    user_programs_test.py ASSEMBLE REGISTERS SHIM COMMAND
"""
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
SAMPLES = os.path.join(HERE, "..", "..", "..", "samples", "qpu")
ASSEMBLE, REGISTERS, SHIM, COMMAND = sys.argv[1:5]

# What the tests run under the shim. `execute` returns EXECUTE_QPU's word.
PREAMBLE = f"""
import os, struct, sys
sys.argv = ["mailbox.py"]
sys.path.insert(0, {SAMPLES!r})
from mailbox import *
mailbox = Mailbox()
def words_of(name):
    with open(os.path.join({{folder!r}}, name + ".bin"), "rb") as file:
        return array.array("I", file.read())
def execute(memory, names, uniforms, timeout=200):
    pairs = []
    for n, name in enumerate(names):
        code = put(memory, 0x400 * n, "I", words_of(name))
        pairs += [put(memory, 0x2000 + 0x100 * n, "I", uniforms), code]
    return mailbox.ask(EXECUTE_QPU, len(names), put(memory, 0x3000, "I", pairs), 0, timeout)
"""

PROGRAMS = {
    "store": """
        mov r0, uni
        load_imm vw_setup, nop, 0x1a00
        mov vpm, r0
        load_imm vw_setup, nop, 0x80904000
        mov vw_addr, uni
        mov nop, vpm_st_wait
        end""",
    "wait": "sacq 5\nend",
    "loop": "loop:\nbranch loop\nnop\nnop\nnop",
    "hang": "load_tmu0\nend",
    "end": "end",
}


class UserPrograms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        program = subprocess.run([sys.executable, "-B", os.path.join(SAMPLES, "fft256.py")], check=True, capture_output=True)
        cls.assemble("fft256", program.stdout)
        for name, text in PROGRAMS.items():
            cls.assemble(name, text.encode())

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    @classmethod
    def assemble(cls, name, text):
        with open(cls.path(name + ".qasm"), "wb") as file:
            file.write(text)
        subprocess.run([ASSEMBLE, cls.path(name + ".qasm"), cls.path(name + ".bin")], check=True)

    def start(self, *command):
        return subprocess.Popen(command, env={**os.environ, "LD_PRELOAD": SHIM}, text=True, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run_under_shim(self, *command):
        process = self.start(*command)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, out + err)
        return out, err

    def python(self, text):
        return self.run_under_shim(sys.executable, "-B", "-c", PREAMBLE.format(folder=self.folder.name) + text)

    def test_transforms_through_the_mailbox(self):
        out, _ = self.run_under_shim(sys.executable, "-B", os.path.join(SAMPLES, "mailbox.py"), self.path("fft256.bin"))
        self.assertIn("8 transforms of 256 numbers, relative error", out)

    def test_transforms_by_registers(self):
        out, err = self.run_under_shim(REGISTERS, self.path("fft256.bin"))
        self.assertIn("relative error", out)
        self.assertIn("is not in memory that the firmware gave to this process", err)

    def test_the_firmware_refuses(self):
        self.python("""
assert mailbox.ask(ALLOCATE, 1 << 29, 4096, DIRECT) == 0
assert mailbox.ask(ALLOCATE, 0, 4096, DIRECT) == 0
assert mailbox.ask(LOCK, 77) == 0 and mailbox.ask(RELEASE, 77) != 0
memory = Memory(mailbox, 0x4000)
assert execute(memory, ["end"], []) == 0x80000000  # without power
mailbox.ask(ENABLE_QPU, 1)
assert execute(memory, ["end"], []) == 0
assert mailbox.ask(EXECUTE_QPU, 1, 0x10, 0, 100) == 0x80000000  # the list is nowhere
assert mailbox.ask(EXECUTE_QPU, 1 << 31, memory.address, 0, 100) == 0x80000000
handles = []
while handle := mailbox.ask(ALLOCATE, 8 << 20, 4096, 0xc):
    assert mailbox.ask(LOCK, handle) >> 30 == 1
    handles.append(handle)
assert 4 <= len(handles) <= 7, handles  # of the 76 MiB of a board
for handle in handles:
    assert mailbox.ask(RELEASE, handle) == 0
assert mailbox.ask(ALLOCATE, 8 << 20, 1 << 20, 0)
""")

    def test_programs_that_do_not_end(self):
        self.python("""
mailbox.ask(ENABLE_QPU, 1)
memory = Memory(mailbox, 0x4000)
for bad in ("wait", "loop", "hang"):
    assert execute(memory, [bad], [], 10) == 0x80000000, bad
    assert execute(memory, ["end", "end"], []) == 0, bad
""")

    def test_stores_beyond_memory_reach_nothing(self):
        self.python("""
mailbox.ask(ENABLE_QPU, 1)
memory, freed = Memory(mailbox, 0x4000), Memory(mailbox, 0x1000)
beyond = [(memory.address + 0x4000) & 0xffffffff, 0, 0x3f200000, 0x7e200000, freed.address]
kept = freed.map
mailbox.ask(RELEASE, freed.handle)
for address in beyond:
    assert execute(memory, ["store"], [0x12345678, address]) == 0, hex(address)
assert not any(kept[:64])
for alias in range(4):
    address = memory.address & 0x3fffffff | alias << 30
    assert execute(memory, ["store"], [alias + 5, address + 0x3800]) == 0
    assert memory.words[0x3800 // 4] == alias + 5
""")

    def test_clients_do_not_share(self):
        other = self.start(sys.executable, "-B", "-c", PREAMBLE.format(folder=self.folder.name) + """
memory = Memory(mailbox, 0x4000)
print(memory.address, flush=True)
sys.stdin.readline()
assert not any(memory.words)
""")
        address = int(other.stdout.readline())
        self.python(f"""
mailbox.ask(ENABLE_QPU, 1)
memory = Memory(mailbox, 0x4000)
for alias in range(4):
    execute(memory, ["store"], [0x666, ({address} & 0x3fffffff | alias << 30) + 0x3800])
""")
        out, err = other.communicate("\n", timeout=60)
        self.assertEqual(other.returncode, 0, out + err)

    WAYS = [[], ["--seccomp"], ["--sandbox"], ["--seccomp", "--sandbox"]]

    def run_in(self, options, *command):
        """Under `v3demu run`. None: this machine cannot do that."""
        done = subprocess.run([COMMAND, "run", "--mesa", "system", "--device", "rpi3", *options, "--", *command], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False)
        if "no sandbox (" in done.stdout or "system calls cannot be supervised" in done.stdout:
            return None
        self.assertEqual(done.returncode, 0, f"{options}: {done.stdout}")
        return done.stdout

    def test_in_every_way_of_running_a_program(self):
        mailbox = [sys.executable, "-B", os.path.join(SAMPLES, "mailbox.py"), self.path("fft256.bin")]
        for options in self.WAYS:
            with self.subTest(options=options):
                out = self.run_in(options, *mailbox)
                if out is None:
                    continue
                self.assertIn("relative error", out)
                self.assertIn("relative error", self.run_in(options, REGISTERS, self.path("fft256.bin")))
                if "--seccomp" in options:  # by the supervisor
                    for program in (mailbox, [REGISTERS, self.path("fft256.bin")]):
                        self.assertIn("relative error", self.run_in(options, "env", "-u", "LD_PRELOAD", *program))

    SHARED_MEMORY = """
import errno, mmap
ALLOCATE_SHARED, IMPORT, SYNC = 0x80404a5a, 0x80404a5b, 0x40086200  # vc_sm_cma_ioctl.h, dma-buf.h
vcsm = os.open("/dev/vcsm-cma", os.O_RDWR | os.O_NONBLOCK)
def allocate(size):
    # The descriptor, the firmware's handle, the bus address, and the memory.
    request = struct.pack("4I32s24x", size, 1, 0, 0, b"test")
    fd, handle, address = struct.unpack_from("iIQ", fcntl.ioctl(vcsm, ALLOCATE_SHARED, request), 48)
    return fd, handle, address, mmap.mmap(fd, size)
def error_of(request, argument):
    try:
        fcntl.ioctl(vcsm, request, argument)
    except OSError as e:
        return e.errno
assert os.major(os.fstat(vcsm).st_rdev) == 10
mailbox.ask(ENABLE_QPU, 1)
fd, handle, address, memory = allocate(0x5000)
assert address >> 30 == 3 and os.fstat(fd).st_size == 0x5000 and fcntl.fcntl(fd, fcntl.F_GETFD) == fcntl.FD_CLOEXEC
assert mailbox.ask(LOCK, handle) == address
fcntl.ioctl(fd, SYNC, struct.pack("Q", 3))
class Shared:
    pass
shared = Shared()
shared.map, shared.address = memory, address
assert execute(shared, ["store"], [0x321, address + 0x3800]) == 0
assert struct.unpack_from("I", memory, 0x3800)[0] == 0x321
for alias in range(4):  # what the mailbox gives is next to it, and reached alike
    assert execute(shared, ["store"], [alias, (address & 0x3fffffff | alias << 30) + 0x4000]) == 0
    assert struct.unpack_from("I", memory, 0x4000)[0] == alias
assert error_of(ALLOCATE_SHARED, bytes(64)) == errno.EINVAL
assert error_of(ALLOCATE_SHARED, struct.pack("I60x", 0xffffffff)) == errno.EINVAL
assert error_of(ALLOCATE_SHARED, struct.pack("I60x", 1 << 30)) == errno.ENOMEM
assert error_of(0x80404a5c, bytes(64)) == error_of(IMPORT, bytes(64)) == errno.EINVAL
assert error_of(ALLOCATE_SHARED, 8) == errno.EFAULT
# It goes with the last descriptor and mapping, so that this never ends for want of memory.
for n in range(40):
    other = allocate(64 << 20)
    assert mailbox.ask(LOCK, other[1]) == other[2]
    os.close(other[0])
    if n % 2:
        other[3].close()
assert mailbox.ask(LOCK, handle) == address
print("good")
"""

    def test_memory_that_linux_shares(self):
        self.assertIn("good", self.python(self.SHARED_MEMORY)[0])
        for options in self.WAYS[1:]:
            with self.subTest(options=options):
                text = PREAMBLE.format(folder=self.folder.name) + self.SHARED_MEMORY
                bare = ["env", "-u", "LD_PRELOAD"] if "--seccomp" in options else []
                out = self.run_in(options, *bare, sys.executable, "-B", "-c", text)
                self.assertTrue(out is None or "good" in out, out)

    def test_memory_under_a_supervisor(self):
        """Without the library: what the firmware gave is the process's and its children's, and nobody else's."""
        preamble = PREAMBLE.format(folder=self.folder.name)
        out = self.run_in(["--seccomp"], "env", "-u", "LD_PRELOAD", sys.executable, "-B", "-c",
                          preamble + f"PREAMBLE = {preamble!r}" + """
import errno, mmap
mailbox.ask(ENABLE_QPU, 1)
memory = Memory(mailbox, 0x4000)
at = memory.address & 0x3fffffff
def error_of(offset, size):
    fd = os.open("/dev/mem", os.O_RDWR)
    try:
        mmap.mmap(fd, size, offset=offset)
    except OSError as e:
        return e.errno
    finally:
        os.close(fd)
assert os.fstat(os.open("/dev/mem", os.O_RDWR)).st_rdev == os.makedev(1, 1)
for offset, size in ((0, 4096), (at - 4096, 8192), (at, 0x5000), (0x7ffff000, 4096)):
    assert error_of(offset, size) == errno.EPERM, hex(offset)
assert error_of(at, 0x4000) is None
assert error_of(0x3fffffff & ~4095, 8192) == errno.EPERM and error_of(0x3f200000, 4096) is None
assert execute(memory, ["store"], [0x111, memory.address + 0x3800]) == 0 and memory.words[0x3800 // 4] == 0x111
assert execute(memory, ["loop"], [], 10) == 0x80000000 and execute(memory, ["end"], []) == 0
if os.fork() == 0:
    good = execute(memory, ["store"], [0x222, memory.address + 0x3804]) == 0 and error_of(at, 4096) is None
    os._exit(0 if good else 1)
assert os.wait()[1] == 0 and memory.words[0x3804 // 4] == 0x222
if os.fork() == 0:
    anew = PREAMBLE + f"sys.exit(mailbox.ask(RELEASE, {memory.handle}) == 0)"
    os.execv(sys.executable, [sys.executable, "-B", "-c", anew])
assert os.wait()[1] == 0  # a program that was executed begins anew
os.closerange(3, 1024)
assert Mailbox().ask(LOCK, memory.handle) == 0  # gone with the last descriptor
print("good")
""")
        if out is None:
            self.skipTest("no supervisor here")
        self.assertIn("good", out)

    def v3demu(self, *arguments, status=0):
        done = subprocess.run([COMMAND, *arguments], text=True, capture_output=True, timeout=120, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def test_captures_hold_them(self):
        for name, program in (("mailbox", [sys.executable, "-B", os.path.join(SAMPLES, "mailbox.py")]),
                              ("registers", [REGISTERS])):
            capture = self.path(name + ".v3dcap")
            out, _ = self.v3demu("capture", "--device", "rpi3", "-o", capture, "--", *program, self.path("fft256.bin"))
            self.assertIn("relative error", out)
            first, again = (self.v3demu("replay", "--hash", capture)[0] for _ in range(2))
            words = [[line.split("memory ")[1] for line in text.splitlines()] for text in (first, again)]
            self.assertEqual(words[0], words[1])
            self.assertIn("job 1: user", first)
            timed, _ = self.v3demu("replay", "--time", capture)
            # Stores to registers start one program after the other, and what runs may wait for the next.
            late = "" if name == "mailbox" else "|no prediction: user programs wait for those of a later job"
            self.assertRegex(timed, "job 1: user .* (predicted [0-9.]+ ms" + late + ")")
            trace, _ = self.v3demu("replay", "--trace-qpu=stage=user,instructions=3", capture)
            self.assertIn("==== job 1, user program at 0x", trace)
            listed, _ = self.v3demu("decode", "--job", "1", capture)
            self.assertIn("job 1: user, client 1", listed)
            self.assertIn("started by " + ("the firmware" if name == "mailbox" else "registers"), listed)
            self.assertRegex(listed, "user program at 0x[0-9a-f]+, uniforms at 0x")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
