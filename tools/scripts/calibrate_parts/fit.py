"""Fits constants of the timing model to published times, and says how well a fit without a row predicts it.

The search does not run the model: for each row and each constant it has the times at some values of this constant, the others being as at a
centre, and adds up what each constant changes (Surface). What it finds is then the new centre, until the model itself agrees."""
import bisect
import collections
import concurrent.futures
import dataclasses
import math
import os

from calibrate_parts.replayed import variants


@dataclasses.dataclass(frozen=True)
class Constant:
    """A constant of the model, or some that have one value. @param chip  whose rows it is for; "": of all
    @param kinds  of rows, "scenes" or "programs"; "": both  @param guess  what one would take without the rows"""
    name: str
    chip: str
    kinds: str
    guess: int
    least: int
    most: int
    step: int = 1

    @property
    def key(self):
        return self.name + (f"@{self.chip}" if self.chip else "")

    @property
    def names(self):
        return self.name.split("+")

    def is_for(self, row):
        return self.chip in ("", row.chip) and self.kinds in ("", row.kind)

    def around(self, centre):
        """Values at which the model is asked."""
        wanted = {max(self.least, min(self.most, round(centre * factor / self.step) * self.step)) for factor in (0.5, 0.75, 1.3, 2)}
        wanted |= {self.guess, max(self.least, centre - self.step), min(self.most, centre + self.step)} if centre < 8 * self.step \
            else {self.guess}
        return sorted(wanted | {centre})

    def all_over(self):
        """Values with which a search begins."""
        values, at = {self.guess}, max(self.least, 1)
        while at < self.most:
            values.add(round(at / self.step) * self.step)
            at = max(at * 1.1, at + self.step)
        return sorted(values | {self.least, self.most})

    def near(self, value):
        """Values that a search tries next."""
        wanted = {value - self.step, value + self.step, self.guess, *(round(value * f / self.step) * self.step for f in STEPS)}
        return sorted({value, *(v for v in wanted if self.least <= v <= self.most)})


STEPS = (0.5, 0.7, 0.85, 0.95, 0.98, 1.02, 1.05, 1.15, 1.4, 2)

# Guesses: memory at its peak, 17 and 12.8 GB/s; its latency on the Pi 5 as its CPU sees it (tinymembench, beside the frames of G-1), on the
# Pi 4 half more; a stall as of the SFU; stores of tiles as other writes, at their guess; the rest as in compute-and-timing.md 18.
CONSTANTS = [
    Constant("rep_stall", "", "programs", 4, 0, 24, 4),  # whole instructions
    Constant("dram_read", "rpi5", "", 59, 30, 240),
    Constant("dram_write+tile_write", "rpi5", "", 59, 30, 400),
    Constant("dram_latency", "rpi5", "", 105, 50, 400),
    Constant("dram_read", "rpi4", "", 78, 40, 400),
    Constant("dram_write", "rpi4", "", 78, 40, 600),
    Constant("dram_latency", "rpi4", "", 155, 80, 500),
    Constant("submit", "rpi5", "programs", 50, 5, 200),
    Constant("depth_write", "rpi5", "scenes", 59, 30, 800),
    Constant("ptb_primitive", "rpi5", "scenes", 4, 1, 60),
    Constant("texture_lookup", "rpi5", "scenes", 1, 1, 16),
    Constant("fep_primitive", "rpi5", "scenes", 8, 1, 40),
    Constant("fragment_launch", "rpi5", "scenes", 16, 1, 40),
]
PULL = 2e-4      # of a constant to its guess, so that what no row decides stays there: times the square of the logarithm
ROUNDS = 100
WIDE_ROUNDS = 3
CENTRES = 3
AGREES = 0.02    # of the surface with the model


def guesses():
    return {constant.key: constant.guess for constant in CONSTANTS}


def deviation(key, value):
    """From the guess."""
    return math.log((value + 1) / (guesses()[key] + 1)) ** 2


class Row:
    """@param published  milliseconds"""

    def __init__(self, name, kind, chip, family, published):
        self.name, self.kind, self.chip, self.family, self.published = name, kind, chip, family, published

    def names(self, at):
        """The model's constants of this row."""
        return {name: at[constant.key] for constant in CONSTANTS if constant.is_for(self) for name in constant.names}


class Scene(Row):
    def __init__(self, row, frames):
        super().__init__(row["id"], "scenes", "rpi5", row["scene"].split(":")[0], 1000 / row["fps"][0])
        self.frames = frames

    def times(self, points):
        """Milliseconds at each of these."""
        return self.frames.variants([self.names(at) for at in points])


class Program(Row):
    def __init__(self, v3demu, row, capture, scale, host_seconds):
        super().__init__(row["id"], "programs", row["board"][:4], f"{row['program']} {row['board'][:4]}", 1000 * row["seconds"])
        self.v3demu, self.capture, self.scale, self.clock_mhz = v3demu, capture, scale, row["clock_mhz"]
        self.host = 1000 * host_seconds

    def times(self, points):
        constants = [self.names(at) for at in points]
        (_, times), = variants(self.v3demu, self.capture, constants, self.clock_mhz)
        return [time * self.scale + at.get(f"submit@{self.chip}", SUBMIT_RPI4) / 1000 + self.host for time, at in zip(times, points)]


