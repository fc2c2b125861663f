#!/usr/bin/env python3
"""libv3drec.so as gcc makes it for a Raspberry Pi's 64-bit or 32-bit system, in a program of that architecture under qemu-user: what it
records replays here to the very memory.

usage: recorder_foreign_test.py BUILD_FOLDER arm64|armhf

Exit status 77: skipped, what is missing is named.
"""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.realpath(os.path.join(HERE, "..", "..", ".."))
sys.path.insert(0, HERE)
from recording import Recorder  # noqa: E402

TRIPLETS = {"arm64": ("aarch64-linux-gnu", "qemu-aarch64"), "armhf": ("arm-linux-gnueabihf", "qemu-arm")}


def need(condition, what):
    if not condition:
        print("skipped: " + what)
        sys.exit(77)


def main():
    build, architecture = sys.argv[1:3]
    triplet, emulator = TRIPLETS[architecture]
    need(shutil.which(triplet + "-g++"), f"no cross compiler (package g++-{triplet})")
    need(shutil.which(emulator) or shutil.which(emulator + "-static"), f"no {emulator} (package qemu-user)")
    need(os.path.exists(os.path.join(build, "lib", triplet, "libv3demu.so")), f"no preload library for {architecture}")
    with tempfile.TemporaryDirectory(prefix="v3demu-recorder-") as folder:
        root = os.path.join(folder, "root")  # the compiler's own C library
        os.makedirs(os.path.join(root, "usr"))
        os.symlink(f"/usr/{triplet}/lib", os.path.join(root, "lib"))
        # As docs/recording.md has people do it on a board.
        library, program = os.path.join(folder, "libv3drec.so"), os.path.join(folder, "saxpy")
        subprocess.run([triplet + "-gcc", "-O2", "-shared", "-fPIC", "-o", library, os.path.join(TREE, "recorder", "v3drec.c")], check=True)
        subprocess.run([triplet + "-g++", "-std=c++20", "-D_FILE_OFFSET_BITS=64", "-O1", "-I" + TREE, "-static-libstdc++",
                        "-static-libgcc", "-o", program, os.path.join(TREE, "tests", "e2e", "qpu_programs", "saxpy.cc")], check=True)
        recorder = Recorder(os.path.join(build, "bin", "v3demu"), library, folder,
                            ["--arch", architecture, "--root", root, "--mesa", "system"])
        done, path = recorder.run("saxpy", [program, "/dev/dri/renderD128"])
        assert done.returncode == 0 and "elements on" in done.stdout, done.stdout + done.stderr
        status, jobs = recorder.compare(path)
        assert status == 0 and [job["equal"] for job in jobs] == [True], jobs
        print(f"{architecture}: {jobs[0]['pages']} pages are equal")


if __name__ == "__main__":
    main()
