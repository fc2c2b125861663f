"""Keeps a torture from taking the machine down with it."""
import os
import resource
import signal

# Of each attacker; what it starts inherits them.
DESCRIPTORS = 20_000
FILE_BYTES = 5 << 30  # a memfd for all of a GPU's address space is no crime
ADDRESS_SPACE = 16 << 30  # not with sanitizers, whose shadow alone is larger


def for_attackers(sanitized):
    """{kind of rlimit: the most}."""
    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: FILE_BYTES, resource.RLIMIT_NOFILE: DESCRIPTORS}
    if not sanitized:
        limits[resource.RLIMIT_AS] = ADDRESS_SPACE
    return limits


class Cgroup:
    """A bound on processes, and on memory where a controller is at hand; nothing when there is none to be had."""

    PIDS, MEMORY = (("pids", "pids.max"), ("", "pids.max")), (("memory", "memory.limit_in_bytes"), ("", "memory.max"))

    def __init__(self, processes, memory, base="/sys/fs/cgroup"):
        self.folders = []
        name = f"v3demu-torture-{os.getpid()}"
        for choices, value in ((self.PIDS, processes), (self.MEMORY, memory)):
            for controller, file in choices:
                folder = os.path.join(base, controller, name)
                if self._enter(folder, file, value):
                    break

    def _enter(self, folder, file, value):
        try:
            if not os.path.exists(os.path.join(os.path.dirname(folder), "cgroup.procs")):
                return False
            if folder not in self.folders:
                os.mkdir(folder)
            with open(os.path.join(folder, file), "w", encoding="ascii") as limit:
                limit.write(str(value))
            if folder not in self.folders:
                with open(os.path.join(folder, "cgroup.procs"), "w", encoding="ascii") as members:
                    members.write("0")
                self.folders.append(folder)
            return True
        except OSError:
            if folder not in self.folders:
                try:
                    os.rmdir(folder)
                except OSError:
                    pass
            return False

    def leave(self):
        for folder in self.folders:
            try:
                with open(os.path.join(os.path.dirname(folder), "cgroup.procs"), "w", encoding="ascii") as members:
                    members.write("0")
                os.rmdir(folder)
            except OSError:
                pass


def processes_by_session():
    """{session: [(pid, bytes of memory)]} of all processes that can be read."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(") ")[2].split()
        except OSError:
            continue
        found.setdefault(int(fields[3]), []).append((int(pid), int(fields[21]) * os.sysconf("SC_PAGE_SIZE")))
    return found


class Guard:
    """Kills attackers that are too many or too large together."""

    def __init__(self, processes, memory):
        self.processes, self.memory = processes, memory
        self.kills = 0
        self.peak_processes = self.peak_memory = 0

    def check(self, sessions, daemon_memory=0, table=None):
        """sessions: of the attackers. Ends the largest sessions until the rest is within bounds."""
        table = processes_by_session() if table is None else table
        mine = {session: table[session] for session in sessions if session in table}
        count = sum(map(len, mine.values()))
        memory = daemon_memory + sum(size for members in mine.values() for _, size in members)
        self.peak_processes, self.peak_memory = max(self.peak_processes, count), max(self.peak_memory, memory)
        ended = []
        while mine and (count > self.processes or memory > self.memory):
            weight = (lambda session: len(mine[session])) if count > self.processes else (
                lambda session: sum(size for _, size in mine[session]))
            worst = max(mine, key=weight)
            members = mine.pop(worst)
            count, memory = count - len(members), memory - sum(size for _, size in members)
            ended.append(worst)
            self.kills += 1
            for pid, _ in members:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        return ended
