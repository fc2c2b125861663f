#!/usr/bin/env python3
"""glmark2, es2_info and es2tri on the real v3d driver over the emulated Pi, in the set-up of Mesa's own CI: a headless
Weston with its GL renderer and Xwayland, everything under the shim.

usage: scenes.py pictures|default_list|x11 V3DEMU GL_FRAMES_LIBRARY MESA_PREFIX OUTPUT_FOLDER

pictures      one frame of six scenes equals llvmpipe's (less than 1 % of the pixels off by more than 8/255)
default_list  every benchmark of glmark2's default list runs, 800x600 off-screen
x11           es2_info and es2tri run through DRI3 on a V3D renderer
"""
import os
import re
import subprocess
import sys
import tempfile
import time

SCENES = {
    "build": "build:use-vbo=true",
    "texture": "texture:texture-filter=linear",
    "shading": "shading:shading=phong",
    "bump": "bump:bump-render=normals",
    "shadow": "shadow",
    "effect2d": "effect2d:kernel=0,1,0;1,-4,1;0,1,0;",
}
FRAME = 12


class Weston:
    """A headless compositor; launcher is the command prefix under which it and its clients run."""

    def __init__(self, launcher, folder, xwayland=False):
        self.launcher = launcher
        self.folder = tempfile.TemporaryDirectory()
        self.environment = dict(os.environ, XDG_RUNTIME_DIR=self.folder.name, WAYLAND_DISPLAY="wayland-e2e")
        self.environment.pop("DISPLAY", None)
        command = ["weston", "--backend=headless-backend.so", "--use-gl", "--socket=wayland-e2e", "--idle-time=0"]
        if xwayland:
            command.append("--xwayland")
        self.log_path = os.path.join(folder, "weston.log")
        self.log = open(self.log_path, "w+", encoding="utf-8")
        server = {k: v for k, v in self.environment.items() if k != "WAYLAND_DISPLAY"}
        self.process = subprocess.Popen(launcher + command, env=server, stdout=self.log, stderr=self.log)
        self.wait_for(lambda: os.path.exists(os.path.join(self.folder.name, "wayland-e2e")))
        if xwayland:
            self.wait_for(lambda: "xserver listening on display" in self.text())
            self.environment["DISPLAY"] = re.search(r"xserver listening on display (\S+)", self.text()).group(1)

    def text(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_for(self, condition):
        for _ in range(600):
            if condition():
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        sys.exit("weston did not start:\n" + self.text())

    def run(self, command, timeout=800, **variables):
        environment = dict(self.environment, **variables)
        return subprocess.run(self.launcher + command, env=environment, timeout=timeout, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def read_ppm(path):
    with open(path, "rb") as file:
        magic, size, top, texels = file.read().split(b"\n", 3)
    assert magic == b"P6" and top == b"255"
    width, height = map(int, size.split())
    return width, height, texels


def take_pictures(weston, library, folder, name):
    for scene, benchmark in SCENES.items():
        path = os.path.join(folder, f"{name}-{scene}.ppm")
        done = weston.run(["glmark2-es2-wayland", "--off-screen", "-s", "800x600", "-b", benchmark],
                          LD_PRELOAD=library, V3DEMU_GL_FRAMES_SAVE=f"{FRAME}:{path}")
        if done.returncode != 0 or not os.path.exists(path):
            sys.exit(f"{name}: scene {scene} ended with {done.returncode}\n{done.stdout}")
        if name == "v3demu" and not re.search(r"GL_RENDERER:\s+V3D ", done.stdout):
            sys.exit(f"{scene} did not run on a V3D:\n{done.stdout}")


def compare(folder):
    failed = False
    for scene in SCENES:
        width, height, a = read_ppm(os.path.join(folder, f"llvmpipe-{scene}.ppm"))
        _, _, b = read_ppm(os.path.join(folder, f"v3demu-{scene}.ppm"))
        if len(set(zip(a[::3], a[1::3], a[2::3]))) < 4:
            sys.exit(f"{scene}: llvmpipe's picture is blank: nothing to compare with")
        different = sum(1 for i in range(0, len(a), 3)
                        if a[i:i + 3] != b[i:i + 3] and max(abs(a[i + k] - b[i + k]) for k in range(3)) > 8)
        share = 100 * different / (width * height)
        print(f"{scene}: {different} pixels differ ({share:.3f} %)")
        failed |= share >= 1
    return failed


def main():
    task, v3demu, library, mesa, folder = sys.argv[1:]
    folder = os.path.join(folder, task)
    os.makedirs(folder, exist_ok=True)
    emulated = [v3demu, "run", "--mesa", mesa, "--"]
    if task == "pictures":
        weston = Weston([], folder)
        take_pictures(weston, library, folder, "llvmpipe")
        weston.stop()
        weston = Weston(emulated, folder)
        take_pictures(weston, library, folder, "v3demu")
        weston.stop()
        sys.exit(compare(folder))
    if task == "default_list":
        weston = Weston(emulated, folder)
        done = weston.run(["glmark2-es2-wayland", "--off-screen", "-s", "800x600"], LD_PRELOAD=library,
                          V3DEMU_GL_FRAMES_STEP="2")
        weston.stop()
        print(done.stdout)
        ran = re.findall(r"^\[(\w+)\].*FPS:", done.stdout, re.MULTILINE)
        if done.returncode != 0 or len(ran) < 30 or "Error" in done.stdout or "GL_RENDERER:" not in done.stdout:
            sys.exit(f"{len(ran)} benchmarks ran, status {done.returncode}")
        if not re.search(r"GL_RENDERER:\s+V3D ", done.stdout):
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
        if info.returncode != 0 or not re.search(r"GL_RENDERER: V3D ", info.stdout):
            sys.exit("es2_info did not run on a V3D")
        if not alive:
            sys.exit("es2tri ended early:\n" + text)
        return
    sys.exit(__doc__)


if __name__ == "__main__":
    main()
