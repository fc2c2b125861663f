"""The suites of a job: what one of Mesa's deqp-*.toml asks deqp-runner to run."""
import dataclasses
import json
import os
import shutil
import tomllib

from conformance_parts.lists import cases_of, fail
from .jobs import FOLDER

# What of a section decides what is run or seen; a key that is not here is refused.
KEYS = {"deqp", "caselists", "deqp_args", "tests_per_group", "prefix", "version_check", "renderer_check", "fraction",
        "timeout", "env", "piglit_folder", "profile", "process_isolation", "include"}


@dataclasses.dataclass
class Section:
    kind: str  # deqp or piglit
    table: dict  # as in the file
    root: str  # where the paths of Mesa's images lie here
    mesa_version: str

    def path(self, name):
        return os.path.join(self.root, name.lstrip("/"))

    @property
    def prefix(self):
        return self.table.get("prefix", "")

    @property
    def program(self):
        if self.kind == "deqp":
            return self.path(self.table["deqp"])
        own = self.path(os.path.join(self.table["piglit_folder"], "piglit"))
        return own if os.path.exists(own) else shutil.which("piglit") or own

    @property
    def name(self):
        program = os.path.basename(self.table["deqp"]) if self.kind == "deqp" else "piglit " + self.table["profile"]
        lists = [os.path.splitext(os.path.basename(path))[0] for path in self.table.get("caselists", [])]
        return f"{program} ({', '.join(lists)})" if lists else program

    @property
    def image(self):
        """What packaging/suites calls it: the first folder of its paths."""
        return (self.table.get("deqp") or self.table["piglit_folder"]).strip("/").split("/")[0]

    def missing(self):
        """The file that it lacks; empty: it can be run."""
        if not os.access(self.program, os.X_OK):
            return self.program
        return next((path for path in map(self.path, self.table.get("caselists", [])) if not os.access(path, os.R_OK)), "")

    def cases(self, listed, start, fraction):
        """Those of a shard: every so many of the list in its order. deqp-runner shuffles what it has chosen, not the list."""
        chosen = listed[start - 1::fraction * int(self.table.get("fraction", 1))]
        return list(dict.fromkeys(chosen))

    def listed(self):
        return [case for path in map(self.path, self.table["caselists"]) for case in cases_of(path)]

    @property
    def version_check(self):
        """Mesa's own builds have a commit in their version; what is to be seen is that the tree's drivers are run."""
        return self.table.get("version_check", "").replace(".*git", ".*Mesa " + self.mesa_version.replace(".", r"\."))


def sections_of(tree, job, root):
    path = os.path.join(tree, FOLDER, f"deqp-{job.variables['DEQP_SUITE']}.toml")
    try:
        with open(path, "rb") as file:
            tables = tomllib.load(file)
        with open(os.path.join(tree, "VERSION"), encoding="utf-8") as file:
            version = file.read().strip()
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}")
    except tomllib.TOMLDecodeError as error:
        fail(f"{path}: {error}")
    sections = []
    for kind, entries in tables.items():
        if kind not in ("deqp", "piglit"):
            fail(f"{path}: v3demu ci knows no suites of kind {kind}")
        for table in entries:
            for key in set(table) - KEYS:
                fail(f"{path}: v3demu ci does not know what {key} asks for")
            sections.append(Section(kind, table, root, version))
    return sections


def _toml(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)  # strings of JSON are strings of TOML


def toml_of(sections, timeout):
    """The suite file for deqp-runner, with the paths of this machine."""
    lines = []
    for section in sections:
        table = section.table | {"timeout": float(timeout)}
        if section.kind == "deqp":
            table |= {"deqp": section.program, "caselists": [section.path(path) for path in table["caselists"]]}
        else:
            table |= {"piglit_folder": os.path.dirname(os.path.realpath(section.program))}
        if section.version_check:
            table["version_check"] = section.version_check
        variables = table.pop("env", {})
        lines += [f"[[{section.kind}]]", *(f"{key} = {_toml(value)}" for key, value in table.items())]
        lines += [f"[{section.kind}.env]", *(f"{key} = {_toml(value)}" for key, value in variables.items()), ""]
    return "\n".join(lines)
