"""A program on arrays."""

import json
import os
import tempfile
from dataclasses import dataclass, field
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from .command import V3demuError, call

__all__ = ["Kernel", "Run", "Uniform", "V3demuError", "execute", "run"]

Kernel = Union[str, "npt.NDArray[np.uint64]"]
Uniform = Union[int, float, str, np.integer, np.floating]


@dataclass(frozen=True)
class Run(Mapping[str, "npt.NDArray[np.generic]"]):
    """What a program left: a mapping from the names of its buffers to arrays, and how it ended."""

    arrays: Dict[str, "npt.NDArray[np.generic]"]
    end: str  #: "done", "error" or "hang"
    message: str  #: of the last two
    faults: int  #: accesses to memory that is not mapped
    fault_place: str  #: program and instruction of the first of them
    hazards: List[str]  #: rules of scheduling that the program breaks
    addresses: Dict[str, int]  #: of the buffers
    ns: Optional[int] = None  #: what it would take on the board, where `time` was asked for
    submit_ns: Optional[int] = None  #: the same of its submit, outside of the GPU
    counters: Dict[str, int] = field(default_factory=dict)  #: those that are not 0, where `counters` was asked for
    trace: str = ""  #: what threads did, where it was asked for

    def __getitem__(self, name: str) -> "npt.NDArray[np.generic]":
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)


def _uniform(value: Uniform) -> str:
    if isinstance(value, str):
        return value
    return str(int(value)) if isinstance(value, (int, np.integer)) else repr(float(value))


def _write_kernel(kernel: Kernel, folder: str) -> str:
    if isinstance(kernel, str):
        path = os.path.join(folder, "kernel.qpu")
        with open(path, "w", encoding="utf-8") as file:
            file.write(kernel)
        return path
    path = os.path.join(folder, "kernel.bin")
    np.asarray(kernel, dtype="<u8").tofile(path)
    return path


def execute(kernel: Kernel, buffers: Mapping[str, "npt.ArrayLike"], uniforms: Optional[Sequence[Uniform]],
            options: Sequence[str]) -> Run:
    """run() with options of `v3demu exec` as they are."""
    with tempfile.TemporaryDirectory(prefix="v3demu-") as folder:
        arguments = ["exec", _write_kernel(kernel, folder), "--json", *options]
        paths = {}
        for number, (name, values) in enumerate(buffers.items()):
            paths[name] = os.path.join(folder, f"{number}.npy")
            np.save(paths[name], np.ascontiguousarray(values), allow_pickle=False)
            arguments += ["--buf", f"{name}={paths[name]}", "--out", f"{name}={paths[name]}"]
        for value in uniforms or ():
            arguments.append(f"--uniform={_uniform(value)}")
        told = json.loads(call(arguments, good=(0, 1)).stdout)
        return Run(arrays={name: np.load(path, allow_pickle=False).reshape(np.shape(buffers[name])) for name, path in paths.items()},
                   end=told["end"], message=told["message"], faults=told["faults"], fault_place=told["fault_place"],
                   hazards=told["hazards"], addresses={name: buffer["address"] for name, buffer in told["buffers"].items()},
                   ns=told.get("ns"), submit_ns=told.get("submit_ns"), counters=told.get("counters", {}), trace=told.get("trace", ""))


def options_of(threads: Optional[int], workgroup: int, workgroups: Optional[Tuple[int, ...]], four_threads: bool, device: str) -> List[str]:
    """The shape of a dispatch, as `v3demu exec` takes it."""
    options = ["--device", device, "--workgroup", str(workgroup)]
    if threads is not None:
        options += ["--threads", str(threads)]
    if workgroups is not None:
        options += ["--workgroups", ",".join(map(str, workgroups))]
    return options + ["--four-threads"] * four_threads


def run(kernel: Kernel, buffers: Mapping[str, "npt.ArrayLike"], uniforms: Optional[Sequence[Uniform]] = None, *,
        threads: Optional[int] = None, workgroup: int = 16, workgroups: Optional[Tuple[int, ...]] = None,
        four_threads: bool = False, device: str = "rpi5", time: bool = False, counters: bool = False) -> Run:
    """Runs a program on arrays, which stay as they are; the run has new ones.

    kernel      assembly, or words as assemble() makes them
    buffers     arrays of f32, f16, u32, i32, u16, i16, u8 or i8 elements by name
    uniforms    numbers, or names of buffers, which stand for their addresses ("x", or "x+64"); without any those of .uniform
                in the text, else the addresses of the buffers in their order
    threads     QPU threads of 16 invocations in all (default: one workgroup)
    workgroup   invocations of a workgroup
    workgroups  how many there are on each axis, in place of `threads`
    time        also tells what it would take on the board; counters: also the performance counters

    Raises V3demuError (AssemblyError's base) where the program, an array or the shape of the dispatch cannot be.
    """
    options = options_of(threads, workgroup, workgroups, four_threads, device)
    return execute(kernel, buffers, uniforms, options + ["--time"] * time + ["--counters"] * counters)
