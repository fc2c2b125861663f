"""What frames of glmark2's scenes would take: captures a few of each scene on an X server without a screen."""
import os
import re
import shutil
import subprocess

SIZE = "800x600"
KINDS = ("bin", "render", "compute", "tfu")
JOB = re.compile(r"^job \d+: (\w+) .*? predicted ([\d.]+) ms, [\d.]+ ms with its submit(?:$|  )", re.M)
BOUND = re.compile(r"^  bound by ([\w ]+): .* of (\d+) clocks at (\d+) MHz$", re.M)
# What the first frames have besides the others is left out: the difference of two runs is that of their frames.
FEW, MORE = 2, 12
# Scenes that move take frames of some seconds instead, one every quarter of a second.
MOVING_FEW, MOVING_MORE, MOVING_HZ = 2, 22, 4


class SceneFailure(Exception):
    pass


def missing():
    """The programs that are not there."""
    return [program for program in ("glmark2-es2", "Xvfb") if not shutil.which(program)]


def capture(v3demu, board, scene, frames, moving, display, path):
    command = [v3demu, "capture", "--device", board, "-o", path, "--", "glmark2-es2", "-s", SIZE, "-b", f"{scene}:nframes={frames}:duration=600"]
    environment = {**os.environ, "DISPLAY": display}
    if moving:
        command += ["--swap-mode", "fifo"]
        environment["V3DEMU_VBLANK_HZ"] = str(MOVING_HZ)
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, env=environment, check=False)
    if done.returncode != 0 or not re.search(r"GL_RENDERER: +V3D ", done.stdout) or not re.search(r"FPS: \d", done.stdout):
        raise SceneFailure(f"glmark2-es2 {scene}: {done.stdout.strip()[-600:]}")


class Jobs:
    """Of a capture: number and sum of milliseconds of each kind, and (milliseconds, bound, clocks, MHz) of the longest one."""

    def __init__(self, v3demu, path):
        text = subprocess.run([v3demu, "replay", "--time", path], text=True, capture_output=True, timeout=1800, check=True).stdout
        found = list(JOB.finditer(text))
        if len(found) != len(re.findall(r"^job ", text, re.M)):
            raise SceneFailure(f"a job has no prediction: {text[:300]}")
        self.number, self.time, self.longest = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0.0), (0.0, "", 0, 0)
        for job in found:
            milliseconds = float(job[2])
            self.number[job[1]] += 1
            self.time[job[1]] += milliseconds
            bound = BOUND.search(text, job.end())
            if milliseconds > self.longest[0]:
                self.longest = (milliseconds, bound[1], int(bound[2]), int(bound[3]))


def of_frame(few, more, kind, frames):
    """Milliseconds of the jobs of a kind. The last ones of a run may be missing: the program is gone before it submits them."""
    number = more.number[kind] - few.number[kind]
    return round(number / frames) * (more.time[kind] - few.time[kind]) / number if number > 0 else 0.0


def frame(v3demu, board, scene, moving, display, folder, name):
    """(seconds of a frame, what bounds its longest job, clocks of that, MHz). The next frame is binned while this one is rendered;
    transfers and dispatches have their turn between renders."""
    numbers = (MOVING_FEW, MOVING_MORE) if moving else (FEW, MORE)
    runs = []
    for frames in numbers:
        path = os.path.join(folder, f"{name}-{frames}.v3dcap")
        capture(v3demu, board, scene, frames, moving, display, path)
        runs.append(Jobs(v3demu, path))
    times = {kind: of_frame(*runs, kind, numbers[1] - numbers[0]) for kind in KINDS}
    seconds = max(times["render"] + times["tfu"] + times["compute"], times["bin"]) / 1000
    return seconds, *runs[1].longest[1:]
