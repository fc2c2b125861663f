"""What frames of glmark2's scenes would take: captures a few of each scene on an X server without a screen."""
import os
import re
import shutil

from calibrating.replayed import Failure, jobs, run

SIZE = "800x600"
KINDS = ("bin", "render", "compute", "tfu")
# What the first frames have besides the others is left out: the difference of two runs is that of their frames.
FEW, MORE = 2, 12
# Scenes that move take frames of some seconds instead, one every quarter of a second.
MOVING_FEW, MOVING_MORE, MOVING_HZ = 2, 22, 4


def missing():
    """The programs that are not there."""
    return [program for program in ("glmark2-es2", "Xvfb") if not shutil.which(program)]


def capture(v3demu, board, scene, frames, moving, display, path):
    command = [v3demu, "capture", "--device", board, "-o", path, "--", "glmark2-es2", "-s", SIZE, "-b", f"{scene}:nframes={frames}:duration=600"]
    environment = {**os.environ, "DISPLAY": display}
    if moving:
        command += ["--swap-mode", "fifo"]
        environment["V3DEMU_VBLANK_HZ"] = str(MOVING_HZ)
    printed = run(command, environment)
    if not re.search(r"GL_RENDERER: +V3D ", printed) or not re.search(r"FPS: \d", printed):
        raise Failure(f"glmark2-es2 {scene}: {printed.strip()[-600:]}")


def of_frame(few, more, kind, frames):
    """Milliseconds of the jobs of a kind. The last ones of a run may be missing: the program is gone before it submits them."""
    few, more = ([job.milliseconds for job in found if job.kind == kind] for found in (few, more))
    number = len(more) - len(few)
    return round(number / frames) * (sum(more) - sum(few)) / number if number > 0 else 0.0


def frame(v3demu, board, scene, moving, display, folder, name):
    """(seconds of a frame, its longest job). The next frame is binned while this one is rendered;
    transfers and dispatches have their turn between renders."""
    numbers = (MOVING_FEW, MOVING_MORE) if moving else (FEW, MORE)
    runs = []
    for frames in numbers:
        path = os.path.join(folder, f"{name}-{frames}.v3dcap")
        capture(v3demu, board, scene, frames, moving, display, path)
        runs.append(jobs(v3demu, path))
    times = {kind: of_frame(*runs, kind, numbers[1] - numbers[0]) for kind in KINDS}
    seconds = max(times["render"] + times["tfu"] + times["compute"], times["bin"]) / 1000
    return seconds, max(runs[1], key=lambda job: job.milliseconds)
