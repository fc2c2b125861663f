#!/usr/bin/env python3
"""Traces that are recorded here replay to the very frames of the recorded run, as a job of Mesa's that replays traces.

usage: traces_test.py V3DEMU MESA_PREFIX SOURCE_FOLDER FOLDER
Ends with 77, which skips it, where apitrace (or what it records) is not installed; gfxreconstruct's part is left out by name.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

V3DEMU, MESA, SOURCE, FOLDER = sys.argv[1:5]
sys.path.insert(0, os.path.join(SOURCE, "tools", "scripts"))
from mesa_ci_parts.pictures import Picture, read_picture  # noqa: E402  pylint: disable=wrong-import-position

LAYER = "VK_LAYER_LUNARG_gfxreconstruct"
JOBS = """
traces:
  variables:
    DEVICE_TYPE: rpi5
    GPU_VERSION: broadcom-rpi5
    HWCI_TEST_SCRIPT: /install/piglit/piglit-traces.sh
    PIGLIT_TRACES_FILE: traces.yml
    PIGLIT_REPLAY_DEVICE_NAME: broadcom-rpi5
"""


def path(name):
    return os.path.join(FOLDER, name)


def run(*words, environment=None):
    done = subprocess.run(words, env=os.environ | (environment or {}), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout + done.stderr


def last_frame(name, *program, environment=None):
    """The last picture that a captured run left, as the checksum that piglit would have of it."""
    status, said = run("xvfb-run", "-a", V3DEMU, "capture", "--mesa", MESA, "-o", path(name + ".v3dcap"), "--", *program, environment=environment)
    if status:
        sys.exit(f"{name} was not recorded: {said}")
    images = path(name + "-images")
    status, said = run(V3DEMU, "replay", "--images", images, path(name + ".v3dcap"))
    if status:
        sys.exit(said)
    pictures = sorted(glob.glob(images + "/job*.png"), key=lambda file: int(re.search(r"job(\d+)", file)[1]))
    last = read_picture(pictures[-1])
    rgb = b"".join(last.data[at:at + 3] for at in range(0, len(last.data), last.channels))
    return Picture(last.width, last.height, 3, rgb).checksum()


def write(name, text):
    os.makedirs(os.path.dirname(path(name)), exist_ok=True)
    with open(path(name), "w", encoding="utf-8") as file:
        file.write(text)


def record_vulkan(checksums):
    manifests = glob.glob("/usr/share/vulkan/explicit_layer.d/*gfxreconstruct*.json") + glob.glob(os.environ.get("VK_LAYER_PATH", "/none") + "/*gfxreconstruct*.json")
    if not manifests or not all(map(shutil.which, ("gfxrecon-replay", "gfxrecon-info", "vkcube"))):
        print("left out: gfxreconstruct or vkcube is not installed")
        return
    variables = {"VK_INSTANCE_LAYERS": LAYER, "GFXRECON_CAPTURE_FILE": path("traces/cube.gfxr"), "GFXRECON_CAPTURE_FILE_TIMESTAMP": "false",
                 "VK_LAYER_PATH": os.path.dirname(manifests[0])}
    checksums["cube.gfxr"] = last_frame("cube", "vkcube", "--c", "2", environment=variables)


def replay(checksums):
    lines = ["traces-db: {download-url: here}", "traces:"]
    for name, checksum in checksums.items():
        lines += [f"  {name}:", f"    broadcom-rpi5: {json.dumps({'checksum': checksum})}"]
    write("mesa/src/broadcom/ci/traces.yml", "\n".join(lines))
    return run(V3DEMU, "ci", "traces", "--mesa", path("mesa"), "--drivers", MESA, "--traces", path("traces"), "--output", path("results"), "--jobs", "1")


def main():
    for program in ("apitrace", "eglretrace", "glmark2-es2", "xvfb-run", "weston"):
        if not shutil.which(program):
            print(f"skipped: {program} is not installed")
            return 77
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(path("traces"))
    write("mesa/VERSION", "25.0.7")
    write("mesa/src/broadcom/ci/gitlab-ci-inc.yml", "{}")
    write("mesa/src/broadcom/ci/gitlab-ci.yml", JOBS)
    checksums = {"build.trace": last_frame("build", "apitrace", "trace", "--api=egl", "--output=" + path("traces/build.trace"), "glmark2-es2", "-s", "160x120",
                                           "-b", "build:duration=0.1")}
    record_vulkan(checksums)
    status, said = replay(checksums)
    count = len(checksums)
    if status or f"as on the board: {count} of {count}" not in said:
        sys.exit(f"not all replay to the frames of their runs: status {status}\n{said}")
    status, said = replay({"build.trace": "0" * 32})
    if status != 1 or "build.trace,Fail" not in said or not os.path.exists(path("results/build.trace.png")):
        sys.exit(f"another frame is not told: status {status}\n{said}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
