"""A thread of a program, instruction by instruction."""

import re
from dataclasses import dataclass
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np
import numpy.typing as npt

from .kernel import Kernel, Uniform, execute, options_of

Lanes = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Step:
    """An instruction that was executed, and what its thread has in its registers after it."""

    number: int  #: in the program, from 0
    address: int
    text: str  #: of the instruction
    reads: Dict[str, Lanes]  #: operands, by register
    writes: Dict[str, Lanes]  #: results, by register
    registers: Dict[str, Lanes]  #: all that the thread has written or read so far, 16 lanes each; `.view(np.float32)` where they are floats
    flags: Tuple[int, int]  #: A and B before it, a bit for each lane
    notes: List[str]  #: lines of the trace that are none of these: TMU, branches, thread switches


_HEAD = re.compile(r" *(\d+)  0x([0-9a-f]{8})  (.*)")
_STATE = re.compile(r"    state +A ([0-9a-f]{4})  B ([0-9a-f]{4})")
_VALUES = re.compile(r"    (?:add|mul) (\S+) +|      -> (\S+) +|    ld\w+ -> (\S+) +")
_LANES = re.compile(r" *(all|\d+\.\. ?\d+) +((?:[0-9a-f]{8} ?)+)$")
_REGISTER = re.compile(r"r[0-5]|rf\d+")


def _take_values(lines: Sequence[str], at: int, begin: int) -> "Tuple[Optional[Lanes], int]":
    """16 lanes from a line, behind its name, and those below it. @return they, and the line that follows"""
    values: Lanes = np.zeros(16, dtype=np.uint32)
    taken = False
    rest = lines[at][begin:]
    while True:
        found = _LANES.match(rest)
        if found and found[1] == "all":
            return np.full(16, int(found[2], 16), dtype=np.uint32), at + 1
        if found:
            first = int(found[1].split("..")[0])
            part = [int(word, 16) for word in found[2].split()]
            values[first:first + len(part)] = part
            taken = True
        elif not taken or not re.match(r" +\d+\.\. ?\d+ ", rest):  # which repeats lanes as decimal numbers
            return (values if taken else None), at
        at += 1
        if at == len(lines):
            return values, at
        rest = lines[at]


def _step(paragraph: str, registers: Dict[str, Lanes]) -> Optional[Step]:
    lines = paragraph.split("\n")
    head = _HEAD.match(lines[0])
    if not head:
        return None
    reads: Dict[str, Lanes] = {}
    writes: Dict[str, Lanes] = {}
    notes: List[str] = []
    flags, at = (0, 0), 1
    while at < len(lines):
        state, named = _STATE.match(lines[at]), _VALUES.match(lines[at])
        if state:
            flags = (int(state[1], 16), int(state[2], 16))
        if named:
            values, at = _take_values(lines, at, named.end())
            if values is not None:
                (reads if named[1] else writes)[named[1] or named[2] or named[3]] = values
                continue
        elif not state and lines[at].strip():
            notes.append(lines[at].strip())
        at += 1
    for values_by_name in (reads, writes):
        registers.update({name: lanes for name, lanes in values_by_name.items() if _REGISTER.fullmatch(name)})
    return Step(int(head[1]), int(head[2], 16), " ".join(head[3].split()), reads, writes, dict(registers), flags, notes)


def steps(kernel: Kernel, buffers: "Mapping[str, npt.ArrayLike]", uniforms: Optional[Sequence[Uniform]] = None, *, thread: int = 0,
          most: int = 1000, threads: Optional[int] = None, workgroup: int = 16, workgroups: Optional[Tuple[int, ...]] = None,
          four_threads: bool = False, device: str = "rpi5") -> Iterator[Step]:
    """What one thread of a program does: its first `most` instructions in the order of their execution.

    thread: by its number, from 0; the rest is as for run().
    """
    options = options_of(threads, workgroup, workgroups, four_threads, device)
    selection = f"batch={thread},instructions=0-{most - 1},values=hex"
    traced = execute(kernel, buffers, uniforms, [*options, f"--trace-qpu={selection}"])
    registers: Dict[str, Lanes] = {}
    for paragraph in traced.trace.split("\n\n"):
        step = _step(paragraph.strip("\n"), registers)
        if step:
            yield step
