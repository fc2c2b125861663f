"""A daemon of one's own in a folder of its own, and what it costs the host."""
import collections
import ctypes
import os
import re
import resource
import shutil
import signal
import subprocess
import time

from . import board

# rss, maps, fds, threads: of the process; address: bytes of address space; cpu: seconds.
Figures = collections.namedtuple("Figures", "rss maps fds threads address cpu")
Status = collections.namedtuple("Status", "nodes connections leaving queued clients resets refused")
REPORT = re.compile(r"ERROR: (?:Address|Leak|Memory)Sanitizer(?!: Leak)|WARNING: ThreadSanitizer|runtime error:|"
                    r"SUMMARY: \w+Sanitizer|terminate called|Assertion .* failed")

CAP_SYS_RESOURCE, PR_CAPBSET_DROP, PR_SET_PDEATHSIG = 24, 24, 1


def prctl(*arguments):
    ctypes.CDLL(None).prctl(*arguments, *[0] * (5 - len(arguments)))


def die_with_parent():
    """In a child before its program starts: nothing outlives a test that is killed."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def parse_status(text):
    """What `v3demu status` prints. clients: {pid: objects}, summed over the nodes of a process."""
    nodes, connections, leaving = map(int, re.search(
        r"(\d+) open nodes, (\d+) connections, (\d+) clients leaving", text).groups())
    queued = {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)[* ] +\d+ +[\d.]+$", text, re.M)}
    clients = {}
    for line in re.findall(r"^ *\d+ .+", text.partition(" leaving\n")[2], re.M):
        found = re.match(r" *\d+ .+? +(\d+) +(?:renderD\d+|card\d+) +(\d+) ", line)
        if found:
            pid, objects = map(int, found.groups())
            clients[pid] = clients.get(pid, 0) + objects
    resets = re.search(r"(\d+) GPU resets", text)
    refused = re.search(r"^GPU errors: .*?(\d+) refused jobs?", text, re.M)
    return Status(nodes, connections, leaving, queued, clients, int(resets.group(1)) if resets else 0,
                  int(refused.group(1)) if refused else 0)


class Build:
    """Programs of a build folder."""

    def __init__(self, folder, device=board.DEFAULT, settings=None):
        """settings: of the environment of its daemons."""
        self.folder, self.device, self.settings = os.path.abspath(folder), device, dict(settings or {})
        self.daemon, self.command = (os.path.join(self.folder, "bin", name) for name in ("v3demud", "v3demu"))
        self.shim = os.path.join(self.folder, "lib", "libv3demu.so")

    def missing(self):
        return [path for path in (self.daemon, self.command, self.shim) if not os.path.exists(path)]

    def sanitizer(self):
        """The one that the daemon carries: "address", "thread" or None."""
        with open(self.daemon, "rb") as file:
            content = file.read()
        return next((name for name in ("address", "thread") if f"__{name[0]}san_init".encode() in content), None)

    def without(self):
        """The environment of programs that use no daemon but that of --socket."""
        return {name: value for name, value in os.environ.items()
                if not name.startswith("V3DEMU_") and name != "LD_PRELOAD"}


class Daemon:
    def __init__(self, build, folder, options=(), descriptors=None, environment=()):
        """descriptors: the most that it may have open, its own capabilities notwithstanding."""
        self.build, self.folder = build, folder
        self.socket, self.log_path = os.path.join(folder, "socket"), os.path.join(folder, "log")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self.log = open(self.log_path, "ab")  # pylint: disable=consider-using-with
        sanitizers = {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:exitcode=66:allocator_may_return_null=1:"
                                      "quarantine_size_mb=64",
                      "UBSAN_OPTIONS": "print_stacktrace=1", "TSAN_OPTIONS": "halt_on_error=0"}

        def limit():
            die_with_parent()
            if descriptors:
                prctl(PR_CAPBSET_DROP, CAP_SYS_RESOURCE)
                resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

        self.process = subprocess.Popen(  # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
            [build.daemon, "--foreground", "--socket", self.socket, "--device", build.device, *options], stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=self.log, env={**build.without(), **build.settings, **sanitizers, **dict(environment)}, preexec_fn=limit)
        self.pid = self.process.pid
        for _ in range(600):
            if os.path.exists(self.socket) or self.process.poll() is not None:
                break
            time.sleep(0.05)
        else:
            raise RuntimeError("the daemon does not start: " + self.tail())

    def client_environment(self):
        """Programs under the preload library; a daemon that is gone stays gone."""
        return {**self.build.without(), "V3DEMU_SOCKET": self.socket, "V3DEMU_DAEMON": "/bin/false",
                "V3DEMU_DEVICE": self.build.device, "V3DEMU": self.build.command,
                "LD_PRELOAD": self.build.shim,
                "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0:allocator_may_return_null=1"}

    def alive(self):
        return self.process.poll() is None

    def end(self):
        """How it ended, as text."""
        code = self.process.poll()
        if code is None:
            return "it lives"
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"

    def text_of(self, name):
        with open(f"/proc/{self.pid}/{name}", encoding="utf-8", errors="replace") as file:
            return file.read()

    def figures(self):
        """None when it has ended."""
        try:
            status = dict(re.findall(r"^(\w+):\s+(\d+)", self.text_of("status"), re.M))
            times = self.text_of("stat").rpartition(") ")[2].split()
            cpu = (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")
            return Figures(int(status["VmRSS"]) << 10, self.text_of("maps").count("\n"),
                           len(os.listdir(f"/proc/{self.pid}/fd")), int(status["Threads"]), int(status["VmSize"]) << 10, cpu)
        except (OSError, KeyError):
            return None

    def status(self, patience=20):
        """As `v3demu status` says it, or None when it does not answer in time."""
        text = self.status_text(patience)
        return parse_status(text) if text else None

    def status_text(self, patience=20):
        """Empty when it does not answer in time."""
        try:
            done = subprocess.run([self.build.command, "status"], env={**self.build.without(), "V3DEMU_SOCKET": self.socket},
                                  capture_output=True, text=True, timeout=patience, check=False)
        except subprocess.TimeoutExpired:
            return ""
        return done.stdout if done.returncode == 0 and "open nodes" in done.stdout else ""

    def memory(self):
        """Of which kinds it is, where most of it lies, and what the daemon says of its clients."""
        try:
            kinds = ", ".join(" ".join(f) for f in re.findall(r"^(Rss\w+):\s+(\d+ kB)", self.text_of("status"), re.M))
            ranges = re.findall(r"^([0-9a-f]+-[0-9a-f]+ .*)\nSize:\s+(\d+) kB\n(?:\w+:.*\n)*?Rss:\s+(\d+) kB",
                                self.text_of("smaps"), re.M)
            most = sorted(ranges, key=lambda r: -int(r[2]))[:12]
            where = "\n".join(f"    {rss:>8} of {size:>8} kB in {what}" for what, size, rss in most)
            return f"{kinds}\n{where}\n{self.status_text()}"
        except OSError:
            return "(it has ended)"

    def stacks(self):
        """Of all its threads, when there is a gdb."""
        if not shutil.which("gdb"):
            return "(no gdb to print stacks)"
        try:
            done = subprocess.run(["gdb", "-p", str(self.pid), "-batch", "-ex", "thread apply all bt 24"], text=True,
                                  capture_output=True, timeout=120, check=False)
        except subprocess.TimeoutExpired:
            return "(gdb does not answer)"
        return "\n".join(line for line in done.stdout.splitlines() if re.match(r"Thread |#\d", line))

    def log_text(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def tail(self, lines=12):
        return "\n".join(self.log_text().splitlines()[-lines:])

    def reports(self):
        """Lines of sanitizers and of failed assertions."""
        return [line for line in self.log_text().splitlines() if REPORT.search(line)]

    def terminate(self):
        """Tells it to end."""
        if self.alive():
            self.process.send_signal(signal.SIGTERM)

    def stop(self, patience=60):
        """False when it has to be killed."""
        self.terminate()
        return self.wait_for_end(patience) is not None

    def wait_for_end(self, patience=60):
        """Seconds from now; None when it has to be killed."""
        begin = time.monotonic()
        try:
            self.process.wait(patience)
            return time.monotonic() - begin
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None
        finally:
            self.log.close()
