#!/usr/bin/env python3
"""OpenGL windows on an X server without DRI3 (Xvfb), by v3demu-x11.

  x11_test.py V3DEMU V3DEMUD MESA TEST GL_WINDOW      TEST: a name of TESTS below

Pictures are those that the distribution's llvmpipe draws on the same server.
Exit status: 0 as it should be, 1 not, 77 a program is not installed.
"""
import glob
import itertools
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "kms"))
sys.path.insert(0, os.path.join(HERE, "../../../tools/scripts"))
from kms_test import PATIENCE, expect, expect_nothing_left, main, need, wait_until  # pylint: disable=wrong-import-position
from gallery_parts.comparison import Limits, problem  # pylint: disable=wrong-import-position
from gallery_parts.image import Image  # pylint: disable=wrong-import-position
from gallery_parts.windows import Xvfb  # pylint: disable=wrong-import-position


class Server:
    """An Xvfb; the programs of a Display (kms_test.py) come there."""

    def __init__(self, display, *options):
        for program in "Xvfb", "xwd":
            need(program)
        self.display = display
        server = Xvfb("1920x240x24", options)
        self.process, self.name = server.process, server.display
        display.running.append(self.process)
        display.environment["DISPLAY"] = self.name
        self.columns = 0

    def picture(self, window):
        dump = subprocess.run(["xwd", "-silent", "-id", window], env={**os.environ, "DISPLAY": self.name}, check=True,
                              capture_output=True, timeout=PATIENCE).stdout
        head = struct.unpack(">25I", dump[:100])
        width, height, line, begin = head[4], head[5], head[12], head[0] + 12 * head[19]
        rows = [dump[begin + line * y:begin + line * y + 4 * width] for y in range(height)]
        texels = bytearray(3 * width * height)
        pixels = b"".join(rows)
        texels[0::3], texels[1::3], texels[2::3] = pixels[2::4], pixels[1::4], pixels[0::4]
        return Image(width, height, bytes(texels))


class Windows:
    """A gl_window on the emulated GPU, or on llvmpipe."""

    def __init__(self, server, program, api, count=1, emulated=True, **variables):
        command = [program, api, str(count), str(server.columns)]
        server.columns = (server.columns + count) % 6
        if emulated:
            command = [server.display.v3demu, "run", "--mesa", server.display.mesa, "--", *command]
        environment = {**server.display.environment, **variables}
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        server.display.running.append(self.process)
        self.server = server
        self.renderer = self.line("renderer: ")
        expect(("V3D" if emulated else "llvmpipe") in self.renderer, f"drawn by {self.renderer}")
        self.ids = [self.line("window ") for _ in range(count)]

    def line(self, begin):
        line = self.process.stdout.readline()
        expect(line.startswith(begin), f"gl_window says {line!r} for {begin!r}")
        return line[len(begin):].strip()

    def do(self, command):
        """@return how long it took, in seconds"""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return int(self.line("done ")) / 1e6

    def picture(self, window=0):
        return self.server.picture(self.ids[window])

    def end(self):
        self.process.stdin.close()
        expect(self.process.wait(PATIENCE) == 0, f"gl_window ends with {self.process.returncode}")


def same(window, reference, what):
    """Until the window shows that picture. A swap's picture comes to the window after the swap."""
    deadline = time.monotonic() + 60
    while wrong := problem(window(), reference, Limits()):
        expect(time.monotonic() < deadline, f"{what}: {wrong}")
        time.sleep(0.01)


SIZES = (160, 120), (301, 203), (64, 48), (317, 240)


def pictures(display, program, api):
    pictures_on(Server(display), program, api)


