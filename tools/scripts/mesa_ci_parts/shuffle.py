"""The order in which deqp-runner takes cases, so that a shard has the cases that it has on the boards.

*Assumed* of deqp-runner 0.20: it shuffles a list before it takes a fraction, by rand 0.8's shuffle() with StdRng, the
generator ChaCha12, from a seed of 32 bytes 0x3b. One that is installed does it itself."""
import struct

SEED = bytes([0x3B]) * 32
ROUNDS = 12
MASK = 0xFFFFFFFF


def _block(key, counter):
    """64 bytes of ChaCha's stream as 16 words."""
    start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *key, counter & MASK, counter >> 32, 0, 0]
    x = list(start)
    columns = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
    diagonals = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
    for _ in range(ROUNDS // 2):
        for a, b, c, d in columns + diagonals:
            p, q, r, s = x[a], x[b], x[c], x[d]
            p = p + q & MASK
            s ^= p
            s = (s << 16 | s >> 16) & MASK
            r = r + s & MASK
            q ^= r
            q = (q << 12 | q >> 20) & MASK
            p = p + q & MASK
            s ^= p
            s = (s << 8 | s >> 24) & MASK
            r = r + s & MASK
            q ^= r
            q = (q << 7 | q >> 25) & MASK
            x[a], x[b], x[c], x[d] = p, q, r, s
    return [first + last & MASK for first, last in zip(start, x)]


def words(seed):
    key, counter = struct.unpack("<8I", seed), 0
    while True:
        yield from _block(key, counter)
        counter += 1


def below(stream, bound):
    """A number below the bound, as rand's gen_range() of u32: the high half of a product, but for those that would be
    too frequent."""
    zone = (bound << 32 - bound.bit_length()) - 1
    while True:
        product = next(stream) * bound
        if product & MASK <= zone:
            return product >> 32


def shuffled(cases, seed=SEED):
    cases, stream = list(cases), words(seed)
    for last in range(len(cases) - 1, 0, -1):
        other = below(stream, last + 1)
        cases[last], cases[other] = cases[other], cases[last]
    return cases
