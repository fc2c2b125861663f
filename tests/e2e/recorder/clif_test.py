#!/usr/bin/env python3
"""Mesa's CLIF dumps (V3D_DEBUG=clif) of a program: they replay to the pictures of its capture, and are decoded and profiled.

usage: clif_test.py V3DEMU FOLDER MESA_PREFIX PROGRAM [ARGUMENT...]
"""
import os
import shutil
import subprocess
import sys
import unittest

V3DEMU, FOLDER, MESA = sys.argv[1:4]
PROGRAM = sys.argv[4:]


def v3demu(*arguments):
    return subprocess.run([V3DEMU, *arguments], capture_output=True, text=True, timeout=300, check=False)


class ClifTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(FOLDER, ignore_errors=True)
        os.makedirs(FOLDER)
        cls.capture, cls.dump = (os.path.join(FOLDER, "program." + name) for name in ("v3dcap", "clif"))
        done = subprocess.run([V3DEMU, "capture", "-o", cls.capture, "--mesa", MESA, "--", *PROGRAM], capture_output=True, text=True, timeout=300,
                              env=os.environ | {"V3D_DEBUG": "clif", "HARNESS_DEVICE": "V3D"}, check=False)
        assert done.returncode == 0, done.stdout + done.stderr[-2000:]
        with open(cls.dump, "w", encoding="utf-8") as file:
            file.write(done.stderr)

    def pictures(self, path):
        """Of render jobs, in their order, by the number of the buffer."""
        folder = path + ".pictures"
        done = v3demu("replay", "--images", folder, path)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertNotIn("MMU fault", done.stdout)
        pictures = []
        for name in sorted(os.listdir(folder), key=lambda name: int(name[3:].split("-")[0])):
            with open(os.path.join(folder, name), "rb") as file:
                pictures.append((name.split("-")[1], file.read()))
        return pictures

    def test_the_pictures_are_those_of_the_capture(self):
        captured, dumped = self.pictures(self.capture), self.pictures(self.dump)
        self.assertGreater(len(captured), 0)
        self.assertEqual([number for number, _ in dumped], [number for number, _ in captured])
        for (_, one), (_, other) in zip(dumped, captured):
            self.assertTrue(one == other)

    def test_it_is_decoded_and_profiled(self):
        done = v3demu("decode", self.dump)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("Tile Binning Mode Cfg", done.stdout)
        self.assertEqual(v3demu("profile", "--json", "-", self.dump).returncode, 0)

    def test_what_is_wrong_is_named_by_its_line(self):
        with open(self.dump, encoding="utf-8") as file:
            lines = file.read().split("\n")
        cut = os.path.join(FOLDER, "cut.clif")
        at = next(number for number, line in enumerate(lines) if line.startswith("NUMBER_OF_LAYERS"))
        for changed, message in ((lines[:at + 1], "the text ends here"), (lines[:at] + ["FROBNICATE"] + lines[at:], "has no packet FROBNICATE"),
                                 (lines[:at - 1] + ["@format strange"], "there is no format strange")):
            with open(cut, "w", encoding="utf-8") as file:
                file.write("\n".join(changed))
            done = v3demu("replay", cut)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, rf"cut\.clif: line \d+: .*{message}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
