"""Jobs that replay traces: what piglit's replayer does for Mesa's piglit-traces.sh, with apitrace's and gfxreconstruct's own programs."""
import concurrent.futures
import dataclasses
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from conformance_parts import ending
from conformance_parts.lists import Refusal, Result, fail
from .jobs import traces_file
from .outcomes import Baseline, Outcome, Outcomes
from .pictures import FAR_OFF, read_picture

# Labels with which piglit's replayer leaves a trace out.
LEFT_OUT = {"skip", "unsupported", "broken", "crash", "flakes", "freezing"}
PACKAGES = {"apitrace": "apitrace", "eglretrace": "apitrace", "gfxrecon-info": "gfxreconstruct", "gfxrecon-replay": "gfxreconstruct"}
PROGRAMS = {".trace": ("apitrace", "eglretrace"), ".gfxr": ("gfxrecon-info", "gfxrecon-replay")}
# Mesa's boards ask a cache of their farm for them.
CACHE = re.compile(r"^.*[?&]uri=")


@dataclasses.dataclass
class Trace:
    name: str
    checksum: str  # of the last frame on the board
    left_out: str  # why it is not replayed; empty: it is

    @property
    def ending(self):
        return os.path.splitext(self.name)[1]


def traces_of(tree, job):
    """Those that the job's file has something to say of for the board."""
    device, traces = job.variables.get("PIGLIT_REPLAY_DEVICE_NAME", ""), []
    path, document = traces_file(tree, job)
    entries = document.get("traces")
    if not isinstance(entries, dict):
        fail(f"{path}: it has no traces")
    for name, devices in entries.items():
        entry = (devices or {}).get(device)
        if entry is None:
            continue
        labels = entry.get("label") or []
        labels = set([labels] if isinstance(labels, str) else labels)
        why = f"{', '.join(sorted(labels & LEFT_OUT))}: {entry.get('text') or 'no reason is given'}" if labels & LEFT_OUT else ""
        if not why and not entry.get("checksum"):
            fail(f"{path}: {name} has no checksum for {device}")
        traces.append(Trace(str(name), str(entry.get("checksum", "")), why))
    return traces or fail(f"{path}: it has no traces for {device or 'a board that is not named'}")


def missing_of(traces, folder, url):
    """What cannot be replayed: (trace, why)."""
    found = []
    for trace in traces:
        if trace.left_out:
            continue
        absent = [name for name in PROGRAMS.get(trace.ending, ()) if not shutil.which(name)]
        if trace.ending not in PROGRAMS:
            found.append((trace, f"traces that end with {trace.ending} are not replayed here, those with {' and '.join(PROGRAMS)} are"))
        elif absent:
            found.append((trace, f"{absent[0]} is not installed: sudo apt install {PACKAGES[absent[0]]}"))
        elif not os.path.isfile(os.path.join(folder, trace.name)):
            found.append((trace, f"no {os.path.join(folder, trace.name)}; it is fetched from {CACHE.sub('', url).rstrip('/')}/{trace.name}"))
    return found


