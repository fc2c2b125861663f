"""Counts and figures of a run, as text and as JSON."""
import collections
import json

from hostile import witness
from new_file import new_file

COUNTED = ("ioctls", "captures", "kills", "forks", "exhaustions")
FIGURES = ("rss", "fds", "maps", "threads")


class Tally:
    def __init__(self):
        self.counts = collections.Counter()
        self.attacks = collections.Counter()
        self.rounds = self.daemons = 0
        self.latency = {}  # seconds of every round of a victim that ended, by its name
        self.start = self.end = None
        self.peak = dict.fromkeys(FIGURES, 0)
        self.failures = []

    def see(self, figures):
        for name in FIGURES:
            self.peak[name] = max(self.peak[name], getattr(figures, name))

    def victims(self):
        return {name: {"rounds": len(took), "max_ms": round(1e3 * max(took, default=0), 1),
                       "p99_ms": round(1e3 * witness.percentile(took, 99), 1)} for name, took in self.latency.items()}

    def as_dict(self, **more):
        three = lambda name: [getattr(self.start, name, 0), self.peak[name], getattr(self.end, name, 0)]
        return {**more, "rounds": self.rounds, "daemons": self.daemons, "counts": {k: self.counts[k] for k in COUNTED},
                "attacks": dict(sorted(self.attacks.items())), "victims": self.victims(),
                "daemon": {name: dict(zip(("start", "peak", "end"), three(name))) for name in FIGURES},
                "failures": self.failures}


def as_text(made):
    lines = [f"{made['rounds']} rounds in {made['seconds']:.0f} s, seed {made['seed']}: "
             + ", ".join(f"{count} {kind}" for kind, count in made["counts"].items())
             + f", {sum(made['attacks'].values())} attackers"]
    for name, victim in made["victims"].items():
        lines.append(f"victim {name}: {victim['rounds']} rounds, max {victim['max_ms']:.1f} ms, p99 {victim['p99_ms']:.1f} ms")
    for name, figures in made["daemon"].items():
        unit = 1 << 20 if name == "rss" else 1
        lines.append(f"daemon {name}{' MiB' if unit > 1 else ''}: " + ", ".join(
            f"{figures[when] / unit:.0f} at {'the ' if when != 'peak' else ''}{when}" if when != "peak" else
            f"{figures[when] / unit:.0f} at most" for when in ("start", "peak", "end")))
    lines.append(f"attackers: at most {made['guard']['processes']} processes with {made['guard']['memory'] / (1 << 20):.0f} MiB "
                 f"(the daemon's included), {made['guard']['kills']} ended for taking too much")
    lines += [f"FAILED: {failure}" for failure in made["failures"]]
    lines.append(f"{len(made['failures'])} failures")
    return "\n".join(lines)


def write_json(path, made):
    with new_file(path) as file:
        json.dump(made, file, indent=2)
        file.write("\n")
