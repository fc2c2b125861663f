#!/usr/bin/env python3
"""glmark2-es2 with QPU programs compiled and interpreted, its default scenes in turn, in one run.

  python3 bench/glmark2_bench.py --build build/release --mesa MESA_PREFIX [--engines auto,off] [--duration 1]
      [--repeat 3] [--scenes build,shading:shading=phong] [--json FILE]

Each engine (V3DEMU_JIT) has a daemon and a headless Weston of its own, and draws off-screen at 800x600. Engines take
turns; a scene counts with the median of its rounds. Needs glmark2-es2-wayland and weston.
"""

import argparse
import json
import math
import os
import pathlib
import re
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from pictures.windows import Failure, Weston  # noqa: E402

SCENE = re.compile(r"^\[(\w+)\] (.*?): *FPS: (\d+) FrameTime: ([\d.]+) ms", re.MULTILINE)


class Engine:
    def __init__(self, name, options, folder):
        self.name = name
        self.options = options
        self.milliseconds = {}  # of a frame, by scene: one for each round
        os.makedirs(folder)
        launcher = [str(options.build / "bin/v3demu"), "run", "--mesa", str(options.mesa), "--"]
        self.weston = Weston(launcher, folder, variables={
            "V3DEMU_JIT": name, "V3DEMU_SOCKET": os.path.join(folder, "socket")})

    def round(self):
        command = ["glmark2-es2-wayland", "--off-screen", "-s", self.options.size]
        for scene in self.options.scenes:
            command += ["-b", f"{scene}:duration={self.options.duration}"]
        if not self.options.scenes:
            command += ["-b", f":duration={self.options.duration}"]
        done = self.weston.run(command, timeout=3600)
        if done.returncode != 0 or not re.search(r"GL_RENDERER:\s+V3D ", done.stdout):
            raise Failure(f"glmark2 did not run on a V3D:\n{done.stdout}")
        for scene, what, _, frame in SCENE.findall(done.stdout):
            self.milliseconds.setdefault(f"{scene} {what}", []).append(float(frame))

    def median(self, scene):
        return statistics.median(self.milliseconds[scene])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda p: pathlib.Path(p).resolve(), default=ROOT / "build/release")
    parser.add_argument("--mesa", type=pathlib.Path, required=True)
    parser.add_argument("--engines", type=lambda t: t.split(","), default=["auto", "off"])
    parser.add_argument("--scenes", type=lambda t: t.split(","), default=[])
    parser.add_argument("--duration", type=float, default=1)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--size", default="800x600")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="v3demu-glmark2-") as folder:
        engines = [Engine(name, options, os.path.join(folder, name)) for name in options.engines]
        try:
            for _ in range(options.repeat):
                for engine in engines:
                    engine.round()
        finally:
            for engine in engines:
                engine.weston.stop()
    report(engines, options)


def report(engines, options):
    scenes = [s for s in engines[0].milliseconds if all(s in e.milliseconds for e in engines)]
    if not scenes:
        sys.exit("no scene ran on all engines")
    first, others = engines[0], engines[1:]
    print("milliseconds of a frame".ljust(60), *(e.name.rjust(8) for e in engines),
          *(f"{e.name}/{first.name}".rjust(12) for e in others))
    ratios = {e.name: [] for e in others}
    for scene in scenes:
        row = [f"{e.median(scene):8.2f}" for e in engines]
        for e in others:
            ratios[e.name].append(e.median(scene) / first.median(scene))
            row.append(f"{ratios[e.name][-1]:12.2f}")
        print(scene[:60].ljust(60), *row)
    means = {name: math.exp(statistics.fmean(map(math.log, r))) for name, r in ratios.items()}
    for name, mean in means.items():
        print(f"geometric mean of {len(scenes)} scenes: {first.name} is {mean:.2f} times as fast as {name}")
    print(f"load average at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    if options.json:
        options.json.write_text(json.dumps({
            "milliseconds": {e.name: e.milliseconds for e in engines}, "geometric_means": means}, indent=1))


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(str(failure))
