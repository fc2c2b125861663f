"""The suites that are run: each runs cases in a process, and tells their results."""
import collections
import json
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import time

from . import ending
from .lists import NO_VERDICT, PASSES, Result, fail

# What dEQP prints, and the name that Mesa's lists have for it.
DEQP_STATUS = {
    "Pass": "Pass", "Fail": "Fail", "QualityWarning": "Warn", "CompatibilityWarning": "Warn", "Waiver": "Warn",
    "Pending": "Fail", "NotSupported": "Skip", "ResourceError": "Fail", "InternalError": "Fail", "Crash": "Crash",
    "Timeout": "Timeout", "DeviceLost": "Fail", "EnforceDefaultContext": "Skip", "EnforceDefaultInstance": "Skip",
}
PIGLIT_STATUS = {"pass": "Pass", "skip": "Skip", "warn": "Warn", "fail": "Fail", "crash": "Crash", "timeout": "Timeout"}

NOT_INSTALLED = "not installed: "


class Process:
    """A child in a group of its own whose output is read line by line, with a limit on its silence."""

    def __init__(self, command, folder, environment):
        self.child = ending.start(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
        self.tail = collections.deque(maxlen=20)
        self.hung = False

    def lines(self, silence):
        """Yields decoded lines; stops at the end or after `silence` seconds without any (then self.hung)."""
        stream, pending = self.child.stdout, b""
        while True:
            if not select.select([stream], [], [], silence)[0]:
                self.hung = True
                return
            data = os.read(stream.fileno(), 65536)
            *whole, pending = (pending + data).split(b"\n")
            if not data and pending:
                whole, pending = [pending], b""
            for line in whole:
                text = line.decode(errors="replace").rstrip("\r")
                self.tail.append(text)
                yield text
            if not data:
                return

    def end(self):
        """The exit status; whatever is left of the group is killed."""
        if self.hung:
            self._kill()
        try:
            ending.wait(self.child, 10)
        except subprocess.TimeoutExpired:
            self._kill()
        self.child.stdout.close()
        return ending.wait(self.child)

    def stop(self):
        """Before its time: what it has not told yet is not wanted."""
        self._kill()

    def _kill(self):
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def how_it_ended(self, code):
        if self.hung:
            return "no output for the time limit"
        last = " | ".join(line for line in list(self.tail)[-3:] if line.strip())
        return (signal.Signals(-code).name if code < 0 else f"exit status {code}") + (f": {last}" if last else "")


class Deqp:
    """A dEQP executable: many cases per process, results on standard output, details in a .qpa file."""

    batch_limit = 500
    begin = re.compile(r"^Test case '([^']+)'\.\.")
    outcome = re.compile(r"^  (\w+) \((.*)")

    def __init__(self, options):
        if not os.access(options.binary, os.X_OK):
            fail(f"no executable at {options.binary}")
        self.command = options.launcher + [os.path.abspath(options.binary)] + options.arguments
        self.folder = os.path.dirname(os.path.abspath(options.binary))
        self.silence = options.timeout
        self.environment = dict(os.environ, MESA_SHADER_CACHE_DISABLE="true")

    @staticmethod
    def names_in_junit(case):
        """Class and name: groups of cases are divided by dots."""
        parent, _, leaf = case.rpartition(".")
        return parent, leaf

    def all_cases(self):
        fail("dEQP needs --caselist")

    def run(self, cases, scratch, goes_on):
        """Runs cases in one process. (Results, how it ended); those after a crash or a hang are missing from them, and those
        from the first on for which goes_on(), which is asked as each begins, says no."""
        caselist, log, cache = (os.path.join(scratch, name) for name in ("cases.txt", "log.qpa", "shaders.bin"))
        with open(caselist, "w", encoding="utf-8") as file:
            file.write("\n".join(cases) + "\n")
        # Without a name all processes write compiled shaders to one file, which each empties as it starts while others have places in it.
        process = Process(self.command + [f"--deqp-caselist-file={caselist}", f"--deqp-log-filename={log}", f"--deqp-shadercache-filename={cache}",
                                          "--deqp-log-images=disable", "--deqp-log-shader-sources=disable"],
                          self.folder, self.environment)
        results, running, since = [], None, time.monotonic()
        for line in process.lines(self.silence):
            if begun := self.begin.match(line):
                if not goes_on():
                    process.stop()
                    break
                running, since = begun.group(1), time.monotonic()
            elif running and (ended := self.outcome.match(line)) and ended.group(1) in DEQP_STATUS:
                status = DEQP_STATUS[ended.group(1)]
                detail = ended.group(2).removesuffix(")")
                results.append(Result(running, status, detail, time.monotonic() - since, None))
                running = None
        code = process.end()
        why = process.how_it_ended(code)
        if running and not ending.is_told():
            status = "Timeout" if process.hung else "Crash"
            results.append(Result(running, status, why, time.monotonic() - since, None))
        elif not results and code == 0:
            why = "the suite ended well without it: its program was built without that case, or the case list is of another version"
        logs = self._logs_of(log, {result.case for result in results if result.status not in PASSES | NO_VERDICT})
        return [result._replace(log=logs.get(result.case)) for result in results], why

    def text_of(self, case, scratch):
        """What one case writes to its log; empty where it does not run."""
        log = os.path.join(scratch, "log.qpa")
        process = Process(self.command + [f"--deqp-case={case}", f"--deqp-log-filename={log}"], self.folder, self.environment)
        collections.deque(process.lines(self.silence), maxlen=0)
        process.end()
        return self._logs_of(log, {case}).get(case, "")

    @staticmethod
    def _logs_of(path, cases):
        """Sections of a .qpa file for the given cases."""
        sections, name, text = {}, None, []
        if not cases or not os.path.exists(path):
            return sections
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("#beginTestCaseResult "):
                    name, text = line.split(" ", 1)[1].strip(), []
                elif line.startswith(("#endTestCaseResult", "#terminateTestCaseResult")):
                    name = None
                elif name in cases:
                    text.append(line)
                    sections[name] = text
        return {case: "".join(text) for case, text in sections.items()}


class Piglit:
    """piglit: one process per test, which prints its result and those of its subtests as JSON."""

    batch_limit = 1
    report = re.compile(r"PIGLIT: (\{.*\})")

    def __init__(self, options):
        self.binary, self.launcher, self.silence = shutil.which(options.binary), options.launcher, options.timeout
        if not self.binary:
            fail(f"no piglit at {options.binary}")
        self.folder = os.path.dirname(os.path.realpath(self.binary))
        self.profile = (options.arguments or ["gpu"])[0]
        self.environment = dict(os.environ, MESA_SHADER_CACHE_DISABLE="true")
        has_window_system = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        self.environment.setdefault("PIGLIT_PLATFORM", "mixed_glx_egl" if has_window_system else "gbm")
        listed = subprocess.run([self.binary, "print-cmd", "--format", "{name}\t{command}", self.profile],
                                capture_output=True, text=True, check=False)
        if listed.returncode:
            last = (listed.stderr.strip().splitlines() or [f"exit status {listed.returncode}"])[-1]
            fail(f"piglit does not list the tests of profile {self.profile}: {last}")
        pairs = (line.split("\t", 1) for line in listed.stdout.splitlines() if "\t" in line)
        self.commands = {self.mesa_name(name): shlex.split(command) for name, command in pairs}
        for program, *_ in self.commands.values():  # ROOT/bin/TEST, with the files that tests read under ROOT
            root = os.path.dirname(os.path.dirname(os.path.realpath(os.path.join(self.folder, program))))
            self.environment.setdefault("PIGLIT_SOURCE_DIR", root)

    @staticmethod
    def mesa_name(name):
        return name.replace(",", "-")  # a comma ends the name in Mesa's lists

    @staticmethod
    def names_in_junit(case):
        """Class and name: the name is piglit's, whole, in which dots are letters like others."""
        return case.rpartition("@")[0], case

    def all_cases(self):
        return list(self.commands)

    def run(self, cases, scratch, goes_on):
        goes_on()
        case = cases[0]
        if case not in self.commands:
            return [], f"profile {self.profile} has no such test"
        program = self.commands[case][0]
        if os.path.dirname(program) and not os.path.exists(os.path.join(self.folder, program)):
            return [Result(case, "Skip", NOT_INSTALLED + program, 0, None)], ""
        process = Process(self.launcher + self.commands[case], self.folder, self.environment)
        since, output, status, subtests = time.monotonic(), [], None, {}
        for line in process.lines(self.silence):
            output.append(line)
            if reported := self.report.search(line):
                report = json.loads(reported.group(1))
                status = report.get("result", status)
                subtests.update(report.get("subtest", {}))
        code = process.end()
        if ending.is_told():
            return [], ""
        why, seconds = process.how_it_ended(code), time.monotonic() - since
        if process.hung:
            status = "timeout"
        elif code not in (0, 1) or status is None:  # as deqp-runner has it, by which Mesa's lists are made
            status = "crash"
        log = "\n".join(output)
        results = [Result(case, PIGLIT_STATUS[status], why, seconds, log)]
        for name, result in subtests.items():
            results.append(Result(f"{case}@{self.mesa_name(name)}", PIGLIT_STATUS[result], "subtest", 0, log))
        return results, why
