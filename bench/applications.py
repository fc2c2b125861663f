"""Tables of bench/compare for whole applications: the scenes of glmark2 and of vkmark, and vkcube, beside Mesa's software
renderers, what a frame takes with nothing executed, and the daemon's memory."""

import contextlib
import os
import re
import shutil
import statistics
import subprocess
import time

from daemons import Daemon
from gallery_parts.windows import Failure, Weston, Xvfb

SCENE = re.compile(r"^\[(\w+)\] (.*?): *FPS: \d+ FrameTime: ([\d.]+) ms", re.MULTILINE)
VKCUBE = ["vkcube", "--c", "300", "--width", "500", "--height", "500"]
GLMARK2 = ["glmark2-es2-wayland", "--off-screen", "-s", "800x600"]
VKMARK = ["--winsys", "headless", "-s", "800x600"]
MIB = 1 << 20

# What is to be reached: times as fast as the peer, all scenes together and the least; milliseconds; bytes.
# (vkmark's least without clear.)
GLMARK2_MEAN, GLMARK2_LEAST = 1.5, 0.7
VKMARK_MEAN, VKMARK_LEAST = 1.0, 0.6
FLOOR = 0.25
MEMORY = {"vkcube": 32 * MIB, "glmark2 terrain": 128 * MIB}


class NotOffered(Failure):
    """A scene that the driver does not offer; the text is the renderer's name."""


class Renderer:
    """Something that draws: how its programs are started, and the name that glmark2 shows."""

    def __init__(self, name, launcher, variables, folder, device):
        self.name, self.launcher, self.variables, self.device = name, launcher, variables, device
        self.folder = os.path.join(folder, name.replace(" ", "-"))
        os.makedirs(self.folder, exist_ok=True)

    @contextlib.contextmanager
    def weston(self):
        weston = Weston(self.launcher, self.folder, variables=self.variables)
        try:
            yield weston
        finally:
            weston.stop()

    def frames(self, weston, scene, seconds):
        """Milliseconds of a frame by scene; all default scenes if `scene` is empty."""
        done = weston.run([*GLMARK2, "-b", f"{scene}:duration={seconds}"], timeout=3600)
        if done.returncode or not re.search(rf"GL_RENDERER:.*\b{self.device}", done.stdout):
            raise Failure(f"glmark2 on {self.name}:\n{done.stdout}")
        found = {f"{name} {options.removesuffix(f':duration={seconds}')}".removesuffix(f" duration={seconds}"): float(frame)
                 for name, options, frame in SCENE.findall(done.stdout)}
        if not found and "Unsupported" in done.stdout:
            raise NotOffered(self.name)
        if not found:
            raise Failure(f"glmark2 drew nothing on {self.name}:\n{done.stdout}")
        return found

    def vkmark_frames(self, program, seconds):
        """Likewise, of vkmark's default scenes."""
        done = subprocess.run([*self.launcher, program, *VKMARK, "-b", f":duration={seconds}"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **self.variables},
                              check=False)
        found = {f"{name} {options}".replace(" <default>", ""): float(frame)
                 for name, options, frame in SCENE.findall(done.stdout)}
        if done.returncode or self.device not in done.stdout or not found:
            raise Failure(f"vkmark on {self.name}:\n{done.stdout}")
        return found

    def vkcube_seconds(self):
        server = Xvfb()
        try:
            begin = time.monotonic()
            done = subprocess.run([*self.launcher, *VKCUBE], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  env={**os.environ, **self.variables, "DISPLAY": server.display}, check=False)
            if done.returncode or self.device not in done.stdout:
                raise Failure(f"vkcube on {self.name}:\n{done.stdout}")
            return time.monotonic() - begin
        finally:
            server.stop()


def emulated(daemon, name, folder):
    return Renderer(name, daemon.launcher, daemon.variables, folder, "V3D ")


def software(peer, folder):
    return Renderer("llvmpipe", [], peer.variables, folder, "llvmpipe ")


def by_scene(renderers, rounds, frames):
    """Samples of milliseconds by scene and renderer; the renderers take turns scene list by scene list.

    frames: those of a renderer by scene."""
    samples = {}
    for _ in range(rounds):
        for renderer in renderers:
            for scene, frame in frames(renderer).items():
                samples.setdefault(scene, {}).setdefault(renderer.name, []).append(frame)
    return {scene: of for scene, of in samples.items() if len(of) == len(renderers)}


def glmark2(renderers, rounds, seconds):
    with contextlib.ExitStack() as stack:
        servers = {renderer.name: stack.enter_context(renderer.weston()) for renderer in renderers}
        return by_scene(renderers, rounds, lambda renderer: renderer.frames(servers[renderer.name], "", seconds))


def vkcube(renderers, rounds):
    samples = {renderer.name: [] for renderer in renderers}
    for _ in range(rounds):
        for renderer in renderers:
            samples[renderer.name].append(renderer.vkcube_seconds())
    return samples


def floor(build, mesa, folder, variables, seconds):
    """Milliseconds of a frame by scene, by a daemon that executes nothing."""
    daemon = Daemon(build, mesa, os.path.join(folder, "idle"), ["--no-execute"], variables)
    try:
        renderer = emulated(daemon, "nothing executed", folder)
        with renderer.weston() as weston:
            return renderer.frames(weston, "", seconds)
    finally:
        daemon.stop()


