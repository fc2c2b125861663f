"""A headless Weston and an X server for programs that want a window."""
import os
import re
import subprocess
import tempfile
import time


class Failure(Exception):
    """A program or a server did not do what was asked of it; the text says what it said."""


class Weston:
    """A headless compositor with its GL renderer.

    launcher: the command prefix under which it and its clients run; folder: where its log goes."""

    def __init__(self, launcher, folder, xwayland=False, variables=None):
        self.launcher = launcher
        self.folder = tempfile.TemporaryDirectory(prefix="v3demu-weston-")
        self.environment = dict(os.environ, **(variables or {}), XDG_RUNTIME_DIR=self.folder.name,
                                WAYLAND_DISPLAY="wayland-e2e")
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
        self.stop()
        raise Failure("weston did not start:\n" + self.text())

    def run(self, command, timeout=800, **variables):
        environment = dict(self.environment, **variables)
        return subprocess.run(self.launcher + command, env=environment, timeout=timeout, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()


class Xvfb:
    """An X server without a screen; `display` is what DISPLAY should be.

    screen: its pixels; options: further ones of the server."""

    def __init__(self, screen="1024x768x24", options=("-nolisten", "tcp")):
        read_end, write_end = os.pipe()
        # -noreset: the server would start anew after its last client, and refuse the next one meanwhile.
        self.process = subprocess.Popen(
            ["Xvfb", "-displayfd", str(write_end), "-screen", "0", screen, "-noreset", *options],
            pass_fds=[write_end], stderr=subprocess.DEVNULL)
        os.close(write_end)
        with os.fdopen(read_end) as answer:
            number = answer.readline().strip()
        if not number:
            self.stop()
            raise Failure("Xvfb did not start")
        self.display = ":" + number

    def stop(self):
        self.process.terminate()
        self.process.wait()
