"""Memory that the TMU accesses by address, and its results."""
from .question import UNSTORED, In, Out, Question, planes

BYTES = [0x80 + k for k in range(64)]
WORDS = [sum(BYTES[4 * k + b] << 8 * b for b in range(4)) for k in range(16)]
LANES = list(range(16))


def word_at(byte):
    return sum(BYTES[byte + b] << 8 * b for b in range(4))


def load(configuration, low_bits):
    """Of an address with low bits. All lanes read it."""
    return "ldunifrf.rf24\nldunifrf.rf25\nmov tmuc, rf25\nmov tmua, rf24\nldtmu.rf20\n", [In(4, low_bits), configuration]


def misaligned(name, configuration, low_bits, asks, alternatives, assumed):
    code, uniforms = load(configuration, low_bits)
    return Question(name, "texture 8.1", asks, {text: [word] * 16 for text, word in alternatives.items()}, assumed, code, uniforms=uniforms, memory=WORDS)


def rotated(word, low_bits):
    shift = 8 * low_bits
    return (word >> shift | word << (32 - shift)) & 0xffffffff


FIRST_HALF = [lane < 8 for lane in LANES]


def halves_of_lanes(first, second):
    return [first if lane < 8 else second for lane in LANES]


def conflict(lane):
    return [lane] * 16


def stored_at(low_bits, value, kept):
    """Two words in which a store to an address with low bits changes bytes. @param kept  whether low bits count"""
    memory = bytearray(UNSTORED.to_bytes(4, "little") * 2)
    at = low_bits if kept else 0
    memory[at:at + 4] = value.to_bytes(4, "little")
    return [int.from_bytes(memory[k:k + 4], "little") for k in (0, 4)]


STORE = "ldunifrf.rf24\nmov tmuc, -1\nldunifrf.rf25\nmov tmud, rf25\nmov tmua, rf24\ntmuwt -\n"


def components(count):
    """Four words, of which the first ones are the stored one or 0."""
    return [0x51, *[0] * (count - 1), *[UNSTORED] * (4 - count)]


def vector(count):
    configuration = {2: 0xfffffffa, 3: 0xfffffffb, 4: 0xfffffffc}[count]
    alternatives = {"one word": components(1), "all, and those not written are 0": components(count),
                    "all, and those not written are the same": [0x51] * count + [UNSTORED] * (4 - count), "none": [UNSTORED] * 4}
    return Question(f"short_vector_{count}", "texture 8.1", f"a store of {count} words for which one word of data was written", alternatives, "one word",
                    "ldunifrf.rf24\nldunifrf.rf25\nmov.pushz -, rf18\nldunifrf.rf26\nmov tmuc, rf25\nmov tmud, rf26\nmov.ifa tmua, rf24\ntmuwt -\n"
                    "mov tmuc, -1\n", words=4, uniforms=[Out(), configuration, 0x51], place="lane", risky=True)


def many_loads(count):
    """Of consecutive words, none popped before all are asked for; two results: the sum, weighted by the order, and the last one."""
    expected = [sum((k + 1) * WORDS[k & 15] for k in range(count)) & 0xffffffff, WORDS[(count - 1) & 15]]
    code = "ldunifrf.rf24\nmov rf20, 0\nmov rf25, 0\nmov rf26, rf24\n"
    for k in range(count):
        code += "mov tmua, rf26\nadd rf26, rf26, 4\n" if k % 16 != 15 else "mov tmua, rf26\nmov rf26, rf24\n"
    for k in range(count):
        code += "ldtmu.rf21\nadd rf25, rf25, 1\numul24 rf27, rf25, rf21\nmov rf28, 15\nadd rf28, rf28, 9\nshr rf29, rf21, rf28\numul24 rf29, rf29, rf25\n"
        code += "shl rf29, rf29, rf28\nadd rf27, rf27, rf29\nadd rf20, rf20, rf27\n"
    return Question(f"results_outstanding_{count}", "qpu 10, row 33", f"{count} results of the TMU that wait at once, of one thread", {
        "all are right": planes([expected[0]] * 16, [expected[1]] * 16), "none comes": planes([0] * 16, [0] * 16)}, "all are right", code,
        results=2, uniforms=[In(0)], memory=WORDS, risky=True)


