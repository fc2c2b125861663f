"""Attacks on the daemon, the victims beside whom they run, and what is measured of both. tools/torture uses them too."""
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(FOLDER, "..", "..", "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "tests", "e2e", "qpu_programs"),  # v3d_drm, qpu_program, qpu_asm
                os.path.join(ROOT, "tests", "e2e")]  # capture_records
