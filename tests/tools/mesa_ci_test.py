#!/usr/bin/env python3
"""tools/mesa_ci on a small tree like Mesa's, with stand-ins for dEQP and deqp-runner.

usage: mesa_ci_test.py SOURCE_FOLDER [unittest options]
"""
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
import zlib

SOURCE = os.path.abspath(sys.argv.pop(1))
TOOL = os.path.join(SOURCE, "tools", "mesa_ci")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(SOURCE, "tools", "scripts"))
# pylint: disable=wrong-import-position
from conformance_parts.lists import Refusal  # noqa: E402
from mesa_ci_parts.pictures import Picture, read_picture  # noqa: E402
# pylint: enable=wrong-import-position

TEMPLATES = """
.bare:
  before_script:
    - !reference [.other, before_script]
  variables: {HWCI_TEST_SCRIPT: /install/deqp-runner.sh}
.board:
  extends: .not-in-the-tree
  variables: {DEVICE_TYPE: rpi5, GPU_VERSION: broadcom-rpi5, VK_DRIVER: broadcom}
"""
JOBS = """
include:
  - local: 'src/broadcom/ci/gitlab-ci-inc.yml'
v3d-rpi5-gl:arm64:
  extends: [.board, .bare]
  parallel: 2
  variables: {DEQP_SUITE: broadcom-rpi5, DEQP_FRACTION: 2}
v3d-rpi5-gl-full:arm64:
  extends: [v3d-rpi5-gl:arm64]
  parallel: null
  variables: {DEQP_FRACTION: 1}
v3d-rpi5-rusticl:arm64:
  extends: [.board, .bare]
  variables: {DEQP_SUITE: v3d-rusticl}
v3d-rpi5-gl-asan:arm64:
  extends: [.board, .bare]
  variables: {DEQP_SUITE: broadcom-rpi5-asan}
v3d-rpi5-gl-ubsan:arm64:
  extends: [.board, .bare]
  variables: {DEQP_SUITE: broadcom-rpi5-ubsan}
v3d-rpi5-traces:arm64:
  extends: [.board, .bare]
  variables: {HWCI_TEST_SCRIPT: /install/piglit/piglit-traces.sh, PIGLIT_TRACES_FILE: traces.yml, PIGLIT_REPLAY_DEVICE_NAME: broadcom-rpi5,
              EGL_PLATFORM: surfaceless}
v3d-rpi5-gl:arm32:
  extends: [.board, .bare]
  variables: {DEQP_SUITE: broadcom-rpi5}
"""
SUITES = """
[[deqp]]
deqp = "/deqp-gles/modules/gles2/deqp-gles2"
caselists = ["/deqp-gles/mustpass/gles2-main.txt"]
deqp_args = ["--deqp-gl-config-name=rgba", "--deqp-surface-width=16", "--deqp-surface-height=16", "--deqp-surface-type=pbuffer"]
[[deqp]]
deqp = "/deqp-gles/modules/egl/deqp-egl-x11"
caselists = ["/deqp-gles/mustpass/egl-main.txt"]
prefix = "x11-"
"""
FULL = "v3d-rpi5-gl-full"


class Fixture(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("CI_NODE")}
        self.environment["FAKE_DEQP_STATE"] = self.path("state")
        os.makedirs(self.path("state"))
        self.write("mesa/VERSION", "25.0.7")
        self.write("mesa/.gitlab-ci/all-skips.txt", "# everywhere", r"a\.shared")
        self.write("mesa/.gitlab-ci/x11-skips.txt", r"a\.read-front")
        self.write("mesa/src/broadcom/ci/gitlab-ci-inc.yml", TEMPLATES)
        self.write("mesa/src/broadcom/ci/gitlab-ci.yml", JOBS)
        self.write("mesa/src/broadcom/ci/deqp-broadcom-rpi5.toml", SUITES)
        self.write("mesa/src/broadcom/ci/traces.yml", "traces-db:", '  download-url: "http://store/traces-private/"')
        self.lists()
        self.suites(["a.pass"], ["b.pass"])

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, *lines):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))
        return self.path(name)

    def lists(self, fails=(), flakes=(), skips=()):
        for kind, lines in (("fails", fails), ("flakes", flakes), ("skips", skips)):
            self.write(f"mesa/src/broadcom/ci/broadcom-rpi5-{kind}.txt", "# a comment", "", *lines)

    def suites(self, gles2, egl):
        for name, cases in (("gles2", gles2), ("egl", egl)):
            self.write(f"suites/deqp-gles/mustpass/{name}-main.txt", *cases)
        for name in ("gles2/deqp-gles2", "egl/deqp-egl-x11"):
            program = self.path("suites/deqp-gles/modules/" + name)
            os.makedirs(os.path.dirname(program), exist_ok=True)
            if not os.path.exists(program):
                os.symlink(os.path.join(HERE, "fake_deqp.py"), program)

    def run_job(self, job, *options, output="out"):
        """Exit status, standard output, {case: status}."""
        done = subprocess.run([sys.executable, TOOL, *([job] if job else []), "--mesa", self.path("mesa"), "--suites",
                               self.path("suites"), "--output", self.path(output), "--jobs", "2", *options],
                              env=self.environment, capture_output=True, text=True, check=False)
        self.log = done.stderr
        return done.returncode, done.stdout, self.results(output)

    def results(self, output="out"):
        if not os.path.exists(self.path(output + "/results.csv")):
            return {}
        with open(self.path(output + "/results.csv"), encoding="utf-8") as file:
            return dict(line.split(",")[:2] for line in file)

    def failures(self, output="out"):
        with open(self.path(output + "/failures.csv"), encoding="utf-8") as file:
            return file.read().splitlines()


