"""Branches and conditions in QPU assembly, run through the kernel interface alone."""

import unittest

import qpu_program
from qpu_test_case import QpuTest


class BranchTest(QpuTest):
    # Collatz steps of the numbers 1, 2, ...: each lane leaves the loop in its own time. 3n + 1 is a subroutine.
    # Uniform: result.
    COLLATZ = """
        workgroup_x rf1
        shl rf1, rf1, 4
        eidx rf2
        add rf1, rf1, rf2
        shl rf8, rf1, 2
        ldunifrf.rf7
        add rf1, rf1, 1
        add rf7, rf7, rf8
        mov rf2, 0
    loop:
        xor.pushz -, rf1, 1                 # A: the lane is done
        b.alla done
        nop
        nop
        nop
        bl triple
        and.pushz -, rf1, 1                 # A: even, B: done
        shr rf3, rf1, 1
        nop
        mov.ifa rf4, rf3
        mov.ifnb rf1, rf4
        b loop
        add.ifnb rf2, rf2, 1
        nop
        nop
    triple:
        add rf4, rf1, rf1
        b lri
        add rf4, rf4, rf1
        add rf4, rf4, 1
        nop
    done:
        mov tmud, rf2
        mov tmua, rf7
        tmuwt -
    end
    """

    def test_lanes_leave_a_loop_one_by_one(self):
        batches = 7
        data = self.device.bo(4096)
        self.run_program(self.COLLATZ, [data.address], [data], batches, threads=4)

        def steps(n):
            count = 0
            while n != 1:
                n, count = (3 * n + 1 if n & 1 else n >> 1), count + 1
            return count
        self.assertEqual(data.words[:batches * 16].tolist(), [steps(n + 1) for n in range(batches * 16)])


    # Flag A of lane i is bit i of the first uniform. Stores 1 if the branch is taken. Uniforms: bits, result.
    CONDITION = """
        eidx rf1
        ldunifrf.rf2
        shr rf2, rf2, rf1
        and rf2, rf2, 1
        xor.pushz -, rf2, 1
        mov rf4, 1
        {branch} there
        nop
        nop
        nop
        mov rf4, 0
    there:
        ldunifrf.rf3
        mov tmud, rf4
        mov tmua, rf3
        tmuwt -
    end
    """

    def test_every_condition(self):
        everyone = 0xffff
        conditions = {
            "b": lambda a: True, "b.a0": lambda a: a & 1, "b.na0": lambda a: not a & 1,
            "b.alla": lambda a: a == everyone, "b.anyna": lambda a: a != everyone, "b.anya": lambda a: a,
            "b.allna": lambda a: not a,
        }
        data = self.device.bo(4096)
        for branch, taken in conditions.items():
            for bits in (0, 1, 2, 0x8000, 0x7fff, 0xfffe, everyone):
                with self.subTest(branch=branch, bits=bits):
                    data.words[0] = 7
                    self.run_program(self.CONDITION.format(branch=branch), [bits, data.address], [data], 1)
                    self.assertEqual(data.words[0], bool(taken(bits)))

    # A jump to the address in a register and back by the link register, and a loop that reads its uniforms anew
    # in each turn. Uniforms: address of "twice", turns, then in the loop a number and the bytes to go back by
    # (the branch reads them, taken or not), then the result.
    FORMS = """
        ldunifrf.rf5
        ldunifrf.rf6
        mov rf4, 0
    loop:
        ldunifrf.rf7
        add rf4, rf4, rf7
        sub.pushz rf6, rf6, 1
        bu.anyna loop
        nop
        nop
        nop
        ldunifrf.rf8
        bl rf5
        nop
        nop
        nop
        mov tmud, rf4
        mov tmua, rf8
        tmuwt -
    end
    twice:
        b lri
        add rf4, rf4, rf4
        nop
        nop
    """

    def test_jumps_to_registers_and_uniforms_in_loops(self):
        data = self.device.bo(4096)
        twice = self.program.address + len(qpu_program.assembled(self.FORMS, self.device.version)) - 4 * 8
        back = -8  # from the end of the word to the number
        self.run_program(self.FORMS, [twice, 5, 11, back, data.address], [data], 1)
        self.assertEqual(data.words[0], 2 * 5 * 11)

    # Flags of one comparison through every way of combining them: A and B by pushes, A alone by the others.
    # rf1 = lane; each result is the sum of the weights of the conditions that hold.
    FLAGS = """
        eidx rf1
        ldunifrf.rf3
        and.pushz -, rf1, 1                 # A: even
        and.pushz -, rf1, 2                 # A: bit 1 clear, B: even
        {update}
        mov rf4, 0
        add.ifa rf4, rf4, 1
        add.ifb rf4, rf4, 2
        add.ifna rf4, rf4, 4
        add.ifnb rf4, rf4, 8
        shl rf2, rf1, 2
        mov tmud, rf4
        add tmua, rf3, rf2
        tmuwt -
    end
    """

    def test_every_flag_update(self):
        # Z, N and C of "lane - 8": a borrow sets C.
        tests = {"z": lambda lane: lane == 8, "n": lambda lane: lane < 8, "c": lambda lane: lane < 8}
        updates = {}
        for name, test in tests.items():
            updates[f"push{name}"] = lambda a, b, x, test=test: (test(x), a)
            updates[f"and{name}"] = lambda a, b, x, test=test: (a and test(x), b)
            updates[f"andn{name}"] = lambda a, b, x, test=test: (a and not test(x), b)
            updates[f"nor{name}"] = lambda a, b, x, test=test: (not (a or test(x)), b)
            updates[f"norn{name}"] = lambda a, b, x, test=test: (not (a or not test(x)), b)
        data = self.device.bo(4096)
        for name, update in updates.items():
            with self.subTest(update=name):
                self.run_program(self.FLAGS.format(update=f"sub.{name} -, rf1, 8"), [data.address], [data], 1)
                expected = []
                for lane in range(16):
                    a, b = update(not lane & 2, not lane & 1, lane)
                    expected.append((1 if a else 4) + (2 if b else 8))
                self.assertEqual(data.words[:16].tolist(), expected)


if __name__ == "__main__":
    unittest.main()
