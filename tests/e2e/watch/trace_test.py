#!/usr/bin/env python3
"""v3demu decode, replay --trace-qpu, replay --time and V3DEMU_DEBUG=qpu over a compute program.

usage: trace_test.py V3DEMU FOLDER QPU_SAXPY
"""
import os
import re
import subprocess
import sys
import tempfile


def run(command, environment=None):
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        sys.exit(f"{command} ended with {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def expect(condition, what, text):
    if not condition:
        sys.exit(f"{what}:\n{text[:4000]}")


def check_trace(text):
    expect(text.count("====") == 1, "one thread is expected", text)
    expect(re.search(r"^==== job 1, compute program at 0x\w+, batch 0, TIDX 0, workgroup 0:0:0$", text, re.M),
           "no title", text)
    expect(re.search(r"^ +\d+  0x\w{8}  nop +; fmul rf20, rf20, rf13$", text, re.M), "no fmul", text)
    expect(re.search(r"^    tmu +load of 32 bit", text, re.M), "no load", text)
    expect(re.search(r"^    tmu +store of 32 bit", text, re.M), "no store", text)
    expect(re.search(r"^    branch +taken, to 0x", text, re.M), "no branch", text)
    expect("the thread ends" in text, "no end", text)
    longest = max(map(len, text.splitlines()))
    expect(longest <= 120, f"a line of {longest} columns", text)


def check_times(v3demu, capture, memory):
    text = run([v3demu, "replay", "--time", "--hash", capture])
    found = re.search(r"^job 1: compute client 1  done +predicted ([\d.]+) ms, [\d.]+ ms with its submit  memory (\w{16})$",
                      text, re.M)
    expect(found and float(found[1]) > 0, "no predicted time", text)
    expect(found[2] == memory, "the model changes results", text)
    expect(re.search(r"^  bound by (issue|TMU|L2T|DRAM|latency): QPUs issue ", text, re.M), "no bound", text)
    moved = re.search(r"bytes: DRAM (\d+) read, (\d+) written", text)
    # x and y are read, y is written, and little else.
    expect(moved and int(moved[2]) % 64 == 0 and 2 <= int(moved[1]) / int(moved[2]) < 2.1, "bytes", text)
    expect(re.search(r"^ +[\d.]+ % +\d+  .*tmua.*\(\d+ times", text, re.M), "no instructions", text)
    together = run([v3demu, "replay", "--time", capture])
    alone = run(["taskset", "-c", str(min(os.sched_getaffinity(0))), v3demu, "replay", "--time", capture])
    expect(alone == together, "on one processor other times", alone)


def main():
    v3demu, folder, saxpy = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    capture = os.path.join(folder, "saxpy.v3dcap")
    run([v3demu, "capture", "--mesa", "system", "-o", capture, "--", saxpy, "/dev/dri/renderD128"])

    plain = run([v3demu, "replay", "--hash", capture])
    traced = run([v3demu, "replay", "--hash", "--trace-qpu=instructions=all", capture])
    check_trace(traced[:traced.rindex("job 1:")])
    hashes = [re.search(r"memory (\w{16})", text)[1] for text in (plain, traced)]
    expect(hashes[0] == hashes[1], "the trace changes results", str(hashes))

    check_times(v3demu, capture, hashes[0])

    decoded = run([v3demu, "decode", capture])
    expect(re.search(r"ldunifrf\.rf13 +# uniform \+0x10: 0x40400000 \(3\)$", decoded, re.M), "the factor", decoded)
    expect(re.search(r"  b\.\w+ .*# to 0x[0-9a-f]{8}$", decoded, re.M), "where the loop begins", decoded)

    default = run([v3demu, "replay", "--trace-qpu", capture])
    expect(default.count("====") == 1 and default.count("\n    state ") <= 1000, "the first 1000 instructions", default)
    chosen = run([v3demu, "replay", "--trace-qpu=workgroup=2:0:0,instructions=3,values=hex", capture])
    expect("workgroup 2:0:0" in chosen and chosen.count("\n    state ") == 3 * chosen.count("====") and "the selection ends here" in chosen, "a selection",
           chosen)
    for selection in ("batch=0", "batch=3", "workgroup=2:0:0"):
        seen = set()
        for engine in ("off", "avx2", "avx512"):
            done = subprocess.run([v3demu, "replay", "--trace-qpu=" + selection, capture], capture_output=True, text=True, check=False,
                                  env=dict(os.environ, V3DEMU_JIT=engine))
            if "the processor has not" not in done.stderr:
                seen.add(done.stdout.count("\n    state "))
        expect(len(seen) == 1 and seen.pop() > 0, "an engine hides instructions", selection)
    none = subprocess.run([v3demu, "replay", "--trace-qpu=stage=fragment", capture], capture_output=True, text=True, check=False)
    expect(none.returncode == 0 and "====" not in none.stdout and none.stderr == "v3demu replay: nothing that ran is of the selection stage=fragment\n",
           "no fragment programs", none.stdout + none.stderr)
    bad = subprocess.run([v3demu, "replay", "--trace-qpu=stage=pixel", capture], capture_output=True, text=True)
    expect(bad.returncode == 1 and "\"stage=pixel\" is not understood" in bad.stderr, "an error", bad.stderr)

    log = os.path.join(folder, "live.log")
    if os.path.exists(log):
        os.remove(log)
    with tempfile.TemporaryDirectory(prefix="v3demu-test-") as sockets:
        run([v3demu, "run", "--mesa", "system", "--", saxpy, "/dev/dri/renderD128"],
            dict(os.environ, V3DEMU_SOCKET=os.path.join(sockets, "live"), V3DEMU_LOG=log, V3DEMU_DEBUG="qpu",
                 V3DEMU_TRACE_QPU="instructions=5"))
    with open(log) as live:
        text = live.read()
    expect(re.search(r"qpu: ==== job 1, compute program", text) and text.count("\n    state ") == 5, "a live trace",
           text)


if __name__ == "__main__":
    main()
