#!/usr/bin/env python3
"""libv3drec.so around programs on Mesa's vc4, whose submissions name no addresses: recordings of OpenGL ES and of two of kmscube's frames
replay to the very memory; a bit planted in a texture or in what is recorded of an image, another clear colour and another uniform are
found and named, what the kernel would refuse is refused, a shader that hangs is explained, and where textures are masked there are none.

usage: recorder_vc4_test.py V3DEMU LIBRARY FOLDER MESA_PREFIX GL_OFFSCREEN
"""
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from recording import Recorder, flipped, pages, planted, read, read_packed, replaced  # noqa: E402
from capture_records import AFTER, PAGE_BYTES, SUBMISSION, records  # noqa: E402

V3DEMU, LIBRARY, FOLDER, MESA, OFFSCREEN = sys.argv[1:6]
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Of the texture in tests/e2e/gl/offscreen.c: its first two texels.
TEXELS = bytes((0, 40, 80, 120, 31, 71, 111, 151))
# In the record of a submission, after its client's number: places in SUBMIT_CL, and what follows it.
LIST_BYTES, RECORD_BYTES, UNIFORM_BYTES, NUM_BOS, COLOR_WRITE_OFFSET = 4 + 32, 4 + 36, 4 + 44, 4 + 48, 4 + 76
CLEAR_COLOR, FLAGS, AFTER_ARGUMENTS = 4 + 132, 4 + 148, 4 + 176
# Buffer objects come and go until their addresses reach the end: the last but one then gets a place in front, beyond which the last
# one has its own. The smallest ones keep those in front of them too small for it.
PLACES = f'''
import sys
sys.path[:0] = [{os.path.join(TESTS, "isolation")!r}, {os.path.join(TESTS, "qpu_programs")!r}]
from hostile import vc4_drm
device = vc4_drm.Device()
create = lambda size: device.create(size)[0]
for n in range(5):
    large = create(190 << 20)
    if n < 4:
        create(4096)
    device.close_handle(large)
large, image = create(200 << 20), device.bo(4 * 64 * 64)
device.submit([image.handle, large], 0, 64)
device.wait(image)
'''


