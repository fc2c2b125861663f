"""What v3demu shader and shader-db keep of a run with --json, for later ones."""
import json

from new_file import new_file
from .companion import Failure


def save(path, run):
    with new_file(path) as file:
        file.write(json.dumps(run, indent=1) + "\n")


def load(path, form):
    """Of a former run; the format names the command that writes it, and its version."""
    try:
        with open(path, encoding="utf-8") as file:
            run = json.load(file)
    except (OSError, ValueError) as error:
        raise Failure(f"{path}: {error}") from error
    if not isinstance(run, dict) or run.get("format") != form:
        raise Failure(f"{path}: it is not what {form.rpartition(' ')[0]} --json of this version writes")
    return run
