#!/usr/bin/env python3
"""Templates for CI, the action and the image call v3demu with options that it has, and files that are there; no CI is asked.

usage: templates_test.py SOURCE_FOLDER V3DEMU [unittest options]
"""
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, V3DEMU = os.path.abspath(sys.argv.pop(1)), sys.argv.pop(1)
try:
    import yaml
except ImportError:
    yaml = None
FILES = sorted(glob.glob(SOURCE + "/packaging/ci/*") + glob.glob(SOURCE + "/packaging/action/*.yml"))


def texts_of(value):
    """All strings in a document, but for those that describe."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from texts_of(one) if key not in ("name", "description") else ()
    elif isinstance(value, list):
        for one in value:
            yield from texts_of(one)


def calls(text):
    """(command, options) of v3demu in a line of shell."""
    for found in re.finditer(r"(?<![\w./$-])v3demu ([a-z][a-z-]*)(?=\s|$)((?:[^|&;\n]|\|\|)*)", text):
        words = re.sub(r"\$\{\w+:\+([^}]*)\}", r"\1", found[2]).split(" -- ")[0].replace('"', " ").split()
        yield found[1], [word.split("=")[0] for word in words if re.match("--[a-z]", word)]


@unittest.skipUnless(yaml, "python3-yaml is not installed")
class Templates(unittest.TestCase):
    def test_they_call_commands_with_options_that_they_have(self):
        called = set()
        for path in FILES:
            with open(path, encoding="utf-8") as file:
                documents = list(yaml.safe_load_all(file))
            for command, options in (call for text in texts_of(documents) for call in calls(text)):
                help_text = subprocess.run([V3DEMU, command, "--help"], capture_output=True, text=True, check=True).stdout
                for option in options:
                    self.assertRegex(help_text, rf"(?m)^  (?:-\w,)?{option}\b", f"{path}: v3demu {command}")
                called.add((os.path.basename(path), command))
        for name in ("mesa.gitlab-ci.yml", "mesa.github-workflow.yml", "mesa.kubernetes.yaml"):
            self.assertIn((name, "ci"), called)

    def test_shell_that_they_hold_is_shell(self):
        for path in FILES:
            with open(path, encoding="utf-8") as file:
                documents = list(yaml.safe_load_all(file))
            lines = [text for text in texts_of(documents) if re.search(r"\bv3demu \w|apt-get|podman|buildah", text)]
            self.assertEqual(bool(lines), os.path.basename(path) != "action.yml", path)
            for line in lines:
                done = subprocess.run(["bash", "-n"], input=re.sub(r"\$\{\{.*?\}\}|\$\[\[.*?\]\]", "x", line), capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""), f"{path}: {line}")

    def test_shards_and_merging_name_the_same_folders(self):
        with open(SOURCE + "/packaging/ci/mesa.gitlab-ci.yml", encoding="utf-8") as file:
            template = yaml.safe_load(file)
        self.assertIn('--output "results/${CI_NODE_INDEX:-1}"', template[".v3demu-mesa"]["script"][0])
        self.assertIn("results/*/", template[".v3demu-mesa-results"]["script"][0])
        with open(SOURCE + "/packaging/ci/mesa.kubernetes.yaml", encoding="utf-8") as file:
            job = yaml.safe_load(file)
        (container,) = job["spec"]["template"]["spec"]["containers"]
        total = next(one["value"] for one in container["env"] if one["name"] == "TOTAL")
        self.assertEqual(int(total), job["spec"]["completions"])


class Action(unittest.TestCase):
    def test_it_installs_from_the_repository_that_it_is_given(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("apt-get", "v3demu", "sudo"):
                with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                    file.write(f'#!/bin/sh\necho {name} "$@" >> "{folder}/called"\n' + ('exec "$@"\n' if name == "sudo" else ""))
                os.chmod(file.name, 0o755)
            key = os.path.join(folder, "key.asc")
            with open(key, "w", encoding="ascii") as file:
                file.write("a key")
            for given, line in (("", "trusted=yes"), ("file://" + key, f"signed-by={folder}/apt/keyrings/v3demu.asc")):
                environment = {"PATH": f"{folder}:{os.environ['PATH']}", "REPOSITORY": "https://packages.example.org/v3demu", "KEY": given, "V3DEMU_APT": folder + "/apt"}
                if given and not shutil.which("curl"):
                    self.skipTest("curl is not installed")
                done = subprocess.run([SOURCE + "/packaging/action/install"], env=environment, capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                with open(folder + "/apt/sources.list.d/v3demu.list", encoding="ascii") as file:
                    self.assertEqual(file.read(), f"deb [{line}] https://packages.example.org/v3demu stable main\n")
            with open(folder + "/called", encoding="ascii") as file:
                called = [shlex.split(text) for text in file]
            self.assertIn(["apt-get", "update", "-qq"], called)
            self.assertTrue(any("v3demu-mesa" in words for words in called))

    def test_it_wants_an_address(self):
        done = subprocess.run([SOURCE + "/packaging/action/install"], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("REPOSITORY is not set", done.stderr)


class Image(unittest.TestCase):
    def test_it_takes_from_the_clone_only_what_is_there(self):
        with open(SOURCE + "/.dockerignore", encoding="ascii") as file:
            self.assertIn("!build/deb\n", file.readlines())
        with open(SOURCE + "/packaging/Containerfile", encoding="utf-8") as file:
            text = file.read()
        for script in re.findall(r"\bpackaging/[\w/]+", re.sub(r"(?m)^#.*", "", text)):
            self.assertTrue(os.access(os.path.join(SOURCE, script), os.X_OK), script)


if __name__ == "__main__":
    unittest.main()
