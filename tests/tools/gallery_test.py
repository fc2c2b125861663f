#!/usr/bin/env python3
"""tools/gallery: what passes, what fails, and that it says so. usage: gallery_test.py SOURCE_FOLDER"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = sys.argv.pop(1)
sys.path.insert(0, os.path.join(ROOT, "tools", "scripts"))
from gallery_parts import comparison, image  # pylint: disable=wrong-import-position


def chequered(width=64, height=48, shift=0, step=0):
    """A pattern, `shift` pixels to the left, `step` brighter."""
    texels = bytearray()
    for y in range(height):
        for x in range(shift, width + shift):
            texels += bytes((200 + step if (x // 8 + y // 8) % 2 else 40 + step, 3 * x % 200 + step, 4 * y % 200 + step))
    return image.Image(width, height, bytes(texels))


class Comparison(unittest.TestCase):
    limits = comparison.Limits()

    def problem(self, picture, reference=chequered()):
        return comparison.problem(picture, reference, self.limits)

    def test_the_same_picture_passes(self):
        self.assertEqual(self.problem(chequered()), "")
        self.assertEqual(comparison.difference(chequered(), chequered()), comparison.Difference(0, 0, 0))

    def test_a_blank_picture_fails_on_either_side(self):
        blank = image.Image(64, 48, bytes((10, 20, 30)) * 64 * 48)
        self.assertIn("the picture is blank", self.problem(blank))
        self.assertIn("the reference is blank", self.problem(blank, blank))
        self.assertEqual(comparison.problem(blank, blank, comparison.Limits(colors=1)), "")

    def test_a_shifted_picture_fails(self):
        self.assertIn("off by more", self.problem(chequered(shift=1)))

    def test_another_size_fails(self):
        self.assertIn("sizes differ", self.problem(chequered(width=63)))

    def test_every_pixel_a_step_brighter_fails_by_the_mean(self):
        self.assertIn("mean difference is 1.0", self.problem(chequered(step=1)))

    def test_pixels_are_counted_once(self):
        texels = bytearray(chequered().texels)
        texels[30:36] = bytes(255 - value for value in texels[30:36])  # two pixels, all channels
        texels[60] += comparison.OFF_BY      # not more
        texels[63] += comparison.OFF_BY + 1  # more
        found = comparison.difference(image.Image(64, 48, bytes(texels)), chequered())
        self.assertAlmostEqual(found.share, 100 * 3 / (64 * 48))

    def test_limits_hold_exactly(self):
        texels = bytearray(chequered().texels)
        texels[0] ^= 0x80
        share = 100 / (64 * 48)
        picture = image.Image(64, 48, bytes(texels))
        self.assertEqual(comparison.problem(picture, chequered(), comparison.Limits(share=share)), "")
        self.assertNotEqual(comparison.problem(picture, chequered(), comparison.Limits(share=share * 0.99)), "")

    def test_broken_files_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.ppm")
            for content in (b"", b"P6\n2 2\n255\n" + bytes(11), b"P6\n2 2\n255\n" + bytes(13), b"P5\n2 2\n255\n" + bytes(4)):
                with open(path, "wb") as file:
                    file.write(content)
                self.assertRaises(ValueError, image.read_ppm, path)
            with open(path, "wb") as file:
                file.write(b"P6\n    2     1\n255\n" + b"\n \t\r\n\n")  # texels that look like white space
            self.assertEqual(image.read_ppm(path).texels, b"\n \t\r\n\n")


class Gallery(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        os.mkdir(os.path.join(self.folder, "bin"))
        fake = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_samples.py")
        for name in ("v3demu", "vulkan_samples", "gl_samples"):
            os.symlink(fake, os.path.join(self.folder, "bin", name))

    def tearDown(self):
        shutil.rmtree(self.folder)

    def gallery(self, *arguments, wrong=""):
        command = [sys.executable, os.path.join(ROOT, "tools", "gallery"), "--build", self.folder, "--mesa", "/nowhere",
                   "--output", os.path.join(self.folder, "out"), "--size", "64x48", *arguments]
        return subprocess.run(command, env=dict(os.environ, FAKE_PICTURES=wrong), capture_output=True, text=True)

    def test_good_pictures_make_a_page(self):
        done = self.gallery("--only", "vulkan-[sm]*", "gl-msaa", wrong="shadow=rounded")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("3 pictures; beyond their limits or missing: none", done.stdout)
        made = os.listdir(os.path.join(self.folder, "out"))
        for name in ("index.html", "gl-msaa.png", "gl-msaa-reference.png", "gl-msaa-difference.png"):
            self.assertIn(name, made)
        self.assertFalse([name for name in made if name.endswith(".ppm")])
        with open(os.path.join(self.folder, "out", "gl-msaa.png"), "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")

    def test_wrong_pictures_are_named(self):
        for wrong in ({"shadow": ("blank", "is blank"), "normal_map": ("shifted", "off by more than"),
                       "instancing": ("cut", "bytes are not a picture"), "msaa": ("none", "left no picture")},
                      {"shadow": ("fails", "it failed"), "normal_map": ("small", "sizes differ"),
                       "instancing": ("elsewhere", "another device")}):
            with self.subTest(wrong):
                done = self.gallery("--only", "vulkan-*", "gl-normal_map_trilinear",
                                    wrong=",".join(f"{scene}={kind}" for scene, (kind, _) in wrong.items()))
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                self.assertIn("beyond their limits or missing: " + ", ".join("vulkan-" + scene for scene in wrong) + "\n",
                              done.stdout)
                for _, said in wrong.values():
                    self.assertIn(said, done.stdout)

    def test_names_without_pictures(self):
        self.assertEqual(self.gallery("--only", "no-such-*").returncode, 2)
        self.assertEqual(self.gallery("--size", "0x5").returncode, 2)
        os.remove(os.path.join(self.folder, "bin", "v3demu"))
        self.assertEqual(self.gallery("--only", "gl-msaa").returncode, 2)


if __name__ == "__main__":
    unittest.main()