QUESTIONS = [
    *(misaligned(f"load_at_{low}", 0xffffffff, low, f"a load of 32 bits {low} beyond a word", {
        "low bits of the address are cleared": WORDS[4], "the bytes that lie there": word_at(16 + low), "the word, rotated": rotated(WORDS[4], low)},
        "low bits of the address are cleared") for low in (1, 2, 3)),
    misaligned("load_half_at_1", 0xfffffffe, 1, "a load of 16 bits at an odd address", {
        "low bits of the address are cleared": WORDS[4] & 0xffff, "the bytes that lie there": word_at(17) & 0xffff}, "low bits of the address are cleared"),
    misaligned("signed_byte", 0xfffffff8, 1, "a load of 8 bits, type 0", {
        "with copies of its sign": BYTES[17] | 0xffffff00, "with zeros": BYTES[17]}, "with copies of its sign"),
    misaligned("signed_half", 0xfffffff9, 2, "a load of 16 bits, type 1", {
        "with copies of its sign": word_at(18) & 0xffff | 0xffff0000, "with zeros": word_at(18) & 0xffff}, "with copies of its sign"),
    *(Question(f"store_at_{low}", "texture 8.1", f"a store of 32 bits {low} beyond a word", {
        "low bits of the address are cleared": stored_at(low, 0x44332211, False), "to the bytes there": stored_at(low, 0x44332211, True)},
        "low bits of the address are cleared", STORE, words=2, uniforms=[Out(low), 0x44332211], place="lane")
      for low in (1, 2)),
    Question("lanes_store_at_once", "texture 8.1", "lanes that store to one address: which of them is there then", {
        "the highest lane": [15], "the lowest lane": [0], "the last lane of the first quad": [3]}, "the highest lane",
        "ldunifrf.rf24\nmov tmuc, -1\nmov tmud, rf18\nmov tmua, rf24\ntmuwt -\n", words=1, uniforms=[Out()], place="lane"),
    Question("lanes_add_at_once", "texture 8.1", "lanes that add 1 to one word: what each finds there", {
        "lanes in ascending order": LANES, "in descending order": LANES[::-1], "quads in ascending order, lanes in descending": [k ^ 3 for k in LANES]},
        "lanes in ascending order",
        "ldunifrf.rf24\nldunifrf.rf25\nmov tmuc, rf25\nmov tmud, 1\nmov tmua, rf24\nldtmu.rf20\n", uniforms=[In(0), 0xffffff87], memory=[0] * 16),
    Question("operation_10", "texture 7.2", "operation 10 of the TMU without data: what it returns and leaves", {
        "the old word and its complement": planes([0x12345678], [0xedcba987]), "the old word twice": planes([0x12345678], [0x12345678]),
        "the old word and 0": planes([0x12345678], [0])}, "the old word and its complement",
        "ldunifrf.rf24\nldunifrf.rf25\nmov.pushz -, rf18\nmov tmuc, rf25\nmov.ifa tmua, rf24\nldtmu.rf20\nmov tmuc, -1\nmov tmua, rf24\nldtmu.rf21\n",
        planes([0]), results=2, uniforms=[In(0), 0xffffffd7], memory=[0x12345678] * 16, place="lane"),
    Question("load_after_store", "qpu 8.3", "a load of what the thread stored just before, without tmuwt", {
        "the new word": [0x5eed + lane for lane in LANES], "the old word": [UNSTORED] * 16}, "the new word",
        "ldunifrf.rf24\nadd rf24, rf24, rf18\nmov tmuc, -1\nmov tmud, rf24\nmov tmua, rf12\nmov tmua, rf12\nldtmu.rf20\n", uniforms=[0x5eed]),
    Question("masked_lanes", "qpu 8.1", "what ldtmu gives lanes whose condition kept them out of a load", {
        "0": halves_of_lanes(WORDS[4], 0), "what they had before": halves_of_lanes(WORDS[4], 0x99),
        "the result of the load before": halves_of_lanes(WORDS[4], WORDS[0]), "the word all the same": [WORDS[4]] * 16}, "0",
        "ldunifrf.rf24\nldunifrf.rf25\nmov tmuc, -1\nmov tmua, rf24\nldtmu.rf21\nldunifrf.rf20\nmov rf26, 8\nsub.pushn -, rf18, rf26\nmov.ifa tmua, rf25\n"
        "ldtmu.rf20\n", uniforms=[In(0), In(4), 0x99], memory=WORDS, place="lane"),
    Question("inactive_lanes", "compute-and-timing 2.2", "what ldtmu gives lanes whose sample mask is 0", {
        "0": halves_of_lanes(WORDS[4], 0), "what they had before": halves_of_lanes(WORDS[4], 0x99),
        "the result of the load before": halves_of_lanes(WORDS[4], WORDS[0]), "the word all the same": [WORDS[4]] * 16}, "0",
        "ldunifrf.rf24\nldunifrf.rf25\nmov tmuc, -1\nmov tmua, rf24\nldtmu.rf21\nldunifrf.rf20\nmov rf26, 8\nsub.pushn -, rf18, rf26\nmov rf27, 1\n"
        "mov.ifna rf27, 0\nsetmsf -, rf27\nnop\nnop\nmov tmua, rf25\nldtmu.rf20\nsetmsf -, 1\nnop\nnop\n", uniforms=[In(0), In(4), 0x99], memory=WORDS,
        place="lane"),
    Question("configuration_at_start", "texture 2.4", "the TMU's configuration word of a thread that begins after one which left bytes in it", {
        "all ones": [WORDS[4]] * 16, "what was left": [BYTES[16]] * 16}, "all ones", "ldunifrf.rf24\nmov tmua, rf24\nldtmu.rf20\n", uniforms=[In(4), 0xfdfdfdfd],
        memory=WORDS, before="ldunifrf.rf24\nldunifrf.rf25\nmov tmuc, rf25\nmov tmua, rf24\nldtmu.rf20\n"),
    Question("unmapped", "drm-abi 3.6", "what loads find at addresses that are not mapped, after a store to one of them", {
        "what was stored, at all of them": planes([0x600d] * 16, [0x600d] * 16), "what was stored, at its own": planes([0x600d] * 16, [0] * 16),
        "0": planes([0] * 16, [0] * 16)}, "what was stored, at all of them",
        "ldunifrf.rf24\nldunifrf.rf25\nldunifrf.rf26\nmov tmuc, -1\nmov tmud, rf25\nmov tmua, rf24\ntmuwt -\nmov tmua, rf24\nldtmu.rf20\nmov tmua, rf26\n"
        "ldtmu.rf21\n", results=2, uniforms=[0xffe00000, 0x600d, 0xffd00000], risky=True),
    Question("dref_as_data", "texture 8.1", "4.2: tmudref as the operand of an addition in memory", {
        "it is": planes([5], [12]), "it is not, and the word stays": planes([5], [5])}, "it is",
        "ldunifrf.rf24\nldunifrf.rf25\nmov.pushz -, rf18\nmov tmuc, rf25\nmov tmudref, 7\nmov.ifa tmua, rf24\nldtmu.rf20\nmov tmuc, -1\n"
        "mov tmua, rf24\nldtmu.rf21\n", planes([0]), results=2, uniforms=[In(0), 0xffffff87], memory=[5] * 16, place="lane", risky=True, only=42),
    *(many_loads(count) for count in (8, 12, 16)),
    *(vector(count) for count in (2, 3, 4)),
]
