#!/usr/bin/env python3
"""arm64 programs with Debian's arm64 Mesa on the emulated Pi.

usage: arm64_test.py TASK BUILD_FOLDER MESA_PREFIX

programs  builds the end-to-end programs and samples for arm64
info      vulkaninfo, eglinfo and es2_info name the device and the newest Mesa
vkcube    300 frames of one vkcube on the newest Mesa and on 25.0.7: the same pictures
vulkan    the Vulkan end-to-end tests, those of optional features too, on the newest Mesa
gl        the OpenGL end-to-end tests on the newest Mesa
pictures  samples and scenes of glmark2 on the newest Mesa beside lavapipe and llvmpipe

Exit status 77: skipped, what is missing is named.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

from roots import ROOT, need, root_of

sys.path.insert(0, os.path.join(ROOT, "tools", "scripts"))
from gallery_parts import comparison  # pylint: disable=wrong-import-position
from gallery_parts.image import read_ppm  # pylint: disable=wrong-import-position
from gallery_parts.windows import Failure, Weston, Xvfb  # pylint: disable=wrong-import-position

NEWEST, RASPBERRY_PI_OS = "sid", "trixie"
CUBE_FRAMES = (20, 280)


def mesa_version(root):
    with open(os.path.join(root, ".packages"), encoding="utf-8") as file:
        return re.search(r"/mesa-vulkan-drivers_([\d.]+)", file.read()).group(1)


class Test:
    def __init__(self, build, mesa):
        self.v3demu = os.path.join(build, "bin", "v3demu")
        self.build, self.mesa = build, mesa
        self.programs_folder = os.path.join(build, "arm64-programs")
        need(shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static"), "no qemu-aarch64 (package qemu-user)")
        need(os.path.exists(os.path.join(build, "lib", "aarch64-linux-gnu", "libv3demu.so")),
             "no shim for arm64 (package g++-aarch64-linux-gnu)")

    def program(self, name):
        return os.path.join(self.programs_folder, "bin", name)

    def run(self, suite, command, **variables):
        """What the program prints; it has to end with success."""
        done = subprocess.run([self.v3demu, "run", "--arch", "arm64", "--root", root_of(suite), "--"] + command, text=True,
                              env=dict(os.environ, **variables), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            sys.exit(f"{command[0]} ended with {done.returncode}:\n{done.stdout[-4000:]}")
        return done.stdout

    def expect(self, text, pattern):
        if not re.search(pattern, text):
            sys.exit(f"no '{pattern}' in\n{text[:4000]}")

    def programs(self):
        need(shutil.which("aarch64-linux-gnu-g++"), "no cross compiler (package g++-aarch64-linux-gnu)")
        need(os.path.exists("/usr/src/googletest"), "no sources of GoogleTest (package googletest)")
        configure = ["cmake", "-G", "Ninja", "-S", ROOT, "-B", self.programs_folder, "-DCMAKE_BUILD_TYPE=Release",
                     f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/cmake/aarch64-linux-gnu.cmake", f"-DV3DEMU_ARM64_ROOT={root_of(NEWEST)}",
                     "-DV3DEMU_PRELOAD_ONLY=ON"]
        for command in configure, ["ninja", "-C", self.programs_folder]:
            subprocess.run(command, check=True)

    def info(self):
        version = mesa_version(root_of(NEWEST))
        vulkan = self.run(NEWEST, ["vulkaninfo"])
        self.expect(vulkan, r"deviceName\s+= V3D 7\.1\.7\.0")
        self.expect(vulkan, r"driverInfo\s+= Mesa " + re.escape(version))
        egl = self.run(NEWEST, ["eglinfo", "-B", "-p", "surfaceless"])
        self.expect(egl, r"renderer: V3D 7\.1\.7\.0")
        self.expect(egl, r"version: OpenGL ES 3\.1 Mesa " + re.escape(version))
        with tempfile.TemporaryDirectory(prefix="v3demu-arm64-") as folder:
            weston = Weston([self.v3demu, "run", "--mesa", self.mesa, "--"], folder, xwayland=True)
            try:
                gles = self.run(NEWEST, ["es2_info"], DISPLAY=weston.environment["DISPLAY"])
            finally:
                weston.stop()
        self.expect(gles, r"GL_RENDERER: V3D 7\.1\.7\.0")
        self.expect(gles, r"GL_VERSION: OpenGL ES 3\.1 Mesa " + re.escape(version))

    def vkcube(self):
        """The program is the same file, so that only the drivers differ."""
        cube = os.path.join(root_of(RASPBERRY_PI_OS), "usr", "bin", "vkcube")
        frames = os.path.join(self.programs_folder, "lib", "libv3demu-frames.so")
        with tempfile.TemporaryDirectory(prefix="v3demu-arm64-") as folder:
            server = Xvfb()
            try:
                for suite in NEWEST, RASPBERRY_PI_OS:
                    text = self.run(suite, [cube, "--c", "300", "--width", "500", "--height", "500"], DISPLAY=server.display,
                                    LD_PRELOAD=frames, V3DEMU_FRAMES_REPORT=os.path.join(folder, "report"),
                                    V3DEMU_FRAMES_SAVE=",".join(map(str, CUBE_FRAMES)) + f":{folder}/{suite}")
                    self.expect(text, r"V3D 7\.1")
                    with open(os.path.join(folder, "report"), encoding="utf-8") as report:
                        self.expect(report.read(), r"^300 ")
            finally:
                server.stop()
            for frame in CUBE_FRAMES:
                newest, known = (read_ppm(os.path.join(folder, f"{suite}-{frame}.ppm")) for suite in (NEWEST, RASPBERRY_PI_OS))
                problem = comparison.problem(newest, known, comparison.Limits(share=0.05, mean=0.05))
                if problem:
                    sys.exit(f"frame {frame}: {problem}")
                print(f"frame {frame}: {comparison.difference(newest, known)}")

    def vulkan(self):
        for program in "vulkan_e2e", "vulkan_optional_e2e":
            text = self.run(NEWEST, [self.program(program)], HARNESS_DEVICE="V3D")
            print(text)
            if "SKIPPED" in text:  # the newest driver has every optional feature that the tests know
                sys.exit("tests were skipped")

    def gl(self):
        print(self.run(NEWEST, [self.program("gl_rules_test")], E2E_DEVICE="V3D"))
        for platform in "gbm", "surfaceless":
            self.expect(self.run(NEWEST, [self.program("gl_offscreen"), platform]), r"V3D 7\.1")

    def pictures(self):
        chosen = ["vulkan-shadow", "gl-instancing", "glmark2-build", "glmark2-texture", "glmark2-shading"]
        subprocess.run([os.path.join(ROOT, "tools", "gallery"), "--build", self.build, "--mesa", self.mesa,
                        "--arm64-root", root_of(NEWEST), "--arm64-build", self.programs_folder,
                        "--output", os.path.join(self.programs_folder, "pictures"), "--only"] + chosen, check=True)


def main():
    tasks = ("programs", "info", "vkcube", "vulkan", "gl", "pictures")
    if len(sys.argv) != 4 or sys.argv[1] not in tasks:
        sys.exit(__doc__)
    try:
        getattr(Test(*sys.argv[2:]), sys.argv[1])()
    except (Failure, subprocess.CalledProcessError) as failure:
        sys.exit(str(failure))


if __name__ == "__main__":
    main()
