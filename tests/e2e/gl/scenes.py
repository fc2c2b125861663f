#!/usr/bin/env python3
"""glmark2, es2_info and es2tri on the real v3d driver over the emulated Pi, in the set-up of Mesa's own CI: a headless
Weston with its GL renderer and Xwayland, everything under the shim.

usage: scenes.py default_list|x11 V3DEMU GL_FRAMES_LIBRARY MESA_PREFIX OUTPUT_FOLDER

default_list  every benchmark of glmark2's default list runs, 800x600 off-screen
x11           es2_info and es2tri run through DRI3 on a V3D renderer
"""
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tools", "scripts"))
from gallery_parts.windows import Failure, Weston  # pylint: disable=wrong-import-position


def main():
    task, v3demu, library, mesa, folder = sys.argv[1:]
    folder = os.path.join(folder, task)
    os.makedirs(folder, exist_ok=True)
    emulated = [v3demu, "run", "--mesa", mesa, "--"]
    if task == "default_list":
        weston = Weston(emulated, folder)
        done = weston.run(["glmark2-es2-wayland", "--off-screen", "-s", "800x600"], LD_PRELOAD=library,
                          V3DEMU_GL_FRAMES_STEP="2")
        weston.stop()
        print(done.stdout)
        ran = re.findall(r"^\[(\w+)\].*FPS:", done.stdout, re.MULTILINE)
        if done.returncode != 0 or len(ran) < 30 or "Error" in done.stdout or "GL_RENDERER:" not in done.stdout:
            sys.exit(f"{len(ran)} benchmarks ran, status {done.returncode}")
        if not re.search(r"GL_RENDERER:\s+(VC4 )?V3D ", done.stdout):
            sys.exit("glmark2 did not run on a V3D")
        return
    if task == "x11":
        weston = Weston(emulated, folder, xwayland=True)
        info = weston.run(["es2_info"])
        print(info.stdout[:2000])
        triangle = subprocess.Popen(emulated + ["es2tri"], env=weston.environment, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True)
        time.sleep(3)
        alive = triangle.poll() is None
        triangle.terminate()
        text = triangle.communicate()[0]
        weston.stop()
        if info.returncode != 0 or not re.search(r"GL_RENDERER: (VC4 )?V3D ", info.stdout):
            sys.exit("es2_info did not run on a V3D")
        if not alive:
            sys.exit("es2tri ended early:\n" + text)
        return
    sys.exit(__doc__)


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(str(failure))
