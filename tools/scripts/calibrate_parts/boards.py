"""The times that v3dprobe (bench/measure) found on a board, beside what the timing model predicts for the same rows: the program runs on the
emulated board, whose times mean nothing, and the jobs that it submits are replayed."""
import collections
import json
import os
import sys

from calibrate_parts.replayed import Failure, constants_of, jobs, run

FORMAT = 1  # as in v3dprobe.c
# By version of the chip and number of QPUs.
PROFILES = {(42, 8): "rpi4", (71, 12): "rpi5", (71, 16): "rpi5-16"}
ROW = {"name": str, "parameters": dict, "unit": str, "median": (int, float), "min": (int, float), "max": (int, float), "repetitions": int,
       "right": bool, "constants": str, "work": (int, float), "jobs": list}
HEAD = {"board": str, "kernel": str, "machine": str, "chip": dict, "idents": list, "clock_mhz": (int, float), "reported_mhz": (int, float),
        "quick": bool, "rows": list, "questions": list}

Compared = collections.namedtuple("Compared", "name parameters unit measured least most predicted error constants right")


def fields(what, found, wanted):
    """Fails where one is missing or another thing than it should be."""
    for name, kind in wanted.items():
        if not isinstance(found, dict) or not isinstance(found.get(name), kind):
            raise Failure(f"{what}: \"{name}\" is missing, or not what v3dprobe writes")


def read(path):
    """What v3dprobe printed, looked through."""
    try:
        with open(path, encoding="utf-8") as file:
            results = json.load(file)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise Failure(f"{path} is no whole output of v3dprobe: {error}") from error
    if not isinstance(results, dict) or results.get("program") != "v3dprobe":
        raise Failure(f"{path} is no output of v3dprobe")
    if results.get("format") != FORMAT:
        raise Failure(f"{path} is of another version of v3dprobe: format {results.get('format')}, not {FORMAT}")
    fields(path, results, HEAD)
    fields(f"{path}, chip", results["chip"], {"version": int, "qpus": int, "slices": int, "revision": int})
    for number, row in enumerate(results["rows"], 1):
        fields(f"{path}, row {number}", row, ROW)
    return results


def profile_of(results, path):
    """The name of the board that has as many QPUs."""
    chip = results["chip"]
    name = PROFILES.get((chip["version"], chip["qpus"]))
    if not name:
        raise Failure(f"{path}: no board has V3D {chip['version'] / 10} with {chip['qpus']} QPUs; --device chooses one")
    return name


def key_of(row):
    return row["name"], json.dumps(row["parameters"], sort_keys=True)


def text_of(name, parameters):
    return " ".join([name, *(f"{key}={value}" for key, value in parameters.items())])


def value(row, replayed, submit):
    """In the row's unit. @param submit  seconds that the board takes for it besides the GPU"""
    def sums(first, last):
        part = replayed[first:last]
        return sum(job.clocks for job in part), submit * sum(job.submit_milliseconds > 0.0005 for job in part)

    (few, few_submits), (many, many_submits) = (sums(*pair) for pair in row["jobs"])
    clocks, mhz = many - few, replayed[0].clock_mhz
    seconds = clocks / mhz / 1e6 + many_submits - few_submits
    if row["unit"] == "clk":
        return clocks / row["work"]
    if row["unit"] in ("MB/s", "MHz"):
        return row["work"] / seconds / 1e6
    return seconds / row["work"] * {"ns": 1e9, "us": 1e6, "ps/B": 1e12}[row["unit"]]


def predictions(v3demu, program, board, folder, only):
    """{key of a row: predicted value}"""
    capture, output = os.path.join(folder, f"{board}.v3dcap"), os.path.join(folder, f"{board}.json")
    options = ["--only", only] if only else []
    run(["sh", "-c", "exec \"$@\" > \"$0\"", output, v3demu, "capture", "--mesa", "system", "--device", board, "-o", capture, "--",
         program, "--quick", "--rows", *options])
    emulated, replayed = read(output), jobs(v3demu, capture)
    submit = constants_of(v3demu, board)["submit"] * 1e-6
    return {key_of(row): value(row, replayed, submit) for row in emulated["rows"]}


def compare(results, predicted):
    """(Compared rows, names of measured rows that are not predicted, of predicted rows that were not measured)"""
    compared, unknown = [], []
    for row in results["rows"]:
        expected = predicted.get(key_of(row))
        if expected is None:
            unknown.append(text_of(row["name"], row["parameters"]))
            continue
        error = 100 * (expected / row["median"] - 1) if row["median"] else float(expected != 0) * 100
        compared.append(Compared(row["name"], row["parameters"], row["unit"], row["median"], row["min"], row["max"], expected, error,
                                 row["constants"], row["right"]))
    measured = {key_of(row) for row in results["rows"]}
    return compared, unknown, [text_of(name, json.loads(parameters)) for name, parameters in predicted if (name, parameters) not in measured]


def print_comparison(results, board, compared, within):
    firmware = f" ({results['reported_mhz']:.0f} by its firmware)" if results["reported_mhz"] else ""
    print(f"{results['board'] or 'a board without a name'}, Linux {results['kernel']}, {results['chip']['qpus']} QPUs at"
          f" {results['clock_mhz']:.0f} MHz{firmware}; predicted for {board}")
    print(f"{'row':44}{'measured':>11}{'least':>11}{'most':>11}{'predicted':>11} {'':5}{'error':>10}  depends on")
    for row in compared:
        marks = "" if abs(row.error) <= within else "  <- beyond the limit"
        marks += "" if row.right else "  <- computed something else on the board"
        print(f"{text_of(row.name, row.parameters):44}{row.measured:11.3f}{row.least:11.3f}{row.most:11.3f}{row.predicted:11.3f} {row.unit:5}{row.error:+9.1f}%"
              f"  {row.constants}{marks}")


def main(options, build, folder):
    """Status as that of tools/calibrate. @param folder  for the capture"""
    results = read(options.board)
    board = options.device or profile_of(results, options.board)
    only = {row["name"] for row in results["rows"]} - {"clock"}
    predicted = predictions(os.path.join(build, "bin", "v3demu"), os.path.join(build, "bin", "v3dprobe"), board, folder,
                            only.pop() if len(only) == 1 else None)
    compared, unknown, absent = compare(results, predicted)
    if options.json:
        print(json.dumps([row._asdict() for row in compared], indent=2))
    else:
        print_comparison(results, board, compared, options.within)
    if results["quick"]:
        print(f"{options.board}: made with --quick, whose times mean nothing", file=sys.stderr)
    for names, why in ((unknown, f"not predicted for {board}"), (absent, "not measured")):
        for name in names:
            print(f"{name}: {why}", file=sys.stderr)
    if not compared:
        raise Failure(f"{options.board}: no row that is predicted for {board}")
    return 1 if any(abs(row.error) > options.within or not row.right for row in compared) else 0
