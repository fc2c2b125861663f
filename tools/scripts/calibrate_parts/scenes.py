"""What frames of glmark2's scenes would take: captures a few of each scene on an X server without a screen."""
import math
import os
import re
import shutil

from calibrate_parts.replayed import Failure, jobs, kinds, run, variants

SIZE = "800x600"
# The difference of two runs tells how many jobs a frame has.
FEW, MORE = 2, 6
# Scenes that move take frames of ten seconds instead, one every half a second: models turn by 36 degrees a second.
MOVING_FEW, MOVING_MORE, MOVING_HZ = 2, 22, 2


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


def captures(v3demu, board, row, display, folder):
    """Of a row of the table: (its two captures, their numbers of frames)."""
    moving = row.get("moving", False)
    numbers = (MOVING_FEW, MOVING_MORE) if moving else (FEW, MORE)
    paths = []
    for frames in numbers:
        paths.append(os.path.join(folder, f"{row['id']}-{frames}.v3dcap"))
        capture(v3demu, board, row["scene"], frames, moving, display, paths[-1])
    return paths, numbers


class Frames:
    """The last frames of a capture, `most` at most. That one may end within a frame: its program is gone before it submits the rest."""

    def __init__(self, v3demu, paths, numbers, most=MOVING_MORE):
        few, more = (kinds(v3demu, path) for path in paths)
        self.v3demu, self.path, self.dram_others = v3demu, paths[1], 0
        chained = [len(_chained(run)) for run in (few, more)]
        about = (chained[1] - chained[0]) / (numbers[1] - numbers[0])
        if about < 0.5:
            raise Failure(f"{paths[1]}: frames without jobs")
        self._begin(more, min(3 * math.ceil(about + 1.5), chained[1]))
        self.chained = self._period(about)
        self.number = max(min(numbers[1] - numbers[0], most, chained[1] // self.chained - 1), 1)
        # One frame more: the first one finds the queues empty.
        self._begin(more, min(self.chained * (self.number + 1), chained[1]))
        self.dram_others = beside(self.jobs())

    def _begin(self, kinds_of_jobs, chained):
        """With the last ones of those that are chained, and what is binned for them: bins and renders belong together in their order."""
        first = [i for i, kind in enumerate(kinds_of_jobs) if kind != "bin"][-chained]
        renders = kinds_of_jobs[:first].count("render")
        bins = [i for i, kind in enumerate(kinds_of_jobs) if kind == "bin"]
        self.first = min([first, *bins[renders:renders + 1]])
        self.foreign = {"bin": renders - kinds_of_jobs[:self.first].count("bin"), "chained": len(_chained(kinds_of_jobs[self.first:first]))}

    def _period(self, about):
        """After how many jobs the same ones come again. @param about  so many"""
        found = [job for job in self.jobs() if job.kind != "bin"]

        def difference(number):
            pairs = list(zip(found[number:], found))[-number:]
            return sum(abs(math.log((job.milliseconds + 0.01) / (before.milliseconds + 0.01))) + 9 * (job.kind != before.kind)
                       for job, before in pairs) / max(len(pairs), 1) + 0.05 * abs(number - about)

        return min(range(max(1, math.ceil(about - 1.5)), math.floor(about + 1.5) + 1), key=difference)

    def of(self, jobs_and_times):
        """Milliseconds of a frame at the mean of the rates: each frame stands for a moment as long as the others', in which a board draws as
        many as there is time for. Renders, dispatches and transfers of a program wait for each other; a job is binned beside the renders
        before it, unless its vertices sample textures: then Mesa has it wait for these (v3dx_draw.c). @param jobs_and_times  [(Job, time)]"""
        bins = [(job, time) for job, time in jobs_and_times if job.kind == "bin"][self.foreign["bin"]:]
        ended, binned = [0.0], 0.0
        for job, time in [(job, time) for job, time in jobs_and_times if job.kind != "bin"][self.foreign["chained"]:]:
            if job.kind == "render" and bins:
                bin_job, bin_time = bins.pop(0)
                binned = max(binned, ended[-1] if bin_job.samples else 0.0) + bin_time
            ended.append(max(ended[-1], binned if job.kind == "render" else 0.0) + time)
        ends = ended[::-self.chained][:self.number + 1]
        return self.number / sum(1 / (end - begin) for end, begin in zip(ends, ends[1:]))

    def jobs(self):
        return jobs(self.v3demu, self.path, first=self.first, constants=[f"dram_others={self.dram_others}"])

    def variants(self, constants):
        """Milliseconds of a frame with each of these constants."""
        found = variants(self.v3demu, self.path, [{**each, "dram_others": self.dram_others} for each in constants], first=self.first)
        return [self.of([(job, times[i]) for job, times in found]) for i in range(len(constants))]


def beside(found):
    """The constant dram_others for the jobs of a frame: of 1000 parts of a job's time, bin jobs beside it take so many more from the memory.
    In a frame that this makes longer they have the share of it that is theirs."""
    binned = sum(job.memory_milliseconds for job in found if job.kind == "bin" and not job.samples)
    return round(1000 * binned / sum(job.milliseconds for job in found if job.kind != "bin"))


def _chained(kinds_of_jobs):
    return [kind for kind in kinds_of_jobs if kind != "bin"]


def frame(v3demu, board, row, display, folder):
    """(seconds of a frame, its longest job)"""
    frames = Frames(v3demu, *captures(v3demu, board, row, display, folder))
    found = frames.jobs()
    milliseconds = frames.of([(job, job.milliseconds) for job in found])
    return milliseconds / 1000, max(found, key=lambda job: job.milliseconds)
