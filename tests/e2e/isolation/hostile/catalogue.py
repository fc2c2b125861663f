"""All attacks by name."""
from . import captures, expensive, intruders, jobs, memory, messages, processes, videocore  # pylint: disable=unused-import
from .assault import ATTACKS  # pylint: disable=unused-import


def groups():
    made = {}
    for attack in ATTACKS.values():
        made.setdefault(attack.group, []).append(attack)
    return made
