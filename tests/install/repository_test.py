#!/usr/bin/env python3
"""packaging/debian/repository, with packages of nothing, read by apt.

usage: repository_test.py SOURCE_FOLDER [unittest options]
Ends with 77, which skips it, where apt-ftparchive is not installed.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.abspath(sys.argv.pop(1))
TOOL = os.path.join(SOURCE, "packaging", "debian", "repository")


class Repository(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def package(self, name, version):
        tree, made = self.path(f"{name}-{version}"), self.path(f"{name}_{version}_amd64.deb")
        os.makedirs(tree + "/DEBIAN")
        with open(tree + "/DEBIAN/control", "w", encoding="ascii") as file:
            file.write(f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: nobody <nobody@localhost>\nDescription: nothing\n")
        subprocess.run(["dpkg-deb", "--root-owner-group", "--build", tree, made], stdout=subprocess.DEVNULL, check=True)
        return made

    def publish(self, *words):
        return subprocess.run([TOOL, self.path("repository"), *words], capture_output=True, text=True, check=False)

    def apt(self, *words):
        """An apt that knows this repository alone."""
        for name in ("lists/partial", "cache/archives/partial", "etc"):
            os.makedirs(self.path("apt/" + name), exist_ok=True)
        with open(self.path("apt/etc/sources.list"), "w", encoding="ascii") as file:
            file.write(f"deb [trusted=yes] file:{self.path('repository')} stable main\n")
        open(self.path("apt/status"), "a", encoding="ascii").close()
        options = {"Dir::Etc": "etc", "Dir::State": "", "Dir::State::lists": "lists", "Dir::State::status": "status", "Dir::Cache": "cache"}
        settings = [word for name, value in options.items() for word in ("-o", f"{name}={self.path('apt/' + value)}")]
        settings += ["-o", "Dir::Etc::sourceparts=/dev/null", "-o", "APT::Architecture=amd64", "-o", "APT::Sandbox::User=", "-o", "Debug::NoLocking=true"]
        done = subprocess.run([words[0], *settings, *words[1:]], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_apt_takes_the_newest_and_what_was_there_stays(self):
        first = self.publish(self.package("v3demu", "0.1.0"), self.package("v3demu-mesa", "0.1.0"))
        self.assertEqual((first.returncode, first.stdout), (0, "deb [trusted=yes] URL stable main\n"), first.stderr)
        self.assertEqual(self.publish(self.package("v3demu", "0.2.0")).returncode, 0)
        self.apt("apt-get", "update")
        self.assertEqual([line.split("|")[1].strip() for line in self.apt("apt-cache", "madison", "v3demu").splitlines()], ["0.2.0", "0.1.0"])
        printed = self.apt("apt-get", "install", "--print-uris", "-y", "-qq", "v3demu", "v3demu-mesa")
        self.assertIn("/pool/main/v3demu/v3demu_0.2.0_amd64.deb'", printed)
        self.assertIn("/pool/main/v3demu-mesa/v3demu-mesa_0.1.0_amd64.deb'", printed)

    def test_what_is_no_package_is_refused(self):
        with open(self.path("no.deb"), "w", encoding="ascii") as file:
            file.write("no")
        for words in ((), (self.path("no.deb"),), (self.path("none.deb"),)):
            done = self.publish(*words)
            self.assertEqual(done.returncode, 1, words)
            self.assertIn("what to do: ", done.stderr)


if __name__ == "__main__":
    if not shutil.which("apt-ftparchive"):
        sys.exit(print("skipped: apt-ftparchive is not installed") or 77)
    unittest.main()
