"""Fits constants of the timing model to frames of glmark2's scenes, and says how well a fit without a scene predicts it."""
import concurrent.futures
import math
import os

from calibrating.replayed import jobs

# What the scenes decide, and where a search begins: at what one would guess without them. The rest is fitted to compute programs, or not
# fitted.
GUESSED = {"tile_write": 160, "ptb_primitive": 4, "texture_lookup": 1, "fep_primitive": 8, "fragment_launch": 16}
STEPS = (0.5, 0.7, 0.87, 1.15, 1.4, 2)
ROUNDS = 4


def frame(v3demu, path, constants):
    """Milliseconds of the last frame of a scene of one bin and one render job."""
    last = {job.kind: job.milliseconds for job in jobs(v3demu, path, constants)}
    return max(last["render"], last["bin"])


class Fit:
    """@param scenes  {name: (path of a capture, published milliseconds)}"""

    def __init__(self, v3demu, scenes):
        self.v3demu, self.scenes = v3demu, scenes
        self.pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
        self.known = {}

    def predictions(self, names, constants):
        key = tuple(constants.items())
        missing = [name for name in names if (name, key) not in self.known]
        for name, time in zip(missing, self.pool.map(lambda name: frame(self.v3demu, self.scenes[name][0], constants), missing)):
            self.known[name, key] = time
        return {name: self.known[name, key] for name in names}

    def error(self, names, constants):
        """Root of the mean of the squares of logarithms."""
        times = self.predictions(names, constants)
        return math.sqrt(sum(math.log(times[name] / self.scenes[name][1]) ** 2 for name in names) / len(names))

    def fitted(self, names):
        constants, best = dict(GUESSED), self.error(names, GUESSED)
        for _ in range(ROUNDS):
            before = best
            for name in GUESSED:
                at = constants[name]
                for step in STEPS:
                    tried = {**constants, name: max(1, round(at * step))}
                    error = self.error(names, tried)
                    if error < best:
                        constants, best = tried, error
            if best == before:
                break
        return constants, best

    def left_out(self, names):
        """For each of these scenes: its name, the constants fitted without it, the error of its prediction by them."""
        for out in names:
            constants, _ = self.fitted([name for name in self.scenes if name != out])
            yield out, constants, self.predictions([out], constants)[out] / self.scenes[out][1] - 1
