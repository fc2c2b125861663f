"""What v3demu replay --time says of the jobs of a capture, and v3demu timing of the model."""
import collections
import os
import re
import subprocess
import tempfile

Job = collections.namedtuple("Job", "kind milliseconds submit_milliseconds bound clocks clock_mhz memory_milliseconds samples")
BLOCK = re.compile(r"^(?=job \d+: )", re.M)
PREDICTED = re.compile(r"job \d+: (\w+) .* predicted ([\d.]+) ms, ([\d.]+) ms with its submit.*\n"
                       r"  bound by ([\w ]+): .* DRAM ([\d.]+) % of (\d+) clocks at (\d+) MHz$", re.M)
TMU_LINES = re.compile(r"TMU cache \d+ of (\d+) lines")
VARIANT = re.compile(r"^  line \d+: (\d+) ns$", re.M)


class Failure(Exception):
    pass


def run(command, environment=None):
    """What it prints."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=3600, env=environment, check=False)
    except OSError as error:
        raise Failure(f"{command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)} ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-600:]}")
    return done.stdout


def kinds(v3demu, capture):
    """Of the jobs of a capture, without predictions."""
    return re.findall(r"^job \d+: (\w+)", run([v3demu, "replay", capture]), re.M)


def _blocks(v3demu, capture, clock_mhz, first, options):
    """What is said of each job."""
    clock = ["--clock", str(clock_mhz)] if clock_mhz else []
    start = ["--from", str(first + 1)] if first else []
    text = run([v3demu, "replay", "--time", *clock, *start, *options, capture])
    blocks = BLOCK.split(text)[1:][first:]
    if not blocks:
        raise Failure(f"no prediction: {text[:300]}")
    return blocks


def _job(block):
    found = PREDICTED.match(block)
    if not found:
        raise Failure(f"no prediction: {block[:300]}")
    kind, alone, whole, bound, dram, clocks, mhz = found.groups()
    lines = TMU_LINES.search(block)
    return Job(kind, float(alone), float(whole) - float(alone), bound, int(clocks), int(mhz), float(alone) * float(dram) / 100,
               bool(lines and int(lines[1])))


def jobs(v3demu, capture, clock_mhz=None, first=0, constants=()):
    """Those of a capture, one at least. @param clock_mhz  another one than the board's  @param first  without so many first ones
    @param constants  NAME=VALUE, in place of the board's"""
    return [_job(block) for block in _blocks(v3demu, capture, clock_mhz, first, [word for each in constants for word in ("--set", each)])]


def variants(v3demu, capture, constants, clock_mhz=None, first=0):
    """The jobs, and for each what it takes in milliseconds, without its submit, with each of these constants.
    @param constants  [{name: value in place of the board's}]"""
    with tempfile.NamedTemporaryFile("w", prefix="v3demu-calibrate-", delete=False) as file:
        file.writelines(" ".join(f"{name}={value}" for name, value in each.items()) + "\n" for each in constants)
    try:
        blocks = _blocks(v3demu, capture, clock_mhz, first, ["--variants", file.name])
    finally:
        os.unlink(file.name)
    return [(_job(block), [int(ns) / 1e6 for ns in VARIANT.findall(block)]) for block in blocks]


def constants_of(v3demu, board):
    """{name: value} of the timing model, as they are in use."""
    lines = (line.split() for line in run([v3demu, "timing", "--device", board]).splitlines()[1:])
    return {words[0]: int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}
