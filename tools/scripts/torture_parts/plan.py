"""Which attacks run when: all of it follows from the seed."""
import collections
import random

# One attacker: reproducible by these three.
Instance = collections.namedtuple("Instance", "attack seed seconds")
# An instance in a round: when it starts, and when it is killed before its time (None: it is not); both seconds from the
# round's begin. stopped: it is held by SIGSTOP for the middle third of its life.
Part = collections.namedtuple("Part", "instance start kill stopped")

MOST_AT_ONCE = 4
ROUND = (4.0, 10.0)  # seconds of a round
ENDING = 0.08  # part of the rounds in which the daemon is told to end beside all attackers


class Plan:
    """Rounds without end. The same seed and attacks give the same ones."""

    def __init__(self, seed, attacks):
        self.seed = seed
        self._shared = sorted(a.name for a in attacks if a.shared)
        self._alone = sorted(a.name for a in attacks if not a.shared)
        self._processes = {a.name: a.processes for a in attacks}

    def round(self, number):
        """Parts in the order of their starts."""
        source = random.Random(f"{self.seed}/{number}")
        length = source.uniform(*ROUND)
        # What exhausts the daemon has it for itself in every other of such rounds: what others notice of it is the question
        # of the victims, and other attackers are no victims.
        names = []
        if self._alone and (not self._shared or source.random() < 0.35):
            names.append(source.choice(self._alone))
        if self._shared and (not names or source.random() < 0.5):
            names += source.choices(self._shared, k=source.randint(1, MOST_AT_ONCE - len(names)))
        parts = []
        for name in names:
            for _ in range(self._processes[name]):
                start = source.uniform(0, length / 2)
                seconds = round(source.uniform(0.5, length - start), 2)
                kill = round(start + source.uniform(0.05, seconds), 2) if source.random() < 0.5 else None
                parts.append(Part(Instance(name, source.getrandbits(31), seconds), round(start, 2), kill,
                                  source.random() < 0.15))
        return sorted(parts, key=lambda part: part.start)

    def ends(self, number):
        """Whether the daemon is told to end in this round, when its last attacker has begun."""
        return random.Random(f"{self.seed}/{number}/end").random() < ENDING


def parse_instance(text):
    """NAME:SEED:SECONDS as a report prints it. Raises ValueError."""
    name, seed, seconds = text.split(":")
    return Instance(name, int(seed), float(seconds))


def print_instance(instance):
    return f"{instance.attack}:{instance.seed}:{instance.seconds}"
