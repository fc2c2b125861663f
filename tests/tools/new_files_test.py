#!/usr/bin/env python3
"""Outputs of the tools in Python: regular files, made beside and renamed, never over something else.

  new_files_test.py SOURCE_FOLDER
"""
import os
import stat
import sys
import tempfile
import unittest

SOURCE = sys.argv.pop()
sys.path.insert(0, os.path.join(SOURCE, "tools", "scripts"))
from new_file import new_file, new_name  # noqa: E402  pylint: disable=wrong-import-position


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class NewFile(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(self.folder, "a.png")

    def write(self, path, text):
        with new_file(path) as file:
            file.write(text)

    def test_has_its_name_when_it_is_whole(self):
        self.write(self.path, "old")
        os.chmod(self.path, 0o640)
        with new_file(self.path) as file:
            file.write("new")
            file.flush()
            self.assertEqual(read(self.path), "old")
        self.assertEqual(read(self.path), "new")
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o640)
        self.assertEqual(os.listdir(self.folder), ["a.png"])

    def test_leaves_nothing_when_it_fails(self):
        with self.assertRaises(ValueError), new_name(self.path) as draft:
            self.assertTrue(draft.endswith(".png"))
            raise ValueError
        self.assertEqual(os.listdir(self.folder), [])

    def test_takes_any_name(self):
        longest = os.path.join(self.folder, "n" * 251 + ".png")
        self.write(longest, "text")
        self.assertEqual(read(longest), "text")

    def test_replaces_nothing_but_files(self):
        os.mkfifo(os.path.join(self.folder, "pipe"))
        os.symlink("nowhere", os.path.join(self.folder, "dangling"))
        os.symlink("/dev/null", os.path.join(self.folder, "device"))
        for name in "pipe", "dangling", "device", ".", "/dev/null":
            with self.assertRaises(OSError, msg=name):
                self.write(os.path.join(self.folder, name), "text")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        self.write(self.path, "old")
        os.symlink("a.png", os.path.join(self.folder, "link"))
        self.write(os.path.join(self.folder, "link"), "new")
        self.assertEqual(read(self.path), "new")
        self.assertTrue(os.path.islink(os.path.join(self.folder, "link")))


if __name__ == "__main__":
    unittest.main()