class RecorderOfVc4Test(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(FOLDER, ignore_errors=True)
        cls.recorder = Recorder(V3DEMU, LIBRARY, FOLDER, ["--mesa", MESA])
        done, cls.path = cls.recorder.run("offscreen", [OFFSCREEN, "surfaceless"])
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr == f"v3drec: records into {cls.path}\n", done.stderr
        cls.data = read(cls.path)

    def path_of(self, name):
        return os.path.join(FOLDER, name + ".v3dcap")

    def check_equal(self, path):
        status, jobs = self.recorder.compare(path)
        self.assertEqual((status, [job for job in jobs if not job["equal"]]), (0, []))
        self.assertTrue(all(job["pages"] > 0 for job in jobs))
        return jobs

    def submissions(self):
        """Where their payloads begin."""
        return [at + 8 for at, kind, _ in records(self.data) if kind == SUBMISSION]

    def only_image(self, path):
        """That differs first."""
        status, jobs = self.recorder.compare(path)
        self.assertEqual(status, 1)
        (image,) = next(job for job in jobs if not job["equal"])["images"]
        self.assertEqual((image["width"], image["height"]), (120, 90))
        self.assertIn(f"{image['pixels']} pixels differ by up to {image['largest']} of 255, the first at {image['x']}:{image['y']}: ",
                      self.recorder.replay(path, "--compare").stdout)
        return image

    def test_opengl(self):
        jobs = self.check_equal(self.path)
        self.assertGreaterEqual(len(jobs), 3)
        self.assertEqual({job["kind"] for job in jobs}, {"render"})
        self.assertEqual(self.data[8:12], b"rpi3")

    def test_it_says_of_which_board_it_is(self):
        for board in ("rpi2", "rpi1", "rpi0"):
            with tempfile.TemporaryDirectory(prefix="v3demu-") as folder:
                done, path = self.recorder.run(board, [OFFSCREEN, "surfaceless"], V3DREC_JOBS="1", V3DEMU_DEVICE=board,
                                               V3DEMU_SOCKET=os.path.join(folder, "socket"))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(read(path)[8:13], board.encode() + b"\0")

    def test_what_it_draws(self):
        folder = os.path.join(FOLDER, "pictures")
        live = os.path.join(FOLDER, "live.v3dcap")
        subprocess.run([V3DEMU, "capture", "-o", live, "--mesa", MESA, "--", OFFSCREEN, "surfaceless"], capture_output=True, timeout=300, check=True)
        pictures = []
        for number, path in enumerate((self.path, live)):
            said = self.recorder.replay(path, "--images", folder + str(number))
            self.assertEqual((said.returncode, said.stderr), (0, ""))
            pictures.append([read_packed(os.path.join(folder + str(number), name)) for name in sorted(os.listdir(folder + str(number)))])
        self.assertGreaterEqual(len(pictures[0]), 3)
        self.assertTrue(pictures[0] == pictures[1])

    def test_frames_of_kmscube(self):
        if not shutil.which("kmscube"):
            self.skipTest("no kmscube (package kmscube)")
        counts = {}
        nothing_comes, open_end = os.pipe()  # kmscube ends when it can read
        self.addCleanup(os.close, nothing_comes)
        self.addCleanup(os.close, open_end)
        for chosen in ("3", "3-4"):
            done, path = self.recorder.run("kmscube" + chosen, ["kmscube", "-c", "6"], nothing_comes, V3DREC_FRAMES=chosen)
            self.assertTrue(os.path.exists(path), done.stdout + done.stderr)
            counts[chosen] = len(self.check_equal(path))
        self.assertEqual(counts["3-4"], 2 * counts["3"])

    def test_no_two_buffer_objects_get_one_place(self):
        done, path = self.recorder.run("places", [sys.executable, "-B", "-c", PLACES])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.check_equal(path)

    def test_decode_and_profile_take_it(self):
        done = subprocess.run([V3DEMU, "decode", self.path], capture_output=True, text=True, timeout=300, check=True)
        for text in ("Tile Binning Mode Configuration", "coordinate program at 0x", "store color_write at 0x"):
            self.assertIn(text, done.stdout)
        subprocess.run([V3DEMU, "profile", "--json", "-", self.path], capture_output=True, timeout=300, check=True)

    def test_a_bit_of_a_texture_is_found_by_the_pixels_that_it_changes(self):
        at = next(page + offset for page in pages(self.data) if (offset := self.data[page:page + PAGE_BYTES].find(TEXELS)) >= 0)
        image = self.only_image(flipped(self.data, at + 1, 5, self.path_of("texture")))  # of green, 32 of 255
        self.assertEqual((image["largest"], image["here"] ^ image["recorded"]), (32, 0x2000))
        self.assertIn(image["pixels"], range(15 * 11, 15 * 12 + 1))  # one texel of 8x8 on 120x90 pixels

    def test_a_bit_of_what_is_recorded_of_an_image_is_one_pixel(self):
        changes = [struct.unpack(f"<{len(payload) // 4}I", payload) for _, kind, payload in records(self.data) if kind == AFTER]
        image = self.only_image(flipped(self.data, pages(self.data)[changes[0][-1] - 1] + 2, 7, self.path_of("image")))
        self.assertEqual((image["pixels"], image["largest"]), (1, 128))

    def test_another_clear_colour_is_found(self):
        at = self.submissions()[0] + CLEAR_COLOR
        colour, same = struct.unpack_from("<2I", self.data, at)
        self.assertEqual((colour, same), (same, colour))
        image = self.only_image(replaced(self.data, at, struct.pack("<2I", colour ^ 1 << 8, same ^ 1 << 8), self.path_of("colour")))
        self.assertEqual((image["largest"], image["here"] ^ image["recorded"]), (1, 1 << 8))
        self.assertIn(image["pixels"], range(120 * 90 * 45 // 100, 120 * 90 * 55 // 100))  # what the triangle leaves

    def test_another_uniform_is_found(self):
        at = self.submissions()[0]
        size = {name: struct.unpack_from("<I", self.data, at + place)[0]
                for name, place in (("list", LIST_BYTES), ("records", RECORD_BYTES), ("uniforms", UNIFORM_BYTES), ("bos", NUM_BOS))}
        uniforms = at + AFTER_ARGUMENTS + 12 * size["bos"] + (size["list"] + 3 & -4) + (size["records"] + 3 & -4)
        scale = self.data.index(struct.pack("<f", 16 * 60), uniforms, uniforms + size["uniforms"])  # half of 120 pixels, in sixteenths
        image = self.only_image(replaced(self.data, scale, struct.pack("<f", 16 * 59.9), self.path_of("uniform")))
        self.assertGreater(image["pixels"], 90)

    def test_what_the_kernel_would_refuse_is_refused(self):
        at = self.submissions()[0]
        for place, new, said in ((COLOR_WRITE_OFFSET, 1 << 28, "color_write: it reaches beyond its BO"), (FLAGS, 16, "flags that there are not"),
                                 (AFTER_ARGUMENTS + 4, 7777, "a buffer object of 7777 pages")):
            done = self.recorder.replay(replaced(self.data, at + place, struct.pack("<I", new), self.path_of("refused")), "--compare")
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, f"a submission that cannot be: .*{said}")

    def test_textures_and_images_are_masked(self):
        done, path = self.recorder.run("masked", [OFFSCREEN, "surfaceless"], V3DREC_MASK_TEXTURES="1")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        masked = read(path)
        corners = struct.pack("<6f", -1, -1, 1, -1, -1, 1)
        self.assertTrue(all(what in self.data and (what in masked) == (what == corners) for what in (TEXELS, corners)))
        self.assertNotIn(AFTER, {kind for _, kind, _ in records(masked)})
        # All that is in its pages is a shader, a vertex or an index; of what was drawn nothing is.
        images = [struct.pack("<I", colour) * 4 for colour in (0xff00007f, 0xff000080, 0xff7f0000, 0xff800000)]
        self.assertTrue(any(image in self.data for image in images))
        self.assertFalse(any(image in masked for image in images))
        replayed = self.recorder.replay(path)
        self.assertEqual((replayed.returncode, replayed.stderr), (0, ""))
        self.assertEqual(len(self.submissions()), len([1 for _, kind, _ in records(masked) if kind == SUBMISSION]))

    def test_a_shader_that_hangs_is_explained(self):
        listing = subprocess.run([V3DEMU, "decode", self.path], capture_output=True, text=True, timeout=300, check=True).stdout
        code = int(re.search(r"(?m)^coordinate program at (0x[0-9a-f]+)", listing)[1], 16)
        hang = subprocess.run([V3DEMU, "asm", "--chip", "2.1", "--format", "bin", "-"], input=b"nop\nload_tmu0\nnop\nend\n", capture_output=True,
                              timeout=60, check=True).stdout
        done = self.recorder.replay(planted(self.recorder, self.data, "hang", 1, {code: hang}), "--explain-hang")
        self.assertEqual((done.returncode, done.stderr), (1, ""), done.stdout)
        for text in ("job 1 of ", ", bin of client 1", f"coordinate program at 0x{code:08x} cannot go on at 0x{code + 8:08x}",
                     "it cannot go on: a load from a TMU without an outstanding lookup", "Coordinate Shader Code Address", " > job 1: bin"):
            self.assertIn(text, done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
