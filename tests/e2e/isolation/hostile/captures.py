"""Captures (daemon/capture.h): made, mutated, replayed by `v3demu replay` and as jobs of a live client."""
import glob
import os
import struct
import subprocess
import tempfile

from capture_records import HEADER_BYTES, JOB, MAPS, PAGE_BYTES, SETS, pages_of, records

from . import board, drm, witness
from .assault import Unexpected, attack
from .daemon import REPORT, Daemon

MOST_JOBS = 60
BIN, RENDER, CSD, TFU = range(4)
FOLDER = "HOSTILE_CAPTURES"  # in the environment: where captures lie, and the command that replays them
COMMAND = "HOSTILE_COMMAND"
REPLAY_SECONDS = 120  # of a mutated capture whose jobs are endless: each job is reset


def environment(build, folder):
    """For attackers, of the captures in a folder."""
    return {FOLDER: folder, COMMAND: build.command}


def make(build, folder, commands=(), rounds=10):
    """One capture of the victim and one of each command, given as the name and the arguments of `v3demu run`."""
    os.makedirs(folder, exist_ok=True)
    paths = [os.path.join(folder, "victim.v3dcap")]
    daemon = Daemon(build, os.path.join(folder, "daemon"), ["--capture", paths[0]])
    victim = witness.Witness("victim.py", daemon.client_environment())
    victim.wait_for(rounds)
    victim.close()
    daemon.stop()
    for name, arguments in commands:
        path = os.path.join(folder, name + ".v3dcap")
        with tempfile.TemporaryDirectory(prefix="v3demu-capture-") as runtime:
            done = subprocess.run([build.command, "capture", "-o", path, *arguments], capture_output=True, text=True,
                                  env={**build.without(), "XDG_RUNTIME_DIR": runtime}, timeout=300, check=False)
        if done.returncode == 0:
            paths.append(path)
    return [path for path in paths if os.path.exists(path)]


def split(data):
    """Header and [(kind, payload)]."""
    return data[:HEADER_BYTES], [(kind, payload) for _, kind, payload in records(data)]


def join(header, parts):
    return header + b"".join(struct.pack("<II", kind, len(payload)) + payload for kind, payload in parts)


def flip(random, payload):
    """A few words of it changed, mostly by little."""
    content = bytearray(payload)
    for _ in range(random.choice((1, 1, 2, 5, 20))):
        if len(content) < 4:
            break
        # Packets and addresses are found at the beginning of a page more often than anywhere.
        at = random.randrange(len(content) - 3) if random.random() < 0.6 else random.randrange(min(256, len(content) - 3))
        word, = struct.unpack_from("<I", content, at)
        word = random.choice((word ^ 1 << random.randrange(32), word + random.choice((-1, 1, 64, 4096)), 0, 0xffffffff,
                              random.getrandbits(32)))
        struct.pack_into("<I", content, at, word & 0xffffffff)
    return bytes(content)


def mutate(random, data):
    """Another capture: records changed, doubled, dropped, exchanged, or the file cut or changed anywhere."""
    header, parts = split(data)
    for _ in range(random.choice((1, 1, 2, 4, 16))):
        at = random.randrange(len(parts))
        kind, payload = parts[at]
        what = random.randrange(10)
        if what < 7:
            parts[at] = kind, flip(random, payload)
        elif what == 7:
            parts.insert(random.randrange(len(parts)), parts[at])
        elif what == 8 and len(parts) > 1:
            parts.pop(at)
        else:
            other = random.randrange(len(parts))
            parts[at], parts[other] = parts[other], parts[at]
    made = join(header, parts)
    if random.random() < 0.1:
        made = made[:random.randrange(len(made))]
    return flip(random, made) if random.random() < 0.1 else made


def _choose(a):
    """One of the captures."""
    paths = sorted(glob.glob(os.path.join(os.environ[FOLDER], "*.v3dcap")))
    with open(a.random.choice(paths), "rb") as file:
        return file.read()


@attack(point=10, seconds=4, boards=board.ALL, refused=True)
def replayed_mutations(a):
    """`v3demu replay` and `v3demu decode` of mutated captures: they end by themselves with exit status 0 or 1."""
    without_library = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    while a.going():
        seed = a.random.getrandbits(32)
        a.random.seed(seed)
        data = mutate(a.random, _choose(a))
        fd = os.memfd_create("capture")
        os.write(fd, data)
        command = a.random.choice(("replay", "replay", "decode"))
        a.counters.add("captures")
        try:
            done = subprocess.run([os.environ[COMMAND], command, f"/proc/self/fd/{fd}"], pass_fds=[fd], env=without_library,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=REPLAY_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise Unexpected(f"{command} of mutation {seed} hangs") from None
        finally:
            os.close(fd)
        text = done.stderr.decode(errors="replace")
        if done.returncode not in (0, 1) or REPORT.search(text):
            raise Unexpected(f"{command} of mutation {seed}: exit status {done.returncode}, {text[-1500:]}")


class Replayer:
    """The contexts of a capture as open nodes, their ranges as objects where they were."""

    def __init__(self, a):
        self.a = a
        self.pages = [bytes(PAGE_BYTES)]
        self.contexts = {}

    def context(self, number):
        if number not in self.contexts and len(self.contexts) < 4:
            self.contexts[number] = self.a.device(), {}  # objects by address
        return self.contexts.get(number, (None, None))

    def maps(self, words):
        device, objects = self.context(words[0])
        if not device:
            return
        for address, pages in sorted(zip(words[1::2], words[2::2])):
            if address in objects or not 0 < pages < 1 << 14 or len(objects) > 500:
                continue
            with self.a.refusals():
                made = drm.v3d_drm.Bo(device, pages * PAGE_BYTES)
                objects[made.address] = made

    def sets(self, words):
        _, objects = self.context(words[0])
        for address, page in zip(words[1::2], words[2::2]):
            for start, bo in (objects or {}).items():
                if start <= address <= start + bo.size - PAGE_BYTES and page < len(self.pages):
                    at = (address - start) // 4
                    bo.words[at:at + 1024] = memoryview(self.pages[page]).cast("I")

    def job(self, words):
        device, objects = self.context(words[0])
        if not objects:
            return
        kind, w, bos = words[1], words[3:], list(objects.values())
        try:
            if kind == RENDER:  # of which the bin job is the first half
                device.submit_cl(bos, w[0:2], w[2:4], w[4:7])
            elif kind == CSD:
                device.submit_csd(w[:7], bos)
            elif kind == TFU:
                device.submit_tfu(bos[:1], icfg=w[0], iia=w[1], iis=w[2], ica=w[3], iua=w[4], ioa=w[5], ios=w[6], ioc=w[7])
            device.wait(bos[0], 0.2)
        except OSError:
            pass  # refused, or not done in time

    def close(self):
        for device, objects in self.contexts.values():
            for bo in objects.values():
                bo.close()
            device.close()


@attack(point=4, seconds=4, refused=True)
def live_mutations(a):
    """The jobs of mutated captures, with their memory, submitted by a client."""
    while a.going():
        _, parts = split(mutate(a.random, _choose(a)))
        replayer, jobs = Replayer(a), 0
        a.counters.add("captures")
        for kind, payload in parts:
            words = struct.unpack_from(f"<{len(payload) // 4}I", payload)
            replayer.pages += pages_of(kind, payload)
            if kind == MAPS and words:
                replayer.maps(words)
            elif kind == SETS and words:
                replayer.sets(words)
            elif kind == JOB and len(words) >= 19:
                replayer.job(words)
                jobs += 1
            if not a.going() or jobs > MOST_JOBS:
                break
        replayer.close()
