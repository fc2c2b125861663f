#!/usr/bin/env python3
"""Attacks beside a victim that computes and renders: its results stay right, its rounds short, and the daemon's memory,
descriptors, mappings, threads and processor time come back when the attackers are gone.

usage: hostile_test.py BUILD [--device NAME] [--engine NAME] [--debug NAME] [--group GROUP | --only NAME...] [--seconds FACTOR] [--seed S] [--list]
"""
import argparse
import collections
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hostile import board, captures, catalogue, siege  # pylint: disable=wrong-import-position
from hostile.daemon import Build  # pylint: disable=wrong-import-position


def run(build, attacks, seed, factor):
    """Prints a line for each; the names of those that failed."""
    failed, camp, folder = [], None, siege.scratch_folder()
    if any(attack.group == "captures" for attack in attacks):
        os.environ.update(captures.environment(build, os.path.join(folder, "captures")))
        captures.make(build, os.path.join(folder, "captures"))
    for attack in attacks:
        if attack.root and os.geteuid() != 0:
            print(f"{attack.name:24} skipped: only root can be another user", flush=True)
            continue
        if camp is None or not camp.usable():
            if camp:
                camp.close()
            camp = siege.Siege(build, os.path.join(folder, str(len(os.listdir(folder)))))
        outcome = camp.run(attack, seed, attack.seconds * factor)
        print(siege.describe(outcome), flush=True)
        if outcome.problems:
            failed.append(attack.name)
    problems = camp.close() if camp else []
    if problems:
        print("\n".join(problems))
        failed.append("the end of the daemon")
    if not failed:
        shutil.rmtree(folder)
    else:
        print(f"logs of the daemons: {folder}")
    return failed


# Daemons that lack something: what they start with, which limit they get when the victim works, and who asks for more.
Shortage = collections.namedtuple("Shortage", "name start limit attacks plain_only")
SHORTAGES = [
    Shortage("few descriptors", {"descriptors": 1024}, None,
             ("many_objects", "exported_descriptors", "unfinished_descriptors", "connection_flood"), False),
    Shortage("little address space", {"settled": True}, (resource.RLIMIT_AS, 24 << 30),
             ("address_spaces", "imports_everywhere", "connection_flood"), True),
    Shortage("little memory", {"settled": True}, (resource.RLIMIT_DATA, 192 << 20),
             ("unfinished_requests", "connection_flood", "millions_of_segments", "job_flood"), True),
]


FULL_DISK = ("log_storm", "random_vc4_ioctls")  # the first of them that the board has


def on_board(build, names):
    """The attacks of these names that make sense there."""
    return [attack for attack in map(catalogue.ATTACKS.get, names) if build.device in attack.boards]


def run_shortage(build, shortage, seed, factor):
    if shortage.plain_only and build.sanitizer():
        print(f"{shortage.name}: skipped, a sanitizer ends the program when it gets no memory")
        return []
    attacks = on_board(build, shortage.attacks)
    if not attacks:
        print(f"{shortage.name}: skipped, no attack for it makes sense on this board")
        return []
    folder, failed, camp = siege.scratch_folder(), [], None
    for attack in attacks:
        if camp is None or not camp.usable():
            camp = siege.Siege(build, os.path.join(folder, str(len(os.listdir(folder)))), shortage=True, **shortage.start)
            if shortage.limit:
                camp.limit(*shortage.limit)
        outcome = camp.run(attack, seed, min(3.0, attack.seconds) * factor)
        print(f"{shortage.name}:\n  {siege.describe(outcome)}", flush=True)
        if outcome.problems:
            failed.append(f"{attack.name} with {shortage.name}")
            camp.close()
    camp.close()
    if not failed:
        shutil.rmtree(folder)
    return failed


# What works for whom when the daemon is told to end, and when its last client dies.
ENDS = [("costly_lookups", "unmapped_pages", "large_programs", "names_of_many"),
        ("diagonal_lines", "huge_compute", "descriptors_that_linger", "waits_for_many")]
CHECKED = ("large_programs", "endless_compute", "endless_render")  # whose programs run, compile and are checked
BUSY = 0.5  # seconds
IDLE = 5  # seconds that a daemon whose clients are gone waits for others, also at its start
RUN_ON = 5  # seconds that the jobs of the dead may run before that


