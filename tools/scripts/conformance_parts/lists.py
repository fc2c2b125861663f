"""What Mesa's lists expect of a board, and what a result is beside that."""
import collections
import os
import re

PASSES = {"Pass", "Warn"}
NO_VERDICT = {"Skip"}

Result = collections.namedtuple("Result", "case status detail seconds log")
Verdict = collections.namedtuple("Verdict", "result expected agrees kind")


class Refusal(Exception):
    """Nothing can be run; the text says why."""


def fail(what):
    raise Refusal(what)


def lines_of(path):
    """Lines of a list without comments and blank lines."""
    try:
        file = open(path, encoding="utf-8")
    except OSError as error:
        fail(f"cannot read the list {path}: {error.strerror}")
    with file:
        return [line for line in (raw.rstrip("\n").strip() for raw in file) if line and not line.startswith("#")]


def cases_of(path):
    """Those of a list, or of the lists whose files it names, as vk-default.txt does."""
    folder = os.path.dirname(path)
    return [case for line in lines_of(path) for case in (cases_of(os.path.join(folder, line)) if line.endswith(".txt") else [line])]


def board_lists(folder, board):
    """Paths of the fails, flakes and skips of a board that Mesa's folder has; Refusal if it knows no such board."""
    if not os.path.exists(os.path.join(folder, f"{board}-fails.txt")):
        boards = sorted(name.removesuffix("-fails.txt") for name in os.listdir(folder) if name.endswith("-fails.txt"))
        fail(f"no list {board}-fails.txt in {folder}; there are those of {', '.join(boards) or 'no board'}")
    # Skips of every board, where the lists lie in Mesa's source tree.
    names = ([f"{board}-fails.txt"], [f"{board}-flakes.txt"], [f"{board}-skips.txt", "../../../.gitlab-ci/all-skips.txt"])
    return [[path for path in (os.path.join(folder, name) for name in kind) if os.path.exists(path)] for kind in names]


class Lists:
    """What is expected of a board: paths of lists of cases that fail (of two lines about a case the later one counts),
    that flake, and that are not to be run.

    prefix: what the names of cases have in front of them in the lists; kept: a pattern of cases to run although the
    board's lists skip them, where a pass is expected."""

    def __init__(self, fails, flakes, skips, prefix="", kept=None):
        self.prefix, self.kept = prefix, kept and re.compile(kept)
        self.fails = {}
        for path in fails:
            for line in lines_of(path):
                name, _, status = line.rpartition(",")
                self.fails[name] = status
        self.flakes, self.skips = self._pattern(flakes), self._pattern(skips)

    @staticmethod
    def _pattern(paths):
        lines = [line for path in paths for line in lines_of(path)]
        return re.compile("|".join(f"(?:{line})" for line in lines)) if lines else None

    def skipped(self, case):
        if self.kept and self.kept.search(case):
            return False
        return bool(self.skips and self.skips.search(self.prefix + case))

    def expected(self, case):
        """The status that the lists have for it; a pass unless they say another one."""
        return self.fails.get(self.prefix + case, "Pass")

    def flaky(self, case):
        return bool(self.flakes and self.flakes.search(self.prefix + case))

    def silent_about(self, result):
        """Whether this is a subtest of a test that crashes on the board, which may never have come that far."""
        name = self.prefix + result.case
        parts = name.split("@") if result.detail == "subtest" and name not in self.fails else []
        return any(self.fails.get("@".join(parts[:count])) == "Crash" for count in range(1, len(parts)))

    def judge(self, result):
        """The verdict on a result, or None where the lists say nothing."""
        if result.status in NO_VERDICT or self.silent_about(result):
            return None
        expected = self.expected(result.case)
        agrees = result.status == expected or (expected == "Pass" and result.status in PASSES)
        kind = "as listed" if agrees else "unexpected pass" if result.status in PASSES else "unexpected " + result.status
        if not agrees and self.flaky(result.case):
            agrees, kind = True, "listed flake"
        return Verdict(result, expected, agrees, kind)

    def doubtful(self, result):
        """Whether the result is to be seen twice: a failure that is not listed."""
        verdict = self.judge(result)
        return verdict is not None and not verdict.agrees and result.status not in PASSES
