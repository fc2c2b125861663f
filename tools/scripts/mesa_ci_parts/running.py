"""Runs the suites of a job, by deqp-runner where that is installed and else by the runner of tools/conformance."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import types

from conformance_parts import ending
from conformance_parts.lists import fail
from conformance_parts.runner import Runner
from conformance_parts.suites import Deqp, Piglit
from new_file import new_file
from .jobs import FOLDER
from .outcomes import Baseline, Outcome, Outcomes
from .suites import toml_of


def list_paths(tree, job):
    """Paths of fails, flakes and skips: those that .gitlab-ci/deqp-runner.sh gives to deqp-runner."""
    variables = job.variables
    shared, own = os.path.join(tree, ".gitlab-ci"), os.path.join(tree, FOLDER)
    drivers = [variables[name] for name in ("VK_DRIVER", "GALLIUM_DRIVER", "DRIVER_NAME") if variables.get(name)]
    skips = [os.path.join(shared, "all-skips.txt"), *(os.path.join(own, f"{name}-skips.txt") for name in [*drivers, job.board])]
    if "full" not in job.name:
        skips.append(os.path.join(own, f"{job.board}-slow-skips.txt"))
    skips.append(os.path.join(shared, "gbm-skips.txt" if variables.get("PIGLIT_PLATFORM") == "gbm" else "x11-skips.txt"))
    kinds = [[os.path.join(own, f"{job.board}-fails.txt")], [os.path.join(own, f"{job.board}-flakes.txt")], skips]
    return [[path for path in paths if os.path.exists(path)] for paths in kinds]


def run_own(sections, lists, options):
    outcomes = Outcomes()
    for section in sections:
        variables = {name: os.environ.get(name) for name in section.table.get("env", {})}
        os.environ.update(section.table.get("env", {}))
        try:
            _run_section(section, Baseline(*lists, section.prefix), outcomes, options)
        finally:
            for name, value in variables.items():
                os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
    return outcomes


def _run_section(section, baseline, outcomes, options):
    choice = types.SimpleNamespace(
        binary=section.program, launcher=options.launcher, timeout=options.timeout,
        arguments=section.table.get("deqp_args", []) if section.kind == "deqp" else [section.table["profile"]])
    suite = (Deqp if section.kind == "deqp" else Piglit)(choice)
    suite.batch_limit = int(section.table.get("tests_per_group", suite.batch_limit))
    chosen = section.cases(section.listed() if section.kind == "deqp" else suite.all_cases(), *options.part)
    for patterns in filter(None, (section.table.get("include"), options.include)):
        chosen = [case for case in chosen if any(re.search(pattern, case) for pattern in patterns)]
    to_run = [case for case in chosen if not baseline.skipped(case)]
    print(f"{section.name}: {len(to_run)} cases, {len(chosen) - len(to_run)} more are skipped", flush=True)
    for case in set(chosen) - set(to_run):
        outcomes.add(section.prefix + case, Outcome("Skip", 0, "in a skip list", None))
    if not to_run:
        return
    if section.kind == "deqp":
        _check(section, suite, to_run[0])
    # By its name: when the run goes on another suite may be here.
    journal = options.journal and f"{options.journal}.{re.sub(r'[^A-Za-z0-9]+', '-', section.prefix + section.name).strip('-')}"
    settings = types.SimpleNamespace(journal=journal, retries=1, jobs=options.jobs,
                                     batch=suite.batch_limit, progress=options.progress)
    for result in Runner(suite, baseline, settings).run(to_run).values():
        outcomes.add(section.prefix + result.case, Outcome(baseline.outcome(result), result.seconds, result.detail, result.log))


def _check(section, suite, case):
    """That the drivers and the board are those of the job, as deqp-runner sees it; Refusal if they are not."""
    api = case.split(".")[0]
    checks = {"device" if api == "dEQP-VK" else "renderer": section.table.get("renderer_check"), "version": section.version_check}
    for leaf, pattern in checks.items():
        if not pattern:
            continue
        with tempfile.TemporaryDirectory(prefix="conformance-") as scratch:
            text = suite.text_of(f"{api}.info.{leaf}", scratch)
        if not text:
            print(f"v3demu ci: {section.name} has no case {api}.info.{leaf}: that it runs on {pattern!r} is not seen", file=sys.stderr)
        elif not re.search(pattern, text):
            told = re.findall(r"<Text>(.*?)</Text>", text)
            fail(f"{section.name}: {api}.info.{leaf} has no {pattern!r}" + (": " + ", ".join(told[:3]) if told else ""))


def run_deqp_runner(sections, lists, options):
    """Its exit status: only launcher, paths and lists are ours."""
    for section in sections:
        if options.include and section.table.setdefault("include", options.include) is not options.include:
            fail(f"{section.name} has patterns of cases of its own; --include goes with --runner own there")
    fails, flakes, skips = lists
    folder = os.path.abspath(options.output)
    os.makedirs(folder, exist_ok=True)
    suite, baseline = os.path.join(folder, "suite.toml"), os.path.join(folder, "baseline.txt")
    with new_file(suite) as file:
        file.write(toml_of(sections, options.timeout))
    # It takes one list of fails, and no case twice.
    expected = Baseline(fails, [], []).fails
    with new_file(baseline) as file:
        file.writelines(f"{case},{status}\n" for case, status in expected.items())
    start, fraction = options.part
    command = [options.deqp_runner, "suite", "--suite", suite, "--output", folder, "--skips", *skips, "--flakes", *flakes,
               "--fraction-start", str(start), "--fraction", str(fraction), "--jobs", str(options.jobs), "--baseline", baseline]
    done = ending.run(options.launcher + command)
    if os.path.exists(os.path.join(folder, "failures.csv")):
        subprocess.run([options.deqp_runner, "junit", "--testsuite", "dEQP", "--results", os.path.join(folder, "failures.csv"),
                        "--output", os.path.join(folder, "junit.xml"), "--limit", "50", "--template", "See {{testcase}}"],
                       check=False)
    return done.returncode


def find_deqp_runner(wanted):
    """Its path, or nothing where ours is to run."""
    if wanted == "own":
        return None
    found = shutil.which("deqp-runner")
    return found or (fail("deqp-runner is not in the PATH") if wanted == "deqp-runner" else None)
