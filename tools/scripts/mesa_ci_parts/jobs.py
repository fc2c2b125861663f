"""The jobs that Mesa's tree defines for Broadcom's boards, and why some cannot be run here."""
import dataclasses
import functools
import glob
import os

from conformance_parts.lists import fail

FOLDER = os.path.join("src", "broadcom", "ci")
TRACES = "piglit-traces.sh"


@dataclasses.dataclass
class Job:
    name: str
    variables: dict
    parallel: int  # shards

    @property
    def board(self):
        return self.variables["GPU_VERSION"]  # whose lists

    @property
    def device(self):
        return self.variables["DEVICE_TYPE"]

    @property
    def fraction(self):
        return int(self.variables.get("DEQP_FRACTION", 1))

    @property
    def replays_traces(self):
        return os.path.basename(self.variables.get("HWCI_TEST_SCRIPT", "")) == TRACES

    @property
    def window_system(self):
        """Of traces piglit-traces.sh starts it."""
        starts = self.replays_traces and self.variables.get("EGL_PLATFORM") != "surfaceless"
        return "xwayland" if self.variables.get("HWCI_START_WESTON") or starts else None


def _yaml():
    """The package, and a loader as GitLab has, whose !reference copies rules and scripts: these are not what a job runs."""
    try:
        import yaml  # pylint: disable=import-outside-toplevel
    except ImportError:
        fail("Mesa's job files are YAML; install python3-yaml")

    class Loader(yaml.SafeLoader):
        """Safe, and with that tag."""
    Loader.add_constructor("!reference", lambda loader, node: None)
    return yaml, Loader


@functools.cache  # a list of traces is asked for its store and for its traces; nobody changes what is read
def _document(path, as_text=False):
    """With as_text everything stays the text that it is: a checksum of digits is no number."""
    yaml, loader = _yaml()
    loader = yaml.BaseLoader if as_text else loader
    try:
        with open(path, encoding="utf-8") as file:
            return yaml.load(file, loader) or {}  # safe ones
    except OSError as error:
        fail(f"{path}: {error.strerror}; --mesa is Mesa's source tree, as packaging/setup fetches it")
    except yaml.YAMLError as error:
        fail(f"{path}: {error}")


def _documents(tree):
    own = [os.path.join(tree, FOLDER, name) for name in ("gitlab-ci-inc.yml", "gitlab-ci.yml")]
    shared = sorted(glob.glob(os.path.join(tree, ".gitlab-ci", "**", "*gitlab-ci*.yml"), recursive=True))
    for path in [*shared, *own]:
        yield path, _document(path)


def _resolved(name, known, seen=()):
    """A job with all that it extends: hashes are merged, of anything else the last one counts."""
    if name in seen:
        fail(f"job {name} extends itself")
    entry = known.get(name)
    if entry is None:
        return {"variables": {}}  # a template of GitLab's own, or of another project
    bases = entry.get("extends") or []
    whole = {"variables": {}}
    for part in [*(_resolved(base, known, (*seen, name)) for base in ([bases] if isinstance(bases, str) else bases)), entry]:
        variables = whole["variables"] | (part.get("variables") or {})
        whole = whole | part | {"variables": variables}
    return whole


def jobs_of(tree):
    """All jobs by name, in the order of the file."""
    known, names = {}, []
    for path, document in _documents(tree):
        entries = {name: entry for name, entry in document.items() if isinstance(entry, dict)}
        known |= entries
        if path.endswith(os.path.join(FOLDER, "gitlab-ci.yml")):
            names = [name for name in entries if not name.startswith(".")]
    jobs = {}
    for name in names:
        whole = _resolved(name, known)
        variables = {key: str(value) for key, value in whole["variables"].items()}
        if "GPU_VERSION" in variables and "DEVICE_TYPE" in variables:
            jobs[name] = Job(name, variables, int(whole.get("parallel") or 1))
    return jobs


def find_job(jobs, name):
    """The job of that name, or of that name without its architecture."""
    found = jobs.get(name) or jobs.get(name + ":arm64")
    return found or fail(f"there is no job {name}; there are {', '.join(jobs) or 'none'}")


def traces_file(tree, job):
    """(path, contents) of the list of traces that a job replays."""
    path = os.path.join(tree, FOLDER, job.variables.get("PIGLIT_TRACES_FILE", ""))
    return path, _document(path, as_text=True)


def store_of(tree, job):
    """Where the traces of a job are fetched from."""
    path, document = traces_file(tree, job)
    url = (document.get("traces-db") or {}).get("download-url")
    return url or fail(f"{path}: it does not say where its traces are fetched from")


def why_not(tree, job):
    """Why the job cannot be run here; empty: it can."""
    suite = job.variables.get("DEQP_SUITE", "")
    if "rusticl" in suite:
        return "rusticl is v3d's OpenCL in Rust, which is not among the drivers that packaging/mesa builds"
    for sanitizer, name in (("ubsan", "UndefinedBehaviorSanitizer"), ("asan", "AddressSanitizer")):
        if suite.endswith("-" + sanitizer):
            return f"it wants drivers of its own, built with {name}, and looks for faults of theirs and not of pictures"
    if job.replays_traces and "private" in (url := store_of(tree, job)):
        return f"it replays traces that are private, which only Mesa's farm may fetch: {url}"
    if job.name.endswith(":arm32"):
        return "its drivers and suites are of 32 bits; those that v3demu ci runs are the host's"
    if not suite and not job.replays_traces:
        return "it names no suite (DEQP_SUITE)"
    return ""
