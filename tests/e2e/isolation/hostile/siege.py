"""A daemon, a victim and a control, and one attack after the other on them."""
import collections
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time

from . import FOLDER, witness
from .assault import SHORTAGE, UNDISTURBED, Counters
from .daemon import Daemon, die_with_parent

WARM_UP = 24  # rounds of the victim: it has opened the node anew three times
ALONE = 12  # rounds of it before each attack
START = 60.0  # seconds in which an attacker begins
GRACE = 3.0  # seconds beyond its own that an attacker gets before it is killed
END = 5.0  # seconds in which the daemon ends whatever runs, and the longest round of the control; it promises 2
QUIET = 12.0  # seconds in which the daemon forgets the attackers, on a machine that is not slow

# How far beyond what it took before all attacks the daemon may stay, with the same victims. peak: bytes of memory of its
# own, without that of objects, that a single attack may make it take meanwhile (docs/security.md, limits).
Allowance = collections.namedtuple("Allowance", "rss maps fds threads load log peak slowness")
PLAIN = Allowance(rss=48 << 20, maps=128, fds=16, threads=8, load=0.5, log=1 << 20, peak=640 << 20, slowness=1)
SANITIZED = PLAIN._replace(rss=384 << 20, maps=2000, peak=4 << 30, slowness=10)  # quarantine and shadow; ten times slower
# ThreadSanitizer keeps four bytes of shadow for each that was in use at once, after that one is free.
ALLOWANCES = {None: PLAIN, "address": SANITIZED, "thread": SANITIZED._replace(rss=1 << 30)}

# peak: bytes of the daemon's memory; before and after: Figures. latency: seconds of the victim's rounds.
Outcome = collections.namedtuple("Outcome", "attack seed problems latency control alone before peak after counts")

ATTACKER_LIMITS = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: 5 << 30}  # by kind


def excess(before, now, allowance):
    """What of a daemon's figures has not come back, as text; empty when all has."""
    found = []
    for name in ("rss", "maps", "fds", "threads"):
        most = getattr(before, name) + getattr(allowance, name)
        if getattr(now, name) > most:
            unit = 1 << 20 if name == "rss" else 1
            found.append(f"{name} {getattr(now, name) // unit} of at most {most // unit}" + (" MiB" if unit > 1 else ""))
    return ", ".join(found)


class Peak:
    """The most memory of its own that the daemon has while this lives."""

    def __init__(self, daemon):
        self.rss = 0
        self._daemon, self._end = daemon, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self):
        while not self._end.wait(0.05):
            try:
                own = re.search(r"^RssAnon:\s+(\d+)", self._daemon.text_of("status"), re.M)
                self.rss = max(self.rss, int(own.group(1)) << 10)
            except (OSError, AttributeError):
                return

    def stop(self):
        self._end.set()
        self._thread.join()
        return self.rss


def start_attacker(name, seed, seconds, environment, counters, limits=None):
    """A process group and session of its own. limits: {kind of rlimit: the most}."""
    def limit():
        die_with_parent()
        for kind, value in (limits or ATTACKER_LIMITS).items():
            hard = resource.getrlimit(kind)[1]
            resource.setrlimit(kind, (value, value) if hard == resource.RLIM_INFINITY else (min(value, hard),) * 2)
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")

    return subprocess.Popen(  # pylint: disable=subprocess-popen-preexec-fn
        [sys.executable, "-B", os.path.join(FOLDER, "attacker.py"), name, str(seed), str(seconds), counters],
        env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True, preexec_fn=limit)


def has_begun(counters):
    """Whether the attacker that counts there has done so much as to begin; on a slow machine that takes its time."""
    return os.path.getsize(counters) > 0


def end_attacker(process):
    """What it said when it failed; nothing when it succeeded or had to be killed."""
    ended = process.poll()
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    _, text = process.communicate()
    return text.strip()[-1500:] or f"exit status {ended}" if ended else ""


