"""Dispatches: lanes that have no invocation, and numbers of workgroups."""
from .question import Out, Question

ADD, OR = 0xffffff87, 0xffffffcf  # operations of the TMU
LANES = list(range(16))
COUNT = "ldunifrf.rf24\nldunifrf.rf25\nmov tmuc, rf25\nmov tmud, 1\nmov tmua, rf24\nldtmu.rf26\n"
WORKGROUP = {71: "mov rf25, rf3.ul\n", 42: "shl rf25, rf0, 8\nshl rf25, rf25, 8\nshr rf25, rf25, 8\nshr rf25, rf25, 8\n"}
FIRST_LANE = {71: "mov rep, rf26\nnop\nmov rf26, rf0\n", 42: "nop ; mov r5rep, rf26\nnop\nnop ; mov rf26, r5\n"}


def set_bit(chip):
    """Of the workgroup's number, in the result."""
    return (WORKGROUP[chip] + "ldunifrf.rf24\nldunifrf.rf27\nmov rf26, 1\nshl rf26, rf26, rf25\nmov tmuc, rf27\nmov tmud, rf26\nmov tmua, rf24\n"
            "ldtmu.rf26\n")


def store_sample_mask(chip):
    """By all lanes of both batches. The first lane of each has an invocation, whose number is that of the batch * 16."""
    return ("ldunifrf.rf24\nmsf rf20\nmov rf25, 13\nadd rf25, rf25, 13\nshr rf26, rf2, rf25\n" + FIRST_LANE[chip] +
            "setmsf -, 1\nnop\nnop\nshl rf26, rf26, 2\nshl rf27, rf18, 2\nadd rf24, rf24, rf26\nadd rf24, rf24, rf27\nmov tmuc, -1\n"
            "mov tmud, rf20\nmov tmua, rf24\ntmuwt -\n")


QUESTIONS = [
    Question("lanes_beyond_grid", "compute-and-timing 2.1", "17 workgroups of an invocation, in two batches: how many lanes add 1", {
        "17": [17], "32": [32]}, "17", COUNT, words=1, uniforms=[Out(), ADD], place="lane", workgroups=17, size=1, per_supergroup=16, batches=2,
        fill=0),
    Question("lanes_beyond_workgroup", "compute-and-timing 2.2", "a workgroup of 5 invocations: how many lanes add 1", {
        "5": [5], "8, whole quads": [8], "16": [16]}, "5", COUNT, words=1, uniforms=[Out(), ADD], place="lane", workgroups=1, size=5, fill=0),
    Question("sample_mask", "qpu 6", "the sample mask in a workgroup of 18 invocations", {
        "1 in lanes with an invocation": [1] * 18 + [0] * 14, "1 in their quads": [1] * 20 + [0] * 12,
        "15 in lanes with an invocation": [15] * 18 + [0] * 14, "1 in all lanes": [1] * 32}, "1 in lanes with an invocation",
        {chip: store_sample_mask(chip) for chip in (71, 42)}, words=32, uniforms=[Out()], place="lane", workgroups=1, size=18, batches=2,
        batches_of_supergroup=2),
    Question("ballot_of_part", "compute-and-timing 8", "ballot of 1 in a workgroup of 5 invocations, in lane 0", {
        "lanes with an invocation": [0x1f], "their quads": [0xff], "all lanes": [0xffff]}, "lanes with an invocation",
        "ldunifrf.rf24\nmov rf25, 1\nballot rf26, rf25\nmov.pushz -, rf18\nmov tmuc, -1\nmov tmud, rf26\nmov.ifa tmua, rf24\n", words=1,
        uniforms=[Out()], place="lane", workgroups=1, size=5, only=71),
    Question("workgroup_offset", "compute-and-timing 1", "numbers of 2 workgroups whose offset is 3", {
        "3, 4": [1 << 3 | 1 << 4], "3, and one that wraps to 0": [1 << 3 | 1], "3, and one that wraps to 3": [1 << 3], "0, 1": [3]}, "3, 4",
        {chip: set_bit(chip) for chip in (71, 42)}, words=1, place="lane", uniforms=[Out(), OR], workgroups=2, offset=3, fill=0),
    Question("shared_memory_slot", "compute-and-timing 6", "the copy of shared memory (wg_in_mem) of 4 workgroups of 4 invocations in a supergroup", {
        "0, 1, 2, 3": [lane // 4 for lane in LANES], "all 0": [0] * 16}, "0, 1, 2, 3",
        "shl rf20, rf2, 6\nmov rf25, 11\nadd rf25, rf25, 11\nshr rf20, rf20, rf25\n", place="lane", workgroups=4, size=4, per_supergroup=4, batches=1),
]