def pictures_on(server, program, api):
    """Frames in a window that is resized between them, each like llvmpipe's."""
    emulated, reference = Windows(server, program, api), Windows(server, program, api, emulated=False)
    for frame, (width, height) in enumerate(SIZES):
        for one in emulated, reference:
            if frame:
                one.do(f"size 0 {width} {height}")
            # The first frame after a resize must be right.
            one.do(f"draw 0 {frame}")
            if frame == 1:
                one.do("draw 0 7")
        same(emulated.picture, reference.picture(), f"{api}, frame {frame} of {width}x{height}")
    # Not by swaps: parts of the window are written by the server, and read.
    for command in ["front 0 5", "copy 0 9"] if api == "glx" else []:
        for one in emulated, reference:
            one.do(command)
        same(emulated.picture, reference.picture(), f"{api}, {command}")
    emulated.end()
    reference.end()


def cookie(folder, number, secret):
    """An authority file as `xauth add` writes it, of a display of this host."""
    path = f"{folder}/authority"
    with open(path, "wb") as file:
        family_local = 256
        parts = socket.gethostname().encode(), number.encode(), b"MIT-MAGIC-COOKIE-1", secret
        file.write(struct.pack(">H", family_local) + b"".join(struct.pack(">H", len(part)) + part for part in parts))
    return path


def tcp(display, program):
    """A server that shares no memory, and that asks who comes: pictures are sent there, in several requests."""
    secret = os.urandom(16)
    path = cookie(display.folder, "", secret)
    server = Server(display, "-listen", "tcp", "-auth", path)
    cookie(display.folder, server.name[1:], secret)  # the number is known only now
    display.environment["XAUTHORITY"] = os.environ["XAUTHORITY"] = path
    server.name = display.environment["DISPLAY"] = f"localhost{server.name}"
    pictures_on(server, program, "egl")
    stranger = subprocess.run(["xwd", "-root", "-silent"], env={**os.environ, "DISPLAY": server.name, "XAUTHORITY": "/dev/null"},
                              capture_output=True, timeout=PATIENCE, check=False)
    expect(stranger.returncode != 0, "the server takes anybody")


def egl(display, program):
    pictures(display, program, "egl")


def glx(display, program):
    pictures(display, program, "glx")


def windows(display, program):
    """Two windows of one program and one of another, drawn in turns."""
    server = Server(display)
    groups = [(Windows(server, program, "egl", 2), Windows(server, program, "egl", 2, emulated=False)),
              (Windows(server, program, "glx"), Windows(server, program, "glx", emulated=False))]
    for frame in range(3):
        for number, group in enumerate(groups):
            for one in group:
                for window in range(len(one.ids)):
                    one.do(f"draw {window} {5 * frame + 2 * number + window}")
    for emulated, reference in groups:
        for window in range(len(emulated.ids)):
            same(lambda one=emulated, at=window: one.picture(at), reference.picture(window), f"window {window}")
    for group in groups:
        for one in group:
            one.end()


def intervals(display, program):
    """Frames of interval N take N frames of the clock each; of interval 0, and of a free clock, no time of its own."""
    server = Server(display)
    for api in "egl", "glx":
        one = Windows(server, program, api)
        for interval, count in (1, 20), (2, 10):
            one.do(f"interval {interval}")
            one.do("frames 0 3")
            took = one.do(f"frames 0 {count}")
            # Three buffers may be under way, and a frame begins before its picture comes.
            expect(took >= (count - 4) * interval / 60, f"{api}: {count} frames of interval {interval} in {took} s")
        one.do("interval 0")
        fast = min(one.do("frames 0 40") for _ in range(5))
        expect(fast < 30 / 60, f"{api}: 40 frames of interval 0 in {fast} s")
        one.end()
    # The clock is the proxy's, whatever that of the daemon's display node is.
    free = Windows(server, program, "egl", V3DEMU_VBLANK_HZ="0", V3DEMU_OTHER_SETTINGS="accept")
    fast = min(free.do("frames 0 40") for _ in range(5))
    expect(fast < 30 / 60, f"40 frames of interval 1 on a free clock in {fast} s")
    free.end()


def proxies(display):
    """Process ids of the proxies on a Display."""
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            pid = int(path.split("/")[2])
            with open(path, "rb") as file:
                mine = f"XDG_RUNTIME_DIR={display.folder}\0".encode() in file.read()
            if mine and os.readlink(f"/proc/{pid}/exe").endswith("/v3demu-x11"):
                found.append(pid)
        except OSError:
            pass
    return found


