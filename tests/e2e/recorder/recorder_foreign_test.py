#!/usr/bin/env python3
"""libv3drec.so as gcc makes it for a Raspberry Pi's 64-bit or 32-bit system, in a program of that architecture under qemu-user: what it
records replays here to the very memory.

usage: recorder_foreign_test.py BUILD_FOLDER arm64|armhf saxpy|mesa

saxpy   programs of the kernel's interface alone, on V3D, one of which hangs; it needs the cross compiler
mesa    OpenGL ES on Debian's Mesa of the architecture, as packaging/debian-root has it (trixie)

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
from recording import Recorder, read_packed  # noqa: E402
from capture_records import CHUNK, records  # noqa: E402

TRIPLETS = {"arm64": ("aarch64-linux-gnu", "qemu-aarch64"), "armhf": ("arm-linux-gnueabihf", "qemu-arm")}


def need(condition, what):
    if not condition:
        print("skipped: " + what)
        sys.exit(77)


class Test:
    def __init__(self, build, architecture, folder):
        self.build, self.architecture, self.folder = build, architecture, folder
        self.triplet, emulator = TRIPLETS[architecture]
        need(shutil.which(self.triplet + "-g++"), f"no cross compiler (package g++-{self.triplet})")
        need(shutil.which(emulator) or shutil.which(emulator + "-static"), f"no {emulator} (package qemu-user)")
        need(os.path.exists(os.path.join(build, "lib", self.triplet, "libv3demu.so")), f"no preload library for {architecture}")
        # As docs/recording.md has people do it on a board.
        self.library = os.path.join(folder, "libv3drec.so")
        self.compile("gcc", "-O2", "-shared", "-fPIC", "-o", self.library, os.path.join(TREE, "recorder", "v3drec.c"))

    def compile(self, compiler, *arguments):
        subprocess.run([f"{self.triplet}-{compiler}", *arguments], check=True)

    def recorder(self, root, options):
        return Recorder(os.path.join(self.build, "bin", "v3demu"), self.library, self.folder, ["--arch", self.architecture, "--root", root, *options])

    def record(self, name, root, options, command):
        """What the program said, and what is compared."""
        recorder = self.recorder(root, options)
        done, path = recorder.run(name, command)
        assert done.returncode == 0, done.stdout + done.stderr
        status, jobs = recorder.compare(path)
        assert status == 0 and jobs and all(job["equal"] and job["pages"] > 0 for job in jobs), jobs
        return done.stdout, path, jobs

    def compiled(self, name):
        """A program of tests/e2e/qpu_programs."""
        program = os.path.join(self.folder, name)
        self.compile("g++", "-std=c++20", "-D_FILE_OFFSET_BITS=64", "-O1", "-I" + TREE, "-static-libstdc++", "-static-libgcc", "-o", program,
                     os.path.join(TREE, "tests", "e2e", "qpu_programs", name + ".cc"))
        return program

    def saxpy(self):
        root = os.path.join(self.folder, "root")  # the compiler's own C library
        os.makedirs(os.path.join(root, "usr"))
        os.symlink(f"/usr/{self.triplet}/lib", os.path.join(root, "lib"))
        said, path, jobs = self.record("saxpy", root, ["--mesa", "system"], [self.compiled("saxpy"), "/dev/dri/renderD128"])
        assert "elements on" in said, said
        assert CHUNK not in {kind for _, kind, _ in records(read_packed(path))}  # there is no libzstd
        assert len(jobs) == 1, jobs
        print(f"{self.architecture}: {jobs[0]['pages']} pages are equal")
        self.hang(root)

    def hang(self, root):
        recorder = self.recorder(root, ["--mesa", "system"])
        done, path = recorder.run("hang", [self.compiled("hang"), "/dev/dri/renderD128"], V3DREC_PATIENCE="60000")
        assert (done.returncode, done.stdout) == (0, "hang: over\n"), done.stdout + done.stderr
        explained = recorder.replay(path, "--explain-hang")
        assert explained.returncode == 1 and "in a loop that does not end" in explained.stdout, explained.stdout + explained.stderr
        assert [job["equal"] for job in recorder.compare(path)[1]] == [True]
        print(f"{self.architecture}: a hang is explained")

    def mesa(self):
        root = subprocess.run([os.path.join(TREE, "packaging", "debian-root"), "--prefix", self.architecture, "trixie"], check=True,
                              capture_output=True, text=True).stdout.strip()
        need(os.path.exists(os.path.join(root, ".packages")),
             f"no {self.architecture} packages of Debian trixie: packaging/debian-root {self.architecture} trixie")
        program, libraries = os.path.join(self.folder, "offscreen"), os.path.join(root, "usr", "lib", self.triplet)
        self.compile("gcc", "-O1", "-isystem", os.path.join(root, "usr", "include"), "-o", program, os.path.join(TREE, "tests", "e2e", "gl", "offscreen.c"),
                     "-L" + libraries, "-Wl,--allow-shlib-undefined", "-lEGL", "-lGLESv2", "-lgbm", "-lm")
        path, jobs = self.record("offscreen", root, [], [program, "surfaceless"])[1:]
        packed = CHUNK in {kind for _, kind, _ in records(read_packed(path))}
        assert packed == os.path.exists(os.path.join(libraries, "libzstd.so.1")), path
        print(f"{self.architecture}: {len(jobs)} jobs, {sum(job['pages'] for job in jobs)} pages are equal")


def main():
    if len(sys.argv) != 4 or sys.argv[2] not in TRIPLETS or sys.argv[3] not in ("saxpy", "mesa"):
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(prefix="v3demu-recorder-") as folder:
        getattr(Test(sys.argv[1], sys.argv[2], folder), sys.argv[3])()


if __name__ == "__main__":
    main()
