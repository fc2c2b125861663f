#!/usr/bin/env python3
"""Programs that draw on the display node: what they print, and what is on the screen meanwhile.

  kms_test.py V3DEMU V3DEMUD MESA TEST [ROUNDS]     TEST: a name of TESTS below; ROUNDS of `kill`, default 8

Exit status: 0 as it should be, 1 not, 77 the program is not installed.
"""
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 240  # seconds, for slow machines
# The node of the display: a board with VideoCore IV has one device.
CARD = "card0" if os.environ.get("V3DEMU_DEVICE", "") in ("rpi0", "rpi1", "rpi2", "rpi3") else "card1"


class Skip(Exception):
    pass


def need(program):
    if not shutil.which(program):
        raise Skip(f"{program} is not installed")


class Display:
    """A daemon, and programs that run with it."""

    def __init__(self, v3demu, daemon, mesa):
        self.v3demu, self.mesa = v3demu, mesa
        self.folder = tempfile.mkdtemp(prefix="v3demu-kms-")
        self.environment = {**os.environ, "V3DEMU_SOCKET": f"{self.folder}/socket", "XDG_RUNTIME_DIR": self.folder,
                            "V3DEMU_LOG": f"{self.folder}/log", "LIBGL_ALWAYS_SOFTWARE": "0"}
        self.environment.pop("DISPLAY", None)
        self.environment.pop("WAYLAND_DISPLAY", None)
        self.daemon = subprocess.Popen([daemon, "--foreground"], env=self.environment, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE
        while not os.path.exists(f"{self.folder}/socket"):
            expect(self.daemon.poll() is None and time.monotonic() < deadline, "the daemon does not start")
            time.sleep(0.01)
        self.running = []

    def start(self, *command, **variables):
        """With an input from which nothing comes: kmscube ends when it can read."""
        program = subprocess.Popen([self.v3demu, "run", "--mesa", self.mesa, "--", *command],
                                   env={**self.environment, **variables}, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.running.append(program)
        return program

    def output(self, *command, **variables):
        program = self.start(*command, **variables)
        deadline = time.monotonic() + PATIENCE
        lines = program.stdout.read()  # until it ends
        program.wait(max(1, deadline - time.monotonic()))
        return lines

    def status(self):
        return subprocess.run([self.v3demu, "status"], env=self.environment, check=True, timeout=PATIENCE,
                              capture_output=True, text=True).stdout

    def screen(self):
        """[plane, width, height, colours] of the planes that are on."""
        lines = self.output(sys.executable, f"{HERE}/screen.py").splitlines()
        if "denied" in lines:
            raise Skip("only root may look at the screen")
        return [[int(word) for word in line.split()] for line in lines if re.fullmatch(r"[\d ]+", line)]

    def wait_for_screen(self, seen, what):
        deadline, planes = time.monotonic() + PATIENCE, []
        while time.monotonic() < deadline:
            # Whoever opens the node first is its master: that must not be who only looks.
            planes = self.screen() if re.search(rf" {CARD} +\d", self.status()) else []
            if any(seen(*plane) for plane in planes):
                return
            time.sleep(0.2)
        raise AssertionError(f"{what} never appeared; last seen: {planes}")

    def end(self):
        for program in self.running:
            if program.poll() is None:
                program.kill()
            program.wait()
        self.daemon.terminate()
        self.daemon.wait(PATIENCE)
        shutil.rmtree(self.folder, ignore_errors=True)


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def wait_until(seen, what):
    """Of something that becomes true, its value."""
    deadline = time.monotonic() + PATIENCE
    while not (value := seen()):
        expect(time.monotonic() < deadline, f"{what()} after {PATIENCE} s")
        time.sleep(0.05)
    return value


def expect_nothing_left(display):
    """The daemon has nothing of anybody, once all have gone."""
    def is_clean():
        text = display.status()
        left = [line for line in text.splitlines()
                if re.match(r"(framebuffers|blobs|blob-bytes|bos|bo-bytes|open-nodes|viewers) ", line) and not line.endswith(" -")]
        return not left and "0 open nodes" in text and "0 clients leaving" in text
    wait_until(is_clean, display.status)


def is_v3d(text):
    found = re.search(r"renderer: +\"?(.*)|GL_RENDERER: +(.*)", text)
    expect(found and "V3D" in found.group(0), f"not drawn by V3D: {found and found.group(0)}\n{text[-2000:]}")


def kmscube(display, *options):
    need("kmscube")
    program = display.start("kmscube", *options)
    # Grey, and a cube of many colours.
    display.wait_for_screen(lambda plane, w, h, colours: (plane, w, h) == (35, 1920, 1080) and colours > 8, "a cube")
    program.kill()
    program.wait()
    is_v3d(display.output("kmscube", "-c", "5", *options))


def kmscube_atomic(display):
    kmscube(display, "-A")


def glmark2(display):
    need("glmark2-es2-drm")
    text = display.output("glmark2-es2-drm", "-b", "build:duration=0.5", "--size", "640x480")
    is_v3d(text)
    expect("glmark2 Score" in text, text)


def modetest(display):
    need("modetest")
    program = display.start("modetest", "-M", "vc4", "-a", "-s", "34@32:1280x720", "-P", "36@32:320x240+100+50@XR24")
    display.wait_for_screen(lambda plane, w, h, colours: (plane, w, h) == (36, 320, 240), "an overlay")
    program.communicate("\n", timeout=PATIENCE)


def weston(display):
    for program in "weston", "weston-simple-egl", "glmark2-es2-wayland":
        need(program)
    display.start(sys.executable, f"{HERE}/weston_seat.py", "weston", "--backend=drm-backend.so",
                  "--continue-without-input", "--idle-time=0", "--socket=kms", f"--log={display.folder}/weston.log")
    # Of more than the console's black.
    display.wait_for_screen(lambda plane, w, h, colours: (plane, w, h) == (35, 1920, 1080) and colours > 1, "a desktop")
    with open(f"{display.folder}/weston.log", encoding="utf-8") as log:
        is_v3d(log.read().replace("GL renderer:", "renderer:"))
    desktop = max(plane[3] for plane in display.screen())
    client = display.start("weston-simple-egl", WAYLAND_DISPLAY="kms")
    # Its triangle, drawn over the desktop by weston, or on a plane of its own.
    display.wait_for_screen(lambda plane, w, h, colours: plane not in (35, 52) or colours > desktop, "a triangle")
    expect(client.poll() is None, "weston-simple-egl ended")
    text = display.output("glmark2-es2-wayland", "-b", "build:duration=0.5", "--size", "320x240", WAYLAND_DISPLAY="kms")
    is_v3d(text)
    expect("glmark2 Score" in text, text)


def kill(display, rounds=8):
    """Whoever is killed, whenever: the next one finds the display free, and nothing is left."""
    need("kmscube")
    order = random.Random(20261124)
    for i in range(rounds):
        program = display.start("kmscube", *(["-A"] if i % 2 else []))
        time.sleep(order.uniform(0.05, 1))
        program.kill()
        program.wait()
    expect_nothing_left(display)
    is_v3d(display.output("kmscube", "-c", "5"))


def console(display):
    """What is there at rest; then with a monitor in the second socket."""
    script = sys.executable, f"{HERE}/console.py"
    expect((text := display.output(*script)).endswith("ok empty\n"), text)
    plug = subprocess.run([display.v3demu, "connector", "HDMI-A-2", "on"], env=display.environment, timeout=PATIENCE,
                          check=False)
    expect(plug.returncode == 0, "no monitor plugged in")
    expect((text := display.output(*script)).endswith("ok monitor\n"), text)


def sdl(display):
    """SDL 2's renderer by GBM: the program compares what it draws."""
    output = display.output(sys.executable, "-B", f"{HERE}/sdl_renderer.py", "kmsdrm")
    if "libSDL2-2.0.so.0: cannot open" in output or "kmsdrm not available" in output:
        raise Skip(output.splitlines()[-1])
    expect("KMSDRM, opengles2: as it is to be" in output, output)


TESTS = {test.__name__: test for test in (console, kmscube, kmscube_atomic, glmark2, modetest, weston, sdl, kill)}


def main(tests):
    v3demu, daemon, mesa, name, *more = sys.argv[1:]
    display = Display(v3demu, daemon, mesa)
    try:
        tests[name](display, *[int(word) if word.isdigit() else word for word in more])
    except Skip as reason:
        print(f"skipped: {reason}")
        return 77
    except AssertionError as failure:
        print(failure)
        if os.path.exists(f"{display.folder}/log"):  # something was logged
            with open(f"{display.folder}/log", encoding="utf-8") as log:
                print(log.read()[-4000:])
        return 1
    finally:
        display.end()
    return 0


if __name__ == "__main__":
    sys.exit(main(TESTS))
