"""What a VideoCore IV computed is what the rules of docs/hardware/vc4-qpu.md 2 say, in every value that was recorded.

A second test holds the rules against what the chapter says that no recorded value can tell: so the data cannot be right for a rule that is wrong.
"""
import csv
import lzma
import os
import unittest

import operations

PACKED = {"result": 0, "result32BitSaturated": 8}
PACKED.update({f"result{part}{end}": mode + extra for mode, part in enumerate(
    ("16BitA", "16BitB", "8BitRep", "8BitA", "8BitB", "8BitC", "8BitD"), 1) for end, extra in (("Truncated", 0), ("Saturated", 8))})
UNPACKED = {"result": (0, False), "result8BitReplicated": (3, False), "result8BitFloatReplicated": (3, True)}
UNPACKED.update({f"result16Bit{half}{kind}Extended": (mode, kind == "Float")
                 for mode, half in ((1, "A"), (2, "B")) for kind in ("Sign", "Float")})
UNPACKED.update({f"result8Bit{byte}{kind}Extended": (mode, kind == "Float")
                 for mode, byte in enumerate("ABCD", 4) for kind in ("Zero", "Float")})


def rows(name):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", name)
    with lzma.open(path, "rt", encoding="ascii", newline="") as file:
        yield from csv.DictReader(file)


class Recorded(unittest.TestCase):
    def compare(self, row, column, got):
        self.assertEqual(f"{got:08x}", row[column], f"{column} of {row}")
        self.values += 1

    def setUp(self):
        self.values = 0

    def test_results_and_flags(self):
        operations_seen = set()
        for row in rows("results.csv.xz"):
            result, carry, overflow = operations.operate(row["op"], int(row["a"], 16), int(row["b"], 16))
            is_float = row["op"] in operations.FLOAT_RESULTS
            self.compare(row, "result", result)
            self.compare(row, "result_saturated", operations.pack(8, result, carry, overflow, is_float))
            if row["op"] in operations.ADD_OPERATIONS:
                self.assertEqual(sorted(operations.flags(result, carry)), sorted(row["flags"]), row)
            operations_seen.add(row["op"])
        self.assertEqual((len(operations_seen), self.values), (28, 2 * 5460))
        self.assertLess(operations.ADD_OPERATIONS, operations_seen)

    def test_packed(self):
        for row in rows("packed.csv.xz"):
            result, carry, overflow = operations.operate(row["op"], int(row["firstOp"], 16), int(row["secondOp"], 16))
            for column, mode in PACKED.items():
                self.compare(row, column, operations.pack(mode, result, carry, overflow, row["op"] in operations.FLOAT_RESULTS))
        self.assertEqual(self.values, 16 * 5460)

    def test_unpacked(self):
        for row in rows("unpacked.csv.xz"):
            for column, (mode, to_float) in UNPACKED.items():
                self.compare(row, column, operations.unpack(mode, int(row["arg"], 16), to_float))
        self.assertEqual(self.values, 15 * 15)


class Rules(unittest.TestCase):
    """Values of vc4-qpu.md 9.2 that follow from rules alone."""

    def test_rounding(self):
        self.assertEqual(operations.fmul(0x3fc00001, 0x3fc00001), 0x40100001)
        self.assertEqual(operations.fmul(0x00800000, 0xbf000000), 0)
        self.assertEqual([operations.half(word) for word in (0x3f800001, 0x387fffff, 0xb8000000)], [0x3c01, 0x0400, 0])

    def test_ends_of_ranges(self):
        self.assertEqual(operations.fadd(0x7f7fffff, 0x7f7fffff), operations.INFINITY)
        self.assertEqual(operations.ftoi(0x4effffff), 0x7fffff80)
        self.assertEqual(operations.ftoi(0xcf000000), 0)


if __name__ == "__main__":
    unittest.main()
