#!/usr/bin/env python3
"""Stands in for deqp-runner: `suite` and `junit` with the options that Mesa's CI gives, one process for all cases of a section.

Its rules of statuses are written down from its documentation apart from ours, so that the two can be compared; cases after a
crash are run again, and so are sections in which something was unexpected, as it does.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib

SUCCESS = ("Pass", "Skip", "Warn", "Flake", "KnownFlake", "ExpectedFail")
NAMES = {"NotSupported": "Skip", "QualityWarning": "Warn", "ResourceError": "Fail", "InternalError": "Fail"}


def lines(paths):
    return [line for path in paths for line in open(path, encoding="utf-8").read().splitlines() if line and not line.startswith("#")]


def with_baseline(status, listed):
    if listed is None:
        return status
    if status == "Fail":
        return {"Fail": "ExpectedFail", "Crash": "UnexpectedImprovement(Fail)", "Timeout": "UnexpectedImprovement(Fail)"}.get(listed, status)
    if status in ("Crash", "Timeout"):
        return "ExpectedFail" if listed == status else status
    if status in ("Pass", "Skip"):
        return f"UnexpectedImprovement({status})" if listed in ("Fail", "Crash", "Missing", "Timeout") else status
    return status


def attempt(section, cases):
    """Statuses of one process."""
    with tempfile.TemporaryDirectory() as folder:
        caselist = os.path.join(folder, "cases")
        with open(caselist, "w", encoding="utf-8") as file:
            file.writelines(case + "\n" for case in cases)
        done = subprocess.run([section["deqp"], *section.get("deqp_args", []), f"--deqp-caselist-file={caselist}",
                               f"--deqp-log-filename={folder}/log.qpa"], cwd=os.path.dirname(section["deqp"]),
                              stdout=subprocess.PIPE, text=True, check=False)
    found, running = {}, None
    for line in done.stdout.splitlines():
        if begun := re.match(r"Test case '(.*)'\.\.", line):
            running = begun[1]
        elif running and (told := re.match(r"  (\w+) \(", line)):
            found[running], running = NAMES.get(told[1], told[1]), None
    return found | ({running: "Crash"} if running else {})


def run_section(section, options, baseline, results):
    known, skips = lines(options.flakes), lines(options.skips)
    prefix = section.get("prefix", "")
    cases = lines(section["caselists"])[options.fraction_start - 1::options.fraction * section.get("fraction", 1)]
    if wanted := section.get("include"):
        cases = [case for case in cases if any(re.search(pattern, case) for pattern in wanted)]
    left = []
    for case in cases:
        if any(re.search(pattern, prefix + case) for pattern in skips):
            results[prefix + case] = "Skip"
        else:
            left.append(case)

    def judged(found):
        told = {}
        for case, status in found.items():
            status = with_baseline(status, baseline.get(prefix + case))
            flaky = status not in SUCCESS and any(re.search(pattern, prefix + case) for pattern in known)
            told[prefix + case] = "KnownFlake" if flaky else status
        return told
    while left:
        found = attempt(section, left)
        if not found:
            results |= {prefix + case: "Missing" for case in left}
            return
        told = judged(found)
        if any(status not in SUCCESS for status in told.values()):
            again = judged(attempt(section, left))
            told = {case: status if again.get(case) == status else "Flake" for case, status in told.items()}
        results |= told
        left = [case for case in left if case not in found]


def suite(options):
    with open(options.suite, "rb") as file:
        sections = tomllib.load(file)
    baseline, results = dict(line.split(",") for line in lines([options.baseline])), {}
    for section in sections["deqp"]:
        assert section["timeout"] > 0
        run_section(section, options, baseline, results)
    for name, bad_alone in (("results.csv", False), ("failures.csv", True)):
        with open(os.path.join(options.output, name), "w", encoding="utf-8") as file:
            file.writelines(f"{case},{status}" + ("\n" if bad_alone else ",0.5\n") for case, status in sorted(results.items())
                            if not bad_alone or status not in SUCCESS)
    return int(any(status not in SUCCESS for status in results.values()))


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("suite")
    for name in ("suite", "output", "baseline"):
        one.add_argument(f"--{name}", required=True)
    for name in ("skips", "flakes"):
        one.add_argument(f"--{name}", nargs="+", default=[])
    for name in ("fraction-start", "fraction", "jobs"):
        one.add_argument(f"--{name}", type=int, required=True)
    other = commands.add_parser("junit")
    for name in ("testsuite", "results", "output", "limit", "template"):
        other.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    if options.command == "suite":
        return suite(options)
    with open(options.output, "w", encoding="utf-8") as file:
        file.write(f"<testsuites><testsuite name='{options.testsuite}'/></testsuites>")
    return 0


if __name__ == "__main__":
    sys.exit(main())
