"""A desktop on the emulated GPU, programs in it, and what the daemon and the screen say of them."""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time


class Failure(Exception):
    """What did not happen, in words."""


class Desktop:
    """weston on the display node with Xwayland, of a daemon of its own."""

    START = 120  # seconds, for slow machines

    def __init__(self, v3demu, mesa, mode="1280x720"):
        self.v3demu, self.mesa = v3demu, mesa
        self.folder = tempfile.mkdtemp(prefix="v3demu-tour-")
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder, "V3DEMU_SOCKET": f"{self.folder}/socket",
                            "HOME": self.folder, "LIBGL_ALWAYS_SOFTWARE": "0", "XDG_SESSION_TYPE": "wayland"}
        for name in "DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS":
            self.environment.pop(name, None)
        self.log = open(f"{self.folder}/desktop.log", "w+", encoding="utf-8")
        told = f"{self.folder}/displays"
        # Xwayland ends with its last client, and with it weston's: xprop stays, and shows nothing.
        inside = f'echo "$WAYLAND_DISPLAY $DISPLAY" > {told}~ && mv {told}~ {told}; exec xprop -root -spy > {self.folder}/xprop'
        self.process = subprocess.Popen([v3demu, "desktop", "--mesa", mesa, "--mode", mode, "--png", f"{self.folder}/last.png",
                                         "--", "sh", "-c", inside], env=self.environment, stdout=self.log, stderr=self.log,
                                        start_new_session=True)
        deadline = time.monotonic() + self.START
        while not os.path.exists(told):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.end()
                raise Failure("the desktop does not start:\n" + self.text(self.log))
            time.sleep(0.1)
        with open(told, encoding="utf-8") as file:
            self.environment["WAYLAND_DISPLAY"], self.environment["DISPLAY"] = file.read().rstrip("\n").split(" ")

    @staticmethod
    def text(log):
        log.flush()
        log.seek(0)
        return log.read()

    def picture(self, path):
        done = subprocess.run([self.v3demu, "screen", "--png", path], env=self.environment, capture_output=True, text=True,
                              timeout=60, check=False)
        if done.returncode != 0:
            raise Failure(f"no picture: {done.stderr}")

    def jobs(self, processes):
        """Render and compute jobs of these processes."""
        status = subprocess.run([self.v3demu, "status"], env=self.environment, capture_output=True, text=True, timeout=60,
                                check=False).stdout
        count = 0
        for row in re.finditer(r"^ *\d+ .{16} +(\d+) +(?:renderD128|card\d) +\d+ +\d+ +\d+ +(\d+) +\d+ +(\d+)", status, re.M):
            if int(row[1]) in processes:
                count += int(row[2]) + int(row[3])
        return count

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()

    def remove(self):
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def family(root):
    """The living processes that descend from one, or are of the session that it began."""
    parents, found = {}, set()
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{int(name)}/stat", encoding="utf-8", errors="replace") as file:
                state, parent, _, session = file.read().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        if state != "Z":
            parents[int(name)] = int(parent)
            if int(session) == root:
                found.add(int(name))
    for pid in parents:
        line = [pid]
        while line[-1] in parents and line[-1] != root and line[-1] not in found:
            line.append(parents[line[-1]])
        if line[-1] == root or line[-1] in found:
            found.update(line)
    return found & parents.keys()


def tell(pid, number):
    """Whether it was there to get the signal."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


class Visit:
    """A program in the desktop, with all that it starts."""

    def __init__(self, desktop, program, folder, log_path):
        self.desktop = desktop
        self.log = open(log_path, "w+", encoding="utf-8", errors="replace")
        environment = {**desktop.environment, **program.variables}
        if program.wants == "x11":
            environment.pop("WAYLAND_DISPLAY")
        if program.wants == "wayland":
            environment.pop("DISPLAY")
        self.process = subprocess.Popen([desktop.v3demu, "run", "--mesa", desktop.mesa, "--", *program.command], cwd=folder,
                                        env=environment, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        start_new_session=True)

    def text(self):
        return Desktop.text(self.log)

    def jobs(self):
        return self.desktop.jobs(family(self.process.pid))

    def end(self):
        """Asks, then kills, it and all that it started."""
        left = family(self.process.pid)  # now: those of it that outlive their parents are no family any more
        for number, patience in (signal.SIGTERM, 5), (signal.SIGKILL, 10):
            deadline = time.monotonic() + patience
            left |= family(self.process.pid)
            left = {pid for pid in left if tell(pid, number)}
            while left and time.monotonic() < deadline:
                self.process.poll()
                time.sleep(0.1)
                left = {pid for pid in left if tell(pid, 0)}
        self.process.wait(10)
        self.log.close()
