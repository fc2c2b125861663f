#!/usr/bin/env python3
"""tools/conformance with a stand-in for dEQP. usage: conformance_test.py PATH_OF_TOOL [unittest options]"""
import csv
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as xml

TOOL = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, os.path.join(os.path.dirname(TOOL), "scripts"))
from conformance_parts.shares import Shares  # pylint: disable=wrong-import-position
FAKE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_deqp.py")


class Fixture(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name in ("state", "lists"):
            os.mkdir(self.path(name))
        self.environment = dict(os.environ, FAKE_DEQP_STATE=self.path("state"))
        for name in ("CI_NODE_INDEX", "CI_NODE_TOTAL"):
            self.environment.pop(name, None)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, *lines):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))
        return self.path(name)

    def command(self, cases, *options, fails=(), flakes=(), skips=(), suite="deqp-vk"):
        for kind, lines in (("fails", fails), ("flakes", flakes), ("skips", skips)):
            self.write(f"lists/broadcom-rpi5-{kind}.txt", "# a comment", "", *lines)
        return [sys.executable, TOOL, "--suite", suite, "--binary", FAKE, "--caselist", self.write("cases.txt", *cases), "--launcher",
                "", "--lists", self.path("lists"), "--jobs", "2", "--results", self.path("results.csv"), "--junit",
                self.path("junit.xml"), "--logs", self.path("logs"), *options]

    def run_tool(self, cases, *options, **lists):
        """Exit status, standard output, {case: row of the CSV}."""
        done = subprocess.run(self.command(cases, *options, **lists), env=self.environment, capture_output=True, text=True)
        rows = {}
        if os.path.exists(self.path("results.csv")):
            with open(self.path("results.csv"), encoding="utf-8", newline="") as file:
                rows = {row["case"]: row for row in csv.DictReader(file)}
        self.log = done.stderr
        return done.returncode, done.stdout, rows


