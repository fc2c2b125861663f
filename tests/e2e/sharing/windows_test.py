#!/usr/bin/env python3
"""Programs with windows on weston, headless with its GL renderer, and on its Xwayland.

  windows_test.py V3DEMU V3DEMUD MESA TEST      TEST: a name of TESTS below

Each must give jobs to the GPU, as the daemon counts them, and its window must not be blank.
Exit status: 0 as it should be, 1 not, 77 a program is not installed.
"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "kms"))
from kms_test import PATIENCE, expect, is_v3d, main, need, wait_until  # pylint: disable=wrong-import-position

SOCKET = "v3demu-windows"


class Weston:
    """Headless, on the daemon of a Display; its log says that V3D draws."""

    def __init__(self, display):
        need("weston")
        self.display = display
        log = f"{display.folder}/weston.log"
        self.process = display.start("weston", "--backend=headless-backend.so", "--use-gl", "--xwayland", "--idle-time=0",
                                     f"--socket={SOCKET}", f"--log={log}")
        self.log = log
        found = wait_until(lambda: re.search(r"xserver listening on display (\S+)", self.text()), self.text)
        self.variables = {"DISPLAY": found[1], "WAYLAND_DISPLAY": SOCKET}
        is_v3d(self.text().replace("GL renderer:", "renderer:"))

    def text(self):
        if not os.path.exists(self.log):
            return ""
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def start(self, *command):
        return self.display.start(*command, **self.variables)

    def output(self, *command):
        return self.display.output(*command, **self.variables)

    def x_program(self, *command):
        """The output of one that is a plain X client, run without the emulated GPU."""
        return subprocess.run(command, env={**self.display.environment, **self.variables}, capture_output=True,
                              timeout=PATIENCE, check=False).stdout

    def colours(self, pattern):
        """How many colours the window has whose line of xwininfo fits; 0: there is none."""
        tree = self.x_program("xwininfo", "-root", "-tree").decode()
        found = re.search(rf"^ +(0x[0-9a-f]+) {pattern}", tree, re.M)
        if not found:
            return 0
        picture = self.x_program("import", "-window", found[1], "-depth", "8", "ppm:-").split(b"\n255\n", 1)[-1]
        return len({picture[at:at + 3] for at in range(0, len(picture) - 2, 3)})


def jobs(display):
    """Bin and render jobs of each program that has a node open."""
    count = {}
    for line in display.status().splitlines():
        row = re.match(r" *\d+ (.{16}) +\d+ +(?:renderD128|card\d) +\d+ +\d+ +(\d+) +(\d+)", line)
        if row:
            name = row[1].strip()
            binned, rendered = count.get(name, (0, 0))
            count[name] = (binned + int(row[2]), rendered + int(row[3]))
    return count


def draws(display, name):
    binned, rendered = jobs(display).get(name, (0, 0))
    return binned > 5 and rendered > 5


def x11(display):
    for program in "glxinfo", "glxgears", "es2gears_x11", "vkcube", "xwininfo", "import", "Xwayland":
        need(program)
    weston = Weston(display)
    keeper = weston.start("xlogo")  # weston's Xwayland ends with its last client
    is_v3d(weston.output("glxinfo", "-B").replace("OpenGL renderer string:", "renderer:"))
    for program, pattern, least in [("glxgears", '"glxgears"', 20), ("es2gears_x11", '"es2gears"', 20),
                                    ("vkcube", r"(?:\(has no name\)|\"vkcube\"): \(\)  500x500", 50)]:
        client = weston.start(program)
        wait_until(lambda: weston.colours(pattern) >= least, lambda: f"{program}: {weston.colours(pattern)} colours")
        wait_until(lambda: draws(display, program), display.status)
        expect(client.poll() is None, f"{program} ended")
        client.kill()
        client.wait()
    expect(draws(display, "Xwayland") and draws(display, "weston"), display.status())
    keeper.kill()


def wayland(display):
    """Their pictures are looked at where they are shown: kms_test.py, weston."""
    programs = "vkcube-wayland", "weston-simple-egl"
    for program in programs:
        need(program)
    weston = Weston(display)
    for program in programs:
        weston.start(program)
    for program in programs:
        wait_until(lambda: draws(display, program[:15]), display.status)
    expect(draws(display, "weston"), display.status())


TESTS = {test.__name__: test for test in (x11, wayland)}

if __name__ == "__main__":
    sys.exit(main(TESTS))
