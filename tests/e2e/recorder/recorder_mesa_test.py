#!/usr/bin/env python3
"""libv3drec.so around programs on Mesa's drivers: recordings of Vulkan, of OpenGL ES and of two of vkcube's frames replay to the very
memory; a bit planted in a texture, or in what is recorded of an image, a mode of blending and a rounding are found and named, a list
that is no list and a fragment shader that does not end explained.

usage: recorder_mesa_test.py V3DEMU LIBRARY FOLDER MESA_PREFIX VULKAN_TRIANGLE GL_OFFSCREEN
"""
import os
import re
import shutil
import struct
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "..", "tools", "scripts")]
from gallery_parts.windows import Xvfb  # noqa: E402
from recording import Recorder, flipped, pages, place_of, planted, read  # noqa: E402
from capture_records import AFTER, PAGE_BYTES, records  # noqa: E402

V3DEMU, LIBRARY, FOLDER, MESA, TRIANGLE, OFFSCREEN = sys.argv[1:7]
# Of the texture in tests/e2e/gl/offscreen.c: its first two texels.
TEXELS = bytes((0, 40, 80, 120, 31, 71, 111, 151))
BLENDS = bytes((0, 0, 0, 8))  # of the packet Cfg Bits


class RecorderOfMesaTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(FOLDER, ignore_errors=True)
        cls.recorder = Recorder(V3DEMU, LIBRARY, FOLDER, ["--mesa", MESA])
        done, cls.path = cls.recorder.run("offscreen", [OFFSCREEN, "surfaceless"])
        assert done.returncode == 0, done.stdout + done.stderr
        cls.data = read(cls.path)

    def listing(self, job):
        """What decode says of a job of the recording, by number."""
        done = subprocess.run([V3DEMU, "decode", self.path], capture_output=True, text=True, timeout=300, check=True)
        return re.search(rf"(?ms)^job {job}: .*?(?=^job |\Z)", done.stdout)[0]

    def planted(self, name, job, places):
        return planted(self.recorder, self.data, name, job, places)

    def only_image(self, path):
        """That differs first."""
        status, jobs = self.recorder.compare(path)
        self.assertEqual(status, 1)
        different = [job for job in jobs if not job["equal"]]
        (image,) = different[0]["images"]
        self.assertEqual((image["width"], image["height"]), (120, 90))
        self.assertIn(f"{image['pixels']} pixels differ by up to {image['largest']} of 255, the first at {image['x']}:{image['y']}: ",
                      self.recorder.replay(path, "--compare").stdout)
        return image

    def packet(self, job, name):
        return int(re.search(rf"(?m)^  (0x[0-9a-f]+): {name}$", self.listing(job))[1], 16)

    def check_equal(self, path):
        status, jobs = self.recorder.compare(path)
        self.assertEqual((status, [job for job in jobs if not job["equal"]]), (0, []))
        self.assertTrue(all(job["pages"] > 0 for job in jobs))
        return jobs

    def test_opengl(self):
        self.assertGreaterEqual(len(self.check_equal(self.path)), 3)

    def test_vulkan(self):
        done, path = self.recorder.run("triangle", [TRIANGLE, os.path.join(FOLDER, "live.ppm")], HARNESS_DEVICE="V3D")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("render", {job["kind"] for job in self.check_equal(path)})

    def test_frames_of_vkcube(self):
        server = Xvfb()
        self.addCleanup(server.stop)
        frames = {}
        for chosen in ("3", "3-4"):
            done, path = self.recorder.run("vkcube" + chosen, ["vkcube", "--c", "6"], DISPLAY=server.display, V3DREC_FRAMES=chosen)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.check_equal(path)
            folder = os.path.join(FOLDER, "pictures" + chosen)
            said = self.recorder.replay(path, "--compare", "--images", folder).stdout
            frames[chosen] = len(re.findall(r"500x500|\d{3}x\d{3}$", said, re.M))
        self.assertEqual(frames["3-4"], 2 * frames["3"])

    def test_a_bit_of_a_texture_is_found_by_the_pixels_that_it_changes(self):
        at = next(page + offset for page in pages(self.data)
                  if (offset := self.data[page:page + PAGE_BYTES].find(TEXELS)) >= 0)
        path = flipped(self.data, at + 1, 5, os.path.join(FOLDER, "texture.v3dcap"))  # of green, 32 of 255
        status, jobs = self.recorder.compare(path)
        self.assertEqual(status, 1)
        different = [job for job in jobs if not job["equal"]]
        (image,) = different[0]["images"]
        # One texel of 8x8 on 120x90 pixels.
        self.assertEqual((image["width"], image["height"], image["largest"]), (120, 90, 32))
        self.assertEqual((image["pixels"], image["here"] ^ image["recorded"]), (different[0]["memory"][0]["words"], 0x2000))
        self.assertIn(image["pixels"], range(15 * 11, 15 * 12 + 1))
        self.assertEqual(len(different[0]["memory"]), 1)
        said = self.recorder.replay(path, "--compare").stdout
        self.assertIn(f"{image['pixels']} pixels differ by up to 32 of 255, the first at {image['x']}:{image['y']}: ", said)
        trace = re.search(r"v3demu (replay --trace-qpu=\S+) ", said)[1].split()
        self.assertIn(" fragment ", self.recorder.replay(path, *trace[1:]).stdout)

    def test_a_bit_of_what_is_recorded_of_an_image_is_one_pixel(self):
        jobs = self.recorder.compare(self.path)[1]
        changes = [struct.unpack(f"<{len(payload) // 4}I", payload) for _, kind, payload in records(self.data) if kind == AFTER]
        number = changes[0][-1]
        path = flipped(self.data, pages(self.data)[number - 1] + 2, 7, os.path.join(FOLDER, "image.v3dcap"))
        status, found = self.recorder.compare(path)
        self.assertEqual((status, len(found)), (1, len(jobs)))
        first = found[0]
        self.assertEqual([(image["pixels"], image["largest"]) for image in first["images"]], [(1, 128)])
        self.assertEqual([(place["words"], place["largest"]) for place in first["memory"]], [(1, 1 << 23)])

    def test_a_mode_of_blending_is_found(self):
        # In place of sizes that triangles do not have: all is added to what was there.
        bits = self.packet(1, "Cfg Bits")
        blends = bytes(byte | bit for byte, bit in zip(self.data[place_of(self.data, 1, bits):][:4], BLENDS))
        image = self.only_image(self.planted("blend", 1, {bits: blends, self.packet(1, "Point size"): bytes((84, 0x10, 0x01, 0x11, 1)),
                                                          self.packet(1, "Line width"): bytes((83, 1, 1, 1, 1))}))
        self.assertIn(image["largest"], (127, 128))  # the red that it was cleared to
        self.assertIn(image["pixels"], range(120 * 90 * 45 // 100, 120 * 90 * 51 // 100))  # half of it is the triangle

    def test_a_rounding_is_found(self):
        program = re.search(r"(?s)^vertex program at \S+ uniforms at (0x[0-9a-f]+)\n.*?uniform \+(0x[0-9a-f]+): 0x3f000000 ", self.listing(1), re.M)
        image = self.only_image(self.planted("rounding", 1, {int(program[1], 16) + int(program[2], 16): struct.pack("<f", 0.5 + 2.0 ** -13)}))
        self.assertEqual(image["largest"], 1)
        self.assertIn(image["pixels"], range(10, 120 * 90 // 4))

    def explained(self, path, *said):
        done = self.recorder.replay(path, "--explain-hang")
        self.assertEqual((done.returncode, done.stderr), (1, ""), done.stdout)
        for text in said:
            self.assertIn(text, done.stdout)
        return done.stdout

    def test_a_list_that_is_no_list_is_explained(self):
        at = self.packet(3, "Point size")
        text = self.explained(self.planted("packet", 3, {at: b"\x7e"}), "job 3 of ", ", bin of client 1", f"0x{at:08x}")
        self.assertRegex(text, r"(?m)^ > +job 3: bin")

    def test_a_fragment_shader_that_does_not_end_is_explained(self):
        code = int(re.search(r"(?m)^fragment program at (0x[0-9a-f]+)", self.listing(1))[1], 16)
        chip = "4.2" if self.data[8:12] == b"rpi4" else "7.1"
        loop = subprocess.run([V3DEMU, "asm", "--chip", chip, "--format", "bin", "-"], input=b"loop:\nb loop\nnop\nnop\nnop\n",
                              capture_output=True, timeout=60, check=True).stdout
        text = self.explained(self.planted("loop", 2, {code: loop}), "job 2 of ", ", render of client 1", "fragment thread",
                              f"program 0x{code:08x}", "in a loop that does not end")
        self.assertRegex(text, r"(?m)^ > +[0-3]  0x[0-9a-f]{8}  (b +|nop)")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
