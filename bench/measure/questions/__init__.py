"""What v3dprobe asks boards: questions that the chapters of docs/hardware leave open. make_words makes v3d_questions.h of them, and
tools/evidence takes their texts from here."""
from . import dispatches, functions, hazards, memory, operations, textures, tiles
from .unasked import UNASKED

# What may hang stands at the end.
QUESTIONS = sorted((question for module in (operations, functions, hazards, memory, dispatches, textures, tiles) for question in module.QUESTIONS),
                   key=lambda question: question.risky)
assert len({question.name for question in QUESTIONS}) == len(QUESTIONS)
__all__ = ["QUESTIONS", "UNASKED"]
