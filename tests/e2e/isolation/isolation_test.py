#!/usr/bin/env python3
"""One client cannot hurt another: while hostile clients submit garbage, fault, and are killed in mid-job, a Vulkan
program's results stay right, the daemon lives, and the memory of the dead is gone.

usage: isolation_test.py V3DEMU SHIM MESA_PREFIX VULKAN_PROGRAM
"""
import os
import re
import signal
import subprocess
import sys
import time

HOSTILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hostile", "garbage.py")


def status(v3demu):
    return subprocess.run([v3demu, "status"], check=True, capture_output=True, text=True).stdout


def daemon_pid(text):
    return int(re.match(r"v3demud pid (\d+)", text).group(1))


def run_victim(v3demu, mesa, program, filters):
    done = subprocess.run([v3demu, "run", "--mesa", mesa, "--", program, "--gtest_filter=" + filters],
                          capture_output=True, text=True, timeout=600)
    if done.returncode != 0 or "[  PASSED  ]" not in done.stdout:
        sys.exit("the other client's results are wrong:\n" + done.stdout[-4000:] + done.stderr[-2000:])


def main():
    v3demu, shim, mesa, program = sys.argv[1:]
    # The daemon resets jobs sooner than the kernel, so that slow builds of it get through the garbage.
    subprocess.run([os.environ["V3DEMU_DAEMON"], "--reset-after", "0.02", "--exit-when-idle", "10"], check=True)
    # This open connection keeps it alive from the first to the last step.
    environment = dict(os.environ, LD_PRELOAD=shim)
    keeper = subprocess.Popen([sys.executable, "-c", "import os,time; os.open('/dev/dri/renderD128', os.O_RDWR);"
                               "print('open', flush=True); time.sleep(900)"],
                              env=environment, stdout=subprocess.PIPE, text=True)
    assert keeper.stdout.readline().strip() == "open"
    pid = daemon_pid(status(v3demu))

    attackers = [subprocess.Popen([sys.executable, "-B", HOSTILE, str(seed)], env=environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) for seed in (1, 2)]
    run_victim(v3demu, mesa, program, "VulkanGraphics.*:VulkanCompute.*")
    for attacker in attackers:
        line = attacker.stdout.readline().strip()
        if line != "endless":
            sys.exit("a hostile client ended by itself:\n" + attacker.stderr.read())
    before = status(v3demu)
    for attacker in attackers:
        if not re.search(rf"\bpython\S*\s+{attacker.pid}\s", before):
            sys.exit(f"status does not show client {attacker.pid}:\n{before}")
        attacker.send_signal(signal.SIGKILL)
        attacker.wait()
    run_victim(v3demu, mesa, program, "VulkanGraphics.*:VulkanCompute.*:*Copies*")
    for _ in range(100):
        after = status(v3demu)
        # The GPU errors that they had are remembered.
        living = re.sub(r"^  [0-9.]+ s ago, .*\n", "", after, flags=re.M)
        if not any(str(attacker.pid) in living for attacker in attackers):
            break
        time.sleep(0.1)
    else:
        sys.exit("dead clients are still there:\n" + after)
    if daemon_pid(after) != pid:
        sys.exit("the daemon did not survive")
    keeper.kill()
    keeper.wait()
    print(after)


if __name__ == "__main__":
    main()
