"""Mesa's software renderers, lavapipe and llvmpipe, as packaging/peer fetches them: what v3demu is measured against."""

import pathlib
import subprocess

from gallery_parts.windows import Failure

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAME = "lavapipe"
LIBRARIES = "usr/lib/x86_64-linux-gnu"


def output_of(command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout.strip()


class Peer:
    """variables: what makes Vulkan and OpenGL programs use them; version: of their package."""

    def __init__(self):
        prefix = pathlib.Path(output_of([ROOT / "packaging/peer", "--prefix"]))
        if not (prefix / ".complete").exists():
            raise Failure("there is no lavapipe; packaging/peer fetches it")
        self.version = (prefix / "version").read_text().strip()
        libraries = prefix / LIBRARIES
        self.variables = {
            "VK_ICD_FILENAMES": str(prefix / "usr/share/vulkan/icd.d/lvp_icd.json"),
            "LD_LIBRARY_PATH": str(libraries), "LIBGL_DRIVERS_PATH": str(libraries / "dri"),
            "GBM_BACKENDS_PATH": str(libraries / "gbm"), "LIBGL_ALWAYS_SOFTWARE": "1", "GALLIUM_DRIVER": "llvmpipe"}