def memory(build, mesa, folder, variables, seconds):
    """Most bytes that a daemon of its own had resident, by program."""
    def peak(name, draw):
        daemon = Daemon(build, mesa, os.path.join(folder, f"memory-{name}"), variables=variables)
        try:
            draw(emulated(daemon, name, folder))
            return daemon.peak_memory()
        finally:
            daemon.stop()

    def terrain(renderer):
        with renderer.weston() as weston:
            renderer.frames(weston, "terrain", seconds)

    return {"vkcube": peak("vkcube", Renderer.vkcube_seconds), "glmark2 terrain": peak("terrain", terrain)}


def median_ratios(samples, peer, name):
    """How many times as fast as the peer, by scene."""
    return {scene: statistics.median(of[peer]) / statistics.median(of[name]) for scene, of in samples.items()}


class Applications:
    """engines: values of V3DEMU_JIT; each has a daemon."""

    def __init__(self, options, mesa, peer, engines, folder):
        self.options, self.mesa, self.engines = options, mesa, engines
        self.folder = os.path.join(folder, "applications")
        self.peer = software(peer, self.folder)
        self.results = {}  # by table

    def run(self, wanted):
        """wanted: tells of a table's name whether it is to be measured. Prints each."""
        tables = [table for table in (self.glmark2, self.vkmark, self.vkcube, self.floor, self.memory)
                  if wanted(table.__name__)]
        if not tables:
            return
        with contextlib.ExitStack() as stack:
            own = []
            for engine in self.engines:
                daemon = Daemon(self.options.build, self.mesa, os.path.join(self.folder, f"daemon-{engine}"),
                                variables={"V3DEMU_JIT": engine})
                stack.callback(daemon.stop)
                own.append(emulated(daemon, f"v3demu {engine}", self.folder))
            self.renderers = [self.peer, *own]
            for table in tables:
                self.results[table.__name__] = table()

    def ratio_row(self, name, of, target=None):
        medians = {renderer.name: statistics.median(of[renderer.name]) for renderer in self.renderers}
        text = f"{name[:48]:48}{medians[self.peer.name]:12.2f}"
        for renderer in self.renderers[1:]:
            text += f"{medians[renderer.name]:14.2f}{medians[self.peer.name] / medians[renderer.name]:8.2f}"
        return text + (f"{target:9.2f}" if target else "")

    def header(self, title):
        return f"\n{title:48}{self.peer.name:>12}" + "".join(f"{r.name:>14}{'ratio':>8}" for r in self.renderers[1:]) + \
            f"{'target':>9}"

    def glmark2(self):
        samples = glmark2(self.renderers, self.options.runs, self.options.scene_seconds)
        return self.scenes("glmark2", samples, GLMARK2_MEAN, GLMARK2_LEAST, lambda scene: True)

    def vkmark(self):
        program = shutil.which("vkmark")
        if not program:
            print("\nvkmark: left out, as there is none on the PATH (Debian 12 has no package of it)", flush=True)
            return {}
        samples = by_scene(self.renderers, self.options.runs,
                           lambda renderer: renderer.vkmark_frames(program, self.options.scene_seconds))
        return self.scenes("vkmark", samples, VKMARK_MEAN, VKMARK_LEAST, lambda scene: not scene.startswith("clear"))

    def scenes(self, program, samples, target_mean, target_least, counts_for_least):
        """Prints a table."""
        if not samples:
            raise Failure(f"no scene of {program} ran everywhere")
        print(self.header(f"{program}, ms a frame"))
        for scene, of in samples.items():
            print(self.ratio_row(scene, of))
        summary = {}
        for renderer in self.renderers[1:]:
            ratios = median_ratios(samples, self.peer.name, renderer.name)
            least = min(filter(counts_for_least, ratios), key=ratios.get)
            summary[renderer.name] = {"mean": statistics.geometric_mean(ratios.values()), "least": ratios[least]}
            print(f"{renderer.name}: geometric mean of {len(ratios)} scenes {summary[renderer.name]['mean']:.2f} "
                  f"(target {target_mean}), least {ratios[least]:.2f} ({target_least}): {least}", flush=True)
        return {"milliseconds": samples, **summary}

    def vkcube(self):
        samples = vkcube(self.renderers, self.options.runs)
        print(self.header("vkcube, 300 frames, s"))
        print(self.ratio_row("vkcube", samples, 1.0), flush=True)
        return samples

    def floor(self):
        frames = floor(self.options.build, self.mesa, self.folder, {"V3DEMU_JIT": self.engines[0]},
                       self.options.scene_seconds)
        middle = statistics.median(frames.values())
        most = max(frames, key=frames.get)
        print(f"\nnothing executed: median of {len(frames)} scenes {middle:.2f} ms a frame (target {FLOOR}), "
              f"most {frames[most]:.2f}: {most}", flush=True)
        return frames

    def memory(self):
        peaks = memory(self.options.build, self.mesa, self.folder, {"V3DEMU_JIT": self.engines[0]},
                       self.options.scene_seconds)
        print("\nresident memory of the daemon: " + ", ".join(
            f"{name} {size / MIB:.0f} MiB (target {MEMORY[name] / MIB:.0f})" for name, size in peaks.items()), flush=True)
        return peaks
