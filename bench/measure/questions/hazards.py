"""What is read too early, or by two at once: rules of scheduling (qpu.md 10) that say "undefined"."""
from .floats import bits
from .question import In, Question, planes

NOPS = {n: "nop\n" * n for n in range(4)}
A, B = [0x1000 + lane for lane in range(16)], [0x200000 + 3 * lane for lane in range(16)]
PAIR = planes(A, B)


def stream(words):
    return [[word] * 16 for word in words]


def early_unifa(distance):
    """A stream that has been read from, another one named, and read `distance` instructions later."""
    code = (f"ldunifrf.rf24\nldunifrf.rf25\nmov unifa, rf24\n{NOPS[3]}nop\nldunifarf.rf20\nmov unifa, rf25\n{NOPS[distance - 1]}"
            "ldunifarf.rf20\nldunifarf.rf21\n")
    old, new = [0x11, 0x12, 0x13, 0x14], [0x21, 0x22, 0x23, 0x24]
    return Question(f"unifa_after_{distance}", "qpu 10, row 10", f"ldunifa {distance} instructions after a write of unifa", {
        "the new stream": stream([0x21, 0x22]), "a word of the old stream, then the new one": stream([0x12, 0x21]),
        "the old stream": stream([0x12, 0x13]), "a word of the old stream, then the new one's second": stream([0x12, 0x22]),
        "0 first": stream([0, 0x21])}, "the new stream", code, results=2, uniforms=[In(0), In(16)],
        memory=old + [0] * 12 + new + [0] * 12)


def multiplied(rtop):
    return [(0x123 * 0x10 + (rtop << 24)) & 0xffffffff] * 16


QUESTIONS = [
    *(early_unifa(distance) for distance in (1, 2, 3)),
    Question("uniform_in_slot", "qpu 10, row 17", "a uniform that is read in a slot of a branch which moves the stream", {
        "of the old stream": stream([0x31, 0x34]), "of the new stream": stream([0x34, 0x35]), "of the old stream, and it counts": stream([0x31, 0x35])},
        "of the old stream", "bu next, r:unif\nldunifrf.rf20\nnop\nnop\nnext:\nldunifrf.rf21\n", results=2,
        uniforms=[12, 0x31, 0x32, 0x33, 0x34, 0x35]),
    Question("two_uniforms", "qpu 10, row 8", "a word with ldunifrf and tmuau: which takes the first uniform", {
        "tmuau": stream([0xfffffffe, 0xabcd1234]), "ldunifrf": stream([0xffffffff, 0x1234]), "both the same": stream([0xffffffff, 0xabcd1234])},
        "ldunifrf", "ldunifrf.rf24\nor tmuau, rf24, rf24 ; nop ; ldunifrf.rf20\nldtmu.rf21\n", results=2,
        uniforms=[In(0), 0xffffffff, 0xfffffffe, 0, 0], memory=[0xabcd1234] * 16),
    Question("two_writers", "qpu 3.3", "a register that both ALUs of a word write", {
        "the mul ALU's": [(a - b) & 0xffffffff for a, b in zip(A, B)], "the add ALU's": [a + b for a, b in zip(A, B)],
        "bits of both": [(a + b) | ((a - b) & 0xffffffff) for a, b in zip(A, B)], "bits that both have": [(a + b) & (a - b) & 0xffffffff for a, b in zip(A, B)]},
        "the mul ALU's", "add rf20, rf4, rf5 ; sub rf20, rf4, rf5\n", PAIR),
    Question("alu_and_signal", "qpu 3.3", "a register that an ALU and ldunifrf write in one word", {
        "ldunifrf's": [0x77] * 16, "the ALU's": [a + b for a, b in zip(A, B)], "bits of both": [(a + b) | 0x77 for a, b in zip(A, B)]},
        "ldunifrf's", "add rf20, rf4, rf5 ; nop ; ldunifrf.rf20\n", PAIR, uniforms=[0x77]),
    Question("rtop_after_switch", "qpu 10, row 20", "the product's upper part (rtop) after a thread switch", {
        "kept": multiplied((3 * 0x17 + 2 * 5) & 0xff), "0": multiplied(0)}, "kept",
        "ldunifrf.rf24\nldunifrf.rf25\nldunifrf.rf26\nmultop -, rf24, rf25\nnop ; nop ; thrsw\nnop\nnop\nldunifrf.rf27\numul24 rf20, rf26, rf27\n",
        uniforms=[0x03000002, 0x05000017, 0x123, 0x10]),
    Question("link_not_taken", "qpu 7.1", "the link register after a branch with a link that is not taken", {
        "as before": stream([0]), "written": stream([1])}, "as before",
        "mov.pushz -, 1\nbl next\nnop\nnop\nnop\nnext:\nlr rf24\nbl.alla other\nnop\nnop\nnop\nother:\nlr rf25\nxor.pushz -, rf24, rf25\n"
        "mov rf20, 1\nmov.ifa rf20, 0\n"),
    Question("sfu_result_early", "qpu 10, row 4", "r4 one instruction after recip was written", {
        "as before": [bits(3.0)] * 16, "the new result": [bits(0.5)] * 16, "0": [0] * 16}, "as before",
        "nop ; mov r4, rf4\nnop\nnop\nnop ; mov recip, rf5\nnop ; mov rf20, r4\nnop\nnop\nnop\n", planes([bits(3.0)] * 16, [bits(2.0)] * 16), only=42),
    Question("uniform_address_register", "qpu 4.2", "the address of a uniform stream that a branch takes from a register", {
        "of lane 1, its low three bits cleared": stream([0x42]), "of lane 1": stream([0x43]), "of lane 0": stream([0x40])},
        "of lane 1, its low three bits cleared",
        "ldunifrf.rf24\nmov rf25, 12\numul24 rf25, rf25, rf18\nadd rf24, rf24, rf25\nbu next, rf24\nnop\nnop\nnop\nnext:\nldunifrf.rf20\n"
        "", uniforms=[In(0)], memory=[0x40 + k for k in range(64)], place="lane"),
    Question("uniform_of_masked_launch", "qpu 4.1", "whether tmuau takes its uniform where no lane has the condition", {
        "it does": stream([0x62]), "it does not": stream([0xffffffff])}, "it does",
        "ldunifrf.rf24\nmov.pushz -, 1\nmov.ifa tmuau, rf24\nldtmu.rf25\nldunifrf.rf20\n", uniforms=[In(0), 0xffffffff, 0x62, 0x63], memory=[7] * 16,
        risky=True),
    Question("rotate_to_rep", "qpu 10, row 42", "rot to rep", {
        "lane 0 of what is rotated": [A[3]] * 16, "lane 0 of what is not": [A[0]] * 16, "rotated, lane by lane": [A[(i + 3) & 15] for i in range(16)],
        "as before": B}, "lane 0 of what is rotated", "mov rf0, rf5\nnop\nrot rep, rf4, 3\nnop\nnop\nmov rf20, rf0\n", PAIR, risky=True, only=71),
    Question("rotate_written_r5", "qpu 10, row 41", "4.2: rotation by r5 that the instruction before wrote", {
        "by the new one": [A[(i - 2) & 15] for i in range(16)], "by the one before": [A[(i - 5) & 15] for i in range(16)]}, "by the new one",
        "nop ; mov r0, rf4\nnop ; mov r5rep, 5\nnop\nnop\nnop ; mov r5rep, 2\nnop ; mov rf20, r0 ; rot\n", PAIR, only=42),
]
