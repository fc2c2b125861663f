#!/usr/bin/env python3
"""Programs that preloading does not reach: the device tree as mounted files (`v3demu run --sandbox`) and system calls that a
supervisor answers (`--seccomp`).

usage: box_test.py V3DEMU RAW_CLIENT SAXPY LISTER [MESA_PREFIX]
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

V3DEMU, RAW_CLIENT, SAXPY, LISTER = sys.argv[1:5]
MESA = sys.argv[5] if len(sys.argv) > 5 else None
NODE = "/dev/dri/renderD128"
TIMEOUT = 240


def run(options, *command, **more):
    return subprocess.run([V3DEMU, "run", "--mesa", more.pop("mesa", "system"), *options, "--", *command], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=TIMEOUT, **more)


def reason_against(option):
    """Why this machine cannot do that; None: it can."""
    text = run([option], "true").stdout
    refused = re.search(r"no sandbox \((.*)\)|(system calls cannot be supervised: .*)", text)
    return refused and (refused[1] or refused[2])


NO_SANDBOX = reason_against("--sandbox")
NO_SECCOMP = reason_against("--seccomp")


class BoxTest(unittest.TestCase):
    maxDiff = None
    def assert_runs(self, done, *parts):
        self.assertEqual(done.returncode, 0, done.stdout)
        for part in parts:
            self.assertIn(part, done.stdout)


@unittest.skipIf(NO_SANDBOX, f"no sandbox here: {NO_SANDBOX}")
class Sandbox(BoxTest):
    def test_static_program_sees_the_tree(self):
        done = run(["--sandbox"], LISTER, "/dev/dri", "/dev/dri/by-path", "/sys/class/drm/renderD128", "/sys/class", "/dev")
        self.assert_runs(done, f"{NODE} 20666 226:128", "/dev/dri/card0 20660 226:0",
                         "/dev/dri/by-path/platform-1002000000.v3d-render 20666 226:128", "/sys/class/drm/renderD128/uevent 100444",
                         "/sys/class/net 4", "/dev/null 20666 1:3")  # and what the host has

    def test_host_sees_nothing(self):
        before = subprocess.run([LISTER, "/dev", "/sys/class"], capture_output=True, text=True).stdout
        run(["--sandbox"], "true")
        self.assertEqual(subprocess.run([LISTER, "/dev", "/sys/class"], capture_output=True, text=True).stdout, before)

    def test_in_a_user_namespace(self):
        if not shutil.which("setpriv"):
            self.skipTest("setpriv is not installed")
        command = ["setpriv"] + (["--bounding-set", "-sys_admin"] if os.geteuid() == 0 else []) + [
            V3DEMU, "run", "--mesa", "system", "--sandbox", "--", LISTER, "/dev/dri"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT)
        if "no sandbox (" in done.stdout:
            self.skipTest("without rights: " + done.stdout)
        self.assert_runs(done, f"{NODE} 20666 226:128")

    def test_preloaded_program_opens_what_it_sees(self):
        """Through descriptors of folders, links and stdio, which nothing interposes here."""
        done = run(["--sandbox"], sys.executable, "-c", f"""
import fcntl, os, stat
folder = os.open('/dev/dri', os.O_PATH)
link = os.path.join('/tmp', 'v3demu-box-%d' % os.getpid())
os.symlink('{NODE}', link)
stream = open('/dev/dri/by-path/platform-1002000000.v3d-render', 'rb', buffering=0)
for fd in (os.open('{NODE}', os.O_RDWR), os.open('renderD128', os.O_RDWR, dir_fd=folder), os.open(link, os.O_RDWR),
           stream.fileno()):
    st = os.fstat(fd)
    assert stat.S_ISCHR(st.st_mode) and st.st_rdev == os.makedev(226, 128)
    param = bytearray(16)
    param[0] = 4
    fcntl.ioctl(fd, 0xc0106444, param)
    assert param[8:11] == b'V3D', param
os.unlink(link)
try:
    os.open('/dev/dri', os.O_RDWR)
