#!/usr/bin/env python3
"""v3demu for arm64 hosts, run by qemu-user, beside that of this build.

usage: arm64_host_test.py TASK BUILD_FOLDER MESA_PREFIX

replay  captures of a sample on two boards, replayed by both: the same memory after each job
live    the sample's arm64 build with Debian's drivers on the arm64 daemon and on that of this build: the same picture
status  the arm64 daemon says which programs are interpreted, and why
pages   where the kernel's pages have more than 4 KiB the arm64 daemon says so in a sentence, and ends

Exit status 77: skipped, what is missing is named.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "arm64"))
from roots import ROOT, need, root_of  # pylint: disable=wrong-import-position

ARM64 = os.path.join(ROOT, "build", "arm64")
LIBRARIES, DRIVERS = "bookworm", "trixie"  # of the build, and of the program, which needs drivers for the Pi 5
LIMIT = 300
SAMPLE = ["vulkan_samples", "--scene", "shadow", "--size", "64x48", "--output"]


def run(command, **variables):
    """What it prints; it has to end with success."""
    done = subprocess.run(command, text=True, env=dict(os.environ, **variables), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=LIMIT, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


class Daemon:
    """The arm64 daemon, at a socket in the folder."""

    def __init__(self, emulator, folder):
        self.socket = os.path.join(folder, "socket")
        self.log = open(os.path.join(folder, "log"), "w+", encoding="utf-8")  # pylint: disable=consider-using-with
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [*emulator, os.path.join(ARM64, "bin", "v3demud"), "--foreground", "--socket", self.socket],
            stdout=self.log, stderr=subprocess.STDOUT)

    def __enter__(self):
        end = time.monotonic() + LIMIT
        while not os.path.exists(self.socket):
            if self.process.poll() is not None or time.monotonic() > end:
                self.log.seek(0)
                sys.exit("the arm64 daemon does not serve:\n" + self.log.read())
            time.sleep(0.05)
        return self

    def __exit__(self, *error):
        self.process.terminate()
        self.process.wait(LIMIT)
        self.log.close()


class Test:
    def __init__(self, build, mesa):
        self.v3demu, self.mesa = os.path.join(build, "bin", "v3demu"), mesa
        self.here = os.path.join(build, "bin", SAMPLE[0])
        emulator = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
        need(emulator, "no qemu-aarch64 (package qemu-user)")
        self.there = os.path.join(ARM64, "bin", SAMPLE[0])
        self.emulator = [emulator, "-L", root_of(LIBRARIES)]

    def need_built(self, *files):
        for file in files:
            need(os.path.exists(os.path.join(ARM64, file)), f"no {file} of a build for arm64: packaging/arm64")

    def replay(self):
        self.need_built("bin/v3demu")
        with tempfile.TemporaryDirectory(prefix="v3demu-arm64-host-") as folder:
            for board in "rpi5", "rpi4":
                capture = os.path.join(folder, board)
                run([self.v3demu, "capture", "--device", board, "-o", capture, "--mesa", self.mesa, "--", self.here, *SAMPLE[1:],
                     os.path.join(folder, "ppm")], V3DEMU_SOCKET=os.path.join(folder, "socket-" + board))
                command = ["replay", capture, "--hash"]
                jobs = {}
                for name, start in ("here", [self.v3demu]), ("arm64", [*self.emulator, os.path.join(ARM64, "bin", "v3demu")]):
                    text = run(start + command)
                    jobs[name] = [re.sub(r" +[0-9.]+ ms", "", line) for line in text.splitlines() if line.startswith("job ")]
                if not any(re.search(" render .*memory [0-9a-f]{16}", job) for job in jobs["here"]):
                    sys.exit("no job drew anything:\n" + "\n".join(jobs["here"]))
                if jobs["here"] != jobs["arm64"]:
                    sys.exit("\n".join(["here:", *jobs["here"], "arm64:", *jobs["arm64"]]))
                print(f"{board}: {len(jobs['here'])} jobs with the same memory")

    def live(self):
        self.need_built("bin/v3demud", "bin/" + SAMPLE[0], "lib/libv3demu.so")
        libraries = root_of(DRIVERS)
        with tempfile.TemporaryDirectory(prefix="v3demu-arm64-host-") as folder, Daemon(self.emulator, folder) as daemon:
            pictures = []
            for name, socket in ("arm64", daemon.socket), ("here", os.path.join(folder, "here")):
                picture = os.path.join(folder, name + ".ppm")
                run([self.v3demu, "run", "--arch", "arm64", "--root", libraries, "--", self.there, *SAMPLE[1:], picture], V3DEMU_SOCKET=socket,
                    V3DEMU_SHIM=os.path.join(ARM64, "lib", "libv3demu.so"), HARNESS_DEVICE="V3D", MESA_SHADER_CACHE_DISABLE="true")
                with open(picture, "rb") as file:
                    pictures.append(file.read())
        if len(set(pictures[0])) < 10:
            sys.exit("the program drew nothing")
        if pictures[0] != pictures[1]:
            sys.exit("the pictures differ")

    def status(self):
        self.need_built("bin/v3demu", "bin/v3demud")
        with tempfile.TemporaryDirectory(prefix="v3demu-arm64-host-") as folder, Daemon(self.emulator, folder) as daemon:
            text = run([*self.emulator, os.path.join(ARM64, "bin", "v3demu"), "status"], V3DEMU_SOCKET=daemon.socket)
        if "programs of V3D 4.2 and 7.1 are interpreted but for blocks of fragments: no compiler makes other code of them for this processor; " not in text:
            sys.exit("not what status says:\n" + text)
        done = subprocess.run([*self.emulator, os.path.join(ARM64, "bin", "v3demud"), "--foreground"], text=True, timeout=LIMIT,
                              env=dict(os.environ, V3DEMU_JIT="avx2"), capture_output=True, check=False)
        if done.returncode == 0 or "the processor has not AVX2" not in done.stderr:
            sys.exit(f"V3DEMU_JIT=avx2 ends with {done.returncode}: {done.stderr}")

    def pages(self):
        self.need_built("bin/v3demud")
        with tempfile.TemporaryDirectory(prefix="v3demu-arm64-host-") as folder:
            done = subprocess.run([self.emulator[0], "-p", "16384", *self.emulator[1:], os.path.join(ARM64, "bin", "v3demud"), "--foreground",
                                   "--socket", os.path.join(folder, "socket")], text=True, timeout=LIMIT, capture_output=True, check=False)
        sentences = [line for line in done.stderr.splitlines() if "this kernel's pages have 16384 bytes" in line]
        if done.returncode == 0 or len(sentences) != 1:
            sys.exit(f"with pages of 16 KiB the daemon ends with {done.returncode}: {done.stderr}")


if __name__ == "__main__":
    task, *arguments = sys.argv[1:]
    getattr(Test(*arguments), task)()
