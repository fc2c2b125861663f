"""What is known of a file's shaders: each of its programs is compiled and run once, under v3demu profile."""
import json
import os
import re
import subprocess
import sys
import tempfile

from .companion import Failure
from .figures import FORMAT, WANTED, figures_of
from .hazards import hazards_of
from .programs import programs_of

HERE = os.path.dirname(os.path.realpath(__file__))
LONGEST = 600  # seconds
NOISE = re.compile("v3demu profile: (no job was captured|.* is cut)")  # of a program that has told what is wrong


def _run(program, options):
    """(profile, what the driver said)."""
    with tempfile.TemporaryDirectory(prefix="v3demu-shader-") as folder:
        own, other, profile = (os.path.join(folder, name) for name in ("shader", "other", "profile.json"))
        for name, contents in ((own, program.own), (other, program.other)):
            with open(name, "wb") as file:
                file.write(contents)
        command = [options.v3demu, "profile", "--json", profile, "--device", options.device]
        command += ["--mesa", options.mesa] if options.mesa else []
        script = ["vulkan.py"] if program.api == "vulkan" else ["draw.py", program.api, program.kind]
        command += ["--", sys.executable, "-B", os.path.join(HERE, script[0]), *script[1:], own, other]
        # A cached shader would not be compiled, and so not be told of.
        environment = os.environ | {"V3D_DEBUG": "shaderdb", "MESA_SHADER_CACHE_DISABLE": "true"}
        try:
            done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                                  timeout=LONGEST, check=False)
        except subprocess.TimeoutExpired as error:
            raise Failure(f"it did not end within {LONGEST} s") from error
        if done.returncode or not os.path.exists(profile):
            said = [line for line in done.stderr.splitlines() if " shader: " not in line and not NOISE.match(line)]
            raise Failure("\n".join(said[:10]) or f"it did not run: status {done.returncode}")
        with open(profile, encoding="utf-8") as file:
            return json.load(file), done.stderr


def measured(path, options):
    """The result of a file; Failure if there is none."""
    shaders, board, kinds, untimed = [], None, [], []
    for program in programs_of(path):
        profile, log = _run(program, options)
        found = figures_of(profile, log, program.kind)
        if not found:
            raise Failure(f"no {program.kind} program of it was timed")
        for shader in found:
            shader["hazards"] = hazards_of(shader, options)
        untimed += [stage for stage in WANTED[program.kind] if stage not in {shader["stage"] for shader in found}]
        shaders, board, kinds = shaders + found, profile["board"], kinds + [program.kind]
    return {"format": FORMAT, "file": path, "board": board, "kind": ", ".join(kinds), "shaders": shaders,
            "untimed": untimed}
