#!/usr/bin/env python3
"""v3demu run inside Mesa's development shell (meson devenv): programs get the drivers of the build folder, not the
installed ones that v3demu knows.

usage: mesa_devenv_test.py V3DEMU MESA_ROOT     (packaging/mesa's folder: build/, install/)
"""
import os
import re
import subprocess
import sys


def devenv(build):
    """What `meson devenv` sets for a build with the Broadcom drivers."""
    src = os.path.join(build, "src")
    icd = os.path.join(src, "broadcom", "vulkan", "broadcom_devenv_icd.x86_64.json")
    libraries = [os.path.join(src, folder) for folder in ("gbm", "gallium/targets/dri", "egl", "broadcom/vulkan", "glx")]
    return {"VK_DRIVER_FILES": icd, "VK_ICD_FILENAMES": icd, "LD_LIBRARY_PATH": ":".join(libraries),
            "GBM_BACKENDS_PATH": os.path.join(src, "gbm", "backends", "dri")}


def main():
    v3demu, mesa = sys.argv[1:]
    build, install = os.path.join(mesa, "build"), os.path.join(mesa, "install")
    environment = dict(os.environ, V3DEMU_CACHE=os.path.dirname(mesa), LD_DEBUG="libs", **devenv(build))
    environment.pop("DISPLAY", None)
    for program, library in (["vulkaninfo", "--summary"], "libvulkan_broadcom"), (["eglinfo", "-B"], "libgallium"):
        # eglinfo fails when any of the platforms that it tries is missing.
        done = subprocess.run([v3demu, "run", "--"] + program, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        loaded = re.findall(rf"calling init: (\S*/{library}\S*)", done.stdout)
        if not loaded or any(not path.startswith(build) for path in loaded) or f"calling init: {install}" in done.stdout:
            sys.exit(f"{program[0]} loaded {loaded}, not those below {build}")
        if not re.search(r"V3D 7\.1|driver name: v3d", done.stdout):
            sys.exit(f"{program[0]} did not run on the emulated device")


if __name__ == "__main__":
    main()
