"""Rows of bench/compare that are set beside what the host itself does: sgemm and scopy of compute_bench.py, and what
compiling costs."""

import collections
import json
import pathlib
import statistics
import subprocess
import sys

COMPUTE_BENCH = pathlib.Path(__file__).resolve().parent / "compute_bench.py"

# `name` is a key of Peaks.samples; `bound` the key of what it is set beside, of the host or of the interpreter.
Row = collections.namedtuple("Row", "name bound title unit target")
ROWS = (
    Row("sgemm", "peak_flops", "sgemm / host's peak", "Gflop/s", 0.25),
    Row("scopy", "peak_copy", "scopy / host's copy", "GB/s", 0.35),
    Row("sgemm", "sgemm", "sgemm / interpreter", "Gflop/s", 10.0),
)
INTERPRETER = "off"
PROGRAMS = {"host_peak", "qpu_bench"}  # of the build
# Microseconds for each QPU instruction; the argument of qpu_bench by engine.
COMPILE_LIMIT = 2.0
COMPILE_ARGUMENTS = {"avx512": 1, "avx2": 2}
HALF = 0.5  # of a throughput of the first engine: what others are to reach


def benchmarks_of(command):
    run = subprocess.run([*command, "--benchmark_format=json"], check=True, capture_output=True, text=True)
    return json.loads(run.stdout)["benchmarks"]


class Peaks:
    """sides: by engine, how a program is started."""

    def __init__(self, options, sides, interpreter):
        self.build = options.build
        self.min_time = options.min_time
        self.sides = sides
        self.interpreter = interpreter
        self.samples = collections.defaultdict(list)  # by key and engine; engine None: of the host

    def measure(self, runs):
        for _ in range(runs):
            for result in benchmarks_of([self.build / "bin/host_peak", f"--benchmark_min_time={self.min_time}"]):
                rate = result.get("flop/s") or result["bytes_per_second"]
                self.samples[result["name"].split("/")[0], None].append(rate / 1e9)
            for engine, side in {**self.sides, INTERPRETER: self.interpreter}.items():
                for kernel, rates in self._kernels(side).items():
                    self.samples[kernel, engine].append(statistics.median(rates))
            self._compile()

    def _kernels(self, side):
        run = side.run([sys.executable, str(COMPUTE_BENCH), "--json"])
        return json.loads(run.stdout)

    def _compile(self):
        results = benchmarks_of([self.build / "bin/qpu_bench", "--benchmark_filter=^compile_512_instructions/",
                                 f"--benchmark_min_time={self.min_time}"])
        figures = {result["name"].rsplit(":", 1)[1]: result["seconds_per_instruction"] * 1e6 for result in results}
        for engine in self.sides:
            argument = COMPILE_ARGUMENTS.get(engine, min(COMPILE_ARGUMENTS.values()))
            if engine == "auto" and str(argument) not in figures:
                argument = max(COMPILE_ARGUMENTS.values())
            if str(argument) in figures:
                self.samples["compile", engine].append(figures[str(argument)])

    def median(self, key, engine):
        return statistics.median(self.samples[key, engine])

    def bound(self, row):
        return self.median(row.bound, INTERPRETER if row.bound == row.name else None)

    def rows(self):
        """Title, unit, bound, and the engines' figures, ratios and target."""
        for row in ROWS:
            bound = self.bound(row)
            figures = {engine: self.median(row.name, engine) for engine in self.sides}
            yield row.title, row.unit, bound, figures, {e: f / bound for e, f in figures.items()}, row.target
        figures = {engine: self.median("compile", engine) for engine in self.sides if self.samples["compile", engine]}
        yield ("compile, of an instruction", "us", COMPILE_LIMIT, figures,
               {e: COMPILE_LIMIT / f for e, f in figures.items()}, 1.0)

    def print(self):
        columns = "".join(f"{'v3demu ' + engine:>16}{'ratio':>8}" for engine in self.sides)
        print(f"{'':26}{'bound':>14}{columns}{'target':>9}")
        for title, unit, bound, figures, ratios, target in self.rows():
            text = f"{title:26}{f'{bound:.3g} {unit}':>14}"
            for engine in self.sides:
                known = engine in figures
                text += f"{f'{figures[engine]:.3g} {unit}':>16}{ratios[engine]:8.2f}" if known else f"{'':24}"
            print(f"{text}{target:9.2f}")

    def of_first(self):
        """sgemm and scopy of the other engines, as parts of the first one's."""
        first, *others = self.sides
        return {kernel: {e: self.median(kernel, e) / self.median(kernel, first) for e in others}
                for kernel in ("sgemm", "scopy")}

    def as_json(self):
        samples = [{"name": key, "engine": engine, "samples": values} for (key, engine), values in self.samples.items()]
        rows = [dict(zip(("name", "unit", "bound", "median", "ratio", "target"), row)) for row in self.rows()]
        return {"rows": rows, "samples": samples}