SUBMIT_RPI4 = 50  # us; no row decides it


class Surface:
    """Times of the rows around a centre: {row: {key: ((value, ...), (what it adds, ...))}}."""

    def __init__(self, rows, pool, centre, log):
        self.centre, self.base, self.added = centre, {}, {}
        for row, (base, added) in zip(rows, pool.map(self._measured, rows)):
            self.base[row.name], self.added[row.name] = base, added
            log(f"{row.name}: {base:.3f} ms; {' '.join(added)}")

    def _measured(self, row):
        places = [(constant.key, value) for constant in CONSTANTS if constant.is_for(row) for value in constant.around(self.centre[constant.key])]
        base, *times = row.times([self.centre, *({**self.centre, key: value} for key, value in places)])
        added = collections.defaultdict(list)
        for (key, value), time in zip(places, times):
            added[key].append((value, time - base))
        # A constant that changes nothing is left out.
        return base, {key: tuple(zip(*line)) for key, line in added.items() if any(change for _, change in line)}

    def change(self, name, key, value):
        values, changes = self.added[name][key]
        i = min(max(bisect.bisect_left(values, value), 1), len(values) - 1)
        share = (value - values[i - 1]) / (values[i] - values[i - 1])
        return changes[i - 1] + share * (changes[i] - changes[i - 1])

    def time(self, name, at):
        total = self.base[name]
        for key in self.added[name]:
            total += self.change(name, key, at[key])
        return max(total, self.base[name] / 100)

    def elasticity(self, name, key, at):
        """By how many per cent the time grows with one per cent of the constant."""
        if key not in self.added[name]:
            return 0.0
        low, high = 0.8 * at[key], 1.25 * at[key]
        return math.log(self.time(name, {**at, key: high}) / self.time(name, {**at, key: low})) / math.log(high / low)


class Fit:
    def __init__(self, rows):
        self.rows = {row.name: row for row in rows}
        self.pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
        self.surface = None

    def searched(self, names):
        """One constant after the other, from the guesses on."""
        at = guesses()
        users = {constant.key: [name for name in names if constant.key in self.surface.added[name]] for constant in CONSTANTS}

        def cost(key, value):
            there = {**at, key: value}
            return sum(math.log(self.surface.time(name, there) / self.rows[name].published) ** 2 for name in users[key]) \
                + PULL * deviation(key, value)

        for number in range(ROUNDS):
            before = dict(at)
            for constant in CONSTANTS:
                if users[constant.key]:
                    tried = constant.all_over() if number < WIDE_ROUNDS else constant.near(at[constant.key])
                    at[constant.key] = min(tried, key=lambda value, key=constant.key: cost(key, value))
            if at == before and number >= WIDE_ROUNDS:
                break
        return at

    def real(self, wanted):
        """What the model says. @param wanted  {name of a row: [points]}  @return {name: [milliseconds]}"""
        names = list(wanted)
        return dict(zip(names, self.pool.map(lambda name: self.rows[name].times(wanted[name]), names)))

    def fitted(self, centre, log):
        """Constants for all rows, and what the model says of these. @param centre  where the first surface is"""
        names = list(self.rows)
        for number in range(CENTRES):
            self.surface = Surface(list(self.rows.values()), self.pool, centre, log)
            at = self.searched(names)
            times = {name: found[0] for name, found in self.real({name: [at] for name in names}).items()}
            off = {name: math.log(self.surface.time(name, at) / times[name]) for name in names}
            worst = max(names, key=lambda name: abs(off[name]))
            log(f"centre {number + 1}: {at}, {self.rms(times):.1%} root of mean squares; of {worst} the surface is off by {off[worst]:+.1%}")
            if abs(off[worst]) < AGREES:
                break
            centre = at
        return at, times

    def rms(self, times):
        return math.sqrt(sum(math.log(time / self.rows[name].published) ** 2 for name, time in times.items()) / len(times))

    def left_out(self, groups):
        """Each group of rows is predicted by constants fitted without it: [(group, constants, {row: error})]."""
        found = []
        for group in groups:
            found.append((group, self.searched([name for name in self.rows if name not in group])))
        wanted = collections.defaultdict(list)
        for group, at in found:
            for name in group:
                wanted[name].append(at)
        times = {name: iter(values) for name, values in self.real(wanted).items()}
        return [(group, at, {name: next(times[name]) / self.rows[name].published - 1 for name in group}) for group, at in found]

    def deciders(self, at):
        """For each constant the rows that decide it, with their shares: [(key, [(share, row)])]."""
        found = []
        for constant in CONSTANTS:
            weight = {name: self.surface.elasticity(name, constant.key, at) ** 2 for name in self.rows}
            total = sum(weight.values())
            found.append((constant.key, sorted(((w / total, name) for name, w in weight.items()), reverse=True) if total > 1e-6 else []))
        return found
