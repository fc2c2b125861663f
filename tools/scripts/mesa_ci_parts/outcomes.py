"""What deqp-runner makes of results, and the files that it writes."""
import collections
import csv
import os
import re
import xml.etree.ElementTree as xml

from conformance_parts.lists import Lists, fail
from conformance_parts.suites import NOT_INSTALLED
from new_file import new_file

SUCCESSES = {"Pass", "Skip", "Warn", "Flake", "KnownFlake", "ExpectedFail"}
MOST_IN_JUNIT = 50  # as Mesa's deqp-runner.sh asks for

# Statuses of the list for which one of a case is another than its own.
EXPECTED = {"Fail": {"Fail", "ExpectedFail"}, "Crash": {"Crash", "ExpectedFail"}, "Warn": {"Warn"}, "Timeout": {"Timeout"}}
IMPROVED = {"Fail": {"Crash", "Timeout"}, "Warn": {"Fail", "Crash"}, "Pass": {"Fail", "Crash", "Missing", "Timeout"},
            "Skip": {"Fail", "Crash", "Missing", "Timeout"}}

Outcome = collections.namedtuple("Outcome", "status seconds detail log")


class Baseline(Lists):
    """Lists as deqp-runner reads them."""

    def outcome(self, result):
        """The status that deqp-runner would tell of a result."""
        listed, status = self.fails.get(self.prefix + result.case), result.status
        if status in ("Missing", "Flake"):
            return status
        if listed in EXPECTED.get(status, ()):
            return "ExpectedFail"
        if listed in IMPROVED.get(status, ()):
            status = f"UnexpectedImprovement({status})"
        return "KnownFlake" if status not in SUCCESSES and self.flaky(result.case) else status

    def doubtful(self, result):
        return self.outcome(result) not in SUCCESSES


class Outcomes:
    """Of all suites of a job, by the names that Mesa's lists have."""

    def __init__(self):
        self.by_case = {}

    def add(self, case, outcome):
        if case in self.by_case:
            outcome = outcome._replace(status="Fail", detail="two results of one case: " + outcome.detail)
        self.by_case[case] = outcome

    def failures(self):
        return {case: outcome for case, outcome in sorted(self.by_case.items()) if outcome.status not in SUCCESSES}

    def write(self, folder):
        """results.csv, failures.csv and junit.xml, and the logs of the first failures."""
        os.makedirs(folder, exist_ok=True)
        failures = self.failures()
        with new_file(os.path.join(folder, "results.csv")) as file:
            file.writelines(f"{case},{outcome.status},{outcome.seconds:.3f}\n" for case, outcome in sorted(self.by_case.items()))
        with new_file(os.path.join(folder, "failures.csv")) as file:
            file.writelines(f"{case},{outcome.status}\n" for case, outcome in failures.items())
        told = dict(list(failures.items())[:MOST_IN_JUNIT])
        with new_file(os.path.join(folder, "junit.xml"), "wb") as file:
            _junit(told).write(file, encoding="utf-8", xml_declaration=True)
        for case, outcome in told.items():
            with new_file(os.path.join(folder, _file_name(case))) as file:
                file.write(f"{case}: {outcome.status}: {outcome.detail}\n{outcome.log or ''}")

    def summary(self):
        """deqp-runner's last lines, and how many results are as the lists have them."""
        counts = collections.Counter(outcome.status.partition("(")[0] for outcome in self.by_case.values())
        counts["Flake"] += counts.pop("KnownFlake", 0)
        order = ["Fail", "Crash", "UnexpectedImprovement", "ExpectedFail", "Warn", "Skip", "Timeout", "Missing", "Flake"]
        lines = [", ".join([f"Pass: {counts['Pass']}"] + [f"{status}: {counts[status]}" for status in order if counts[status]])]
        failures, judged = self.failures(), len(self.by_case) - counts["Skip"]
        if judged:
            lines.append(f"as on the board: {judged - len(failures)} of {judged}, {100 * (judged - len(failures)) / judged:.2f} %")
        absent = sum(outcome.detail.startswith(NOT_INSTALLED) for outcome in self.by_case.values())
        if absent:
            lines.append(f"{absent} of the skipped tests have no program here")
        missing = [outcome.detail for outcome in self.by_case.values() if outcome.status == "Missing"]
        if missing:
            lines.append(f"{len(missing)} cases were not even begun; of the first: {missing[0]}")
        if failures:
            lines += ["", "Some failures found:"] + [f"  {case},{outcome.status}" for case, outcome in list(failures.items())[:25]]
            if len(failures) > 25:
                lines.append("  ... and more (see failures.csv)")
        return "\n".join(lines)


def _file_name(case):
    return re.sub(r"[^\w.@!-]", "_", case)[-200:] + ".log"


def _junit(failures):
    root = xml.Element("testsuites")
    suite = xml.SubElement(root, "testsuite", id="0", name="dEQP", tests=str(len(failures)), errors="0",
                           failures=str(len(failures)))
    for case, outcome in failures.items():
        failure = xml.SubElement(xml.SubElement(suite, "testcase", name=case, time="0"), "failure")
        failure.set("type", outcome.status)
        failure.set("message", f"See {_file_name(case)}")
    return xml.ElementTree(root)


def merged(folders):
    """The outcomes of shards."""
    outcomes = Outcomes()
    for folder in folders:
        path = os.path.join(folder, "results.csv")
        try:
            with open(path, encoding="utf-8", newline="") as file:
                rows = [row for row in csv.reader(file) if row]
        except OSError as error:
            fail(f"{path}: {error.strerror}")
        for row in rows:
            if len(row) < 2:
                fail(f"{path}: no result is in {','.join(row)}")
            # A name may hold commas; what is behind them does not.
            case, status, seconds = (",".join(row[:-2]), *row[-2:]) if len(row) > 2 else (*row, "0")
            outcomes.add(case, Outcome(status, float(seconds), "", None))
    return outcomes
