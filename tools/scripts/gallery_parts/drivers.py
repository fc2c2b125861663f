"""The emulated GPU and Mesa's software renderers, and how a program runs on each."""
import dataclasses
import os
import re
import subprocess

from .windows import Failure, Weston, Xvfb

LAVAPIPE = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json"

# What chooses a driver must not come from the caller's environment.
CHOICES = ("VK_ICD_FILENAMES", "VK_DRIVER_FILES", "LIBGL_ALWAYS_SOFTWARE", "GALLIUM_DRIVER", "GALLIVM_PERF", "MESA_LOADER_DRIVER_OVERRIDE",
           "__EGL_VENDOR_LIBRARY_FILENAMES", "__EGL_VENDOR_LIBRARY_DIRS", "__GLX_VENDOR_LIBRARY_NAME", "LIBGL_DRIVERS_PATH",
           "GBM_BACKENDS_PATH", "MESA_VK_WSI_DEBUG", "EGL_PLATFORM", "LD_PRELOAD", "DISPLAY", "WAYLAND_DISPLAY")


@dataclasses.dataclass(frozen=True)
class Build:
    """A build of v3demu, the Mesa for it and the board to emulate. With a root (packaging/debian-root arm64) the programs on the
    emulated GPU are arm64 programs, those of this project from arm64_folder."""
    folder: str
    mesa: str
    root: str = ""
    arm64_folder: str = ""
    device: str = "rpi5"

    @property
    def has_vc4(self):
        """The board has VideoCore IV, whose driver offers OpenGL ES 2.0 and no Vulkan."""
        return self.device in ("rpi0", "rpi1", "rpi2", "rpi3")


@dataclasses.dataclass(frozen=True)
class Driver:
    """Runs programs on one driver; starts the servers that they need, once each, and stops them at the end.

    launcher: command prefix of programs, server_launcher: of a compositor; programs: folder with bin/ and lib/ of this
    project's programs; variables: added to the environment; device: what the program must say that it runs on."""
    name: str
    launcher: list
    server_launcher: list
    programs: str
    variables: dict
    device: str
    folder: str
    _servers: dict = dataclasses.field(default_factory=dict)

    def program(self, name):
        return os.path.join(self.programs, "bin", name)

    def library(self, name):
        return os.path.join(self.programs, "lib", name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self._servers.values():
            server.stop()

    def _server(self, kind, make):
        if kind not in self._servers:
            self._servers[kind] = make()
        return self._servers[kind]

    def run(self, command, window="", **variables):
        """The program's output. window: "" for none, "x11", "wayland".

        @raises Failure: the program failed, or ran on another device"""
        environment = {k: v for k, v in os.environ.items() if k not in CHOICES}
        environment.update(self.variables)
        if window == "wayland":
            weston = self._server("weston", lambda: Weston(self.server_launcher, self.folder, variables=self.variables))
            environment.update(XDG_RUNTIME_DIR=weston.environment["XDG_RUNTIME_DIR"],
                               WAYLAND_DISPLAY=weston.environment["WAYLAND_DISPLAY"])
        elif window == "x11":
            environment["DISPLAY"] = self._server("xvfb", Xvfb).display
        environment.update(variables)
        try:
            done = subprocess.run(self.launcher + command, env=environment, timeout=800, text=True, errors="replace",
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Failure(f"{self.name}: {error}") from error
        if done.returncode != 0:
            raise Failure(f"{self.name}: {command[0]} ended with {done.returncode}\n{done.stdout[-2000:]}")
        if not re.search(self.device, done.stdout):
            raise Failure(f"{self.name}: {command[0]} ran on another device\n{done.stdout[-2000:]}")
        return done.stdout


def emulated(build, folder):
    v3demu = os.path.join(build.folder, "bin", "v3demu")
    run = [v3demu, "run", "--device", build.device]
    native = run + ["--mesa", build.mesa, "--"]
    launcher, programs = native, build.folder
    if build.root:
        launcher, programs = run + ["--arch", "arm64", "--root", build.root, "--"], build.arm64_folder
    version = r"2\.1" if build.has_vc4 else r"4\.2" if build.device.startswith("rpi4") else r"7\.1"
    return Driver("v3demu", launcher, native, programs, {}, rf"\bV3D {version}", folder)


def software(build, folder):
    """The system's lavapipe and llvmpipe, sampling textures in floating point as a GPU does: their faster way for textures
    of 8 bits (AoS) rounds coordinates, weights and LODs to 8 bits."""
    variables = {"VK_ICD_FILENAMES": LAVAPIPE, "VK_DRIVER_FILES": LAVAPIPE, "MESA_VK_WSI_DEBUG": "sw,noshm",
                 "LIBGL_ALWAYS_SOFTWARE": "1", "GALLIUM_DRIVER": "llvmpipe",
                 "GALLIVM_PERF": "no_aos_sampling"}
    return Driver("llvmpipe", [], [], build.folder, variables, r"\bllvmpipe \(LLVM", folder)
