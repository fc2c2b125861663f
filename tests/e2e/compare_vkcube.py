#!/usr/bin/env python3
"""Frames of Debian's vkcube on the emulated Pi and on lavapipe, under one Xvfb, must be the same picture.

usage: compare_vkcube.py V3DEMU FRAMES_LIBRARY MESA_PREFIX OUTPUT_FOLDER

Passes when, in each compared frame, less than 1 % of the pixels differ by more than 8/255 in some channel.
"""
import os
import subprocess
import sys

FRAMES = [1, 10, 23, 37, 60]
SIZE = 500


def read_ppm(path):
    """Rows of the window; the presented image may be padded to the right."""
    with open(path, "rb") as file:
        data = file.read()
    magic, width, height, top = data.split(maxsplit=4)[:4]
    assert magic == b"P6" and top == b"255", path
    width, height = int(width), int(height)
    texels = data[-3 * width * height:]
    return [texels[3 * width * y:3 * (width * y + SIZE)] for y in range(min(height, SIZE))]


def run_cube(command, environment, prefix, library):
    environment = dict(os.environ, **environment)
    environment["LD_PRELOAD"] = ":".join(filter(None, [environment.get("LD_PRELOAD"), library]))
    environment["V3DEMU_FRAMES_SAVE"] = ",".join(map(str, FRAMES)) + ":" + prefix
    cube = ["vkcube", "--c", str(max(FRAMES) + 1), "--width", str(SIZE), "--height", str(SIZE)]
    done = subprocess.run(command + cube, env=environment, timeout=300, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{prefix}: vkcube ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def difference(a, b):
    """Pixels that differ by more than 8 in a channel, of how many."""
    different = total = 0
    for row_a, row_b in zip(a, b):
        total += SIZE
        if row_a == row_b:
            continue
        for x in range(0, 3 * SIZE, 3):
            if any(abs(row_a[x + k] - row_b[x + k]) > 8 for k in range(3)):
                different += 1
    return different, total


def main():
    v3demu, library, mesa, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    read_end, write_end = os.pipe()
    server = subprocess.Popen(["Xvfb", "-displayfd", str(write_end), "-screen", "0", "800x600x24", "-nolisten", "tcp",
                               "-noreset"], pass_fds=[write_end], stderr=subprocess.DEVNULL)
    os.close(write_end)
    try:
        os.environ["DISPLAY"] = ":" + os.read(read_end, 16).decode().strip()
        for name in ("WAYLAND_DISPLAY", "VK_ICD_FILENAMES", "VK_DRIVER_FILES"):
            os.environ.pop(name, None)
        icd = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json"
        lavapipe = os.path.join(folder, "lavapipe")
        run_cube([], {"VK_ICD_FILENAMES": icd, "VK_DRIVER_FILES": icd, "MESA_VK_WSI_DEBUG": "sw,noshm"}, lavapipe, library)
        emulated = os.path.join(folder, "v3demu")
        log = run_cube([v3demu, "run", "--mesa", mesa, "--"], {}, emulated, library)
        if "V3D 7.1" not in log:
            sys.exit("vkcube did not select the V3D device:\n" + log)
    finally:
        server.terminate()
        server.wait()

    failed = False
    for frame in FRAMES:
        expected = read_ppm(f"{lavapipe}-{frame}.ppm")
        if len(set(b"".join(expected))) < 16:
            sys.exit(f"frame {frame} of lavapipe is blank: nothing to compare with")
        different, total = difference(expected, read_ppm(f"{emulated}-{frame}.ppm"))
        print(f"frame {frame}: {different} of {total} pixels differ ({100 * different / total:.3f} %)")
        failed |= different * 100 >= total
    sys.exit(failed)


if __name__ == "__main__":
    main()
