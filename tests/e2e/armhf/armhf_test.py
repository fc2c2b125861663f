#!/usr/bin/env python3
"""32-bit programs of ARM on the emulated Pi, under qemu-user.

usage: armhf_test.py TASK BUILD_FOLDER [SUITE]

calls   a program that makes the calls of each of libc's kinds of 32-bit programs; it needs the cross compiler alone
info    eglinfo of Debian's armhf packages (packaging/debian-root armhf SUITE, trixie by default) names the device

Exit status 77: skipped, what is missing is named.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.realpath(os.path.join(HERE, "..", "..", ".."))
COMPILER, TRIPLET = "arm-linux-gnueabihf-gcc", "arm-linux-gnueabihf"

# How programs are built: what they are called here, and what the compiler is told.
KINDS = {"short": [], "long_offsets": ["-D_FILE_OFFSET_BITS=64"],
         "long_times": ["-D_FILE_OFFSET_BITS=64", "-D_TIME_BITS=64"]}


def need(condition, what):
    if not condition:
        print("skipped: " + what)
        sys.exit(77)


class Test:
    def __init__(self, build):
        self.v3demu = os.path.join(build, "bin", "v3demu")
        need(shutil.which("qemu-arm") or shutil.which("qemu-arm-static"), "no qemu-arm (package qemu-user)")
        need(os.path.exists(os.path.join(build, "lib", TRIPLET, "libv3demu.so")),
             "no shim for armhf (package g++-arm-linux-gnueabihf)")

    def run(self, root, options, command):
        """What the program prints; it has to end with success."""
        done = subprocess.run([self.v3demu, "run", "--arch", "armhf", "--root", root] + options + ["--"] + command, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-4000:]}")
        return done.stdout

    def calls(self):
        need(shutil.which(COMPILER), "no cross compiler (package g++-arm-linux-gnueabihf)")
        with tempfile.TemporaryDirectory(prefix="v3demu-armhf-") as folder:
            root = os.path.join(folder, "root")  # the compiler's own C library
            os.makedirs(os.path.join(root, "usr"))
            os.symlink(f"/usr/{TRIPLET}/lib", os.path.join(root, "lib"))
            for kind, flags in KINDS.items():
                program = os.path.join(folder, kind)
                subprocess.run([COMPILER, "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", *flags, "-o", program,
                                os.path.join(HERE, "calls.c")], check=True)
                print(kind + ": " + self.run(root, ["--mesa", "system"], [program]), end="")

    def info(self, suite="trixie"):
        folder = subprocess.run([os.path.join(ROOT, "packaging", "debian-root"), "--prefix", "armhf", suite], check=True,
                                capture_output=True, text=True).stdout.strip()
        need(os.path.exists(os.path.join(folder, ".packages")), f"no armhf packages of Debian {suite}: packaging/debian-root armhf {suite}")
        text = self.run(folder, [], ["eglinfo", "-B", "-p", "surfaceless"])
        if not re.search(r"renderer: V3D 7\.1\.7\.0", text):
            sys.exit(f"eglinfo does not name the device:\n{text[:4000]}")


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("calls", "info"):
        sys.exit(__doc__)
    getattr(Test(sys.argv[2]), sys.argv[1])(*sys.argv[3:])


if __name__ == "__main__":
    main()
