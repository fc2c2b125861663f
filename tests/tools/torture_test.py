#!/usr/bin/env python3
"""What tools/torture and the attacks decide by: plans, limits, mutations, bounds. usage: torture_test.py SOURCE_FOLDER"""
import os
import random
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(sys.argv.pop(1))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(ROOT, "tools", "scripts"), os.path.join(ROOT, "tests", "e2e", "isolation")]
from hostile import assault, captures, catalogue, daemon, messages, siege, wire, witness  # pylint: disable=wrong-import-position
from capture_records import END, JOB, MAPS, PAGE, SETS  # pylint: disable=wrong-import-position,wrong-import-order
from torture_parts import limits, plan, report  # pylint: disable=wrong-import-position


class Plans(unittest.TestCase):
    attacks = list(catalogue.ATTACKS.values())

    def rounds(self, seed, attacks=None):
        made = plan.Plan(seed, self.attacks if attacks is None else attacks)
        return [made.round(number) for number in range(200)]

    def test_the_same_seed_gives_the_same_rounds(self):
        self.assertEqual(self.rounds(7), self.rounds(7))
        self.assertNotEqual(self.rounds(7), self.rounds(8))

    def test_every_attack_comes_and_each_instance_has_a_seed_of_its_own(self):
        parts = [part for parts in self.rounds(1) for part in parts]
        self.assertEqual({part.instance.attack for part in parts}, set(catalogue.ATTACKS))
        self.assertEqual(len({part.instance.seed for part in parts}), len(parts))

    def test_rounds_are_in_order_and_end(self):
        for parts in self.rounds(3):
            self.assertTrue(parts)
            self.assertEqual(parts, sorted(parts, key=lambda part: part.start))
            for part in parts:
                self.assertLessEqual(part.start + part.instance.seconds, plan.ROUND[1] + 0.5)
                self.assertGreater(part.instance.seconds, 0)
                if part.kill is not None:
                    self.assertGreater(part.kill, part.start)

    def test_attacks_that_must_not_meet_do_not(self):
        alone = {attack.name for attack in self.attacks if not attack.shared}
        for parts in self.rounds(5):
            self.assertLessEqual(len({part.instance.attack for part in parts} & alone), 1)

    def test_some_rounds_end_the_daemon(self):
        made = plan.Plan(1, self.attacks)
        self.assertTrue(5 <= sum(made.ends(number) for number in range(200)) <= 40)

    def test_few_attacks_are_enough(self):
        for name in ("many_objects", "nonsense"):
            for parts in self.rounds(2, [catalogue.ATTACKS[name]]):
                self.assertEqual({part.instance.attack for part in parts}, {name})

    def test_instances_read_back(self):
        instance = plan.Instance("nonsense", 12345, 2.75)
        self.assertEqual(plan.parse_instance(plan.print_instance(instance)), instance)
        with self.assertRaises(ValueError):
            plan.parse_instance("nonsense:12")


class Limits(unittest.TestCase):
    def sleeper(self):
        process = subprocess.Popen(["sleep", "60"], start_new_session=True)  # pylint: disable=consider-using-with
        self.addCleanup(lambda: (process.kill(), process.wait()))
        return process

    def test_within_bounds_nobody_is_ended(self):
        process = self.sleeper()
        guard = limits.Guard(processes=10, memory=1 << 34)
        self.assertEqual(guard.check([process.pid]), [])
        self.assertIsNone(process.poll())
        self.assertEqual(guard.peak_processes, 1)

    def test_the_largest_ends_first(self):
        small, large = self.sleeper(), self.sleeper()
        table = {small.pid: [(small.pid, 100)], large.pid: [(large.pid, 1000)], 1: [(1, 1 << 40)]}
        guard = limits.Guard(processes=10, memory=500)
        self.assertEqual(guard.check([small.pid, large.pid], 300, table), [large.pid])
        self.assertEqual(large.wait(10), -9)
        self.assertIsNone(small.poll())
        self.assertEqual((guard.kills, guard.peak_memory), (1, 1400))

    def test_the_session_of_most_processes_ends_when_there_are_too_many(self):
        one, many = self.sleeper(), self.sleeper()
        table = {one.pid: [(one.pid, 10_000)], many.pid: [(many.pid, 1)] * 7}
        self.assertEqual(limits.Guard(processes=5, memory=1 << 40).check([one.pid, many.pid], 0, table), [many.pid])

    def test_a_folder_that_is_no_cgroup(self):
        with tempfile.TemporaryDirectory() as base:
            group = limits.Cgroup(100, 1 << 30, base)
            self.assertEqual((group.folders, os.listdir(base)), ([], []))
            group.leave()

    def test_sanitizers_get_address_space(self):
        self.assertEqual(set(limits.for_attackers(False)) - set(limits.for_attackers(True)), {limits.resource.RLIMIT_AS})


