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
    """What is needed of a build of v3demu, and the Mesa for it."""
    folder: str
    mesa: str

    def program(self, name):
        return os.path.join(self.folder, "bin", name)

    def library(self, name):
        return os.path.join(self.folder, "lib", name)


class Driver:
    """Runs programs on one driver; starts the servers that they need, once each, and stops them at the end.

    launcher: command prefix; variables: added to the environment; device: what the program must say that it runs on."""

    def __init__(self, name, launcher, variables, device, folder):
        self.name, self.launcher, self.variables, self.device, self.folder = name, launcher, variables, device, folder
        self._weston = self._xvfb = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in (self._weston, self._xvfb):
            if server:
                server.stop()

    def run(self, command, window="", **variables):
        """The program's output. window: "" for none, "x11", "wayland".

        @raises Failure: the program failed, or ran on another device"""
        environment = {k: v for k, v in os.environ.items() if k not in CHOICES}
        environment.update(self.variables)
        if window == "wayland":
            if not self._weston:
                self._weston = Weston(self.launcher, self.folder, variables=self.variables)
            environment.update(XDG_RUNTIME_DIR=self._weston.environment["XDG_RUNTIME_DIR"],
                               WAYLAND_DISPLAY=self._weston.environment["WAYLAND_DISPLAY"])
        elif window == "x11":
            self._xvfb = self._xvfb or Xvfb()
            environment["DISPLAY"] = self._xvfb.display
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
    return Driver("v3demu", [build.program("v3demu"), "run", "--mesa", build.mesa, "--"], {}, r"\bV3D 7\.1", folder)


def software(folder):
    """The system's lavapipe and llvmpipe, sampling textures in floating point as a GPU does: their faster way for textures
    of 8 bits (AoS) rounds coordinates, weights and LODs to 8 bits."""
    variables = {"VK_ICD_FILENAMES": LAVAPIPE, "VK_DRIVER_FILES": LAVAPIPE, "MESA_VK_WSI_DEBUG": "sw,noshm",
                 "LIBGL_ALWAYS_SOFTWARE": "1", "GALLIUM_DRIVER": "llvmpipe",
                 "GALLIVM_PERF": "no_aos_sampling"}
    return Driver("llvmpipe", [], variables, r"\bllvmpipe \(LLVM", folder)
