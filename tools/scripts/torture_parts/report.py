"""Counts and figures of a run, as text and as JSON."""
import collections
import json

from hostile import witness
from new_file import new_file

COUNTED = ("ioctls", "captures", "kills", "forks", "exhaustions")
FIGURES = ("rss", "fds", "maps", "threads")
LOADED = 0.05  # seconds of a round of the control beyond which a round says nothing of the daemon


class Tally:
    def __init__(self):
        self.counts = collections.Counter()
        self.attacks = collections.Counter()
        self.rounds = self.daemons = 0
        self.latency = {}  # seconds of every round of a victim that ended, by its name
        self.start = self.end = None
        self.peak = dict.fromkeys(FIGURES, 0)
        self.quiet = dict.fromkeys(FIGURES, 0)  # the most in a quiet phase
        self.compared, self.loaded = [], 0  # longest round of victim and control, and beside which attackers
        self.dead_jobs, self.ends = [], []  # seconds
        self.failures = []

    def compare(self, victim, control, attackers):
        """The rounds of victim and control beside some attackers."""
        most = max(victim, default=0.0), max(control, default=0.0)
        if most[1] > LOADED:
            self.loaded += 1
        else:
            self.compared.append((*most, attackers))

    def see_quiet(self, figures):
        for name in FIGURES:
            self.quiet[name] = max(self.quiet[name], getattr(figures, name))

    def times(self):
        """What docs/security.md promises in time, in milliseconds."""
        ms = lambda seconds: round(1e3 * seconds, 1)
        spread = lambda values: {"count": len(values), "max_ms": ms(max(values, default=0)),
                                 "median_ms": ms(witness.percentile(values, 50))}
        worst = max(self.compared, key=lambda one: one[0] - 2 * one[1], default=(0.0, 0.0, ""))
        return {"longest": {"victim_ms": ms(worst[0]), "control_ms": ms(worst[1]), "attackers": worst[2],
                            "rounds": len(self.compared), "loaded": self.loaded},
                "dead_jobs": spread(self.dead_jobs), "ends": spread(self.ends)}

    def see(self, figures):
        for name in FIGURES:
            self.peak[name] = max(self.peak[name], getattr(figures, name))

    def victims(self):
        return {name: {"rounds": len(took), "max_ms": round(1e3 * max(took, default=0), 1),
                       "p99_ms": round(1e3 * witness.percentile(took, 99), 1)} for name, took in self.latency.items()}

    def as_dict(self, **more):
        four = lambda name: [getattr(self.start, name, 0), self.peak[name], self.quiet[name], getattr(self.end, name, 0)]
        return {**more, "rounds": self.rounds, "daemons": self.daemons, "counts": {k: self.counts[k] for k in COUNTED},
                "attacks": dict(sorted(self.attacks.items())), "victims": self.victims(),
                "times": self.times(),
                "daemon": {name: dict(zip(("start", "peak", "quiet", "end"), four(name))) for name in FIGURES},
                "failures": self.failures}


def as_text(made):
    lines = [f"{made['rounds']} rounds in {made['seconds']:.0f} s, seed {made['seed']}: "
             + ", ".join(f"{count} {kind}" for kind, count in made["counts"].items())
             + f", {sum(made['attacks'].values())} attackers"]
    for name, victim in made["victims"].items():
        lines.append(f"victim {name}: {victim['rounds']} rounds, max {victim['max_ms']:.1f} ms, p99 {victim['p99_ms']:.1f} ms")
    times = made["times"]
    longest = times["longest"]
    lines.append(f"longest round of the victim: {longest['victim_ms']:.1f} ms beside {longest['control_ms']:.1f} ms of the "
                 f"control ({longest['attackers']}), of {longest['rounds']} storms; {longest['loaded']} with a control of more "
                 f"than {1e3 * LOADED:.0f} ms are not counted")
    for what, text in (("dead_jobs", "jobs of {count} killed clients were gone"), ("ends", "{count} ends by SIGTERM")):
        lines.append((text + " after {max_ms:.1f} ms at most, {median_ms:.1f} ms in the middle").format(**times[what]))
    for name, figures in made["daemon"].items():
        unit = 1 << 20 if name == "rss" else 1
        lines.append(f"daemon {name}{' MiB' if unit > 1 else ''}: " + ", ".join(
            f"{figures[when] / unit:.0f} {text}" for when, text in (
                ("start", "at the start"), ("peak", "at most"), ("quiet", "at most after a storm"), ("end", "at the end"))))
    lines.append(f"attackers: at most {made['guard']['processes']} processes with {made['guard']['memory'] / (1 << 20):.0f} MiB "
                 f"(the daemon's included), {made['guard']['kills']} ended for taking too much")
    lines += [f"FAILED: {failure}" for failure in made["failures"]]
    lines.append(f"{len(made['failures'])} failures")
    return "\n".join(lines)


def write_json(path, made):
    with new_file(path) as file:
        json.dump(made, file, indent=2)
        file.write("\n")
