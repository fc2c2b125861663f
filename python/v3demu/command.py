"""The command v3demu, which the functions of this package call."""

import os
import subprocess
from typing import List, Optional, Tuple


class V3demuError(Exception):
    """The command says what is wrong; its words are the text."""


def command() -> str:
    """$V3DEMU, else v3demu in the PATH."""
    return os.environ.get("V3DEMU", "v3demu")


def _start(arguments: List[str], given: Optional[bytes]) -> "subprocess.CompletedProcess[bytes]":
    try:
        return subprocess.run([command(), *arguments], input=given, capture_output=True, check=False)
    except FileNotFoundError:
        raise V3demuError(f"there is no command {command()}: set V3DEMU to its path") from None


def call(arguments: List[str], given: Optional[bytes] = None, good: Tuple[int, ...] = (0,)) -> "subprocess.CompletedProcess[bytes]":
    """Runs the command. Raises V3demuError unless it ends with a status of `good`, and says something where that is not 0."""
    done = _start(arguments, given)
    if done.returncode not in good or (done.returncode != 0 and not done.stdout):
        raise V3demuError(done.stderr.decode(errors="replace").strip() or f"{command()} ended with {done.returncode}")
    return done


def report(arguments: List[str], given: Optional[bytes] = None) -> str:
    """What the command says on its standard error output, however it ends."""
    return _start(arguments, given).stderr.decode(errors="replace")