class Deqp(Fixture):
    def test_passes_warnings_and_unsupported_cases_are_no_disagreement(self):
        status, output, rows = self.run_tool(["a.pass", "a.warn", "a.skip", "a.noise"])
        self.assertEqual(status, 0, self.log)
        self.assertEqual({case: row["status"] for case, row in rows.items()},
                         {"a.pass": "Pass", "a.warn": "Warn", "a.skip": "Skip", "a.noise": "Pass"})
        self.assertIn("0 disagreements", output)
        self.assertIn("100.00%", output)

    def test_cases_after_a_crash_and_a_hang_still_run(self):
        cases = ["a.pass1", "a.crash", "a.pass2", "a.hang", "a.pass3", "a.exit", "a.pass4", "a.lost"]
        status, _, rows = self.run_tool(cases, "--jobs", "1", "--timeout", "2", "--retries", "0")
        self.assertEqual(status, 1, self.log)
        expected = dict.fromkeys(cases, "Pass") | {"a.crash": "Crash", "a.hang": "Timeout", "a.lost": "Missing"}
        self.assertEqual({case: row["status"] for case, row in rows.items()}, expected)
        self.assertIn("SIGSEGV", rows["a.crash"]["detail"])
        self.assertIn("built without that case", rows["a.lost"]["detail"])

    def test_listed_failures_agree_only_with_their_status(self):
        status, output, rows = self.run_tool(["a.fail", "a.crash", "a.pass"], "--retries", "0",
                                             fails=["a.fail,Fail", "a.crash,Fail", "a.pass,Fail"])
        self.assertEqual(status, 1, self.log)
        self.assertEqual({case: row["agrees"] for case, row in rows.items()},
                         {"a.fail": "yes", "a.crash": "no", "a.pass": "no"})
        self.assertIn("unexpected pass: a.pass (listed Fail)", output)
        self.assertIn("2 disagreements", output)

    def test_listed_flakes_agree_whatever_they_do(self):
        status, _, rows = self.run_tool(["a.fail", "a.b.pass"], flakes=[r"a\.f.*", r"a\.b"])
        self.assertEqual(status, 0, self.log)
        self.assertEqual(rows["a.fail"]["agrees"], "yes")

    def test_skipped_cases_do_not_run(self):
        status, output, rows = self.run_tool(["a.pass", "a.slow.fail", "b.fail"], "--skips", self.write("more", "^b"),
                                             skips=[r"a\.slow"])
        self.assertEqual(status, 0, self.log)
        self.assertEqual(set(rows), {"a.pass"})
        self.assertIn("2 cases left out by the skip lists", output)

    def test_a_failure_that_passes_when_run_again_is_a_flake(self):
        status, output, rows = self.run_tool(["a.flake", "a.fail"])
        self.assertEqual(status, 1, self.log)
        self.assertEqual(rows["a.flake"]["status"], "Flake")
        self.assertEqual(rows["a.fail"]["status"], "Fail")
        self.assertIn("1 unexpected Flake", output)

    def test_a_sample_is_fixed_by_the_seed_and_taken_of_each_group(self):
        cases = [f"{group}.pass{number}" for group in "abc" for number in range(50)]
        run = lambda seed: set(self.run_tool(cases, "--groups", "a.", "b.*", "--sample", "10", "--seed", seed)[2])
        first = run("7")
        self.assertEqual(len([case for case in first if case.startswith("a.")]), 10)
        self.assertEqual(len([case for case in first if case.startswith("b.")]), 10)
        self.assertEqual(len(first), 20)
        self.assertEqual(first, run("7"))
        self.assertNotEqual(first, run("8"))

    def test_shards_split_the_cases(self):
        cases = [f"a.pass{number}" for number in range(10)]
        shards = [set(self.run_tool(cases, "--shard", f"{index}/3")[2]) for index in (1, 2)]
        self.environment |= {"CI_NODE_INDEX": "3", "CI_NODE_TOTAL": "3"}
        shards.append(set(self.run_tool(cases)[2]))
        self.assertEqual(sorted(case for shard in shards for case in shard), sorted(cases))

    def test_a_run_goes_on_from_its_journal(self):
        cases = [f"a.pass{number}" for number in range(8)] + ["a.fail"]
        options = ("--jobs", "1", "--batch", "3", "--retries", "0", "--journal", self.path("journal"))
        told = lambda: (lambda status, output, rows: (status, output, {case: row["status"] for case, row in rows.items()}))(
            *self.run_tool(cases, *options))
        whole = told()
        with open(self.path("journal"), encoding="utf-8") as file:
            lines = file.readlines()
        self.assertEqual(len(lines), len(cases))
        with open(self.path("journal"), "w", encoding="utf-8") as file:
            file.writelines([*lines[:5], lines[5][:20]])  # as a kill leaves it
        os.remove(self.path("state/runs"))
        self.assertEqual(told(), whole)
        with open(self.path("state/runs"), encoding="utf-8") as file:
            self.assertEqual(sum(map(int, file)), len(cases) - 5)
        with open(self.path("journal"), encoding="utf-8") as file:
            self.assertEqual(len(file.readlines()), len(cases))

    def test_what_ends_it_ends_what_it_started_and_leaves_no_result_of_that(self):
        cases = ["a.hang", "a.pass1", "a.pass2"]
        journal = ("--jobs", "1", "--batch", "3", "--journal", self.path("journal"))
        launcher = ("--launcher", f"""sh -c 'echo $$ > {self.path("process")}; exec "$@"' sh""")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(signal=number.name):
                for name in ("journal", "state/runs"):
                    self.write(name)
                # The list has the status of a program that is killed: the case has none all the same.
                tool = subprocess.Popen(self.command(cases, *journal, *launcher, fails=["a.hang,Crash"]), env=self.environment,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                self.wait_for(lambda: os.stat(self.path("state/runs")).st_size > 0)
                time.sleep(0.2)  # until the case has begun, as a rule
                tool.send_signal(number)
                self.assertEqual((tool.wait(60), tool.communicate()[1].splitlines()[-1:]), (128 + number, [f"conformance: ended by {number.name}"]))
                with open(self.path("process"), encoding="utf-8") as file:
                    self.assertFalse(os.path.exists(f"/proc/{file.read().strip()}"))
                with open(self.path("journal"), encoding="utf-8") as file:
                    self.assertNotIn("a.hang", file.read())
        status, _, rows = self.run_tool(cases, *journal, skips=["a.hang"])
        self.assertEqual((status, {case: row["status"] for case, row in rows.items()}), (0, {"a.pass1": "Pass", "a.pass2": "Pass"}))

    def test_ends_although_it_was_stopped_when_it_was_told_to(self):
        """Linux then gives the signal to any of its threads."""
        for _ in range(4):
            self.write("state/runs")
            tool = subprocess.Popen(self.command(["a.hang", "b.hang"], "--jobs", "2", "--batch", "1", "--timeout", "50"), env=self.environment,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.wait_for(lambda: os.stat(self.path("state/runs")).st_size > 2)
            for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGCONT):
                tool.send_signal(number)
            self.assertEqual(tool.wait(30), 128 + signal.SIGTERM)
            tool.communicate()

    def wait_for(self, condition):
        for _ in range(600):
            if condition():
                return
            time.sleep(0.1)
        self.fail("nothing happens")

    def test_junit_and_logs_hold_the_disagreements(self):
        self.run_tool(["a.pass", "a.fail", "a.skip"], "--retries", "0")
        suite = xml.parse(self.path("junit.xml")).getroot().find("testsuite")
        self.assertEqual((suite.get("tests"), suite.get("failures"), suite.get("skipped")), ("3", "1", "1"))
        failure = suite.find("testcase/failure")
        self.assertIn("values differ", failure.get("message"))
        self.assertIn("details of a.fail", failure.text)
        self.assertEqual(os.listdir(self.path("logs")), ["a.fail.log"])

    def test_batches_are_no_larger_than_asked_for(self):
        self.run_tool([f"a.pass{number}" for number in range(10)], "--batch", "1")
        with open(self.path("state/runs"), encoding="utf-8") as file:
            self.assertEqual(file.read().split(), ["1"] * 10)

    def test_a_worker_without_cases_takes_of_those_of_a_slow_one(self):
        quick, slow = [f"a.pass{number:02}" for number in range(40)], [f"b.{number:02}.slow" for number in range(38)] + ["b.15.crash", "b.30.fail"]
        status, _, rows = self.run_tool(quick + slow, "--journal", self.path("journal"))
        self.assertEqual(status, 1, self.log)
        self.assertEqual({case: row["status"] for case, row in rows.items()}, dict.fromkeys(quick + slow, "Pass") | {"b.15.crash": "Crash", "b.30.fail": "Fail"})
        with open(self.path("journal"), encoding="utf-8") as file:
            self.assertEqual(len(file.readlines()), 80, "each case once")
        with open(self.path("state/runs"), encoding="utf-8") as file:
            runs = sorted(map(int, file.read().split()), reverse=True)
        self.assertEqual(runs[:2], [40, 40])
        # What was given back, and the rest of one part after the crash. The two cases that are run again are alone.
        self.assertGreaterEqual(len([run for run in runs[2:] if run > 1]), 3, runs)

    def test_a_program_that_cannot_start_is_an_error(self):
        self.environment["FAKE_DEQP_BROKEN"] = "1"
        status, _, rows = self.run_tool(["a.pass"], "--journal", self.path("journal"))
        self.assertEqual(status, 2)
        self.assertEqual(rows["a.pass"]["status"], "Missing")
        self.assertIn("no device", self.log)
        del self.environment["FAKE_DEQP_BROKEN"]
        self.assertEqual(self.run_tool(["a.pass"], "--journal", self.path("journal"))[0], 0, "the journal has no case that was not begun")

    def test_gles_runs_with_the_arguments_of_the_board(self):
        for suite in ("deqp-gles", "khr-gles"):
            status, _, rows = self.run_tool(["a.config"], "--retries", "0", "--", "--deqp-log-flush=disable", suite=suite)
            self.assertEqual((status, rows["a.config"]["detail"]), (1, "rgba8888d24s8ms0 256x256 pbuffer"), self.log)

    def fake_weston(self, *lines):
        os.mkdir(self.path("bin"))
        os.chmod(self.write("bin/weston", "#!/bin/sh", *lines), 0o755)
        self.environment |= {"PATH": self.path("bin") + ":" + os.environ["PATH"], "DISPLAY": ":1", "WAYLAND_DISPLAY": "w"}

    def test_a_window_system_is_started_for_the_run_and_names_cases_of_egl(self):
        self.fake_weston('trap "rm -f $0.up; exit" TERM', "touch $0.up $XDG_RUNTIME_DIR/wayland-e2e",
                         'echo "xserver listening on display :77"', "while sleep 0.05; do :; done")
        seen = {}
        for name in ("wayland", "xwayland"):
            status, _, rows = self.run_tool(
                ["a.windows", "a.fail", "a.skipped.pass"], "--window-system", name, "--retries", "0", suite="deqp-egl",
                fails=["wayland-a.fail,Fail", "x11-a.fail,Crash"], skips=["wayland-a.skipped"])
            self.assertEqual(status, 1, self.log)
            seen[name] = rows["a.windows"]["detail"], rows["a.fail"]["agrees"], "a.skipped.pass" in rows
        self.assertEqual(seen, {"wayland": ("['wayland-e2e', None, 'Wayland']", "yes", False),
                                "xwayland": ("['wayland-e2e', ':77', 'x11']", "no", True)})
        self.assertFalse(os.path.exists(self.path("bin/weston.up")), "it runs on")

    def test_a_window_system_that_does_not_start_is_an_error(self):
        self.fake_weston("echo no such backend", "exit 3")
        status, _, rows = self.run_tool(["a.pass"], "--window-system", "wayland")
        self.assertEqual((status, rows), (2, {}))
        self.assertIn("no such backend", self.log)

    def test_cases_that_lists_skip_can_be_kept(self):
        _, _, rows = self.run_tool(["wsi.pass", "wsi.fail", "b.pass"], "--keep", r"^wsi\.", "--retries", "0", skips=["wsi", "b"])
        self.assertEqual({case: row["agrees"] for case, row in rows.items()}, {"wsi.pass": "yes", "wsi.fail": "no"})

    def test_lists_that_are_missing_are_named(self):
        for options, named in ((["--skips", self.path("none.txt")], "cannot read the list " + self.path("none.txt") + ": No such"),
                               (["--caselist", self.path("none.txt")], "cannot read the list " + self.path("none.txt")),
                               (["--board", "broadcom-rpi6"], "no list broadcom-rpi6-fails.txt in " + self.path("lists") +
                                "; there are those of broadcom-rpi5\n")):
            status, _, rows = self.run_tool(["a.pass"], *options)
            self.assertEqual((status, rows), (2, {}), options)
            self.assertTrue(self.log.startswith("conformance: "), self.log)
            self.assertIn(named, self.log)

    def test_a_list_may_name_lists(self):
        os.makedirs(self.path("vk"))
        self.write("vk/api.txt", "a.api.pass")
        self.write("vk/draw.txt", "a.draw.fail")
        status, _, rows = self.run_tool(["vk/api.txt", "vk/draw.txt"], fails=["a.draw.fail,Fail"])
        self.assertEqual((status, sorted(rows)), (0, ["a.api.pass", "a.draw.fail"]), self.log)
        self.assertEqual(self.run_tool(["vk/none.txt"])[0], 2)
        self.assertIn("cannot read the list " + self.path("vk/none.txt"), self.log)
        self.assertEqual(self.run_tool(["vk/api.txt"], "--groups", "b.")[0], 2)
        self.assertIn("no case to run: none of the 1 that are listed", self.log)

    def test_wrong_options_are_refused(self):
        for options in (["--shard", "0/2"], ["--shard", "3/2"], ["--jobs", "0"], ["--unknown"]):
            self.assertEqual(self.run_tool(["a.pass"], *options)[0], 2, options)


FAKE_PIGLIT = """#!/bin/sh
cd "$(dirname "$0")"
[ "$1" = print-cmd ] || exit 9
echo "group@good, subtests	./good -auto"
echo "group@bad	./bad -auto"
echo "group@dies	./dies"
echo "group@absent	./absent"
echo "spec@!opengl 1.1@depth-0.5	./plain"
"""
FAKE_TESTS = {
    "good": """echo 'PIGLIT: {"subtest": {"first, red": "fail"}}'; echo 'PIGLIT: {"subtest": {"second": "skip"}}'
               echo 'PIGLIT: {"result": "pass"}'""",
    "plain": """echo 'PIGLIT: {"result": "pass"}'""",
    "bad": """echo 'PIGLIT: {"result": "fail"}'; exit 1""",
    "dies": """echo 'PIGLIT: {"subtest": {"before": "fail"}}'; kill -11 $$""",
}


class Piglit(Fixture):
    def test_results_of_tests_and_subtests_have_the_names_of_mesas_lists(self):
        for name, text in {"piglit": FAKE_PIGLIT, **{key: "#!/bin/sh\n" + text for key, text in FAKE_TESTS.items()}}.items():
            os.chmod(self.write(name, text), 0o755)
        self.write("lists/broadcom-rpi5-fails.txt", "group@good- subtests@first- red,Fail", "group@dies,Crash")
        done = subprocess.run([sys.executable, TOOL, "--suite", "piglit", "--binary", self.path("piglit"), "--launcher", "",
                               "--lists", self.path("lists"), "--retries", "0", "--junit", self.path("junit.xml")],
                              env=self.environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        names = {case.get("name"): case.get("classname") for case in xml.parse(self.path("junit.xml")).iter("testcase")}
        self.assertEqual(names["spec@!opengl 1.1@depth-0.5"], "spec@!opengl 1.1")
        self.assertEqual(names["group@good- subtests@second"], "group@good- subtests")

        self.assertIn("1 disagreements, 1 unexpected Fail\n  unexpected Fail: group@bad (listed Pass)", done.stdout)
        # Without a verdict: what was skipped, what is not there, and what came before a crash that is listed.
        self.assertRegex(done.stdout, r"all +8 +2 +3 +3 +80.00%")
        self.assertIn("1 of the tests without a verdict (n/s) have no program here", done.stdout)


class SharesTest(unittest.TestCase):
    def test_cases_stay_in_their_order_and_shares_are_alike(self):
        shares = Shares(list(range(1100)), 500, 2)
        cases = []
        while share := shares.take(lambda: False):
            self.assertEqual(len(share.cases), 275)
            cases += share.cases
            shares.end(share, [])
        self.assertEqual(cases, list(range(1100)))
        self.assertIsNone(Shares([], 500, 2).take(lambda: False))

    def test_what_is_given_back_is_dealt_out(self):
        shares = Shares(list(range(10)), 500, 1)
        share = shares.take(lambda: False)
        shares.num_idle = 2  # as while two wait
        shares.end(share, share.cases[3:])
        self.assertEqual(sorted(shares.take(lambda: False).cases for _ in range(3)), [[3, 6, 9], [4, 7], [5, 8]])

    def test_a_share_with_little_left_is_not_asked_for(self):
        shares = Shares(list(range(100)), 50, 2)
        slow, quick = shares.take(lambda: False), shares.take(lambda: False)
        self.assertTrue(all(slow.goes_on() for _ in range(10)))
        shares.end(quick, [])
        self.assertIsNone(shares.take(iter([False, True]).__next__))
        self.assertFalse(slow.is_wanted.is_set())
        slow.begins[0] -= 3  # its ten cases have taken three seconds, so that those that are left would take twelve
        self.assertIsNone(shares.take(iter([False, True]).__next__))
        self.assertTrue(slow.is_wanted.is_set())
        self.assertFalse(slow.goes_on())

    def test_nobody_waits_for_a_run_that_is_over(self):
        shares = Shares([1], 1, 2)
        shares.take(lambda: False)
        self.assertIsNone(shares.take(iter([False, False, True]).__next__))


if __name__ == "__main__":
    unittest.main()
