"""A daemon under torture: rounds of attackers, quiet phases between them, and all that is watched."""
import os
import re
import signal
import time

from hostile import siege, wire, witness
from hostile.assault import Counters

from . import limits, plan

HANG = 45.0  # seconds in which a victim ends no round
WATCH = 0.03  # seconds between looks
GUARD = 0.3
LAST_WORK = 0.5  # seconds that the attackers work on before the daemon is told to end

MESA_BOUND = 10.0  # seconds for the whole life of a program that draws a picture
MESA_SLOWNESS = 100


class Attacker:
    """A part of the plan, running. Its times count from when it begins to attack, which may be long after its start."""

    def __init__(self, part, index, camp):
        self.part = part
        self.counters = os.path.join(camp.folder, f"counters-{index}")
        open(self.counters, "wb").close()
        self.began = None
        self.killed = self.guarded = False
        self.started = time.monotonic()
        self.process = siege.start_attacker(part.instance.attack, part.instance.seed, part.instance.seconds,
                                            camp.environment(), self.counters, camp.attacker_limits)

    def signal(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def over(self):
        """Whether it has ended, or should have."""
        if self.process.poll() is not None:
            return True
        if self.began is None:
            return time.monotonic() > self.started + siege.START
        return time.monotonic() > self.began + self.part.instance.seconds + siege.GRACE

    def worked(self, seconds):
        """Whether it has worked for so long; None: for ever."""
        return seconds is not None and self.began is not None and time.monotonic() > self.began + seconds

    def tend(self):
        """Kills, stops and lets go on, as planned. Whether it has been killed just now."""
        if self.began is None and siege.has_begun(self.counters):
            self.began = time.monotonic()
        if self.began is None or self.process.poll() is not None:
            return False
        age, length = time.monotonic() - self.began, self.part.instance.seconds
        if self.part.kill is not None and not self.killed and age >= self.part.kill - self.part.start:
            self.killed = True
            self.signal(signal.SIGKILL)
            return True
        if self.part.stopped and length / 3 <= age < 2 * length / 3:
            self.signal(signal.SIGSTOP)
        elif self.part.stopped and age >= 2 * length / 3:
            self.signal(signal.SIGCONT)
        return False

    def end(self):
        """What it found wrong."""
        said = siege.end_attacker(self.process)
        starved = self.guarded or "MemoryError" in said or "can't start new thread" in said  # by our own limits
        return "" if self.killed or starved else said


class DeadJobs:
    """How long the jobs of killed clients run on, as the daemon's status says."""

    def __init__(self, path, tally):
        self._path, self._tally = path, tally
        self._killed = {}  # when, by process

    def add(self, pid):
        self._killed[pid] = time.monotonic()

    def look(self):
        """Of those that are gone the time counts; of those that cannot be seen, as others have more jobs, none does."""
        if not self._killed:
            return
        asked = time.monotonic()
        try:
            connection = wire.Connection(self._path)
            try:
                row = re.search(r"^jobs (.*)", connection.ask(wire.COMMAND, b"status").decode(), re.M)[1]
            finally:
                connection.close()
        except OSError:
            return
        for pid, killed in list(self._killed.items()):
            if re.search(rf"\bpid {pid}\)? [1-9]", row):
                continue
            del self._killed[pid]
            if not row.endswith("..."):
                self._tally.dead_jobs.append(asked - killed)


class Camp(siege.Siege):
    """For attackers of tools/torture. captures: environment of those who replay captures."""

    def __init__(self, build, folder, victims, guard, tally, captures, hang=HANG):
        self.hang = hang
        self.captures, self.guard, self.tally = captures, guard, tally
        self.attacker_limits = limits.for_attackers(build.sanitizer())
        self.seen = 0.0  # until when rounds of victims are in the tally
        super().__init__(build, folder, victims=victims)
        self.dead = DeadJobs(self.daemon.socket, tally)
        tally.daemons += 1
        if self.first:
            tally.start = tally.start or self.first
            tally.see(self.first)

    def environment(self):
        return {**super().environment(), **self.captures}

    def hanging(self):
        return [victim.name for victim in self.victims
                if victim.wrong is None and victim.silent() > self.hang * max(1, victim.slowness / 10)]

    def run_round(self, parts):
        """Problems of a round and of the quiet after it."""
        begin_alone = time.monotonic()
        self.wait(siege.ALONE)
        log_before = os.path.getsize(self.daemon.log_path)
        begin = time.monotonic()
        attackers, problems = self._storm(list(parts), begin), []
        for attacker in attackers:
            if said := attacker.end():
                problems.append(f"{plan.print_instance(attacker.part.instance)}: {said}")
            self.tally.counts += Counters.read(attacker.counters)
            self.tally.attacks[attacker.part.instance.attack] += 1
        for name in self.hanging():
            problems.append(f"the victim {name} hangs\n{self.daemon.stacks()}")
        end = self.finish() if not problems or not self.hanging() else time.monotonic()
        after = self.settle(problems)
        problems = self.judge(begin_alone, begin, end, log_before) + problems
        if after:
            self.tally.end = after
            self.tally.see_quiet(after)
        self.tally.compare(self.victims[0].took(begin, end), self.control.took(begin, end),
                           " ".join(plan.print_instance(part.instance) for part in parts))
        self.tally.rounds += 1
        self.keep_latency(time.monotonic())
        return problems

    def run_last_round(self, parts):
        """Problems of a round in which the daemon is told to end while the attackers work."""
        attackers = self._storm(list(parts), time.monotonic(), LAST_WORK)
        self.keep_latency(time.monotonic())
        took, problems = self.end(self.daemon.terminate)
        for attacker in attackers:
            siege.end_attacker(attacker.process)
            self.tally.attacks[attacker.part.instance.attack] += 1
            self.tally.counts += Counters.read(attacker.counters)
        if took is not None:
            self.tally.ends.append(took)
        self.tally.rounds += 1
        return problems

    def _storm(self, waiting, begin, enough=None):
        """Until all attackers have ended, or something is wrong, or the last has worked for so many seconds. Returns
        them."""
        attackers, looked = [], 0.0
        while self.daemon.alive() and not self.wrong() and not self.hanging():
            now = time.monotonic() - begin
            while waiting and waiting[0].start <= now:
                attackers.append(Attacker(waiting.pop(0), len(attackers), self))
            for attacker in attackers:
                if attacker.tend():
                    self.tally.counts["kills"] += 1
                    self.dead.add(attacker.process.pid)
            self.dead.look()
            if now - looked > GUARD:
                looked = now
                self._look(attackers)
            if not waiting and all(attacker.over() or attacker.worked(enough) for attacker in attackers):
                break
            time.sleep(WATCH)
        return attackers

    def _look(self, attackers):
        figures = self.daemon.figures()
        if figures:
            self.tally.see(figures)
        ended = self.guard.check([a.process.pid for a in attackers], figures.rss if figures else 0)
        for attacker in attackers:
            attacker.guarded |= attacker.process.pid in ended

    def keep_latency(self, now):
        for victim in self.victims:
            self.tally.latency.setdefault(victim.name, []).extend(
                r.took for r in victim.rounds() if self.seen < r.at + r.took <= now)
        self.seen = now


def mesa_victim(build, mesa, folder):
    """A victim that draws a triangle through Mesa, as a function of the environment; None without the program."""
    program = os.path.join(build.folder, "bin", "vulkan_triangle")
    if not os.path.exists(program) or not mesa or not os.path.isdir(mesa):
        return None

    def make(environment):
        without = {name: value for name, value in environment.items() if name != "LD_PRELOAD"}
        return witness.Witness("mesa_victim.py", without, [folder, build.command, "run", "--mesa", mesa, "--", program],
                               name="mesa", slowness=MESA_SLOWNESS, least_bound=MESA_BOUND)
    return make