class Captures(unittest.TestCase):
    def setUp(self):
        job = struct.pack("<19I", 1, captures.CSD, *range(17))
        self.data = captures.join(b"V3DCAP\0\2" + b"rpi5".ljust(24, b"\0"), [
            (PAGE, bytes(4096)), (MAPS, struct.pack("<3I", 1, 0x1000, 1)),
            (SETS, struct.pack("<3I", 1, 0x1000, 1)), (JOB, job), (END, struct.pack("<I", 1))])

    def test_records_read_back(self):
        self.assertEqual(captures.join(*captures.split(self.data)), self.data)

    def test_mutations_follow_from_the_seed_and_differ(self):
        made = [captures.mutate(random.Random(seed), self.data) for seed in range(200)]
        self.assertEqual(made, [captures.mutate(random.Random(seed), self.data) for seed in range(200)])
        self.assertGreater(len(set(made)), 150)
        self.assertGreater(sum(one != self.data for one in made), 190)


class Watching(unittest.TestCase):
    figures = daemon.Figures(rss=50 << 20, maps=200, fds=20, threads=8, address=1 << 30, cpu=1.0)

    def test_percentiles(self):
        self.assertEqual(witness.percentile([], 99), 0)
        self.assertEqual(witness.percentile(range(1, 101), 99), 99)
        self.assertEqual(witness.percentile([5], 50), 5)

    def test_what_came_back_is_no_excess(self):
        self.assertEqual(siege.excess(self.figures, self.figures, siege.PLAIN), "")
        more = self.figures._replace(rss=self.figures.rss + siege.PLAIN.rss, fds=self.figures.fds + siege.PLAIN.fds)
        self.assertEqual(siege.excess(self.figures, more, siege.PLAIN), "")

    def test_what_stays_is_named(self):
        more = self.figures._replace(rss=200 << 20, fds=100)
        self.assertEqual(siege.excess(self.figures, more, siege.PLAIN), "rss 200 of at most 98 MiB, fds 100 of at most 36")

    def test_status(self):
        status = daemon.parse_status("""v3demud pid 26004, up 2.0 s
device rpi5: Raspberry Pi 5, V3D 7.1.7, 3 slices of 4 QPUs
Linux 7.3, 4 GPU resets
queue          queued       jobs      busy ms
bin                2*       277          3.4
cache_clean        0         277          0.0
3 open nodes, 2 connections, 1 clients leaving
GPU errors: 4 hangs, 1 job with MMU faults, 12 refused jobs; the last 16:
  0.0 s ago, python3 (pid 101), render job 2327: refused: rendering list
client program               pid       node     BOs        KiB       bin    render       tfu       csd     clean       cpu  faults  failed  name
     4 a b                   100 renderD128       3         24         1         1         0         0         0         0       0       0  -
     5 python3               101 renderD128       7         24         1         1         0         0         0         0       0       0  x y
     6 python3               101      card0       2         24         1         1         0         0         0         0       0       0  -
""")
        self.assertEqual(status, daemon.Status(3, 2, 1, {"bin": 2, "cache_clean": 0}, {100: 3, 101: 9}, 4, 12))

    def test_lines_of_sanitizers(self):
        for line in ("==1==ERROR: AddressSanitizer: heap-use-after-free on address", "x.cc:3:4: runtime error: shift",
                     "WARNING: ThreadSanitizer: data race", "SUMMARY: AddressSanitizer: 8 byte(s) leaked",
                     "terminate called after throwing an instance of 'std::bad_alloc'"):
            self.assertTrue(daemon.REPORT.search(line), line)
        self.assertFalse(daemon.REPORT.search("v3demu 1.0 error: csd job 3 of python3 (pid 4) hangs, resetting"))

    def test_counters_outlive_who_counts(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "counters")
            open(path, "wb").close()
            self.assertEqual(sum(assault.Counters.read(path).values()), 0)
            for _ in range(2):
                counters = assault.Counters(path)
                counters.add("ioctls", 3)
                counters.add("kills")
            self.assertEqual(dict(assault.Counters.read(path)),
                             {"ioctls": 6, "captures": 0, "kills": 2, "forks": 0, "exhaustions": 0})

    def test_reports(self):
        tally = report.Tally()
        tally.start = tally.end = self.figures
        tally.see(self.figures._replace(fds=99))
        tally.latency["victim"] = [0.001] * 98 + [0.5, 0.002]
        tally.counts.update(ioctls=5)
        tally.see_quiet(self.figures._replace(fds=21))
        tally.compare([0.01, 0.03], [0.012], "nonsense:1:2.0")
        tally.compare([0.9], [0.4], "a loaded machine")
        tally.compare([0.05], [0.04], "another")
        tally.dead_jobs += [0.2, 0.9, 0.1]
        tally.ends.append(1.5)
        tally.failures.append("the daemon ended")
        made = tally.as_dict(seed=3, seconds=2.0, guard={"kills": 0, "processes": 1, "memory": 0}, build="b", sanitized=False)
        self.assertEqual(made["victims"]["victim"], {"rounds": 100, "max_ms": 500.0, "p99_ms": 2.0})
        self.assertEqual(made["daemon"]["fds"], {"start": 20, "peak": 99, "quiet": 21, "end": 20})
        text = report.as_text(made)
        for part in ("5 ioctls", "max 500.0 ms", "fds: 20 at the start, 99 at most, 21 at most after a storm, 20 at the end",
                     "victim: 30.0 ms beside 12.0 ms of the control (nonsense:1:2.0), of 2 storms; 1 with", "FAILED: the daemon",
                     "jobs of 3 killed clients were gone after 900.0 ms at most, 200.0 ms", "1 ends by SIGTERM after 1500.0 ms",
                     "1 failures"):
            self.assertIn(part, text)


class Protocol(unittest.TestCase):
    def test_constants_are_those_of_the_header(self):
        self.assertEqual((wire.MAGIC, wire.MAX_PAYLOAD, wire.MAX_FDS), (0x55443356, 64 << 20, 16))
        self.assertEqual((wire.HELLO, wire.OPEN, wire.ADOPT, wire.IOCTL, wire.FD_IOCTL, wire.MMAP, wire.COMMAND),
                         (1, 2, 3, 4, 5, 6, 7))

    def test_requests_are_those_of_the_fuzzer(self):
        self.assertGreater(len(messages.known_requests()), 40)
        self.assertIn(0xc0486440, messages.known_requests())

    def test_random_arguments_follow_from_the_seed(self):
        for size in (0, 3, 16, 72):
            made = [messages.random_argument(random.Random(seed), size) for seed in range(50)]
            self.assertEqual(made, [messages.random_argument(random.Random(seed), size) for seed in range(50)])
            self.assertEqual({len(one) for one in made}, {size})


if __name__ == "__main__":
    unittest.main()
