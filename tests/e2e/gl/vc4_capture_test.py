#!/usr/bin/env python3
"""v3demu capture, replay and decode of an OpenGL ES program on a board with VideoCore IV.

usage: vc4_capture_test.py V3DEMU MESA_PREFIX PROGRAM OUTPUT_FOLDER
PROGRAM is gl_offscreen: a triangle and a textured quad on red, of 120 by 90 pixels.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tools", "scripts"))
from mesa_ci_parts.pictures import read_picture  # noqa: E402  pylint: disable=wrong-import-position

V3DEMU, MESA, PROGRAM, FOLDER = sys.argv[1:5]
DARK_RED, DARK_BLUE = {(127, 0, 0), (128, 0, 0)}, {(0, 0, 127), (0, 0, 128)}


def v3demu(*arguments):
    return subprocess.run([V3DEMU, *arguments], capture_output=True, text=True, timeout=300, check=False)


def colours(path):
    """Width, height, and the colours of the pixels of an RGBA picture."""
    picture = read_picture(path)
    assert picture.channels == 4, path
    return picture.width, picture.height, {tuple(picture.data[at:at + 3]) for at in range(0, len(picture.data), 4)}


class Vc4CaptureTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(FOLDER, ignore_errors=True)
        os.makedirs(FOLDER)
        cls.path = os.path.join(FOLDER, "offscreen.v3dcap")
        done = v3demu("capture", "-o", cls.path, "--mesa", MESA, "--", PROGRAM, "surfaceless")
        assert done.returncode == 0, done.stdout + done.stderr

    def pictures(self, folder, *options):
        folder = os.path.join(FOLDER, folder)
        done = v3demu("replay", self.path, "--images", folder, *options)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return [colours(path) for path in sorted(glob.glob(os.path.join(folder, "*.png")))]

    def test_replays_are_the_same(self):
        first, second = (v3demu("replay", "--hash", self.path) for _ in range(2))
        jobs = [re.sub(r" +[0-9.]+ ms", "", line) for line in first.stdout.splitlines()]
        self.assertEqual((first.returncode, first.stderr), (0, ""), first.stdout)
        self.assertEqual([re.sub(r" +[0-9.]+ ms", "", line) for line in second.stdout.splitlines()], jobs)
        for kind in ("bin", "render"):
            self.assertGreaterEqual(sum(f" {kind} " in job for job in jobs), 3, jobs)
        for job in jobs:
            self.assertRegex(job, "done .*memory [0-9a-f]{16}$")

    def test_pictures_in_both_orders_of_bytes(self):
        red, blue = self.pictures("red", "--red-first"), self.pictures("blue")
        self.assertEqual(len(red), len(blue))
        whole = [picture for picture in red if picture[:2] == (120, 90)]
        self.assertTrue(any(DARK_RED & picture[2] for picture in whole), red)
        self.assertFalse(any(DARK_BLUE & picture[2] and not DARK_RED & picture[2] for picture in whole))
        self.assertTrue(any(DARK_BLUE & picture[2] for picture in blue))

    def test_decode_names_packets_surfaces_and_instructions(self):
        done = v3demu("decode", self.path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for text in ("bin, client 1", "render, client 1", "Tile Binning Mode Configuration", "GL Shader State", "Shader Record",
                     "Attribute Record", "Vertex Array Primitives", "frame of 120 x 90 pixels, 1 sample", "store color_write at 0x",
                     "draw what the list at 0x", "vertex program at 0x", "coordinate program at 0x", "fragment program at 0x",
                     "tlb_color_all", "uniform +0x00: 0x", "sig_end"):
            self.assertIn(text, done.stdout)
        self.assertNotIn("unknown packet", done.stdout)

    def test_traces_show_every_stage(self):
        for selection in ("stage=coordinate", "stage=vertex", "stage=fragment,batch=3", "stage=fragment,pixel=20:15,lanes=0-3"):
            done = v3demu("replay", f"--trace-qpu={selection}", self.path)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("\n    state ", done.stdout, selection)
            self.assertIn("the thread ends", done.stdout, selection)

    def test_times_of_each_job(self):
        done = v3demu("replay", "--time", "--counters", self.path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"job 1: bin .*predicted 0\.\d{3} ms")
        self.assertRegex(done.stdout, r"job 2: render .*predicted 0\.\d{3} ms")
        self.assertIn(" clocks at 400 MHz", done.stdout)
        self.assertRegex(done.stdout, r"fragment program at 0x[0-9a-f]+: [1-9]\d* batches")
        for name in ("QPU-total-idle-clk-cycles", "QPU-total-instr-cache-miss", "L2C-total-cache-miss"):
            self.assertRegex(done.stdout, rf"\n  counter +\d+  {name} +[1-9]")
        self.assertEqual(v3demu("replay", "--time", "--counters", self.path).stdout, done.stdout)
        sampled = v3demu("replay", "--time", "--sample", self.path)
        self.assertEqual((sampled.returncode, sampled.stderr), (0, ""))

    def test_counters_of_each_job(self):
        said = v3demu("replay", "--counters", self.path).stdout
        for name in ("FEP-valid-primitives-rendered-pixels", "TLB-quads-written-to-color-buffer",
                     "QPU-total-clk-cycles-fragment-shading"):
            self.assertRegex(said, rf"\n  counter +\d+  {name} +[1-9]")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
