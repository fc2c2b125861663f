"""All attacks by name."""
from . import (  # pylint: disable=unused-import
    captures, expensive, intruders, jobs, memory, messages, processes, programs, videocore)
from .assault import ATTACKS  # pylint: disable=unused-import


def groups():
    made = {}
    for attack in ATTACKS.values():
        made.setdefault(attack.group, []).append(attack)
    return made