def run_end(build, names, seed, by_signal):
    """The daemon ends in time beside attacks that go on, or with the last client, whose jobs go on."""
    names = [attack.name for attack in on_board(build, names)]
    folder = siege.scratch_folder()
    camp = siege.Siege(build, os.path.join(folder, "0"), [] if by_signal else ["--exit-when-idle", str(IDLE)])
    counters, attackers = [], []
    for index, name in enumerate(names):
        counters.append(os.path.join(folder, f"counters-{index}"))
        open(counters[-1], "wb").close()
        attackers.append(siege.start_attacker(name, seed, 600, camp.environment(), counters[-1]))
    until = time.monotonic() + siege.START
    while not all(map(siege.has_begun, counters)) and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(BUSY)

    def kill():
        for attacker in attackers:
            os.killpg(attacker.pid, signal.SIGKILL)

    took, problems = camp.end(camp.daemon.terminate) if by_signal else camp.end(kill, RUN_ON + IDLE)
    for attacker in attackers:
        siege.end_attacker(attacker)
    how = "told to end beside" if by_signal else "left by its last clients"
    print(f"{how} {', '.join(names)}: {'never' if took is None else f'{took:.2f} s'}",
          *(f"    FAILED: {problem}" for problem in problems), sep="\n", flush=True)
    if not problems:
        shutil.rmtree(folder)
    return [f"end beside {', '.join(names)}"] if problems else []


def run_full_disk(build):
    """A capture whose disk is full: the victim goes on, and nobody takes the capture for a whole one."""
    folder = siege.scratch_folder()
    capture = os.path.join(folder, "full.v3dcap")
    camp = siege.Siege(build, os.path.join(folder, "0"), ["--capture", capture])
    camp.limit(resource.RLIMIT_FSIZE, os.path.getsize(capture) + (64 << 10))
    camp.wait(40)
    begin = time.monotonic()
    outcome = camp.run(on_board(build, FULL_DISK)[0], 1, 1.5)
    problems = outcome.problems + camp.close()
    print("full disk of a capture:\n  " + siege.describe(outcome))
    replay = subprocess.run([build.command, "decode", capture], capture_output=True, text=True, check=False)
    if replay.returncode != 1 or "cut" not in replay.stderr:
        problems.append(f"decode takes the capture for a whole one: {replay.returncode}, {replay.stderr[-500:]}")
    if "capture" not in camp.daemon.log_text():
        problems.append("the log does not tell")
    print(*(f"    FAILED: {problem}" for problem in problems), f"    {time.monotonic() - begin:.1f} s", sep="\n")
    if not problems:
        shutil.rmtree(folder)
    return ["full disk"] if problems else []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--device", choices=sorted(board.ALL), default=board.DEFAULT, help="the board that the daemon is")
    parser.add_argument("--group", choices=[*sorted(catalogue.groups()), "shortages", "ends"])
    parser.add_argument("--engine", metavar="NAME", help="of QPU programs, as $V3DEMU_JIT")
    parser.add_argument("--debug", metavar="NAME", help="what daemons look at, as $V3DEMU_DEBUG")
    parser.add_argument("--only", nargs="+", choices=sorted(catalogue.ATTACKS), metavar="NAME")
    parser.add_argument("--seconds", type=float, default=1.0, metavar="FACTOR", help="attacks last so many times longer")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    attacks = [catalogue.ATTACKS[name] for name in options.only] if options.only else list(catalogue.ATTACKS.values())
    if options.group in ("shortages", "ends"):
        attacks = []
    elif options.group:
        attacks = catalogue.groups()[options.group]
    attacks = [attack for attack in attacks if options.device in attack.boards]
    if options.list:
        for attack in attacks:
            print(f"{attack.group:12} {attack.point:3} {attack.name:24} {(attack.run.__doc__ or '').strip().split('.')[0]}")
        return
    settings = {"V3DEMU_JIT": options.engine, "V3DEMU_DEBUG": options.debug}
    build = Build(options.build, options.device, {name: value for name, value in settings.items() if value})
    if build.missing():
        sys.exit("not built: " + ", ".join(build.missing()))
    begin = time.monotonic()
    failed = run(build, attacks, options.seed, options.seconds)
    if options.group == "shortages" or not (options.group or options.only):
        for shortage in SHORTAGES:
            failed += run_shortage(build, shortage, options.seed, options.seconds)
        failed += run_full_disk(build)
    if options.group == "ends" or not (options.group or options.only):
        for names, by_signal in ((ENDS[0], True), (ENDS[1], True), (ENDS[1], False)):
            failed += run_end(build, names, options.seed, by_signal)
        checking = Build(options.build, options.device, {**build.settings, "V3DEMU_DEBUG": "hazard"})
        failed += run_end(checking, CHECKED, options.seed, True)
    print(f"{len(attacks)} attacks in {time.monotonic() - begin:.1f} s")
    if failed:
        sys.exit("failed: " + ", ".join(failed))


if __name__ == "__main__":
    main()
