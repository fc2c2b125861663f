#!/usr/bin/env python3
"""No job of one client delays another's small job: latency beside jobs that do not end, what becomes of those, and jobs
of a program that was killed and used a descriptor that another one opened.

usage: fairness_test.py V3DEMU SHIM
"""
import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "qpu_programs"))
VICTIM = "--victim"
BOUND = 1.0  # seconds
HOG_PROCESSES = 8  # of each kind that lasts


def start_daemon(*options):
    subprocess.run([os.environ["V3DEMU_DAEMON"], *options, "--exit-when-idle", "30"], check=True)


def status(v3demu):
    return subprocess.run([v3demu, "status"], check=True, capture_output=True, text=True).stdout


def stop_daemon(v3demu):
    os.kill(int(re.match(r"v3demud pid (\d+)", status(v3demu)).group(1)), signal.SIGTERM)
    for _ in range(200):
        if subprocess.run([v3demu, "status"], capture_output=True).returncode != 0:
            return
        time.sleep(0.05)
    sys.exit("the daemon does not leave")


def hog(kind, environment, **options):
    process = subprocess.Popen([sys.executable, "-B", os.path.join(HERE, "hog.py"), kind], env=environment,
                               stdout=subprocess.PIPE, text=True, **options)
    return process


def victim():
    """Runs small jobs of two kinds one by one and prints how long the slowest of each took."""
    import qpu_program
    from hostile import drm
    device = drm.Device()
    program, image = device.bo(qpu_program.SIZE), device.bo(1 << 16)
    qpu_program.load(program, "nop ; thrsw\n nop\n nop\n nop\n")

    def convert():
        device.submit_tfu([image], icfg=4 << 16, iia=image.address, iis=32, ioa=image.address + 0x8000, ios=32 << 16 | 32)

    def compute():
        device.submit_csd(qpu_program.config(device, program, 24), [program])

    for name, submit, bo in (("compute", compute, program), ("convert", convert, image)):
        slowest = 0
        for _ in range(40):
            begin = time.monotonic()
            submit()
            device.wait(bo)
            slowest = max(slowest, time.monotonic() - begin)
            time.sleep(0.01)
        print(name, slowest, flush=True)


def run_victim(environment):
    done = subprocess.run([sys.executable, "-B", __file__, VICTIM], env=environment, capture_output=True, text=True,
                          timeout=300)
    if done.returncode != 0:
        sys.exit("the victim fails:\n" + done.stdout + done.stderr)
    return {name: float(seconds) for name, seconds in (line.split() for line in done.stdout.splitlines())}


def test_latency(v3demu, environment):
    start_daemon()
    hogs = []
    for kind in ["compute", "tfu"] * HOG_PROCESSES + ["render", "bin"]:
        hogs.append(hog(kind, environment))
    for process in hogs:
        assert process.stdout.readline().strip() == "busy"
    times = run_victim(environment)
    print(f"beside {len(hogs)} hogs:", times)
    print(status(v3demu))
    for process in hogs:
        process.kill()
        process.wait()
    stop_daemon(v3demu)
    late = {name: seconds for name, seconds in times.items() if seconds > BOUND}
    if late:
        sys.exit(f"small jobs took more than {BOUND} s: {late}")


def test_fates(v3demu, environment):
    start_daemon("--reset-after", "0.02")
    done = subprocess.run([sys.executable, "-B", os.path.join(HERE, "hog.py"), "fates"], env=environment, check=True,
                          capture_output=True, text=True, timeout=600)
    fates = dict(line.split() for line in done.stdout.splitlines())
    print(fates)
    # The client holds the fence of the last job: of a cache clean after a dispatch, of the render job after a bin job.
    expected = {"compute": "1", "render": "-125", "bin": "1", "tfu": "-125", "tfu_absurd": "-125"}
    if fates != expected:
        sys.exit(f"jobs end with {fates}, expected {expected}")
    resets = int(re.search(r"(\d+) GPU resets", status(v3demu)).group(1))
    if resets < len(expected):
        sys.exit(f"{resets} GPU resets for {len(expected)} hung jobs")
    stop_daemon(v3demu)


def test_passed_descriptor(v3demu, environment):
    """As under DRI3: this process opens the node, another one uses it and is killed."""
    start_daemon()
    opener = subprocess.Popen([sys.executable, "-c", "import os, subprocess, sys, time\n"
                               "fd = os.open('/dev/dri/renderD128', os.O_RDWR)\n"
                               "user = subprocess.Popen(sys.argv[1:], stdin=fd, stdout=subprocess.PIPE, text=True)\n"
                               "os.close(fd)\nprint(user.stdout.readline().strip(), user.pid, flush=True)\n"
                               "time.sleep(900)", sys.executable, "-B", os.path.join(HERE, "hog.py"), "passed"],
                              env=environment, stdout=subprocess.PIPE, text=True)
    word, pid = opener.stdout.readline().split()
    assert word == "busy"
    text = status(v3demu)
    if not re.search(rf"\bpython\S*\s+{pid}\s", text):
        sys.exit(f"status does not show the user of the file, {pid}:\n{text}")
    os.kill(int(pid), signal.SIGKILL)
    for _ in range(300):
        text = status(v3demu)
        if " 0 clients leaving" in text and re.search(r"^csd +0 ", text, re.M):
            break
        time.sleep(0.1)
    else:
        sys.exit("jobs of the killed program are still there:\n" + text)
    opener.kill()
    opener.wait()
    stop_daemon(v3demu)


def main():
    if sys.argv[1] == VICTIM:
        return victim()
    v3demu, shim = sys.argv[1:]
    environment = dict(os.environ, LD_PRELOAD=shim)
    test_latency(v3demu, environment)
    test_fates(v3demu, environment)
    test_passed_descriptor(v3demu, environment)


if __name__ == "__main__":
    main()