class Broken(Exception):
    """A replay has no picture; the text says why, the status what it is called."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


def _run(command, folder, timeout):
    """What it said; Broken if it did not end well."""
    try:
        done = ending.run(command, timeout, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace")
    except subprocess.TimeoutExpired as error:
        raise Broken("Timeout", f"{os.path.basename(command[0])} did not end within {timeout:g} s") from error
    if done.returncode:
        status = "Crash" if done.returncode < 0 or done.returncode >= 128 else "Fail"
        raise Broken(status, f"status {done.returncode} of {' '.join(command)}\n{done.stdout[-4000:]}")
    return done.stdout


def _last_frame_of_apitrace(path, launcher, folder, timeout):
    calls = re.findall(r"^(\d+) ", _run(["apitrace", "dump", "--color=never", "--calls=frame", path], folder, timeout), re.M)
    if not calls:
        raise Broken("Fail", "the trace has no frame")
    _run([*launcher, "eglretrace", "--headless", f"--snapshot={calls[-1]}", f"--snapshot-prefix={folder}/frame-", path], folder, timeout)


def _last_frame_of_gfxreconstruct(path, launcher, folder, timeout):
    frames = re.search(r"Total frames: (\d+)", _run(["gfxrecon-info", path], folder, timeout))
    if not frames or frames[1] == "0":
        raise Broken("Fail", "the trace has no frame")
    _run([*launcher, "gfxrecon-replay", "--screenshots", frames[1], "--screenshot-dir", folder, "--screenshot-prefix", "frame", path], folder, timeout)


def last_frame(path, launcher, timeout):
    """The picture of a trace's last frame, and the bytes of its file."""
    make = {".trace": _last_frame_of_apitrace, ".gfxr": _last_frame_of_gfxreconstruct}[os.path.splitext(path)[1]]
    with tempfile.TemporaryDirectory(prefix="v3demu-trace-") as folder:
        make(os.path.abspath(path), launcher, folder, timeout)
        pictures = sorted(name for name in os.listdir(folder) if name.endswith((".png", ".bmp")))
        if not pictures:
            raise Broken("Fail", "the replay left no picture of its last frame")
        with open(os.path.join(folder, pictures[-1]), "rb") as file:
            return read_picture(file.name), file.read()


def _compared(trace, picture, options):
    """(status, what is to be told of it)."""
    told = f"checksum {picture.checksum()}, {trace.checksum} on the board"
    if picture.checksum() == trace.checksum:
        return "Pass", told
    reference = os.path.join(options.references, os.path.splitext(trace.name)[0] + ".png") if options.references else ""
    if not os.path.exists(reference):
        return "Fail", told
    share = 100 * picture.share_off(read_picture(reference))
    told += f"; {share:.3f} % of the pixels are off by more than {FAR_OFF} of 255, {options.tolerance:g} % are allowed"
    return ("Pass" if share <= options.tolerance else "Fail"), told


def _replay(trace, options):
    begin = time.monotonic()
    try:
        picture, data = last_frame(os.path.join(options.traces, trace.name), options.launcher, options.timeout)
        status, told = _compared(trace, picture, options)
        if status == "Fail":
            kept = os.path.join(options.output, re.sub(r"[^\w.-]", "_", trace.name) + (".png" if data.startswith(b"\x89PNG") else ".bmp"))
            with open(kept, "wb") as file:
                file.write(data)
            told += f"; the frame is {kept}"
    except Broken as broken:
        status, told = broken.status, str(broken)
    except Refusal as refusal:
        status, told = "Fail", str(refusal)
    return status, told, time.monotonic() - begin


def run_traces(job, traces, absent, baseline_lists, options):
    """Outcomes of those of the shard that are here, by the names that piglit has for them. Unexpected failures are seen twice."""
    baseline, outcomes = Baseline(*baseline_lists), Outcomes()
    device, (start, fraction) = job.variables["PIGLIT_REPLAY_DEVICE_NAME"], options.part
    chosen = [trace for trace in traces[start - 1::fraction] if trace.name not in absent]
    os.makedirs(options.output, exist_ok=True)

    def case_of(trace):
        return f"trace/{device}/{trace.name}"

    def one(trace):
        if trace.left_out or baseline.skipped(case_of(trace)):
            return Outcome("Skip", 0, trace.left_out or "in a skip list", None)
        status, told, seconds = _replay(trace, options)
        result = Result(case_of(trace), status, told, seconds, None)
        if baseline.doubtful(result) and _replay(trace, options)[0] == "Pass":
            return Outcome("Flake", seconds, told, None)
        return Outcome(baseline.outcome(result), seconds, told, None)

    def outcome_of(trace):
        return None if ending.is_told() else one(trace)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for trace, outcome in zip(chosen, pool.map(outcome_of, chosen)):
            outcomes.add(case_of(trace), outcome)
            if options.progress:
                print(f"{outcome.status} {trace.name}", file=sys.stderr)
    return outcomes