except IsADirectoryError:
    print('good')
""")
        self.assert_runs(done, "good")
        self.assertEqual(run(["--sandbox"], "sh", "-c", "echo $V3DEMU_TREE").stdout, "real\n")

    def test_board(self):
        line = "cat /proc/device-tree/model /sys/firmware/devicetree/base/compatible; tail -n 1 /proc/cpuinfo"
        done = run(["--sandbox"], "sh", "-c", line)
        self.assert_runs(done, "Raspberry Pi 5 Model B Rev 1.0\0raspberrypi,5-model-b\0brcm,bcm2712\0",
                         "Model\t\t: Raspberry Pi 5 Model B Rev 1.0\n")
        # Without the library /proc has what can be mounted there.
        done = run(["--sandbox"], "env", "-u", "LD_PRELOAD", "sh", "-c", "tail -n 1 /proc/cpuinfo; test -e /proc/device-tree || echo none")
        self.assertIn("Model\t\t: Raspberry Pi 5 Model B Rev 1.0\n", done.stdout)
        done = run(["--sandbox"], LISTER, "/dev", "/dev/dma_heap")
        self.assert_runs(done, "/dev/vcio 20660 10:4001", "/dev/udmabuf 20660 10:4000", "/dev/dma_heap/system 20660 384:0")

    def test_files_cannot_be_written(self):
        done = run(["--sandbox"], "sh", "-c", "echo 1 > /sys/class/drm/version || touch /dev/dri/x || rm /dev/dri/card0 || echo refused")
        self.assert_runs(done, "refused")

    def test_jobs_are_counted(self):
        if NO_SECCOMP:
            self.skipTest(NO_SECCOMP)
        stats = "cat /sys/class/drm/renderD128/device/gpu_stats"
        done = run(["--sandbox", "--seccomp"], "sh", "-c", f"set -e; {stats}; {SAXPY} {NODE} >/dev/null; {stats}")
        self.assertEqual(done.returncode, 0, done.stdout)
        jobs = [int(n) for n in re.findall(r"^csd\t\d+\t(\d+)\t\d+$", done.stdout, re.M)]
        self.assertEqual(len(jobs), 2, done.stdout)
        self.assertGreater(jobs[1], jobs[0])
        self.assertEqual(done.stdout.count("queue\ttimestamp\tjobs\truntime\n"), 2)

    def test_udev_and_inotify_without_the_library(self):
        try:
            import ctypes
            ctypes.CDLL("libudev.so.1")
        except OSError:
            self.skipTest("libudev is not installed")
        watch = os.path.join(os.path.dirname(os.path.abspath(__file__)), "watch.py")
        done = run(["--sandbox"], "env", "-u", "LD_PRELOAD", sys.executable, "-B", watch)
        self.assert_runs(done, f"renderD128 {NODE} 226:128 v3d", "card1 /dev/dri/card1 226:1 vc4-drm", "watched: renderD128")

    @unittest.skipIf(not MESA, "no Mesa")
    def test_bubblewrap(self):
        for program in ("bwrap", "vulkaninfo"):
            if not shutil.which(program):
                self.skipTest(program + " is not installed")
        done = run(["--sandbox"], "bwrap", "--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "vulkaninfo", "--summary",
                   mesa=MESA)
        if "Operation not permitted" in done.stdout and "bwrap:" in done.stdout:
            self.skipTest(done.stdout)
        self.assert_runs(done, "V3D 7.1.7")

    def test_tree_ends_with_the_program(self):
        socket = os.environ["V3DEMU_SOCKET"]

        def servers():
            found = set()
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open(f"/proc/{pid}/cmdline", "rb") as line, open(f"/proc/{pid}/environ", "rb") as environ:
                        if b"--serve-tree" in line.read() and socket.encode() in environ.read():
                            found.add(pid)
                except OSError:
                    pass
            return found

        before = servers()
        with subprocess.Popen([V3DEMU, "run", "--mesa", "system", "--sandbox", "--", "cat"], stdin=subprocess.PIPE) as program:
            while not servers() - before:
                time.sleep(0.02)
            mine = servers() - before
            program.kill()
        while mine & servers():
            time.sleep(0.02)


@unittest.skipIf(NO_SECCOMP, f"no supervisor here: {NO_SECCOMP}")
class Seccomp(BoxTest):
    OPTIONS = [["--seccomp"]] + ([] if NO_SANDBOX else [["--seccomp", "--sandbox"]])

    def test_static_programs(self):
        tests = ["identity", "faults", "sharing", "board", "threads", "wait_ends", "many_wait", "race", "flood", "traced", "descriptors",
                 "framebuffer", "other_roots"]
        for options in self.OPTIONS:
            lines = run(options, RAW_CLIENT, NODE, *tests).stdout.splitlines()
            self.assertEqual([line for line in lines if "somebody traces" not in line], tests)

    def test_dies_while_it_is_made_to_map(self):
        for _ in range(3):
            self.assertEqual(run(["--seccomp"], RAW_CLIENT, NODE, "dies_mapping").returncode, -signal.SIGALRM)

    def test_compute_program(self):
        for node in (NODE, "/dev/dri/by-path/platform-1002000000.v3d-card"):
            self.assert_runs(run(["--seccomp"], SAXPY, node), "are right")
        if not NO_SANDBOX:
            line = f"cd /dev/dri/by-path && {SAXPY} ../renderD128"
            self.assert_runs(run(["--seccomp", "--sandbox"], "env", "-u", "LD_PRELOAD", "sh", "-c", line), "are right")

    def test_without_it_there_is_no_node(self):
        if os.path.exists(NODE):
            self.skipTest("the host has a GPU")
        self.assertNotEqual(run([], SAXPY, NODE).returncode, 0)

    def test_ends_as_the_program(self):
        self.assertEqual(run(["--seccomp"], "sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(run(["--seccomp"], "sh", "-c", "kill -TERM $$").returncode, -signal.SIGTERM)
        self.assertEqual(run(["--seccomp"], "no-such-program").returncode, 127)

    def test_signals_are_handed_on(self):
        with subprocess.Popen([V3DEMU, "run", "--mesa", "system", "--seccomp", "--", "sh", "-c",
                               "trap 'echo got it; exit 5' TERM; echo ready; while :; do sleep 0.05; done"],
                              stdout=subprocess.PIPE, text=True) as program:
            self.assertEqual(program.stdout.readline(), "ready\n")
            program.terminate()
            self.assertEqual(program.stdout.readline(), "got it\n")
            self.assertEqual(program.wait(TIMEOUT), 5)

    def test_goes_on_for_what_is_left_behind(self):
        done = run(["--seccomp"], "sh", "-c", f"(sleep 0.3; {SAXPY} {NODE} > \"$OUT\" 2>&1; echo >> \"$OUT\") & exit 3",
                   env=dict(os.environ, OUT=self.file("left")))
        self.assertEqual(done.returncode, 3)
        text = ""
        while not text.endswith("\n\n"):
            time.sleep(0.05)
            if os.path.exists(self.file("left")):
                with open(self.file("left"), encoding="ascii") as file:
                    text = file.read()
        os.unlink(self.file("left"))
        self.assertIn("are right", text)

    def test_killed_supervisor_leaves_an_error(self):
        with subprocess.Popen([V3DEMU, "run", "--mesa", "system", "--seccomp", "--", RAW_CLIENT, NODE, "until_alone"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as program:
            self.assertEqual(program.stdout.readline(), "asking\n")
            with open(f"/proc/{program.pid}/task/{program.pid}/children", encoding="ascii") as children:
                os.kill(int(children.read().split()[0]), signal.SIGKILL)
            text = program.stdout.read()
            self.assertIn("alone: Function not implemented", text)
            self.assertIn("the supervisor has ended", text)
            self.assertEqual(program.wait(TIMEOUT), 0)

    @staticmethod
    def file(name):
        return f"{os.environ['V3DEMU_SOCKET']}-{name}-{os.getpid()}"


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
