#!/usr/bin/env python3
"""packaging/suites on a small clone and a tree like Mesa's, with stand-ins for cmake and ninja.

usage: suites_test.py SOURCE_FOLDER [unittest options]
"""
import os
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.abspath(sys.argv.pop(1))
CMAKE = """#!/bin/sh
echo "$@" >> "$LOG"
"""
NINJA = """#!/bin/sh
shift
folder=$1
shift
for program in "$@"; do mkdir -p "$folder/$(dirname "$program")" && echo > "$folder/$program"; done
"""
IMAGE = """
DEQP_API=GL \\
DEQP_TARGET=surfaceless \\
. .gitlab-ci/container/build-deqp.sh

DEQP_API=GLES \\
DEQP_TARGET=surfaceless \\
. .gitlab-ci/container/build-deqp.sh
"""
OTHER_IMAGE = """
DEQP_API=VK-main \\
DEQP_TARGET=main \\
. .gitlab-ci/container/build-deqp.sh

DEQP_API=VK \\
DEQP_TARGET=default \\
. .gitlab-ci/container/build-deqp.sh
"""


DEQP_VK = """#!/bin/sh
for word in "$@"; do case $word in
  --deqp-case=*) cases=${word#*=} ;;
  --deqp-caselist-export-file=*) file=${word#*=} ;;
esac; done
case $cases in
  dEQP-VK.pipeline.fast_linked_library.*) printf 'GROUP: %s\\nTEST: %s\\n' dEQP-VK.pipeline dEQP-VK.pipeline.fast_linked_library.x > "$file" ;;
esac
"""


class Suites(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name, text in (("cmake", CMAKE), ("ninja", NINJA)):
            os.chmod(self.write("programs/" + name, text), 0o755)
        container = "mesa/.gitlab-ci/container/"
        self.write(container + "build-deqp.sh", "DEQP_VK_VERSION=1.4.1.1\nDEQP_GL_VERSION=4.6.5.0\nDEQP_GLES_VERSION=3.2.11.0\n")
        self.write(container + "debian/test-gl.sh", IMAGE)
        self.write(container + "debian/test-vk.sh", OTHER_IMAGE)
        self.write("cts/external/fetch_sources.py", "")

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def make(self, suite, *words):
        environment = dict(os.environ, PATH=self.path("programs") + ":" + os.environ["PATH"], LOG=self.path("log"))
        return subprocess.run([os.path.join(SOURCE, "packaging", "suites"), suite, "--mesa", self.path("mesa"), "--source", self.path("cts"),
                               "--output", self.path("suites"), *words], env=environment, capture_output=True, text=True, check=False)

    def targets(self):
        return [word.partition("=")[2] for word in self.read("log").split() if word.startswith("-DDEQP_TARGET=")]

    def test_gles_is_for_no_window_system_and_egl_for_two(self):
        for name in ("gles/aosp_mustpass/main/gles31-main.txt", "egl/aosp_mustpass/main/egl-main.txt", "gles/khronos_mustpass/main/gles31-khr-main.txt"):
            self.write("cts/external/openglcts/data/gl_cts/data/mustpass/" + name, "case\n")
        done = self.make("deqp-gles")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.targets(), ["surfaceless", "x11_egl_glx", "wayland"])
        self.assertIn("opengl-es-cts-3.2.11.0", done.stderr)
        for name in ("modules/gles2/deqp-gles2", "modules/gles31/deqp-gles31", "external/openglcts/modules/glcts", "modules/egl/deqp-egl-x11",
                     "modules/egl/deqp-egl-wayland", "mustpass/egl-main.txt", "mustpass/gles31-khr-main.txt"):
            self.assertTrue(os.path.exists(self.path("suites/deqp-gles/" + name)), name)

    def test_vk_has_the_lists_that_are_there_and_names_the_others(self):
        lists = "cts/external/vulkancts/mustpass/main/"
        self.write(lists + "vk-default.txt", "vk-default/api.txt\nvk-default/ssbo.txt\n")
        self.write(lists + "vk-default/ssbo.txt", "dEQP-VK.ssbo.x\n")
        done = self.make("deqp-vk")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.targets(), ["default"])
        self.assertIn("without the cases of vk-default/api.txt", done.stderr)
        self.assertEqual(self.read("suites/deqp-vk/mustpass/vk-main.txt"), "dEQP-VK.ssbo.x\n")

    def test_of_lists_that_are_missing_vk_has_what_the_program_lists(self):
        lists, program = "cts/external/vulkancts/mustpass/main/", "build/external/vulkancts/modules/vulkan/deqp-vk"
        self.write(lists + "vk-default.txt", "vk-default/api.txt\nvk-default/pipeline/fast-linked-library.txt\nvk-default/ssbo.txt\n")
        self.write(lists + "vk-default/ssbo.txt", "dEQP-VK.ssbo.x\n")
        os.chmod(self.write(program, DEQP_VK), 0o755)
        done = self.make("deqp-vk", "--build", self.path("build"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("without the cases of vk-default/api.txt", done.stderr)
        self.assertIn("of vk-default/pipeline/fast-linked-library.txt, which is not there, what deqp-vk lists itself: 1 cases", done.stderr)
        self.assertEqual(self.read("suites/deqp-vk/mustpass/vk-main.txt"), "dEQP-VK.pipeline.fast_linked_library.x\ndEQP-VK.ssbo.x\n")

    def test_a_tree_that_does_not_tell_the_target_is_refused(self):
        self.write("mesa/.gitlab-ci/container/debian/test-vk.sh", "")
        done = self.make("deqp-vk")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the DEQP_TARGET of VK", done.stderr)


if __name__ == "__main__":
    unittest.main()
