"""Rules of scheduling that a shader's code breaks, as v3demu asm --check tells them."""
import collections
import re
import subprocess

from .companion import Failure

BROKEN = re.compile(r"^-?[^:]*:\d+: [\w-]+: ([\w-]+): ", re.M)


def hazards_of(shader, options):
    """{rule: how often} of what is undefined or can hardly be meant."""
    command = [options.v3demu, "asm", "--check=undefined,hardly-meant", "--device", options.device, *(["--four-threads"] if shader.get("threads") == 4 else []), "-"]
    done = subprocess.run(command, input="".join(one["text"] + "\n" for one in shader["code"]), capture_output=True, text=True, check=False)
    rules = collections.Counter(BROKEN.findall(done.stderr))
    if done.returncode and not rules:
        raise Failure(f"its code cannot be checked: {done.stderr.strip()[:200]}")
    return dict(sorted(rules.items()))
