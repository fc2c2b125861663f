"""Roots of Debian for arm64, which packaging/debian-root makes."""
import os
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))


def need(condition, what):
    """Ends the test as skipped, by name, where something is missing."""
    if not condition:
        print("skipped: " + what)
        sys.exit(77)


def root_of(suite):
    """The root of a suite. It is of the same Debian for all tests of a run."""
    folder = subprocess.run([os.path.join(ROOT, "packaging", "debian-root"), "--prefix", "arm64", suite], check=True,
                            capture_output=True, text=True).stdout.strip()
    need(os.path.exists(os.path.join(folder, ".packages")), f"no arm64 packages of Debian {suite}: packaging/debian-root arm64 {suite}")
    return folder
