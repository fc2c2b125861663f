"""Daemons of a build for measuring, each with a socket and a folder of its own: not one that happens to run."""

import os
import subprocess
import time

from gallery_parts.windows import Failure


def processor_seconds(pid):
    """Processor time that a process has taken."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Daemon:
    """build: the folder that holds bin/; mesa: prefix of the drivers; variables: of the daemon and of its clients."""

    def __init__(self, build, mesa, folder, options=(), variables=None, device="rpi5"):
        self.folder = folder
        os.makedirs(folder)
        socket = os.path.join(folder, "socket")
        self.variables = {**(variables or {}), "V3DEMU_SOCKET": socket}
        with open(os.path.join(folder, "daemon.log"), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [str(build / "bin/v3demud"), "--foreground", "--device", device, "--socket", socket, *options],
                env={**os.environ, **self.variables}, stdout=log, stderr=log)
        for _ in range(600):
            if os.path.exists(socket):
                break
            if self.process.poll() is not None:
                with open(log.name, encoding="utf-8", errors="replace") as text:
                    raise Failure(f"v3demud ended with {self.process.returncode}:\n{text.read()}")
            time.sleep(0.1)
        self.launcher = [str(build / "bin/v3demu"), "run", "--device", device, "--mesa", str(mesa), "--"]

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def seconds(self):
        """Processor time that the daemon has taken."""
        return processor_seconds(self.process.pid)

    def peak_memory(self):
        """Most bytes of memory that were resident for the daemon at once; buffers that clients share count, too."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        raise Failure("/proc tells no VmHWM")
