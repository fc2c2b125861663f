"""QPU assembly to words and back."""

from typing import List

import numpy as np
import numpy.typing as npt

from .command import V3demuError, call, report

Words = npt.NDArray[np.uint64]


class AssemblyError(V3demuError):
    """The text is no program for that chip; each line of the message names a line and a column."""


def assemble(text: str, chip: str = "7.1") -> Words:
    """The words of a program.

    text: as `v3demu help asm` describes it; chip: "7.1" (Pi 5), "4.2" (Pi 4) or "2.1" (Pi 0 to 3).
    Raises AssemblyError.
    """
    try:
        return np.frombuffer(call(["asm", "--chip", chip, "--format", "bin", "-"], text.encode()).stdout, dtype="<u8").astype(np.uint64)
    except V3demuError as error:
        raise AssemblyError(str(error)) from None


def disassemble(words: "npt.ArrayLike", chip: str = "7.1") -> List[str]:
    """One text for each word, which assemble() reads."""
    listed = "".join(f"{int(word):016x}\n" for word in np.asarray(words, dtype=np.uint64))
    return call(["disasm", "--chip", chip, "--plain", "-"], listed.encode()).stdout.decode().splitlines() if listed else []


def broken_rules(text: str, chip: str = "7.1") -> List[str]:
    """The rules of scheduling that a program breaks wherever it goes, one line each. Raises AssemblyError.

    Those that only its execution shows are in Run.hazards.
    """
    assemble(text, chip)
    return report(["asm", "--chip", chip, "--check", "-"], text.encode()).splitlines()
