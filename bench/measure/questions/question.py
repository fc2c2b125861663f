"""A question to a board: a job, and what each of several assumptions says that the job leaves in memory.

A dispatch runs a program of three parts. Before the question's own code, registers are set:
    rf4 to rf7   a word of each plane of `inputs`      rf11  address of this lane's word of the first plane
    rf12         address of this lane's results        rf13  bytes from a plane to the next
    rf18         the lane's number: workgroup * 16 + lane, or lane alone (`place`)
and after it, rf20, rf21 and so on are stored as results, a plane each. rf2 and rf3 (on 4.2 rf0 and rf2) stay what the dispatch put there.
"""
import dataclasses

from .floats import is_nan, ordered

UNSTORED = 0x7a7a7a7a  # what results hold before the job
CHIPS = (71, 42)
LANES = 16


@dataclasses.dataclass(frozen=True)
class In:
    """A uniform or a word of memory: the address of a word of the question's memory, with low bits beside it."""
    word: int
    low_bits: int = 0


@dataclasses.dataclass(frozen=True)
class Out:
    """The same of a byte of the results."""
    byte: int = 0


def planes(*lists):
    return [list(plane) for plane in lists]


def of_chip(value, chip):
    """Of a member that may be {71: ..., 42: ...}."""
    return value.get(chip) if isinstance(value, dict) else value


@dataclasses.dataclass
class Tile:
    """A tile that is loaded from the question's memory and stored in another format, in rows."""
    loaded: int  # format of the image
    loaded_bytes: int
    stored: int
    stored_bytes: int
    halves: bool  # the tile buffer has 16F, else 8 bits
    width: int = 64
    height: int = 1
    samples: bool = False  # four of each pixel in the memory, as images with samples lie; their average is stored

    def told(self):
        return [int(getattr(self, field.name)) for field in dataclasses.fields(self)]


@dataclasses.dataclass
class Levels:
    """Registers of the TFU that makes mip levels."""
    icfg: int
    iia: object
    iis: int
    ioa: object
    ios: int
    ioc: int

    def told(self):
        return [getattr(self, field.name) for field in dataclasses.fields(self)]


@dataclasses.dataclass
class Question:
    """Of its members, `code` and `memory` may be {71: ..., 42: ...}."""
    name: str
    where: str  # chapter of docs/hardware, for example "qpu 2.2"
    asks: str
    alternatives: dict  # {what is assumed: words, or (words, ulps that they may be off)}
    assumed: str  # the alternative that the model takes
    code: object = ""
    inputs: list = dataclasses.field(default_factory=list)  # planes of words, of one length
    results: int = 1  # planes, or with `words` that many words
    words: int = 0
    uniforms: list = dataclasses.field(default_factory=list)
    memory: object = dataclasses.field(default_factory=list)  # words behind the inputs
    floats: bool = False  # NaNs are alike
    place: str = "workgroup"
    before: object = ""  # code of a dispatch before that of the question
    workgroups: int = 0  # 0: as many as the inputs need
    size: int = 16  # invocations of a workgroup
    per_supergroup: int = 1
    batches: int = 0  # in all; 0: one for each workgroup
    batches_of_supergroup: int = 1
    offset: int = 0  # of the workgroups' numbers
    fill: int = UNSTORED  # what the results hold before
    propagate_nans: bool = True  # of 4.2, as Mesa dispatches
    only: int = 0  # 71 or 42: the chip that has what is asked
    job: object = None  # in place of a program: {71: Levels, 42: Levels} or Tile
    in_memory: int = -1  # a word of the memory where the results are; -1: they are stored as results
    risky: bool = False  # may hang, so it is asked last

    def chips(self):
        return (self.only,) if self.only else CHIPS

    def rows(self):
        """[(alternative, words, ulps)]"""
        rows = []
        for name, expected in self.alternatives.items():
            words, ulps = expected if isinstance(expected, tuple) else (expected, 0)
            flat = [word for plane in words for word in plane] if words and isinstance(words[0], list) else list(words)
            assert len(flat) == self.num_words(), f"{self.name}: {name}: {len(flat)} words, not {self.num_words()}"
            rows.append((name, flat, ulps))
        assert self.assumed in self.alternatives, self.name
        return rows

    def answer_of(self, words):
        """The first alternative that the results of a job agree with, as v3d_ask.h finds it; None: none."""
        for name, expected, ulps in self.rows():
            if all(self.agrees(a, b, ulps) for a, b in zip(expected, words)):
                return name
        return None

    def agrees(self, expected, found, ulps):
        nans = is_nan(expected), is_nan(found)
        if expected == found or (self.floats and all(nans)):
            return True
        return ulps > 0 and not any(nans) and abs(ordered(expected) - ordered(found)) <= ulps

    def plane_words(self):
        if self.inputs:
            assert all(len(plane) == len(self.inputs[0]) for plane in self.inputs), self.name
            return -(-len(self.inputs[0]) // LANES) * LANES
        return LANES

    def asked_words(self):
        """Of a plane of results: those of the padding are not looked at."""
        return len(self.inputs[0]) if self.inputs else LANES

    def num_words(self):
        return self.words or self.results * self.asked_words()

    def workgroups_of(self):
        return self.workgroups or self.plane_words() // LANES

    def encoded(self, item):
        """(what it is counted from: 0 nothing, 1 the memory, 2 the results; number)"""
        if isinstance(item, In):
            return 1, 4 * (len(self.inputs) * self.plane_words() + item.word) + item.low_bits
        return (2, item.byte) if isinstance(item, Out) else (0, item & 0xffffffff)

    def kind(self):
        return "ASKS_DISPATCH" if not self.job else "ASKS_TILE" if isinstance(self.job, Tile) else "ASKS_TFU"

    def uniforms_of(self, chip):
        if self.job:
            return list(map(self.encoded, of_chip(self.job, chip).told()))
        return [(1, 0), (2, 0), (0, 4 * self.plane_words()), *map(self.encoded, self.uniforms)]

    def memory_of(self, chip):
        padded = [(0, word) for plane in self.inputs for word in (plane + [0] * LANES)[:self.plane_words()]]
        return padded + list(map(self.encoded, of_chip(self.memory, chip)))

    def program(self, chip, before=False):
        """The text of a dispatch."""
        lines = ["ldunifrf.rf11", "ldunifrf.rf12", "ldunifrf.rf13", "eidx rf18"]
        if self.place == "workgroup":
            lines += ["mov rf17, rf3.ul"] if chip == 71 else ["shl rf17, rf0, 8", "shl rf17, rf17, 8", "shr rf17, rf17, 8", "shr rf17, rf17, 8"]
            lines += ["shl rf17, rf17, 4", "add rf18, rf18, rf17"]
        lines += ["shl rf17, rf18, 2", "add rf11, rf11, rf17", "add rf12, rf12, rf17"]
        for plane in range(len(self.inputs)):
            lines += ["mov tmuc, -1", "mov tmua, rf11", "add rf11, rf11, rf13", f"ldtmu.rf{4 + plane}"]
        text = "\n".join(lines) + "\n" + of_chip(self.before if before else self.code, chip)
        for plane in range(0 if self.words else self.results):
            text += f"\nmov tmuc, -1\nmov tmud, rf{20 + plane}\nmov tmua, rf12\nadd rf12, rf12, rf13\n"
        return text + "\ntmuwt -\nend\n"


@dataclasses.dataclass
class Unasked:
    """What the chapters leave open, for which v3dprobe has no job."""
    where: str
    asks: str
    why: str