def left_behind(pid):
    """Lock files of a proxy."""
    found = []
    for path in glob.glob("/tmp/.X*-lock"):
        try:
            with open(path, encoding="utf-8") as file:
                if file.read().strip() == str(pid):
                    found.append(path)
        except OSError:
            pass
    return found


def start_shell(display):
    """A shell that waits, the display that its programs get, and the process that has it."""
    shell = subprocess.Popen([display.v3demu, "run", "--mesa", display.mesa, "--", "sh", "-c", "echo $DISPLAY; read end"],
                             env=display.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    display.running.append(shell)
    inner = shell.stdout.readline().strip()
    expect(inner != display.environment["DISPLAY"], f"no proxy at {inner}")
    (proxy,) = proxies(display)
    return shell, inner, proxy


def ends(display, program):
    """Whoever is killed, the others go on or end, and nothing is left."""
    server = Server(display)
    # The proxy of a shell has the clients that the shell starts; one is killed amid its frames.
    shell, inner, proxy = start_shell(display)
    survivor = Windows(server, program, "egl", DISPLAY=inner)
    expect(proxies(display) == [proxy], "a proxy for what has one")

    def descriptors():
        return len(os.listdir(f"/proc/{proxy}/fd"))

    survivor.do("frames 0 5")
    before = descriptors()
    for _ in range(3):
        victim = Windows(server, program, "glx", DISPLAY=inner)
        victim.do("interval 0")
        victim.process.stdin.write("frames 0 100000\n")
        victim.process.stdin.flush()
        wait_until(lambda: descriptors() > before, lambda: "the victim draws")
        time.sleep(0.05)
        victim.process.kill()
        victim.process.wait()
    wait_until(lambda: descriptors() <= before, lambda: f"{descriptors()} descriptors, {before} before")
    survivor.do("frames 0 5")
    # Its program has ended, but a client is left.
    expect(len(left_behind(proxy)) == 1, f"lock files: {left_behind(proxy)}")
    shell.communicate("\n", timeout=PATIENCE)
    survivor.do("frames 0 5")
    survivor.end()
    wait_until(lambda: not proxies(display), lambda: "the proxy stays")
    expect(not left_behind(proxy), f"lock files: {left_behind(proxy)}")
    # The server goes.
    orphan = Windows(server, program, "egl")
    (proxy,) = proxies(display)
    server.process.kill()
    orphan.process.stdin.write("frames 0 20\n")
    orphan.process.stdin.flush()
    orphan.process.wait(PATIENCE)
    expect(orphan.process.returncode > 0, f"without a server gl_window ends with {orphan.process.returncode}")
    wait_until(lambda: not proxies(display), lambda: "the proxy outlives the server")
    expect(not left_behind(proxy), f"lock files: {left_behind(proxy)}")
    expect_nothing_left(display)


def hostile(display, program):
    """What a client does to the proxy does not harm the others."""
    server = Server(display)
    shell, inner, proxy = start_shell(display)
    reference = Windows(server, program, "egl", emulated=False)
    reference.do("draw 0 3")
    survivor = Windows(server, program, "egl", DISPLAY=inner)
    attack = subprocess.run([sys.executable, "-B", f"{HERE}/attacks.py", inner], env=display.environment, timeout=PATIENCE,
                            capture_output=True, text=True, check=False)
    expect(attack.returncode == 0, attack.stdout + attack.stderr)
    survivor.do("draw 0 3")
    same(survivor.picture, reference.picture(), "a window beside attacks")
    with open(f"/proc/{proxy}/status", encoding="utf-8") as status:
        peak = int(re.search(r"VmHWM:\s+(\d+)", status.read())[1])
    expect(peak < 65536, f"the proxy took {peak} KiB")
    survivor.end()
    shell.kill()
    wait_until(lambda: not proxies(display), lambda: "the proxy outlives its program")


def glmark2(display, program):
    """A frame of real scenes, in the window that it was drawn for."""
    for name in "glmark2-es2", "xwininfo":
        need(name)
    server = Server(display)
    library = f"{os.path.dirname(program)}/../lib/libv3demu-gl-frames.so"

    def window():
        tree = subprocess.run(["xwininfo", "-root", "-tree"], env=display.environment, check=True, capture_output=True,
                              text=True, timeout=PATIENCE).stdout
        found = re.search(r"(0x[0-9a-f]+) \"glmark2", tree)
        return found and found[1]

    def picture():
        try:
            return server.picture(window() or "0x0")
        except subprocess.CalledProcessError:  # there is none, or not yet on the screen
            return Image(1, 1, bytes(3))

    def held(process):
        """Until the last frame is drawn."""
        while not (line := process.stdout.readline()).endswith("held\n"):
            expect(line, "glmark2 ended")

    for scene in "build", "texture":
        command = ["glmark2-es2", "-b", f"{scene}:duration=1000", "--size", "300x200"]
        hold = {"V3DEMU_GL_FRAMES_HOLD": "20", "LD_PRELOAD": library}
        reference = subprocess.Popen(command, env={**display.environment, **hold}, stdout=subprocess.PIPE, text=True)
        display.running.append(reference)
        held(reference)
        time.sleep(0.1)  # the server has the picture, and may put another client first
        expected = picture()
        reference.kill()
        reference.wait()
        wait_until(lambda: not window(), lambda: "llvmpipe's window stays")
        emulated = display.start(*command, **hold)
        held(emulated)
        same(picture, expected, f"{scene} of glmark2")
        expect("glmark2-es2" in display.status(), display.status())
        emulated.kill()
        emulated.wait()
        wait_until(lambda: not window(), lambda: "the window stays")


def protocol(display, _):
    Server(display)
    text = display.output(sys.executable, "-B", f"{HERE}/protocol.py")
    expect(display.running[-1].returncode == 0, text)
    expect_nothing_left(display)


def exports(display, _):
    Server(display)
    text = display.output(sys.executable, "-B", f"{HERE}/exports.py")
    expect(display.running[-1].returncode == 0, text)


def frames(display, program):
    """What another client reads of a window is one whole frame, though each takes its time to draw."""
    Server(display)
    text = display.output(f"{os.path.dirname(program)}/frame_window", "--frames", "60", E2E_DEVICE="V3D", vblank_mode="0")
    expect(re.search(r"^60 frames looked at, 0 stale, 0 torn", text, re.M), text)


def restarts(display, _):
    """A server that starts anew after its last client refuses the next ones meanwhile: a program waits for it."""
    server = Server(display)
    often = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    often.bind("\0/tmp/.X11-unix/X" + str(20000 + os.getpid()))
    often.listen()

    def pass_on(source, to):
        while data := source.recv(65536):
            to.sendall(data)
        to.shutdown(socket.SHUT_WR)

    def serve():
        """Refuses two of three; the first forty as soon as it can, which is before they have written a word."""
        often.setblocking(False)
        refused = 0
        while refused < 40:
            try:
                often.accept()[0].close()
                refused += 1
            except BlockingIOError:
                pass
        often.setblocking(True)
        for n in itertools.count():
            client = often.accept()[0]
            if n % 3 < 2:
                client.close()
                continue
            inner = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            inner.connect("\0/tmp/.X11-unix/X" + server.name.lstrip(":"))
            for ends in (client, inner), (inner, client):
                threading.Thread(target=pass_on, args=ends, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    outer = f":{20000 + os.getpid()}"
    shown_on = display.output("printenv", "DISPLAY", DISPLAY=outer).strip()
    expect(display.running[-1].returncode == 0, f"the program ends with {display.running[-1].returncode}")
    expect(re.fullmatch(":[0-9]+", shown_on) and shown_on != outer, f"the program is shown on '{shown_on}'")


TESTS = {test.__name__: test for test in (restarts, protocol, exports, frames, egl, glx, glmark2, tcp, windows, intervals, ends,
                                          hostile)}

if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main(TESTS))