class Siege:
    """victims: more Witnesses-to-be, as functions of the environment of clients."""

    def __init__(self, build, folder, options=(), settled=False, descriptors=None, shortage=False, victims=()):
        self.folder, self.shortage = folder, shortage
        self.allowance = ALLOWANCES[build.sanitizer()]
        self.daemon = Daemon(build, folder, options, descriptors)
        environment = self.daemon.client_environment()
        self.victims = [witness.Witness("victim.py", environment, ["--settled"] if settled else [])]
        self.victims += [make(environment) for make in victims]
        self.control = witness.Witness("control.py", build.without())
        self.wait(WARM_UP)
        self.control.wait_for(3)
        self.first = self.daemon.figures()
        self.load = self._load()
        self.settled = True
        self.judged = time.monotonic()  # until when the latency of victims is

    def wait(self, rounds):
        """For so many more rounds of every victim; a slow one's count as many."""
        for victim in self.victims:
            if not victim.wait_for(max(1, rounds // victim.slowness)):
                return

    def _load(self, span=0.4):
        """Processor time of the daemon per time."""
        first = self.daemon.figures()
        time.sleep(span)
        last = self.daemon.figures()
        return (last.cpu - first.cpu) / span if first and last else 0.0

    def wrong(self):
        """What victims say that is wrong."""
        return [f"the victim {victim.name}: {victim.wrong}" for victim in self.victims if victim.wrong is not None]

    def usable(self):
        """Whether another attack would find it as it was."""
        return self.settled and self.daemon.alive() and not self.wrong()

    def environment(self):
        """Of attackers."""
        return {**self.daemon.client_environment(), **({SHORTAGE: "1"} if self.shortage else {})}

    def run(self, attack, seed, seconds):
        begin_alone = time.monotonic()
        self.wait(ALONE)
        log_before, refused_before = os.path.getsize(self.daemon.log_path), self.refused()
        peak, begin = Peak(self.daemon), time.monotonic()
        counters = [os.path.join(self.folder, f"counters-{i}") for i in range(attack.processes)]
        for path in counters:
            open(path, "wb").close()
        attackers = [start_attacker(attack.name, seed + i, seconds, {**self.environment(), UNDISTURBED: "1"}, path)
                     for i, path in enumerate(counters)]
        until = begin + START
        while time.monotonic() < until and self.daemon.alive() and any(p.poll() is None for p in attackers):
            if all(map(has_begun, counters)):
                until = min(until, time.monotonic() + seconds + GRACE)
            time.sleep(0.02)
        problems = [text for text in map(end_attacker, attackers) if text]
        span = begin_alone, begin, self.finish()
        after = self.settle(problems)
        problems = self.judge(*span, log_before) + problems
        refused = self.refused() - refused_before
        if refused > 0 and not (attack.refused or self.shortage):
            problems.append(f"{refused} jobs are refused, which do not reach what the attack is after")
        victim = self.victims[0]
        latency, control, alone = victim.took(*span[1:]), self.control.took(*span[1:]), victim.took(*span[:2])
        counts = sum((Counters.read(path) for path in counters), collections.Counter())
        most = peak.stop()
        if most - self.first.rss > self.allowance.peak + attack.processes * attack.charged:
            problems.append(f"the daemon took {most >> 20} MiB of its own, {self.first.rss >> 20} at first")
        return Outcome(attack, seed, problems, latency, control, alone, self.first, most, after, counts)

    def refused(self):
        """How many jobs were, so far."""
        status = self.daemon.status()
        return status.refused if status else 0

    def finish(self):
        """After the end of attackers: what still stands in queues then is part of the attack. The time when it ends."""
        if self.daemon.alive():
            self.wait(ALONE)
        return time.monotonic()

    def judge(self, begin_alone, begin, end, log_before):
        """Problems of an attack between begin and end, before which there was none since begin_alone."""
        problems = self.wrong()
        if not self.daemon.alive():
            problems.insert(0, f"the daemon ended: {self.daemon.end()}\n{self.daemon.tail()}")
        elif any("hangs" in problem for problem in problems):
            problems.append(self.daemon.stacks())
        # Of all the time since the last judgement, so that nothing passes between two attacks.
        control = max(self.control.took(self.judged, end), default=0.0)
        for victim in self.victims:
            most = max(victim.took(self.judged, end), default=0.0)
            bound = self.allowance.slowness * victim.bound(control, witness.percentile(victim.took(begin_alone, begin), 90))
            if most > bound:
                problems.append(f"the victim {victim.name} waited {most:.2f} s; the bound is {bound:.2f} s")
        self.judged = end
        log = os.path.getsize(self.daemon.log_path) - log_before
        if log > self.allowance.log:
            problems.append(f"{log >> 10} KiB of log")
        return problems + self.daemon.reports()

    def left(self):
        """What is left of attackers, as text, and the daemon's figures; nothing and None when it has ended."""
        status, now = self.daemon.status(), self.daemon.figures()
        if status is None or now is None:
            return "v3demu status is not answered", now
        strangers = set(status.clients) - {pid for victim in self.victims for pid in victim.pids()}
        queued = sum(status.queued.values())
        if strangers:
            return f"dead clients stay: {sorted(strangers)[:5]}", now
        if queued >= 8:
            return f"{queued} jobs stay queued", now
        load = self._load()
        if load > self.load + self.allowance.load:
            return f"{load:.2f} processors are busy, {self.load:.2f} at first", now
        return excess(self.first, now, self.allowance), now

    def settle(self, problems):
        """Waits until nothing is left of the attackers; adds what stays. Returns the last figures."""
        patience = QUIET * self.control.slow()
        until, trouble, now = time.monotonic() + patience, "", None
        while self.daemon.alive() and not self.wrong():
            trouble, now = self.left()
            if not trouble:
                return now
            if time.monotonic() > until:
                self.settled = False
                problems.append(f"{patience:.0f} s after the attack: {trouble}\n{self.daemon.memory()}")
                if now is None or "not answered" in trouble:
                    problems.append(self.daemon.stacks())
                return now
            time.sleep(0.1)
        return now

    def end(self, act, later=0):
        """Calls act(), upon which the daemon has to end, so many seconds later. Seconds that it took, None if it did not, and
        what is wrong."""
        begin = time.monotonic()
        for victim in self.victims:
            victim.close()
        problems = self.wrong()
        act()
        took = self.daemon.wait_for_end()
        most = END + later + max(self.control.took(begin), default=0.0)
        self.control.close()
        if took is None or took > most:
            problems.append(f"the daemon ended {'never' if took is None else f'after {took:.2f} s'}; the bound is {most:.2f} s")
        elif self.daemon.process.returncode != 0:
            problems.append(f"the daemon's end: {self.daemon.end()}\n{self.daemon.tail(40)}")
        return took, problems + self.daemon.reports()

    def limit(self, kind, more):
        """Lets the daemon have only so much more of a resource than it has now."""
        now = {resource.RLIMIT_AS: "VmSize", resource.RLIMIT_DATA: "VmData"}.get(kind)
        if now:
            more += int(re.search(rf"{now}:\s+(\d+)", self.daemon.text_of("status")).group(1)) << 10
        resource.prlimit(self.daemon.pid, kind, (more, more))

    def close(self):
        """Problems of the end."""
        for victim in self.victims:
            victim.close()
        self.control.close()
        alive = self.daemon.alive()
        problems = []
        if not self.daemon.stop():
            problems.append("the daemon does not end")
        elif alive and self.daemon.process.returncode != 0:
            problems.append(f"the daemon's end: {self.daemon.end()}\n{self.daemon.tail(40)}")
        return problems


def describe(outcome):
    """A line for each attack, with its figures."""
    mebi = lambda value: f"{value / (1 << 20):.0f}"
    latency = outcome.latency
    after = outcome.after or outcome.before
    text = (f"{outcome.attack.name:24} victim {len(latency):4} rounds, max {max(latency, default=0) * 1e3:7.1f} ms, p99 "
            f"{witness.percentile(latency, 99) * 1e3:6.1f} (control max {max(outcome.control, default=0) * 1e3:.1f}, alone max "
            f"{max(outcome.alone, default=0) * 1e3:.1f}) | rss {mebi(outcome.before.rss)} {mebi(outcome.peak)} "
            f"{mebi(after.rss)} MiB, fds {outcome.before.fds} {after.fds}, maps {outcome.before.maps} {after.maps} | "
            + ", ".join(f"{count} {kind}" for kind, count in outcome.counts.items() if count))
    return "\n".join([text, *(f"    FAILED: {problem}" for problem in outcome.problems)])


def scratch_folder():
    """For a daemon and its socket, whose path must be short. Other users come as far as the daemon lets them."""
    folder = tempfile.mkdtemp(prefix="v3demu-siege-")
    os.chmod(folder, 0o711)
    return folder
