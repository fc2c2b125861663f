#!/usr/bin/env python3
"""Stands in for a dEQP executable: what a case does is the last part of its name.

pass, fail, skip, warn, slow (passes after a fifth of a second), crash (before its result), exit (after its result), hang, noise (prints other cases' lines),
flake (fails in its first process, passes afterwards), lost (is in no test tree), windows (fails, and tells what window system it has), config (fails, and tells
what surface it was told to take).
"""
import os
import signal
import sys
import time

OUTCOMES = {"pass": "Pass (Pass)", "fail": "Fail (values differ\n  on two lines)", "skip": "NotSupported (no such feature)",
            "warn": "QualityWarning (coarse)", "exit": "Pass (Pass)", "noise": "Pass (Pass)", "slow": "Pass (Pass)"}
options = dict(argument[len("--deqp-"):].split("=", 1) for argument in sys.argv[1:] if argument.startswith("--deqp-"))
if "case" in options:  # what the driver tells of itself
    with open(options["log-filename"], "w", encoding="utf-8") as file:
        file.write(f"#beginTestCaseResult {options['case']}\n<Text>a stand-in</Text>\n#endTestCaseResult\n")
    sys.exit()
with open(options["caselist-file"], encoding="utf-8") as file:
    cases = [line.strip() for line in file]
log = open(options["log-filename"], "w", encoding="utf-8")
if "shadercache-filename" in options:
    open(options["shadercache-filename"], "x", encoding="utf-8").close()  # no process finds one that another has


def outcome(case, kind):
    if kind == "windows":
        names = ("WAYLAND_DISPLAY", "DISPLAY")
        return f"Fail ({[os.environ.get(name) for name in names] + [options.get('egl-display-type')]})"
    if kind == "config":
        return "Fail ({gl-config-name} {surface-width}x{surface-height} {surface-type})".format(**options)
    if kind != "flake":
        return OUTCOMES[kind]
    marker = os.path.join(os.environ["FAKE_DEQP_STATE"], case)
    if os.path.exists(marker):
        return OUTCOMES["pass"]
    open(marker, "w", encoding="utf-8").close()
    return OUTCOMES["fail"]


if os.environ.get("FAKE_DEQP_BROKEN"):
    sys.exit("no device")
print("dEQP Core fake starting..", flush=True)
with open(os.path.join(os.environ["FAKE_DEQP_STATE"], "runs"), "a", encoding="utf-8") as file:
    file.write(f"{len(cases)}\n")
with open(os.path.join(os.environ["FAKE_DEQP_STATE"], "lists"), "a", encoding="utf-8") as file:
    file.write(" ".join(cases) + "\n")
for case in reversed(cases):  # dEQP runs cases in the order of its tree, not of the list
    kind = case.rsplit(".", 1)[1].rstrip("0123456789")
    if kind == "lost":
        continue
    print(f"\nTest case '{case}'..", flush=True)
    if kind == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if kind == "hang":
        time.sleep(600)
    if kind == "slow":
        time.sleep(0.2)
    if kind == "noise":
        print("driver: Fail (not a result)", flush=True)
    text = outcome(case, kind)
    log.write(f"#beginTestCaseResult {case}\n<Text>details of {case}</Text>\n#endTestCaseResult\n")
    log.flush()
    print(f"  {text}", flush=True)
    if kind == "exit":
        sys.exit(3)
print("\nDONE!", flush=True)
