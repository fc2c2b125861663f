"""What V3D 4.2 (Raspberry Pi 4) has and 7.1 has not, in QPU assembly: accumulators, replication by r5, the SFU behind write
addresses, rotation by a signal, and small kernels as one writes them for this chip.

The node to open is $V3D_NODE; $V3DEMU assembles.
"""

import math
import os
import random
import unittest

import kernels
import v3d_drm
from qpu_test_case import QpuTest, float_bits

LANES = range(16)


class Chip42Test(QpuTest):
    def setUp(self):
        super().setUp()
        self.assertEqual(self.device.version, 42)
        self.data = self.device.bo(1 << 16)

    # rf1: byte offset of the lane, rf2: the result's address, rf3: lane + 1, rf4: 16, rf5: the next uniform
    PROLOGUE = """
        eidx r0
        shl rf1, r0, 2
        ldunifrf.rf2
        add rf2, rf2, rf1
        add rf3, r0, 1
        mov r1, 8
        add rf4, r1, 8
        ldunifrf.rf5
    """
    EPILOGUE = "tmuwt -\nend\n"

    def rows(self, text, count, uniform=0):
        """What a program with `store X` lines leaves: a row of words for each of them."""
        lines = []
        for line in text.splitlines():
            if line.strip().startswith("store "):
                lines += [f"mov tmud, {line.split()[1]}", "mov tmua, rf2", "add rf2, rf2, rf4", "add rf2, rf2, rf4",
                          "add rf2, rf2, rf4", "add rf2, rf2, rf4"]
            else:
                lines.append(line)
        self.run_program(self.PROLOGUE + "\n".join(lines) + "\n" + self.EPILOGUE, [self.data.address, uniform],
                         [self.data], 1)
        return [self.data.words[16 * n:16 * n + 16].tolist() for n in range(count)]

    def test_accumulators_keep_a_value_per_lane(self):
        program = "\n".join([f"add r{n}, rf3, {n}" for n in range(5)] + [f"store r{n}" for n in range(5)])
        self.assertEqual(self.rows(program, 5), [[lane + 1 + n for lane in LANES] for n in range(5)])

    def test_a_word_reads_three_accumulators_and_two_registers(self):
        # Both halves see what stood there before the word.
        rows = self.rows("mov r0, rf3\nadd r1, rf3, 5\nmov r2, 7\n"
                         "add r0, r0, r1 ; umul24 r1, r0, r2\nadd rf6, rf3, rf4 ; sub rf7, rf4, rf3\n"
                         "store r0\nstore r1\nstore rf6\nstore rf7", 4)
        self.assertEqual(rows[0], [2 * lane + 7 for lane in LANES])
        self.assertEqual(rows[1], [7 * (lane + 1) for lane in LANES])
        self.assertEqual(rows[2], [lane + 17 for lane in LANES])
        self.assertEqual(rows[3], [15 - lane for lane in LANES])

    def test_r5_replicates_what_it_is_given(self):
        rows = self.rows("mov r5, rf3\nstore r5\nmov r5rep, rf3\nstore r5\nnop ; ldunif\nstore r5", 2, 77)
        self.assertEqual(rows[0], [(lane & 12) + 1 for lane in LANES])
        self.assertEqual(rows[1], [1] * 16)

    def test_ldunif_and_ldunifa_arrive_in_r5(self):
        self.data.words[1024] = 4711
        text = ("mov unifa, rf5\nnop\nnop\nnop\nnop ; ldunifa\nmov rf6, r5\nstore rf6\n")
        self.assertEqual(self.rows(text, 1, self.data.address + 4096)[0], [4711] * 16)

    def test_accumulators_rotate_through_all_lanes(self):
        for count in [n for n in range(-15, 16) if n]:
            with self.subTest(count=count):
                rows = self.rows(f"mov r0, rf3\nnop\nnop ; mov r1, r0 ; rot.{count}\nstore r1", 1)
                self.assertEqual(rows[0], [(lane - count & 15) + 1 for lane in LANES])

    def test_registers_rotate_inside_their_quads(self):
        for count in (1, 2, 3, -1, 5):
            with self.subTest(count=count):
                rows = self.rows(f"nop ; mov r1, rf3 ; rot.{count}\nstore r1", 1)
                self.assertEqual(rows[0], [(lane & 12 | lane - count & 3) + 1 for lane in LANES])

    def test_r5_gives_the_count(self):
        rows = self.rows("mov r5rep, rf5\nmov r0, rf3\nnop\nnop ; mov r1, r0 ; rot\nstore r1", 1, 6)
        self.assertEqual(rows[0], [(lane - 6 & 15) + 1 for lane in LANES])

    def test_only_the_mul_half_rotates(self):
        rows = self.rows("mov r0, rf3\nnop\nadd r1, r0, r0 ; mov r2, r0 ; rot.1\nstore r1\nstore r2", 2)
        self.assertEqual(rows, [[2 * lane + 2 for lane in LANES], [(lane - 1 & 15) + 1 for lane in LANES]])

    SFU = {"recip": lambda x: 1 / x, "rsqrt": lambda x: 1 / math.sqrt(x), "exp": lambda x: 2.0 ** x, "log": math.log2,
           "sin": lambda x: math.sin(math.pi * x) if abs(x) <= 0.5 else math.copysign(1, x), "rsqrt2": lambda x: 1 / math.sqrt(x)}

    def test_the_sfu_by_operation_and_by_address(self):
        for name, function in self.SFU.items():
            with self.subTest(function=name):
                self.rows(f"itof r0, rf3\nfmul r0, r0, 0x3e000000\nmov rf6, r0\n{name} rf7, r0\nmov {name}, r0\nnop\nnop\n"
                          "mov rf8, r4\nstore rf6\nstore rf7\nstore rf8", 3)
                for lane in LANES:
                    x, by_operation, by_address = (self.data.floats[16 * row + lane] for row in range(3))
                    self.assertEqual(x, (lane + 1) / 8)
                    self.assertEqual(by_operation, by_address)
                    self.assertAlmostEqual(by_operation, function(x), delta=1e-4 * max(1, abs(function(x))))

    def test_r4_keeps_its_value_until_the_sfu_is_done(self):
        rows = self.rows("mov r4, rf3\nmov r0, 1.0\nmov recip, r0\nmov rf6, r4\nnop\nmov rf7, r4\nstore rf6\nstore rf7", 2)
        self.assertEqual(rows, [[lane + 1 for lane in LANES], [float_bits(1)] * 16])

    def test_conditions_of_both_halves_see_the_flags_before(self):
        rows = self.rows("and.pushz -, rf3, 1\nmov r0, 0\nmov r1, 0\n"
                         "sub.pushz r2, rf3, 4 ; mov.ifa r0, 4\nadd.ifa r1, r1, 7\nstore r0\nstore r1", 2)
        self.assertEqual(rows[0], [0 if (lane + 1) & 1 else 4 for lane in LANES])
        self.assertEqual(rows[1], [7 if lane + 1 == 4 else 0 for lane in LANES])

    def test_halves_of_registers(self):
        one, two = 0x3c00, 0x4000
        rows = self.rows("vfpack r0, rf5, rf5\nvfmin r1, r0.swp, r0\nfadd r2, r0.l, r0.h\nfmov rf6, 0\n"
                         "fadd rf6.h, rf5, rf5\nvfmul r3, r0, r0\nstore r0\nstore r2\nstore rf6\nstore r3", 4, float_bits(1))
        self.assertEqual([row[5] for row in rows], [one << 16 | one, float_bits(2), two << 16, one << 16 | one])

    # Uniforms: address, vectors of 16 words, value.
    MEMSET = """
        eidx r0
        shl r0, r0, 2
        ldunifrf.rf2
        add rf2, rf2, r0
        ldunifrf.rf3
        ldunifrf.rf4
        mov r1, 8
        shl rf5, r1, 3
    loop:
        sub.pushz rf3, rf3, 1 ; nop
        b.anyna loop
        mov tmud, rf4
        or tmua, rf2, rf2 ; add rf2, rf2, rf5
        nop
        tmuwt -
    end
    """

    def test_memset(self):
        for vectors in (1, 2, 100):
            self.data.words[16 * vectors] = 1
            self.run_program(self.MEMSET, [self.data.address, vectors, 0xdeadbeef], [self.data], 1)
            self.assertEqual(self.data.words[:16 * vectors + 1].tolist(), [0xdeadbeef] * 16 * vectors + [1])

    # Sums words and leaves the sum in every lane. Uniforms: address, vectors of 16 words, result.
    SUM = """
        eidx r0
        shl r0, r0, 2
        ldunifrf.rf2
        add rf2, rf2, r0
        ldunifrf.rf3
        ldunifrf.rf4
        add rf4, rf4, r0
        mov r1, 8
        shl rf5, r1, 3
        mov rf6, 0
    loop:
        or tmua, rf2, rf2 ; add rf2, rf2, rf5 ; thrsw
        sub.pushz rf3, rf3, 1
        nop
        b.anyna loop
        ldtmu.r0
        add rf6, rf6, r0
        nop
        mov r0, rf6
        nop
    """ + "".join(f"nop ; mov r1, r0 ; rot.{n}\nadd r0, r0, r1\nnop\n" for n in (8, 4, 2, 1)) + """
        mov tmud, r0
        mov tmua, rf4
        tmuwt -
    end
    """

    def test_summation(self):
        numbers = random.Random(3)
        values = [numbers.randrange(1 << 32) for _ in range(16 * 50)]
        for i, value in enumerate(values):
            self.data.words[i] = value
        self.run_program(self.SUM, [self.data.address, 50, self.data.address + 4 * len(values)], [self.data], 1)
        self.assertEqual(self.data.words[len(values):len(values) + 16].tolist(), [sum(values) & 0xffffffff] * 16)


    def test_sgemm_by_rotation(self):
        rows, inner, columns = 32, 48, 48
        numbers = random.Random(5)
        a, b, c = 0, rows * inner, rows * inner + inner * columns  # words of data
        for i in range(c):
            self.data.floats[i] = numbers.randrange(-8, 9)
        self.run_program(kernels.SGEMM_ROTATED, [self.data.address + 4 * a, 4 * inner, self.data.address + 4 * b, 4 * columns,
                                                 self.data.address + 4 * c, inner // 16],
                         [self.data], rows * columns // 256, grid=(columns // 16, rows // 16, 1))
        left, right = self.data.floats[a:b].tolist(), self.data.floats[b:c].tolist()
        self.assertEqual(self.data.floats[c:c + rows * columns].tolist(),
                         [sum(left[i * inner + k] * right[k * columns + j] for k in range(inner))
                          for i in range(rows) for j in range(columns)])


class DeviceTest(unittest.TestCase):
    def test_links_lead_to_the_nodes(self):
        for kind, node in ("card", "card0"), ("render", "renderD128"):
            link = f"/dev/dri/by-path/platform-fec00000.v3d-{kind}"
            self.assertEqual(os.path.realpath(link), f"/dev/dri/{node}")
        self.assertFalse(os.path.exists(v3d_drm.CARD))


if __name__ == "__main__":
    unittest.main()
