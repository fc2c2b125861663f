"""What v3demu replay --time says of the jobs of a capture."""
import collections
import re
import subprocess

Job = collections.namedtuple("Job", "kind milliseconds submit_milliseconds bound clocks clock_mhz")
JOB = re.compile(r"^job \d+: (\w+) .* predicted ([\d.]+) ms, ([\d.]+) ms with its submit.*\n"
                 r"  bound by ([\w ]+): .* of (\d+) clocks at (\d+) MHz$", re.M)


class Failure(Exception):
    pass


def run(command, environment=None):
    """What it prints."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800, env=environment, check=False)
    except OSError as error:
        raise Failure(f"{command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)} ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-600:]}")
    return done.stdout


def jobs(v3demu, capture, constants=None):
    """Those of a capture, one at least. @param constants  {name: value} in place of the board's"""
    options = [word for name, value in (constants or {}).items() for word in ("--set", f"{name}={value}")]
    text = run([v3demu, "replay", "--time", *options, capture])
    found = [Job(kind, float(alone), float(whole) - float(alone), bound, int(clocks), int(mhz))
             for kind, alone, whole, bound, clocks, mhz in JOB.findall(text)]
    if not found or len(found) != len(re.findall(r"^job ", text, re.M)):
        raise Failure(f"no prediction: {text[:300]}")
    return found
