#!/usr/bin/env python3
"""v3demu profile of programs and of their captures: text, page, JSON and trace; the same bytes every time.

usage: profile_test.py V3DEMU MESA_PREFIX FOLDER SAXPY [TRIANGLE]     # without TRIANGLE nothing needs Mesa
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

V3DEMU, MESA, FOLDER, SAXPY = sys.argv[1:5]
TRIANGLE = sys.argv[5] if len(sys.argv) > 5 else ""
DEVICE = os.environ.get("V3DEMU_DEVICE") or "rpi5"
# The page is made by the build where npm and its registry are.
HAS_PAGE = os.path.exists(os.path.join(os.path.dirname(os.path.dirname(V3DEMU)), "share", "v3demu", "inspect", "export.html"))
FORMS = ("profile.json", "trace.json", *(("profile.html",) if HAS_PAGE else ()))
NO_PAGE = "the build made no page, for want of npm or its registry"


def run(*arguments, prefix=()):
    return subprocess.run([*prefix, V3DEMU, "profile", *arguments], capture_output=True, text=True, timeout=600, check=False)


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


class ProfileTest(unittest.TestCase):
    mesa, program = "system", [SAXPY, "/dev/dri/renderD128"]

    @classmethod
    def setUpClass(cls):
        cls.folder = os.path.join(FOLDER, cls.__name__)
        shutil.rmtree(cls.folder, ignore_errors=True)
        done = run("-o", cls.folder, "--mesa", cls.mesa, "--", *cls.program)
        assert done.returncode == 0, done.stdout + done.stderr
        cls.text = done.stdout[done.stdout.index(DEVICE + ", "):]  # after what the program says
        cls.capture = os.path.join(cls.folder, "capture.v3dcap")
        cls.profile = json.loads(read(cls.folder, "profile.json"))

    def test_the_jobs(self):
        (job,) = self.profile["jobs"]
        self.assertEqual((job["kind"], job["end"], job["frame"]), ("compute", "done", 0))
        self.assertGreater(job["clocks"], 1000)
        self.assertEqual(job["end_ns"] - job["begin_ns"], self.profile["end_ns"])
        (shader,) = self.profile["shaders"]
        self.assertEqual(sum(i["issued"] for i in shader["at"]), job["instructions"])
        self.assertEqual([sum(i["stalls"][n] for i in shader["at"]) for n in range(len(job["stalls"]))], job["stalls"])

    def test_the_text(self):
        self.assertIn(f"predicted: {sum('clocks' in job for job in self.profile['jobs'])}", self.text)
        for shader in self.profile["shaders"]:
            self.assertRegex(shader["name"], r"^\w+ 0x[0-9a-f]{8}( of client \d+)?( \(\d+\))?$")
        if self.profile["shaders"]:
            hottest = max(self.profile["shaders"], key=lambda s: 4 * s["instructions"] + sum(s["stalls"]))
            self.assertIn(hottest["name"], self.text)

    @unittest.skipUnless(HAS_PAGE, NO_PAGE)
    def test_the_page(self):
        page = read(self.folder, "profile.html")
        self.assertNotRegex(page, r"<link rel=\"?stylesheet|<script src|@import|\burl\(")
        self.assertIn("Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-", page)
        data = re.findall(r'<script type="application/json" id="profile">(.*?)</script>', page, re.S)
        self.assertEqual([json.loads(block) for block in data], [self.profile])

    def test_the_trace(self):
        events = json.loads(read(self.folder, "trace.json"))["traceEvents"]
        jobs = [event for event in events if event.get("cat") == "job"]
        predicted = [job for job in self.profile["jobs"] if "clocks" in job]
        self.assertEqual([event["name"] for event in jobs], [f"{job['kind']} {job['number']}" for job in predicted])
        for event, job in zip(jobs, predicted):
            self.assertAlmostEqual(event["ts"] * 1000, job["begin_ns"])
            self.assertAlmostEqual(event["dur"] * 1000, job["end_ns"] - job["begin_ns"])

    def test_the_same_bytes_every_time(self):
        again = os.path.join(self.folder, "again")
        for prefix in ((), ("taskset", "-c", str(min(os.sched_getaffinity(0))))):
            done = run(self.capture, "-o", again, prefix=prefix)
            self.assertEqual((done.returncode, done.stdout), (0, self.text), done.stderr)
            for form in FORMS:
                self.assertEqual(read(again, form), read(self.folder, form), form)


class HostTest(unittest.TestCase):
    """profile --host."""
    mesa, program, jobs = "system", [SAXPY, "/dev/dri/renderD128"], "compute"
    blocks, stage = ("compute programs",), "compute"

    def text_of(self, *arguments, **environment):
        done = subprocess.run([V3DEMU, "profile", "--host", *arguments, "--mesa", self.mesa, "--", *self.program], capture_output=True,
                              text=True, timeout=600, check=False, env={**os.environ, **environment})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_blocks_add_up(self):
        text = self.text_of()
        self.assertRegex(text, rf"jobs:.* \d+ {self.jobs} in [\d.]+ ms")
        threads = float(re.search(r"threads: ([\d.]+) ms in all", text)[1])
        table = dict((name, float(ms)) for name, ms in re.findall(r"^  (\D+?) +([\d.]+) +[\d.]+$", text, re.M))
        self.assertAlmostEqual(sum(table.values()), threads, delta=0.1 + 0.01 * len(table))
        for block in self.blocks:
            self.assertIn(block, table)
        # Threads work for jobs alone, and all of them together no longer than all jobs on as many processors.
        jobs = sum(float(ms) for ms in re.findall(r" in ([\d.]+) ms[,\n]", text))
        self.assertGreaterEqual(threads, 0.9 * jobs - 0.2)
        self.assertLessEqual(threads, 1.1 * jobs * os.cpu_count() + 0.2)

    def test_names_what_was_interpreted(self):
        text = self.text_of(V3DEMU_JIT="off")
        interpreted = re.search(r"\ninterpreted\n((?:  .*\n)+)", text)[1]
        for of, all_of in re.findall(rf"  {self.stage} 0x[0-9a-f]{{8}}: (\d+) of (\d+) instructions", interpreted):
            self.assertEqual(of, all_of)
        self.assertRegex(interpreted, rf"  {self.stage} 0x[0-9a-f]{{8}}: ")
        self.assertIn("QPU programs are interpreted", text)

    def test_names_the_perf_map(self):
        name = re.search(r"perf map: (/tmp/perf-\d+\.map)\n", self.text_of("--perf-map", V3DEMU_JIT=""))[1]
        self.assertTrue(os.path.exists(name))
        os.remove(name)


class UsageTest(unittest.TestCase):
    def fails(self, status, message, *arguments):
        done = run(*arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn(message, done.stderr)

    def test_usage_errors(self):
        self.fails(2, "either a capture or, after --, a program")
        self.fails(2, "either a capture or, after --, a program", "x.v3dcap", "--", "true")
        self.fails(2, "the board of a capture", "x.v3dcap", "--device", "rpi4")
        self.fails(2, "weather not in", "x.v3dcap", "--frames-by", "weather")
        self.fails(1, "nowhere.v3dcap", "nowhere.v3dcap")
        self.fails(1, "nowhere.v3dcap", "--host", "nowhere.v3dcap")
        self.fails(2, "is told as text", "x.v3dcap", "--host", "--html", "x.html")
        self.fails(2, "there are fragments, programs, lookups, stores", "x.v3dcap", "--host", "--leave-out", "weather")
        self.fails(2, "--host", "x.v3dcap", "--leave-out", "stores")
        self.fails(2, "is for captures", "--host", "--repeat", "2", "--", "true")

    @unittest.skipIf(HAS_PAGE, "the build made a page")
    def test_says_that_there_is_no_page(self):
        self.fails(1, "no page: no ", "x.v3dcap", "--html", "x.html")

    def test_ends_as_the_program_does(self):
        self.fails(7, "did not use the GPU", "--mesa", "system", "--", "sh", "-c", "exit 7")
        page = os.path.join(FOLDER, "seven.json")
        done = run("--json", page, "--mesa", "system", "--", "sh", "-c", f"{SAXPY} /dev/dri/renderD128; exit 7")
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertTrue(os.path.exists(page))

    def test_profiles_what_was_interrupted(self):
        folder = os.path.join(FOLDER, "interrupted")
        shutil.rmtree(folder, ignore_errors=True)
        drawn = os.path.join(FOLDER, "drawn")
        if os.path.exists(drawn):
            os.remove(drawn)
        program = f"{SAXPY} /dev/dri/renderD128 && touch {drawn} && exec sleep 100"
        with subprocess.Popen([V3DEMU, "profile", "-o", folder, "--mesa", "system", "--", "sh", "-c", program], stdout=subprocess.PIPE,
                              text=True, start_new_session=True) as command:
            while not os.path.exists(drawn):
                self.assertIsNone(command.poll())
                time.sleep(0.05)
            os.killpg(command.pid, signal.SIGINT)
            out, _ = command.communicate(timeout=60)
        self.assertEqual(command.returncode, 128 + signal.SIGINT)
        self.assertIn("predicted: 1", out)
        for form in FORMS:
            self.assertTrue(os.path.getsize(os.path.join(folder, form)))

    def test_what_cannot_be_written(self):
        self.fails(1, "cannot write /nowhere/x.json", "--json", "/nowhere/x.json", "--mesa", "system", "--", SAXPY,
                   "/dev/dri/renderD128")


@unittest.skipUnless(TRIANGLE, "without Mesa")
class GraphicsTest(ProfileTest):
    mesa, program = MESA, [TRIANGLE, "/dev/null"]

    def test_the_jobs(self):
        kinds = [job["kind"] for job in self.profile["jobs"]]
        self.assertIn("bin", kinds)
        self.assertIn("render", kinds)
        for job in self.profile["jobs"]:
            self.assertEqual(job["end"], "done")
            self.assertIn("clocks", job)
        self.assertEqual(len(self.profile["frames"]), len({job["frame"] for job in self.profile["jobs"]} - {0}))
        drawn = [job for job in self.profile["jobs"] if job["draws"]]
        self.assertEqual({job["kind"] for job in drawn}, {"bin", "render"})
        self.assertGreater(sum(draw["quads"] for job in drawn for draw in job["draws"]), 0)
        self.assertGreaterEqual({shader["stage"] for shader in self.profile["shaders"]}, {"coordinate", "vertex", "fragment"})


    def test_a_part_of_the_jobs_gives_about_the_same_times(self):
        def milliseconds(*options, prefix=()):
            done = subprocess.run([*prefix, V3DEMU, "replay", "--time", *options, self.capture], capture_output=True, text=True, timeout=600,
                                  check=True)
            return [float(ms) for ms in re.findall(r"^job \d+: .* predicted ([\d.]+) ms", done.stdout, re.M)], done.stdout

        whole, _ = milliseconds()
        part, text = milliseconds("--sample")
        self.assertEqual(len(part), len(whole))
        self.assertLess(abs(sum(part) - sum(whole)), 0.1 * sum(whole))
        self.assertEqual(milliseconds("--sample", prefix=("taskset", "-c", str(min(os.sched_getaffinity(0)))))[1], text)


@unittest.skipUnless(TRIANGLE, "without Mesa")
class HostGraphicsTest(HostTest):
    mesa, program, jobs = MESA, [TRIANGLE, "/dev/null"], "render"
    blocks, stage = ("fragment programs", "set-up and coverage", "tile stores"), "fragment"

    def test_leaves_stages_out(self):
        text = self.text_of("--leave-out", "fragments,stores")
        self.assertIn("left out: fragments,stores\n", text)
        for block in self.blocks:
            self.assertNotIn(f"  {block} ", text)

    def test_of_a_capture(self):
        capture = os.path.join(FOLDER, "host.v3dcap")
        done = subprocess.run([V3DEMU, "capture", "-o", capture, "--mesa", self.mesa, "--", *self.program], capture_output=True,
                              text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        once, twice = (run("--host", "--repeat", count, capture).stdout for count in ("1", "2"))
        for block in self.blocks:
            self.assertIn(f"  {block} ", once)
        renders = [int(re.search(r" (\d+) render in", text)[1]) for text in (once, twice)]
        self.assertEqual(renders[1], 2 * renders[0])


@unittest.skipUnless(TRIANGLE and shutil.which("vkcube") and shutil.which("Xvfb"), "without Mesa, vkcube or Xvfb")
class WindowTest(GraphicsTest):
    FRAMES = 10
    mesa, program = MESA, ["vkcube", "--c", str(FRAMES)]

    @classmethod
    def setUpClass(cls):
        ours, theirs = os.pipe()
        cls.server = subprocess.Popen(["Xvfb", "-displayfd", str(theirs), "-noreset", "-screen", "0", "800x600x24"], pass_fds=[theirs],
                                      stderr=subprocess.DEVNULL)
        cls.addClassCleanup(cls.server.wait)
        cls.addClassCleanup(cls.server.terminate)
        os.close(theirs)
        with os.fdopen(ours) as number:
            os.environ["DISPLAY"] = ":" + number.readline().strip()
        super().setUpClass()

    def test_not_all_tiles_are_recorded(self):
        done = subprocess.run([V3DEMU, "replay", "--time", "--sample", self.capture], capture_output=True, text=True, timeout=600, check=True)
        self.assertRegex(done.stdout, r"sampled: \d+ of \d+ tiles were recorded")

    def test_the_frames(self):
        self.assertEqual(len(self.profile["frames"]), self.FRAMES)


if __name__ == "__main__":
    os.makedirs(FOLDER, exist_ok=True)
    unittest.main(argv=sys.argv[:1])
