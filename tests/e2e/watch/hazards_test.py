#!/usr/bin/env python3
"""V3DEMU_DEBUG=hazard, live and in replays, and disasm --check: silent over what Mesa compiles; one report for a program that breaks a rule.

usage: hazards_test.py V3DEMU SHIM MESA_PREFIX FOLDER VULKAN_PROGRAM GL_PROGRAM GL_FRAMES_LIBRARY
       with-glmark2|without-glmark2

The board is $V3DEMU_DEVICE, by default a Raspberry Pi 5.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
QPU_PROGRAMS = os.path.join(TESTS, "qpu_programs")
SCENES = os.path.join(TESTS, "gl", "scenes.py")
sys.path.insert(0, os.path.join(TESTS, "..", "..", "tools", "scripts"))
from gallery_parts.windows import Xvfb  # pylint: disable=wrong-import-position

# The chip's name for the assembler, and where the C of ldvary arrives.
CHIP, LATE = ("4.2", "r5") if os.environ.get("V3DEMU_DEVICE") == "rpi4" else ("7.1", "rf0")

# Dispatches the program in a file of hexadecimal words, twice.
BROKEN = """
import sys
sys.path.insert(0, sys.argv[1])
import v3d_drm
device = v3d_drm.Device("/dev/dri/renderD128")
program = device.bo(4096)
for n, word in enumerate(int(line, 16) for line in open(sys.argv[2])):
    program.words[2 * n] = word & 0xffffffff
    program.words[2 * n + 1] = word >> 32
for batches in (1, 3):
    device.submit_csd(v3d_drm.csd_config(device, program.address, program.address + 2048, batches, (batches, 1, 1)),
                      [program])
    device.wait(program)
device.close()
"""


class Watched:
    """Programs on a daemon of their own that checks what they run."""

    def __init__(self, v3demu, sockets, folder, name):
        self.v3demu = v3demu
        self.log = os.path.join(folder, name + ".log")
        self.environment = dict(os.environ, V3DEMU_SOCKET=os.path.join(sockets, name), V3DEMU_LOG=self.log,
                                V3DEMU_DEBUG="hazard")

    def run(self, command, **variables):
        done = subprocess.run(command, env=dict(self.environment, **variables), capture_output=True, text=True,
                              timeout=600)
        if done.returncode != 0:
            sys.exit(f"{command} ended with {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")

    def reports(self):
        if not os.path.exists(self.log):
            return []
        with open(self.log) as log:
            return [line.split("qpu-hazard: ")[1].strip() for line in log if "qpu-hazard: " in line]


def run_vkcube(watched, mesa):
    server = Xvfb()
    try:
        watched.run([watched.v3demu, "run", "--mesa", mesa, "--", "vkcube", "--c", "10"], DISPLAY=server.display)
    finally:
        server.stop()


def programs_of(listing):
    """The words of the programs in the output of `v3demu decode`, each program once."""
    programs = set()
    for part in re.split(r"^\S+ program at ", listing, flags=re.MULTILINE)[1:]:
        programs.add("\n".join(re.findall(r"^  0x[0-9a-f]{8}  ([0-9a-f]{16})  ", part, re.MULTILINE)) + "\n")
    return programs


def check_statically(v3demu, mesa, folder, program):
    capture = os.path.join(folder, "compiled.v3dcap")
    subprocess.run([v3demu, "capture", "--mesa", mesa, "-o", capture, "--", program], check=True, capture_output=True,
                   timeout=600)
    listing = subprocess.run([v3demu, "decode", capture], check=True, capture_output=True, text=True).stdout
    programs = programs_of(listing)
    if len(programs) < 20:
        sys.exit(f"only {len(programs)} programs in the capture")
    for words in programs:
        done = subprocess.run([v3demu, "disasm", "--chip", CHIP, "--check=undefined,hardly-meant,never-emitted", "-"], input=words,
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit("reports about a compiled program:\n" + done.stderr + done.stdout)


def main():
    folder = sys.argv[4]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with tempfile.TemporaryDirectory(prefix="v3demu-test-") as sockets:
        check(sockets, *sys.argv[1:])


def check(sockets, v3demu, shim, mesa, folder, vulkan, gl, gl_frames, scenes):
    broken = Watched(v3demu, sockets, folder, "broken")
    code = os.path.join(folder, "broken.hex")
    text = f"mov rf4, 1\nldvary.rf1\nadd rf2, {LATE}, rf4\nend\n"
    subprocess.run([v3demu, "asm", "--chip", CHIP, "-", "-o", code, "--format", "hex"], input=text, text=True, check=True)
    broken.run([sys.executable, "-B", "-c", BROKEN, QPU_PROGRAMS, code], LD_PRELOAD=shim)
    reports = broken.reports()
    if len(reports) != 1 or f'hardly-meant: ldvary-c-early: instruction 2, "add rf2, {LATE}, rf4' not in reports[0]:
        sys.exit(f"one report is expected, not {reports}")
    capture = os.path.join(folder, "broken.v3dcap")
    subprocess.run([v3demu, "capture", "--mesa", "system", "-o", capture, "--", sys.executable, "-B", "-c", BROKEN, QPU_PROGRAMS, code],
                   check=True, capture_output=True, timeout=600)
    for kinds, expected in (("all", 1), ("undefined", 0)):
        replay = subprocess.run([v3demu, "replay", capture], check=True, capture_output=True, text=True, timeout=600,
                                env=dict(os.environ, V3DEMU_DEBUG="hazard", V3DEMU_HAZARDS=kinds))
        if replay.stderr.count("hardly-meant: ldvary-c-early: instruction 2") != expected:
            sys.exit(f"{expected} reports of a replay are expected:\n{replay.stderr}")

    compiled = Watched(v3demu, sockets, folder, "compiled")
    run_vkcube(compiled, mesa)
    compiled.run([v3demu, "run", "--mesa", mesa, "--", vulkan])
    compiled.run([v3demu, "run", "--mesa", mesa, "--", gl, "surfaceless"])
    if scenes == "with-glmark2":
        compiled.run([sys.executable, "-B", SCENES, "default_list", v3demu, gl_frames, mesa, folder])
    else:
        print("glmark2's shaders are left to the release build")
    check_statically(v3demu, mesa, folder, vulkan)
    reports = compiled.reports()
    if reports:
        sys.exit("reports about compiled programs:\n" + "\n".join(reports))


if __name__ == "__main__":
    main()
