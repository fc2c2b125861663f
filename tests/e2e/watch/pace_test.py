#!/usr/bin/env python3
"""v3demu run --timing and --pace on a compute program: its counters, the time that it takes, and what is left of a program that
is killed meanwhile.

usage: pace_test.py V3DEMU FOLDER
       pace_test.py program NUMBER TURNS     # what runs: NUMBER dispatches, and what it says of them
"""
import array
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "qpu_programs"))
import qpu_program  # noqa: E402
import v3d_drm  # noqa: E402

# Follows pointers, one after the other. Uniforms: where to begin, how many turns.
CHASE = """
    ldunifrf.rf1
    ldunifrf.rf5
loop:
    mov tmua, rf1
    sub.pushz rf5, rf5, 1
    ldtmu.rf1
    b.anyna loop
    nop
    nop
    nop
end
"""
LINES, STEP = 1 << 14, 4099        # of 64 bytes, in an order in which none is near the one before
# Of the model: clocks, reads of memory.
COUNTERS = (4, 75)
PERFMON_CREATE, PERFMON_GET_VALUES = 0x48, 0x4a
PerfmonCreate = v3d_drm.structure("PerfmonCreate", id=v3d_drm.U32, ncounters=v3d_drm.U32, counters=v3d_drm.ctypes.c_uint8 * 32)
PerfmonGetValues = v3d_drm.structure("PerfmonGetValues", id=v3d_drm.U32, pad=v3d_drm.U32, values_ptr=v3d_drm.U64)


def program(number, turns):
    """Prints what a run took: seconds from the first submit to the end of all, and values of counters."""
    device = v3d_drm.Device(v3d_drm.RENDER)
    code, data = device.bo(qpu_program.SIZE), device.bo(64 * LINES)
    for i in range(LINES):
        data.words[16 * (i * STEP % LINES)] = data.address + 64 * ((i + 1) * STEP % LINES)
    qpu_program.load(code, CHASE, [data.address, turns])
    perfmon = PerfmonCreate(ncounters=len(COUNTERS))
    perfmon.counters[:len(COUNTERS)] = COUNTERS
    device.ioctl(v3d_drm.READ_WRITE, PERFMON_CREATE, perfmon)
    handles = array.array("I", [code.handle, data.handle])
    submit = v3d_drm.SubmitCsd(bo_handles=handles.buffer_info()[0], bo_handle_count=2, perfmon_id=perfmon.id)
    submit.cfg[:] = qpu_program.config(device, code, 1)
    start = time.monotonic()
    for _ in range(number):
        device.ioctl(v3d_drm.WRITE, v3d_drm.SUBMIT_CSD, submit)
    print("submitted", flush=True)
    device.wait(code)
    took = time.monotonic() - start
    values = (v3d_drm.U64 * len(COUNTERS))()
    device.ioctl(v3d_drm.READ_WRITE, PERFMON_GET_VALUES,
                 PerfmonGetValues(id=perfmon.id, values_ptr=v3d_drm.ctypes.addressof(values)))
    print(json.dumps({"seconds": took, "counters": list(values)}))
    device.close()


def command(*options, number=1, turns=1000):
    return [V3DEMU, *options, "--mesa", "system", "--", sys.executable, "-B", os.path.abspath(__file__), "program", str(number),
            str(turns)]


def v3demu(*options, **arguments):
    done = subprocess.run(command(*options, **arguments), capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def status(mode):
    """Of the daemon of such runs, which stays a while after its last client."""
    environment = {**os.environ, "V3DEMU_TIMING": mode}
    return subprocess.run([V3DEMU, "status"], env=environment, capture_output=True, text=True, check=True).stdout


def queue(text):
    """Queued jobs, jobs done and busy milliseconds of the compute queue."""
    queued, jobs, busy = re.search(r"^csd +(\d+)\*? +(\d+) +([\d.]+)$", text, re.M).groups()
    return int(queued), int(jobs), float(busy)


class PaceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(FOLDER, ignore_errors=True)
        os.makedirs(FOLDER, mode=0o700)
        os.environ["XDG_RUNTIME_DIR"] = FOLDER
        for name in ("V3DEMU_SOCKET", "V3DEMU_TIMING"):
            os.environ.pop(name, None)
        capture = os.path.join(FOLDER, "chase.v3dcap")
        v3demu("capture", "-o", capture)
        replayed = subprocess.run([V3DEMU, "replay", "--time", capture], capture_output=True, text=True, check=True).stdout
        cls.predicted_ms = float(re.search(r"predicted [\d.]+ ms, ([\d.]+) ms with its submit", replayed).group(1))

    def test_counters_of_the_model(self):
        self.assertEqual(v3demu("run")[0]["counters"], [0, 0])
        told, _ = v3demu("run", "--timing")
        for value in told["counters"]:
            self.assertGreater(value, 1000)
        self.assertRegex(status("count"), r"(?m)^timing count: \d+ jobs predicted \(\d+ csd\), [\d.]+ ms$")

    def test_jobs_take_their_time(self):
        number = 3
        told, _ = v3demu("run", "--pace", number=number)
        self.assertGreaterEqual(1000 * told["seconds"], number * (self.predicted_ms - 0.001))
        text = status("pace")
        self.assertRegex(text, r"(?m)^timing pace: \d+ jobs predicted \(\d+ csd\), [\d.]+ ms$")
        _, jobs, busy = queue(text)
        self.assertGreaterEqual(busy, jobs * (self.predicted_ms - 0.001) - 0.1)

    def test_a_program_that_is_killed(self):
        with subprocess.Popen(command("run", "--pace", number=20), stdout=subprocess.PIPE, text=True) as run:
            self.assertEqual(run.stdout.readline(), "submitted\n")
            run.send_signal(signal.SIGKILL)
        while queue(status("pace"))[0] > 0:
            time.sleep(0.01)
        v3demu("run", "--pace")

    def test_another_daemon_is_told_of(self):
        environment = {**os.environ, "V3DEMU_SOCKET": os.path.join(FOLDER, "own")}
        subprocess.run(command("run"), env=environment, capture_output=True, check=True)
        paced = subprocess.run(command("run", "--pace"), env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(paced.returncode, 127)
        self.assertIn("has timing off, not pace", paced.stderr)


if __name__ == "__main__":
    if sys.argv[1] == "program":
        program(int(sys.argv[2]), int(sys.argv[3]))
    else:
        V3DEMU, FOLDER = sys.argv[1:3]
        unittest.main(argv=sys.argv[:1])
