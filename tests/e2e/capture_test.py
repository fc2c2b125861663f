#!/usr/bin/env python3
"""v3demu capture, replay and decode of a Vulkan program: the same picture, the same memory, the expected packets;
damaged captures end with one message.

usage: capture_test.py V3DEMU MESA_PREFIX PROGRAM OUTPUT_FOLDER GEOMETRY [LEVELS]
PROGRAM saves its picture in the PPM that it is given. GEOMETRY is a command whose jobs have geometry programs. LEVELS: as V3DEMU_LEVELS,
"v2;v3;v4" or empty
"""
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "scripts"))
from mesa_ci_parts.pictures import read_picture  # noqa: E402  pylint: disable=wrong-import-position
from capture_records import END, HEADER_BYTES, JOB, MAPS, PAGES, SETS, pages_of, records  # noqa: E402  pylint: disable=wrong-import-position

V3DEMU, MESA, PROGRAM, FOLDER, GEOMETRY = sys.argv[1:6]
LEVELS = [level for level in "".join(sys.argv[6:]).split(";") if level]


def v3demu(*arguments, **variables):
    return subprocess.run([V3DEMU, *arguments], capture_output=True, text=True, timeout=300, env=os.environ | variables)


def engines():
    """Those that this processor has, the interpreter first."""
    for engine in ("off", "avx2", "avx512"):
        if "the processor has not" not in v3demu("replay", "/nowhere", V3DEMU_JIT=engine).stderr:
            yield engine


def read_ppm(path):
    """Width, height, RGB bytes."""
    with open(path, "rb") as file:
        magic, width, height, top, texels = file.read().split(maxsplit=4)
    assert magic == b"P6" and top == b"255", path
    return int(width), int(height), texels


def read_png(path):
    """Width, height, RGB bytes of an 8-bit RGBA picture."""
    picture = read_picture(path)
    assert picture.channels == 4, path  # which no BMP has, and other depths are refused
    return picture.width, picture.height, b"".join(picture.data[at:at + 3] for at in range(0, len(picture.data), 4))


class CaptureTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(FOLDER, ignore_errors=True)
        os.makedirs(FOLDER)
        cls.path = os.path.join(FOLDER, "triangle.v3dcap")
        live = os.path.join(FOLDER, "live.ppm")
        done = v3demu("capture", "-o", cls.path, "--mesa", MESA, "--", PROGRAM, live)
        assert done.returncode == 0, done.stdout + done.stderr
        cls.live = read_ppm(live)
        assert len(set(cls.live[2])) > 100, "the program drew nothing"
        with open(cls.path, "rb") as file:
            cls.data = file.read()

    def replay(self, images, *options):
        """Lines about jobs without the time that they took, and all pictures."""
        folder = os.path.join(FOLDER, images)
        done = v3demu("replay", self.path, "--hash", "--images", folder, *options)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        jobs = [re.sub(r" +[0-9.]+ ms", "", line) for line in done.stdout.splitlines() if line.startswith("job ")]
        return jobs, {name: read_png(os.path.join(folder, name)) for name in sorted(os.listdir(folder))}

    def said(self, *options):
        """What a replay prints of each job."""
        done = v3demu("replay", *options, self.path)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return re.split(r"^(?=job )", done.stdout, flags=re.MULTILINE)[1:]

    def test_replay_gives_the_picture_of_the_live_run(self):
        jobs, pictures = self.replay("first")
        self.assertGreaterEqual(sum(" bin " in job for job in jobs), 1)
        self.assertGreaterEqual(sum(" render " in job for job in jobs), 1)
        for job in jobs:
            self.assertIn(" done ", job)
            self.assertRegex(job, "memory [0-9a-f]{16}")
        self.assertIn(self.live, pictures.values())

    def test_every_level_and_engine_gives_the_same_memory(self):
        expected = self.replay("level")[0]
        for level in LEVELS or [""]:
            if v3demu("--version", V3DEMU_LEVEL=level).returncode != 0:
                continue  # which this processor does not run
            for engine in engines():
                with self.subTest(level=level, engine=engine):
                    done = v3demu("replay", self.path, "--hash", V3DEMU_LEVEL=level, V3DEMU_JIT=engine)
                    self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
                    jobs = [re.sub(r" +[0-9.]+ ms", "", line) for line in done.stdout.splitlines() if line.startswith("job ")]
                    self.assertEqual(jobs, expected)

    def test_traces_show_every_stage_whatever_the_engine(self):
        geometry = os.path.join(FOLDER, "geometry.v3dcap")
        done = v3demu("capture", "-o", geometry, "--mesa", MESA, "--", *GEOMETRY.split())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for path, selection in ((self.path, "stage=coordinate"), (self.path, "stage=vertex"), (self.path, "stage=fragment,batch=0"),
                                (self.path, "stage=fragment,batch=7"), (self.path, "stage=fragment,pixel=50:40"),
                                (geometry, "stage=geometry"), (geometry, "stage=geometry,batch=0")):
            seen = {}
            for engine in engines():
                done = v3demu("replay", f"--trace-qpu={selection}", path, V3DEMU_JIT=engine)
                self.assertEqual(done.returncode, 0, done.stderr)
                seen[engine] = done.stdout.count("\n    state ")
            self.assertGreater(seen["off"], 0, selection)
            self.assertEqual(set(seen.values()), {seen["off"]}, (selection, seen))

    def test_copies_of_images_with_blue_first_have_their_colours(self):
        path, live, folder = (os.path.join(FOLDER, name) for name in ("bgra.v3dcap", "bgra.ppm", "bgra"))
        done = v3demu("capture", "-o", path, "--mesa", MESA, "--", PROGRAM, live, "bgra")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(v3demu("replay", path, "--images", folder).returncode, 0)
        pictures = [read_png(os.path.join(folder, name)) for name in os.listdir(folder)]
        self.assertGreater(len(pictures), 1)  # what is drawn, and the copy that the program reads
        for picture in pictures:
            self.assertEqual(picture, self.live)
        self.assertEqual(read_ppm(live), self.live)

    def test_replays_are_the_same(self):
        first = self.replay("again1")
        self.assertEqual(self.replay("again2"), first)
        self.assertEqual(self.replay("again3", "--repeat", "3"), first)

    def test_timing_changes_nothing_and_predicts_every_job(self):
        jobs, pictures = self.replay("plain")
        timed, timed_pictures = self.replay("timed", "--time")
        self.assertEqual(timed_pictures, pictures)
        self.assertTrue(all(" predicted" in job for job in timed), timed)
        self.assertEqual([re.sub(" +predicted, with its submit", "", job) for job in timed], jobs)
        self.assertEqual(self.replay("timed again", "--time", "--set", "tile_write=1000")[1], pictures)

    def test_counters_of_each_job(self):
        def counters(*options):
            """Of each job, by their names."""
            return [(job.split()[2], {name: int(value) for name, value in re.findall(r"^  counter +\d+  (\S+) +(\d+)$", job, re.M)})
                    for job in self.said("--counters", *options)]

        jobs, timed = counters(), counters("--time")
        self.assertGreater(sum(values.get("PTB-primitives-binned", 0) for kind, values in jobs if kind == "bin"), 0)
        self.assertTrue(any(name.startswith("TLB-") for kind, values in jobs if kind == "render" for name in values), jobs)
        for (kind, values), (_, more) in zip(jobs, timed):
            self.assertLess(len(values), len(more), kind)
            self.assertEqual({name: more[name] for name in values}, values)

    def test_one_run_predicts_for_many_constants_for_another_clock_and_from_any_job_on(self):
        def said(*options):
            return self.said("--time", *options)

        slow = os.path.join(FOLDER, "slow")
        with open(slow, "w", encoding="utf-8") as file:
            file.write("\ntile_write=2000 depth_write=2000\n")
        jobs, slower = said("--variants", slow), set()
        for plain, job in zip(said(), jobs):
            self.assertIn(plain, job)
            times = [int(ns) / 1e6 for ns in re.findall(r"^  line \d+: (\d+) ns$", job, re.MULTILINE)]
            self.assertAlmostEqual(times[0], float(re.search(r"predicted ([\d.]+) ms", plain)[1]), delta=0.001)
            if times[1] > times[0]:
                slower.add(plain.split()[2])
        self.assertEqual(slower, {"render"})
        self.assertTrue(all(" at 500 MHz" in job for job in said("--clock", "500")))
        last = said("--from", str(len(jobs)))
        self.assertEqual([" predicted " in job for job in last], [False] * (len(jobs) - 1) + [True])
        with open(slow, "w", encoding="utf-8") as file:
            file.write("tile_write=x\n")
        self.assertIn("slow, line 1: tile_write=x: ", v3demu("replay", "--time", "--variants", slow, self.path).stderr)

    def test_decode_names_packets_and_instructions(self):
        done = v3demu("decode", self.path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for text in ("bin, client 1", "render, client 1", "Tile Binning Mode Cfg", "GL Shader State", "Vertex Array Prims",
                     "Tile Rendering Mode Cfg (Common)", "Store Tile Buffer General", "End of rendering",
                     "fragment program at 0x", "; thrsw"):
            self.assertIn(text, done.stdout)

    def test_frames_are_captured_alone(self):
        """The program draws one frame: all of its jobs, which replay, or none."""
        def jobs(frames):
            path = os.path.join(FOLDER, "frames.v3dcap")
            done = v3demu("capture", "--frames", frames, "-o", path, "--mesa", MESA, "--", PROGRAM, os.path.join(FOLDER, "x.ppm"))
            if done.returncode != 0:
                return done.returncode, done.stderr
            replayed = v3demu("replay", path)
            self.assertEqual((replayed.returncode, replayed.stderr), (0, ""))
            return sorted(re.findall(r"^job \d+: (\w+) .* done", replayed.stdout, re.M))
        every = sorted(re.findall(r"^job \d+: (\w+) .* done", v3demu("replay", self.path).stdout, re.M))
        self.assertIn("render", every)
        self.assertEqual(jobs("1-2"), every)
        status, said = jobs("2-3")
        self.assertEqual(status, 1)
        self.assertIn("no job was captured", said)
        for wrong in ("0", "3-2", "x"):
            done = v3demu("capture", "--frames", wrong, "--", "true")
            self.assertEqual(done.returncode, 2)
            self.assertIn("no frames A-B, counted from 1: " + wrong, done.stderr)

    def test_decode_prints_one_job(self):
        jobs = re.split(r"^(?=job \d+: )", v3demu("decode", self.path).stdout, flags=re.M)[1:]
        self.assertGreaterEqual(len(jobs), 2)
        for number, text in enumerate(jobs, 1):
            self.assertEqual(v3demu("decode", "--job", str(number), self.path).stdout, text)
        done = v3demu("decode", "--job", "999", self.path)
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (1, "", f"v3demu decode: {self.path}: no job 999; it holds {len(jobs)}\n"))

    def test_decode_shows_uniforms_where_they_are_read(self):
        listing = v3demu("decode", self.path).stdout
        parts = r"^(\w+) program at 0x[0-9a-f]{8}(, uniforms at 0x[0-9a-f]{8})?\n((?:  .*\n)+)"
        stages = re.findall(parts, listing, re.MULTILINE)
        self.assertGreaterEqual({stage for stage, _, _ in stages}, {"coordinate", "vertex", "fragment"})
        self.assertEqual({stage for stage, uniforms, _ in stages if uniforms}, {"coordinate", "vertex"})
        for stage, uniforms, program in stages:
            offsets = [int(offset, 16) for offset in re.findall(r"uniform \+0x([0-9a-f]+): 0x[0-9a-f]{8}", program)]
            self.assertEqual(bool(offsets), bool(uniforms), stage)
            self.assertEqual(offsets, list(range(0, 4 * len(offsets), 4)), stage)  # straight-line programs
            self.assertNotIn("invalid instruction", program)

    def check_damaged(self, data, message):
        path = os.path.join(FOLDER, "damaged.v3dcap")
        with open(path, "wb") as file:
            file.write(data)
        for command in ("replay", "decode"):
            done = v3demu(command, path)
            self.assertEqual(done.returncode, 1, (command, message, done.stdout))
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertTrue(done.stderr.startswith(f"v3demu {command}: "), done.stderr)
            self.assertIn(message, done.stderr)

    def test_the_pages_that_are_set_are_those_that_there_are(self):
        found = list(records(self.data))
        pages = sum(len(pages_of(kind, payload)) for _, kind, payload in found)
        named = [struct.unpack(f"<{len(payload) // 4}I", payload)[2::2] for _, kind, payload in found if kind == SETS]
        self.assertGreater(pages, 0)
        self.assertEqual(max(number for numbers in named for number in numbers), pages)

    def test_truncated_captures(self):
        starts = [at for at, _, _ in records(self.data)]
        self.check_damaged(self.data[:HEADER_BYTES - 1], "no capture")
        for at in (starts[0], starts[len(starts) // 2], starts[-1]):
            for rest in (1, 7, 8, 9):
                self.check_damaged(self.data[:at + rest], "ends inside a record")
        self.check_damaged(self.data[:-1], "ends inside a record")

    def test_captures_that_are_cut_between_records(self):
        jobs = sum(kind == JOB for _, kind, _ in records(self.data))
        starts = [at for at, _, _ in records(self.data)]
        for at in (starts[0], starts[len(starts) // 2], starts[-1]):
            self.check_damaged(self.data[:at], "the capture is cut: it has no end record")
        replayed = v3demu("replay", os.path.join(FOLDER, "damaged.v3dcap"))  # without the end record alone
        self.assertEqual(len(re.findall("^job ", replayed.stdout, re.M)), jobs)
        self.assertIn(f"{jobs} jobs are whole", replayed.stderr)

    def test_captures_of_the_format_without_an_end_record(self):
        end = [at for at, kind, _ in records(self.data) if kind == END]
        path = os.path.join(FOLDER, "old.v3dcap")
        with open(path, "wb") as file:
            file.write(self.data[:7] + bytes([1]) + self.data[8:end[0]])
        for command in ("replay", "decode"):
            done = v3demu(command, path)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("format 1 has no end record", done.stderr)

    def capture_fails(self, path, *message):
        picture = os.path.join(FOLDER, self.id() + ".ppm")
        done = v3demu("capture", "-o", path, "--mesa", MESA, "--", PROGRAM, picture)
        self.assertEqual(done.returncode, 1, done.stderr)
        lines = [line for line in done.stderr.splitlines() if line.startswith("v3demu capture: ")]
        self.assertEqual(len(lines), 1, done.stderr)
        for text in message:
            self.assertIn(text, lines[0])
        return picture

    def test_what_ends_the_command_ends_the_program_and_the_capture_is_whole(self):
        for number, whom in ((signal.SIGINT, os.killpg), (signal.SIGTERM, os.kill)):  # as a terminal does, and as a supervisor
            path, live, drawn = (os.path.join(FOLDER, f"ended{int(number)}.{name}") for name in ("v3dcap", "ppm", "drawn"))
            program = f"{PROGRAM} {live} && touch {drawn} && exec sleep 100"
            with subprocess.Popen([V3DEMU, "capture", "-o", path, "--mesa", MESA, "--", "sh", "-c", program], stderr=subprocess.PIPE,
                                  text=True, start_new_session=True) as command:
                while not os.path.exists(drawn):
                    self.assertIsNone(command.poll())
                    time.sleep(0.05)
                whom(command.pid, number)
                _, said = command.communicate(timeout=60)
            self.assertEqual(command.returncode, 128 + number, said)
            self.assertRegex(said, r"v3demu capture: .*\.v3dcap, \d+ jobs, ")
            replayed = v3demu("replay", "--hash", path)
            self.assertEqual((replayed.returncode, replayed.stderr), (0, ""), replayed.stdout)

    def test_nothing_runs_when_the_capture_cannot_be_written(self):
        self.assertFalse(os.path.exists(self.capture_fails(FOLDER + "/nowhere/x", "nowhere/x: No such file")))

    def test_only_files_are_written_over(self):
        pipe, link = os.path.join(FOLDER, "pipe"), os.path.join(FOLDER, "link")
        os.mkfifo(pipe)
        self.assertFalse(os.path.exists(self.capture_fails(pipe, "pipe: this is no regular file")))
        self.assertTrue(os.path.exists(pipe))
        os.symlink("behind", link)
        with open(os.path.join(FOLDER, "behind"), "w", encoding="utf-8"):
            pass
        done = v3demu("capture", "-o", link, "--mesa", MESA, "--", PROGRAM, os.path.join(FOLDER, "link.ppm"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(os.path.islink(link))
        self.assertEqual(v3demu("replay", os.path.join(FOLDER, "behind")).returncode, 0)

    def test_a_disk_that_fills_up(self):
        disk = os.path.join(FOLDER, "disk")
        os.makedirs(disk)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], capture_output=True,
                          check=False).returncode != 0:
            self.skipTest("no right to mount")
        try:
            path = os.path.join(disk, "full.v3dcap")
            picture = self.capture_fails(path, path, "the capture is cut", "v3demud.log")
            self.assertEqual(read_ppm(picture), self.live)  # jobs went on
            replayed = v3demu("replay", path)
            self.assertEqual(replayed.returncode, 1)
            self.assertIn("the capture is cut", replayed.stderr)
        finally:
            subprocess.run(["umount", disk], check=True)

    def test_a_program_without_gpu(self):
        path = os.path.join(FOLDER, "none.v3dcap")
        done = v3demu("capture", "-o", path, "--mesa", MESA, "--", "true")
        self.assertEqual(done.returncode, 1)
        self.assertIn("did not use the GPU", done.stderr)
        self.assertFalse(os.path.exists(path))

    def test_damaged_captures(self):
        def changed(at, new):
            return self.data[:at] + new + self.data[at + len(new):]

        first = {}
        for at, kind, _ in records(self.data):
            first.setdefault(kind, at)
        word = lambda value: struct.pack("<I", value)
        self.check_damaged(b"", "no capture")
        self.check_damaged(changed(0, b"X"), "no capture")
        self.check_damaged(changed(8, b"nonsense\0"), 'no device profile "nonsense"')
        self.check_damaged(changed(first[PAGES], word(99)), "unknown record type 99")
        self.check_damaged(changed(first[PAGES] + 4, word(0xfffffff0)), "longer than any")
        self.check_damaged(changed(first[PAGES] + 4, word(4095)), "not a page")
        self.check_damaged(changed(first[MAPS] + 12, word(0x123)), "whole pages")
        self.check_damaged(changed(first[MAPS] + 16, word(0xffffffff)), "leaves the address space")
        self.check_damaged(changed(first[SETS] + 12, word(0xffffffff)), "cannot be set")
        self.check_damaged(changed(first[SETS] + 16, word(0x7fffffff)), "cannot be set")
        self.check_damaged(changed(first[JOB] + 12, word(17)), "unknown kind")
        missing = v3demu("replay", os.path.join(FOLDER, "nowhere"))
        self.assertEqual(missing.returncode, 1)
        self.assertIn("cannot read", missing.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
