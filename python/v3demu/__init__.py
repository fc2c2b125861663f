"""QPU programs of the Raspberry Pi's V3D without a Raspberry Pi: assembled, run and looked into, with NumPy.

    import numpy as np
    import v3demu

    x = np.arange(1024, dtype=np.float32)
    run = v3demu.run(open("double.qasm").read(), {"x": x, "y": np.zeros_like(x)}, threads=64)
    run["y"]          # 2 * x
    run.hazards       # rules of scheduling that the program breaks

The work is done by the command v3demu: that of $V3DEMU, else the one in the PATH. `v3demu.drm` is another matter: the
kernel's interface, for programs that run under `v3demu run` or on a board; it needs nothing but Python.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .assembly import AssemblyError, assemble, broken_rules, disassemble
    from .kernel import Run, V3demuError, run
    from .stepping import Step, steps

_PLACES = {"assembly": ("AssemblyError", "assemble", "broken_rules", "disassemble"), "kernel": ("Run", "V3demuError", "run"),
           "stepping": ("Step", "steps")}
__all__ = ["AssemblyError", "Run", "Step", "V3demuError", "assemble", "broken_rules", "disassemble", "run", "steps"]


def __getattr__(name: str) -> object:
    """Loads what needs NumPy when it is asked for: v3demu.drm does without."""
    import importlib  # pylint: disable=import-outside-toplevel

    for module, names in _PLACES.items():
        if name in names:
            return getattr(importlib.import_module("." + module, __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> "list[str]":
    return sorted([*globals(), *__all__])