class Job(Fixture):
    def test_runs_its_suites_as_the_lists_say(self):
        self.suites(["a.pass", "a.fail", "a.crash", "a.skip", "a.warn", "a.shared.fail", "a.read-front.fail", "a.known.fail"],
                    ["b.pass", "b.fail"])
        self.lists(["a.fail,Fail", "a.crash,Crash", "x11-b.fail,Fail"], [r"a\.known"])
        status, output, results = self.run_job(FULL)
        self.assertEqual(status, 0, output + self.log)
        self.assertEqual(results, {"a.pass": "Pass", "a.fail": "ExpectedFail", "a.crash": "ExpectedFail", "a.skip": "Skip",
                                   "a.warn": "Warn", "a.shared.fail": "Skip", "a.read-front.fail": "Skip",
                                   "a.known.fail": "KnownFlake", "x11-b.pass": "Pass", "x11-b.fail": "ExpectedFail"})
        self.assertEqual(self.failures(), [])
        self.assertIn("as on the board: 7 of 7, 100.00 %", output)

    def test_what_is_not_as_listed_fails_it_and_is_in_all_files(self):
        self.suites(["a.pass", "a.fail", "a.crash", "a.flake", "a.skip"], ["b.fail"])
        self.lists(["a.pass,Fail", "a.skip,Crash", "a.fail,Crash"])
        status, output, results = self.run_job(FULL)
        self.assertEqual(status, 1, self.log)
        self.assertEqual(results["a.flake"], "Flake")
        told = ["a.crash,Crash", "a.fail,UnexpectedImprovement(Fail)", "a.pass,UnexpectedImprovement(Pass)",
                "a.skip,UnexpectedImprovement(Skip)", "x11-b.fail,Fail"]
        self.assertEqual(self.failures(), told)
        for line in told:
            self.assertIn("  " + line, output)
        suite = xml.parse(self.path("out/junit.xml")).getroot().find("testsuite")
        self.assertEqual((suite.get("name"), suite.get("tests"), suite.get("failures")), ("dEQP", "5", "5"))
        self.assertEqual([case.find("failure").get("type") for case in suite][-1], "Fail")
        with open(self.path("out/x11-b.fail.log"), encoding="utf-8") as file:
            self.assertIn("details of b.fail", file.read())

    def test_gives_suites_their_options(self):
        self.suites(["a.config"], ["b.pass"])
        self.run_job(FULL)
        with open(self.path("out/a.config.log"), encoding="utf-8") as file:
            self.assertIn("rgba 16x16 pbuffer", file.read())

    def test_own_lists_overlay_those_of_the_board(self):
        self.suites(["a.pass", "a.fail", "a.own.fail", "a.bad.crash"], ["b.fail"])
        self.lists(["a.pass,Fail"])
        own = ["--fails", self.write("own/fails", "a.fail,Fail", "a.pass,Pass"), "--flakes", self.write("own/flakes", r"a\.own"),
               "--skips", self.write("own/skips", r"a\.bad", "x11-b")]
        status, output, results = self.run_job(FULL, *own)
        self.assertEqual((status, results), (0, {"a.pass": "Pass", "a.fail": "ExpectedFail", "a.own.fail": "KnownFlake",
                                                 "a.bad.crash": "Skip", "x11-b.fail": "Skip"}), output)

    def test_shards_make_a_whole_and_merge_to_it(self):
        self.suites([f"a.pass{number}" for number in range(23)] + ["a.fail"], [f"b.pass{number}" for number in range(9)])
        self.run_job(FULL, output="whole")
        for shard in "12345":
            self.run_job(FULL, "--shard", f"{shard}/5", output=shard)
        parts = [self.results(shard) for shard in "12345"]
        self.assertEqual(sum(map(len, parts)), 33)
        merge = [word for shard in "12345" for word in ("--merge", self.path(shard))]
        status, _, merged = self.run_job(None, *merge, output="merged")
        self.assertEqual((status, merged), (1, self.results("whole")))
        self.assertEqual(self.failures("merged"), self.failures("whole"))

    def test_runs_only_what_is_included(self):
        self.suites(["a.pass", "b.pass", "c.fail"], ["b.pass", "d.fail"])
        self.assertEqual(self.run_job(FULL, "--include", r"^a\.", "--include", r"^b.*")[::2], (0, {"a.pass": "Pass", "b.pass": "Pass", "x11-b.pass": "Pass"}))
        self.write("mesa/src/broadcom/ci/deqp-broadcom-rpi5.toml", SUITES, r'include = ["^b", "^d"]')
        self.assertEqual(self.run_job(FULL, "--include", "fail", output="mine")[::2], (1, {"c.fail": "Fail", "x11-d.fail": "Fail"}))
        self.assertEqual(self.run_job(FULL, "--include", "(")[0], 2)
        self.assertIn("--include (: ", self.log)

    def test_tells_why_a_suite_does_not_start(self):
        self.environment["FAKE_DEQP_BROKEN"] = "1"
        status, output, results = self.run_job(FULL)
        self.assertEqual((status, results), (1, {"a.pass": "Missing", "x11-b.pass": "Missing"}))
        self.assertIn("2 cases were not even begun; of the first: exit status 1: no device", output)

    def test_takes_the_jobs_fraction_and_shards(self):
        self.suites([f"a.pass{number}" for number in range(40)], [])
        # One of two shards, half of the cases: every fourth of the list, from its first on, as deqp-runner takes them.
        self.assertEqual(set(self.run_job("v3d-rpi5-gl:arm64")[2]), {f"a.pass{number}" for number in range(0, 40, 4)})
        self.environment |= {"CI_NODE_INDEX": "3", "CI_NODE_TOTAL": "4"}
        self.assertEqual(len(self.run_job("v3d-rpi5-gl", output="other")[2]), 5)
        self.assertEqual(len(self.run_job("v3d-rpi5-gl", "--fraction", "5", output="small")[2]), 1)

    def test_piglit_has_its_profile_and_environment(self):
        self.write("mesa/src/broadcom/ci/deqp-broadcom-rpi5.toml", "[[piglit]]", 'piglit_folder = "/piglit"', 'profile = "gpu"',
                   "process_isolation = true", "[piglit.env]", 'PIGLIT_PLATFORM = "mixed_glx_egl"')
        programs = {"piglit": '[ "$1 $4" = "print-cmd gpu" ] || exit 9; echo "g@good, x\t./good -auto"; echo "g@bad\t./bad"; echo "g@absent\t./absent"',
                    "good": """echo "PIGLIT: {\\"subtest\\": {\\"$PIGLIT_PLATFORM\\": \\"fail\\"}, \\"result\\": \\"pass\\"}\"""",
                    "bad": "exit 1"}
        for name, text in programs.items():
            os.chmod(self.write(f"suites/piglit/{name}", "#!/bin/sh", 'cd "$(dirname "$0")"', text), 0o755)
        self.lists(["g@good- x@mixed_glx_egl,Fail"])
        status, output, results = self.run_job(FULL)
        self.assertEqual((status, results), (1, {"g@good- x": "Pass", "g@good- x@mixed_glx_egl": "ExpectedFail", "g@bad": "Crash",
                                                 "g@absent": "Skip"}), self.log)
        self.assertIn("1 of the skipped tests have no program here", output)

    def test_goes_on_from_its_journal(self):
        self.suites(["a.pass", "a.fail"], ["b.pass"])
        first = self.run_job(FULL, "--journal", self.path("journal"))
        os.remove(self.path("state/runs"))
        self.assertEqual(self.run_job(FULL, "--journal", self.path("journal"))[::2], first[::2])
        self.assertFalse(os.path.exists(self.path("state/runs")), "a case ran again")

    def test_goes_on_from_its_journal_when_one_more_suite_is_here(self):
        gles2 = self.path("suites/deqp-gles/modules/gles2/deqp-gles2")
        os.rename(gles2, gles2 + "-away")
        journal = ("--journal", self.path("journal"), "--available")
        self.assertEqual(self.run_job(FULL, *journal)[2], {"x11-b.pass": "Pass"})
        os.rename(gles2 + "-away", gles2)
        os.remove(self.path("state/runs"))
        self.assertEqual(self.run_job(FULL, *journal)[2], {"a.pass": "Pass", "x11-b.pass": "Pass"})
        with open(self.path("state/runs"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "1\n", "what was there already ran again")


class Refusals(Fixture):
    def refused(self, job, *options):
        status, _, results = self.run_job(job, *options)
        self.assertEqual((status, results), (2, {}), job)
        return self.log

    def test_jobs_that_cannot_run_are_named_with_the_reason(self):
        for job, reason in (("v3d-rpi5-rusticl", "OpenCL"), ("v3d-rpi5-gl-asan", "AddressSanitizer"), ("v3d-rpi5-gl:arm32", "32 bits"),
                            ("v3d-rpi5-gl-ubsan", "UndefinedBehaviorSanitizer"), ("v3d-rpi5-traces", "private, which only Mesa's farm may fetch: http://store/traces-private/")):
            log = self.refused(job)
            self.assertIn(job, log)
            self.assertIn(reason, log)
        self.assertIn("there are v3d-rpi5-gl:arm64, v3d-rpi5-gl-full:arm64", self.refused("v3d-rpi6-gl"))

    def test_suites_that_are_not_here_are_named_with_the_command_that_makes_them(self):
        os.unlink(self.path("suites/deqp-gles/modules/egl/deqp-egl-x11"))
        log = self.refused(FULL)
        self.assertIn("x11-deqp-egl-x11 (egl-main): no " + self.path("suites/deqp-gles/modules/egl/deqp-egl-x11"), log)
        self.assertIn("packaging/suites deqp-gles --mesa", log)
        status, output, results = self.run_job(FULL, "--available")
        self.assertEqual((status, results), (0, {"a.pass": "Pass"}))
        self.assertIn("not run, as they are not here: x11-deqp-egl-x11", output)

    def test_what_a_suite_file_asks_for_and_is_not_known_is_refused(self):
        self.write("mesa/src/broadcom/ci/deqp-broadcom-rpi5.toml", SUITES, 'new_option = 3')
        self.assertIn("does not know what new_option asks for", self.refused(FULL))
        self.write("mesa/src/broadcom/ci/deqp-broadcom-rpi5.toml", SUITES, "[[gtest]]", 'gtest = "/x"')
        self.assertIn("no suites of kind gtest", self.refused(FULL))

    def test_another_board_or_driver_is_refused(self):
        self.write("mesa/src/broadcom/ci/deqp-broadcom-rpi5.toml", SUITES.replace("[[deqp]]", '[[deqp]]\nrenderer_check = "V3D 7"', 1))
        self.assertIn("a.info.renderer has no 'V3D 7': a stand-in", self.refused(FULL))
        self.write("mesa/src/broadcom/ci/deqp-broadcom-rpi5.toml", SUITES.replace("[[deqp]]", '[[deqp]]\nrenderer_check = "stand-in"', 1))
        self.assertEqual(self.run_job(FULL)[0], 0, self.log)

    def test_wrong_options_and_trees_are_refused(self):
        self.assertIn("no shard", self.refused(FULL, "--shard", "3/2"))
        self.assertIn("not in the PATH", self.refused(FULL, "--runner", "deqp-runner"))
        self.assertIn("source tree", self.refused(FULL, "--mesa", self.path("nothing")))


def png_of(width, channels, rows, kinds=None):
    """A PNG, each of whose rows is told by a filter of its own."""
    lines, before = b"", bytes(width * channels)
    for number, row in enumerate(rows):
        kind, line = kinds[number] if kinds else 0, bytearray()
        for x, value in enumerate(row):
            left, up, corner = (row[x - channels], before[x], before[x - channels]) if x >= channels else (0, before[x], 0)
            guess = left + up - corner
            paeth = min((left, up, corner), key=lambda one, guess=guess: abs(guess - one))
            line.append(value - (0, left, up, (left + up) // 2, paeth)[kind] & 0xFF)
        lines, before = lines + bytes([kind]) + line, row

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    header = struct.pack(">IIBBBBB", width, len(rows), 8, {3: 2, 4: 6}[channels], 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


class Pictures(unittest.TestCase):
    def read(self, name, data):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                file.write(data)
            return read_picture(path)

    def test_reads_png_by_all_filters(self):
        for channels in (3, 4):
            rows = [bytes((7 * x * x + 31 * y * x + 97 * y) & 0xFF for x in range(5 * channels)) for y in range(5)]
            picture = self.read("a.png", png_of(5, channels, rows, range(5)))
            self.assertEqual((picture.width, picture.height, picture.channels, picture.data), (5, 5, channels, b"".join(rows)))

    def test_reads_bmp_of_both_directions(self):
        texels = bytes(range(18))  # 3 x 2, RGB
        rows = [b"".join(texels[9 * y + 3 * x:9 * y + 3 * x + 3][::-1] for x in range(3)) + b"\0" * 3 for y in range(2)]
        for height, order in ((2, reversed(rows)), (-2, rows)):
            data = b"BM" + struct.pack("<IIIIiiHHIIiiII", 0, 0, 54, 40, 3, height, 1, 24, 0, 0, 0, 0, 0, 0) + b"".join(order)
            self.assertEqual(self.read("a.bmp", data).data, texels)

    def test_checksums_are_of_pixels(self):
        self.assertEqual(Picture(1, 1, 3, b"abc").checksum(), "900150983cd24fb0d6963f7d28e17f72")  # RFC 1321

    def test_pictures_are_compared_by_pixels_far_off(self):
        one = Picture(4, 1, 4, bytes([100, 100, 100, 0] * 4))
        other = Picture(4, 1, 3, bytes([100, 108, 100] * 3 + [100, 100, 109]))
        self.assertEqual((one.share_off(one), one.share_off(other), one.share_off(Picture(2, 2, 4, one.data))), (0, 0.25, 1))

    def test_others_are_refused(self):
        whole = png_of(2, 3, [bytes(6)] * 2)
        for data in (b"P6 1 1 255 abc", whole[:40], whole.replace(b"\x08\x02", b"\x10\x02", 1), b"BM" + bytes(60)):
            with self.assertRaises(Refusal):
                self.read("a", data)


FAKE_APITRACE = """#!/bin/sh
[ "$1 $3" = "dump --calls=frame" ] && printf '3 eglSwapBuffers()\\n12 eglSwapBuffers()\\n'
"""
# A trace is the picture of its last frame.
FAKE_RETRACE = """#!/usr/bin/env python3
import os, shutil, sys
words = dict(word.partition("=")[::2] for word in sys.argv[1:])
assert words["--snapshot"] == "12" and "--headless" in words
if "crash" in sys.argv[-1]:
    os.abort()
if "flaky" in sys.argv[-1] and not os.path.exists(os.environ["FAKE_DEQP_STATE"] + "/again"):
    open(os.environ["FAKE_DEQP_STATE"] + "/again", "w")
    sys.exit("once")
shutil.copy(sys.argv[-1], words["--snapshot-prefix"] + "0000000012.png")
"""


class Traces(Fixture):
    def setUp(self):
        super().setUp()
        for name, text in (("apitrace", FAKE_APITRACE), ("eglretrace", FAKE_RETRACE)):
            os.chmod(self.write("bin/" + name, text), 0o755)
        self.environment["PATH"] = self.path("bin") + ":" + self.environment["PATH"]
        self.picture = Picture(2, 1, 3, bytes(6))

    def trace(self, name):
        self.write("traces/" + name)
        with open(self.path("traces/" + name), "wb") as file:
            file.write(png_of(2, 3, [self.picture.data]))

    def traces(self, **entries):
        """Of checksums or labels, by names with a part of a path in front."""
        lines = ["traces-db:", '  download-url: "http://farm/cache/?uri=https://store/public/"', "traces:"]
        for name, told in entries.items():
            lines += [f"  game/{name}.trace:", "    broadcom-rpi5:", f"      {told}"]
            self.trace(f"game/{name}.trace")
        self.write("mesa/src/broadcom/ci/traces.yml", *lines)

    def replay(self, *options):
        return self.run_job("v3d-rpi5-traces", "--traces", self.path("traces"), "--v3demu", "", *options)

    def test_last_frames_are_compared_with_checksums_of_the_board(self):
        good = f"checksum: {self.picture.checksum()}"
        self.traces(same=good, other="checksum: 0123", crash=good, flaky=good, left="label: [skip, no-perf]")
        status, output, results = self.replay()
        self.assertEqual((status, results), (1, {f"trace/broadcom-rpi5/game/{name}.trace": told for name, told in (
            ("crash", "Crash"), ("flaky", "Flake"), ("left", "Skip"), ("other", "Fail"), ("same", "Pass"))}), output + self.log)
        with open(self.path("out/game_other.trace.png"), "rb") as file:
            self.assertEqual(file.read(), png_of(2, 3, [self.picture.data]))
        with open(self.path("out/trace_broadcom-rpi5_game_other.trace.log"), encoding="utf-8") as file:
            self.assertIn(f"checksum {self.picture.checksum()}, 0123 on the board", file.read())

    def test_pictures_decide_within_a_tolerance_where_checksums_differ(self):
        self.traces(other="checksum: 0123")
        self.write("references/game/other.png")
        with open(self.path("references/game/other.png"), "wb") as file:
            file.write(png_of(2, 3, [bytes([0, 0, 0, 9, 0, 0])]))
        references = ("--references", self.path("references"))
        self.assertEqual([self.replay(*references, "--tolerance", percent)[0] for percent in ("49", "50")], [1, 0])

    def test_shards_and_own_lists_count(self):
        good = f"checksum: {self.picture.checksum()}"
        self.traces(a=good, b="checksum: 0123", c=good)
        self.assertEqual(list(self.replay("--shard", "2/2")[2].values()), ["Fail"])
        fails = self.write("own/fails", "trace/broadcom-rpi5/game/b.trace,Fail")
        self.assertEqual(self.replay("--fails", fails)[:3:2], (0, {f"trace/broadcom-rpi5/game/{name}.trace": told for name, told in (
            ("a", "Pass"), ("b", "ExpectedFail"), ("c", "Pass"))}))

    def test_what_is_not_here_is_named_with_where_it_is(self):
        self.traces(a=f"checksum: {self.picture.checksum()}", b="checksum: 0123")
        os.unlink(self.path("traces/game/b.trace"))
        self.assertEqual(self.replay()[0], 2)
        self.assertIn("game/b.trace; it is fetched from https://store/public/game/b.trace", self.log)
        self.assertEqual(list(self.replay("--available")[2].values()), ["Pass"])
        os.unlink(self.path("bin/eglretrace"))
        self.environment["PATH"] = self.path("bin") + ":/nothing"
        self.assertEqual(self.replay()[0], 2)
        self.assertIn("game/a.trace: eglretrace is not installed: sudo apt install apitrace", self.log)


class DeqpRunner(Fixture):
    def test_is_used_where_it_is_installed_and_gives_the_same_verdicts(self):
        self.suites(["a.pass", "a.fail", "a.crash", "a.flake", "a.skip", "a.warn", "a.shared.fail", "a.known.fail", "b.fail", "b.crash",
                     "c.pass", "c.fail", "d.crash", "d.lost"], ["b.pass", "b.fail", "a.pass"])
        self.lists(["b.fail,Fail", "b.crash,Crash", "c.pass,Fail", "c.fail,Crash", "d.crash,Fail", "x11-b.fail,Fail", "x11-a.pass,Timeout"],
                   [r"a\.known"])
        own = ["--fails", self.write("own/fails", "c.fail,Fail")]
        mine = self.run_job(FULL, *own, "--runner", "own", output="mine")
        os.remove(self.path("state/a.flake"))
        os.makedirs(self.path("bin"))
        os.symlink(os.path.join(HERE, "fake_deqp_runner.py"), self.path("bin/deqp-runner"))
        self.environment["PATH"] = self.path("bin") + ":" + self.environment["PATH"]
        theirs = self.run_job(FULL, *own, output="theirs")
        self.assertEqual(mine[0], 1, self.log)
        self.assertEqual(theirs[::2], mine[::2], self.log)
        self.assertEqual(self.failures("theirs"), self.failures("mine"))
        some = ["--include", r"^a\.p", "--include", r"^b\.pass"]
        theirs = self.run_job(FULL, *some, output="theirs")[2]
        self.assertEqual(theirs, {"a.pass": "Pass", "x11-a.pass": "UnexpectedImprovement(Pass)", "x11-b.pass": "Pass"})
        self.assertEqual(self.run_job(FULL, *some, "--runner", "own", output="mine")[2], theirs)
        self.assertEqual(xml.parse(self.path("theirs/junit.xml")).getroot().tag, "testsuites")


if __name__ == "__main__":
    unittest.main()
