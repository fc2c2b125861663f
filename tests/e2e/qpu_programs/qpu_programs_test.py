"""Compute programs in QPU assembly, run through the kernel interface alone.

The node to open is $V3D_NODE, by default the card node of a Raspberry Pi 5.
"""

import errno
import os
import random
import struct
import unittest

import kernels
import qpu_program
import v3d_drm
from qpu_test_case import QpuTest, float_bits

# Configuration of general TMU accesses, for one access: type, or 0x80 | operation << 3 | type for atomics.
VEC4, S8, S16, U8, U16 = (0xffffff00 | byte for byte in (0xfc, 0xf8, 0xf9, 0xfd, 0xfe))


def atomic(operation):
    return 0xffffff87 | operation << 3


# rf9 = number of the thread, dense from 0. Uniform: bits of TIDX that do not count.
THREAD_NUMBER = """
    tidx rf9
    ldunifrf.rf10
    shr rf9, rf9, rf10
"""


class SaxpyTest(QpuTest):
    # y = a * x + y; each thread finds its part by TIDX.
    # Uniforms: TIDX shift, iterations of 16 elements per thread, addresses of x and y, a.
    SAXPY = THREAD_NUMBER + """
        eidx rf1
        ldunifrf.rf10
        umul24 rf0, rf9, rf10
        shl rf0, rf0, 4
        add rf0, rf0, rf1
        ldunifrf.rf11
        shl rf0, rf0, 2
        ldunifrf.rf12
        add rf11, rf11, rf0
        ldunifrf.rf13
        add rf12, rf12, rf0
        mov rf14, 4
        shl rf14, rf14, 4                   # 64 bytes a step
    loop:
        mov tmua, rf11 ; thrsw
        add rf11, rf11, rf14
        nop
        ldtmu.rf20
        mov tmua, rf12 ; thrsw
        fmul rf20, rf20, rf13
        nop
        ldtmu.rf21
        fadd tmud, rf20, rf21
        mov tmua, rf12
        sub.pushz rf10, rf10, 1
        b.anyna loop
        add rf12, rf12, rf14
        nop
        nop
        tmuwt -
    end
    """

    def saxpy(self, per_qpu, **kwargs):
        threads, config, shift = self.whole_machine(per_qpu)
        iterations = 5
        count = threads * iterations * 16
        data = self.device.bo(8 * count)
        for i in range(count):
            data.floats[i], data.floats[count + i] = i, 3 * i + 0.5
        self.run_program(self.SAXPY, [shift, iterations, data.address, data.address + 4 * count, float_bits(-2)],
                         [data], threads, **config, **kwargs)
        self.assertEqual(data.floats[count:2 * count].tolist(), [i + 0.5 for i in range(count)])

    def test_one_thread_per_qpu(self):
        self.saxpy(1)

    def test_two_threads_per_qpu(self):
        self.saxpy(2)

    def test_four_threads_per_qpu(self):
        self.saxpy(4)

    def test_struct_of_old_kernels(self):
        self.saxpy(2, old_struct=True)

    def test_dispatches_run_in_order(self):
        data = self.device.bo(4096)
        for i in range(16):
            data.floats[i], data.floats[16 + i] = 1.0, float(i)
        # y = 1 * x + y, five times; one thread, whatever its TIDX.
        for _ in range(5):
            self.launch(self.SAXPY, [8, 1, data.address, data.address + 64, float_bits(1)], [data], 1)
        self.device.wait(data)
        self.assertEqual(data.floats[16:32].tolist(), [i + 5.0 for i in range(16)])


class KernelTest(QpuTest):
    """The kernels of bench/compute_bench.py, on small integers, so that every order of additions is exact."""

    def test_sgemm(self):
        rows, inner, columns = 32, 96, 48
        numbers = random.Random(1)
        a = [[numbers.randrange(-8, 9) for _ in range(inner)] for _ in range(rows)]
        b = [[numbers.randrange(-8, 9) for _ in range(columns)] for _ in range(inner)]
        left, right, result = (self.device.bo(1 << 16) for _ in range(3))
        for i, value in enumerate(sum(a, [])):
            left.floats[i] = value
        for i, value in enumerate(sum(b, [])):
            right.floats[i] = value
        self.run_program(kernels.SGEMM[self.device.version], [left.address, 4 * inner, right.address, 4 * columns, result.address,
                                         inner // kernels.SGEMM_K], [left, right, result],
                         rows * columns // 256, grid=(columns // 16, rows // 16, 1))
        self.assertEqual(result.floats[:rows * columns].tolist(),
                         [sum(x * row[j] for x, row in zip(line, b)) for line in a for j in range(columns)])

    def scopy(self, threads, config, shift):
        turns = 3
        part = turns * kernels.SCOPY_UNROLL * 16
        source, result = (self.device.bo(1 << 18) for _ in range(2))
        for i in range(threads * part):
            source.floats[i] = i + 1
        self.run_program(kernels.SCOPY[self.device.version], [shift, turns, 4 * part, source.address, result.address],
                         [source, result], threads, **config)
        expected = [i + 1.0 for i in range(threads * part)] + [0.0] * part
        self.assertEqual(result.floats[:len(expected)].tolist(), expected)

    def test_scopy_of_one_thread(self):
        self.scopy(1, {}, 8)

    def test_scopy_of_all_threads(self):
        self.scopy(*self.whole_machine(2))


class BarrierTest(QpuTest):
    # Each round: store to the thread's own line, meet, read the line of the next thread, mix it in.
    # Uniforms: TIDX shift, threads, rounds, buffer, bytes per round, output.
    ROUNDS = THREAD_NUMBER + """
        eidx rf1
        ldunifrf.rf10
        shl rf1, rf1, 2
        ldunifrf.rf11
        add rf2, rf9, 1
        ldunifrf.rf12
        xor.pushz -, rf2, rf10
        mov.ifa rf2, 0
        shl rf4, rf9, 6
        ldunifrf.rf13
        shl rf5, rf2, 6
        ldunifrf.rf14
        add rf4, rf4, rf1                   # own line
        add rf5, rf5, rf1                   # the neighbour's
        add rf14, rf14, rf4
        mov rf6, 0
    round:
        add tmud, rf9, rf11                 # a value that names thread and round
        add tmua, rf12, rf4
        tmuwt -
        barrierid syncb ; thrsw
        nop
        nop
        add tmua, rf12, rf5 ; thrsw
        add rf12, rf12, rf13
        nop
        ldtmu.rf7
        sub.pushz rf11, rf11, 1
        b.anyna round
        shl rf6, rf6, 1
        xor rf6, rf6, rf7
        nop
        mov tmud, rf6
        mov tmua, rf14
        tmuwt -
    end
    """

    # Lane 0: threads, lane 2: object, lane 3: operation "set quorum, wait, increment, check".
    QUORUM = """
        mov rf15, rf10
        eidx rf16
        xor.pushz -, rf16, 2
        mov.ifa rf15, 7
        mov rf17, 8
        add rf17, rf17, rf17
        xor.pushz -, rf16, 3
        mov.ifa rf15, rf17
    round:
    """

    def test_barriers_make_stores_visible(self):
        self.check_rounds(self.ROUNDS, *self.whole_machine(2))

    def test_a_quorum_meets_across_supergroups(self):
        threads, config, shift = self.whole_machine(2)
        config.update(wg_size=16, wgs_per_sg=1, batches_per_sg=1, grid=(threads, 1, 1))
        program = self.ROUNDS.replace("    round:\n", self.QUORUM).replace("barrierid syncb", "mov syncb, rf15")
        self.check_rounds(program, threads, config, shift)

    def check_rounds(self, program, threads, config, shift):
        rounds = 10
        data = self.device.bo((rounds + 1) * threads * 64)
        self.run_program(program, [shift, threads, rounds, data.address, threads * 64,
                                   data.address + rounds * threads * 64], [data], threads, **config)
        for thread in range(threads):
            expected = 0
            for left in range(rounds, 0, -1):
                expected = expected << 1 ^ (thread + 1) % threads + left
            line = (rounds * threads + thread) * 16
            self.assertEqual(data.words[line:line + 16].tolist(), [expected] * 16, f"thread {thread}")

    # All threads spin on a word that only the last one writes. Uniforms: TIDX shift, last thread, the word.
    SPIN = THREAD_NUMBER + """
        ldunifrf.rf2
        xor.pushz -, rf9, rf2
        ldunifrf.rf3
        mov tmud, 1
        mov.ifa tmua, rf3
    wait:
        mov tmua, rf3 ; thrsw
        nop
        nop
        ldtmu.rf4
        mov.pushz -, rf4
        b.anya wait
        nop
        nop
        nop
        tmuwt -
    end
    """

    def test_spinning_threads_make_way(self):
        threads, config, shift = self.whole_machine(2)
        flag = self.device.bo(4096)
        self.run_program(self.SPIN, [shift, threads - 1, flag.address], [flag], threads, **config)
        self.assertEqual(flag.words[0], 1)


class TmuTest(QpuTest):
    # Copies a vec4 per lane. Uniforms: source, configuration, destination, configuration.
    COPY_VEC4 = """
        eidx rf1
        ldunifrf.rf2
        shl rf1, rf1, 4
        add tmuau, rf2, rf1 ; thrsw
        nop
        nop
        ldtmu.rf4
        ldtmu.rf5
        ldtmu.rf6
        ldtmu.rf7
        mov tmud, rf4
        mov tmud, rf5
        mov tmud, rf6
        mov tmud, rf7
        ldunifrf.rf3
        add tmuau, rf3, rf1
        tmuwt -
    end
    """

    def component(self, start, k):
        """The word that holds component k of a vector from word `start` on: 4.2 stays in the vector's 16 bytes."""
        return start + k if self.device.version >= 71 else start & ~3 | start + k & 3

    def test_vec4(self):
        data = self.device.bo(4096)
        for i in range(128):
            data.words[i] = 0x1000 + i
        for offset in (0, 1, 2, 3, 4, 8, 12):
            self.run_program(self.COPY_VEC4, [data.address + 4 * offset, VEC4, data.address + 2048 + 16, VEC4],
                             [data], 1)
            expected = [0x1000 + self.component(offset + 4 * lane, k) for lane in range(16) for k in range(4)]
            self.assertEqual(data.words[512:582].tolist(), [0] * 4 + expected + [0] * 2)

    # One narrow load per lane, stored as a word. Uniforms: source, configuration, destination.
    LOAD_NARROW = """
        eidx rf1
        ldunifrf.rf2
        shl rf3, rf1, {shift}
        add tmuau, rf2, rf3 ; thrsw
        shl rf3, rf1, 2
        nop
        ldtmu.rf4
        mov tmud, rf4
        ldunifrf.rf2
        add tmua, rf2, rf3
        tmuwt -
    end
    """

    def test_bytes_and_halves(self):
        data = self.device.bo(4096)
        source = bytes(range(0x70, 0x90))
        data.words[:8] = memoryview(bytearray(source)).cast("I")
        for shift, config, layout in ((0, U8, "<16B"), (0, S8, "<16b"), (1, U16, "<16H"), (1, S16, "<16h")):
            self.run_program(self.LOAD_NARROW.format(shift=shift),
                             [data.address, config, data.address + 1024], [data], 1)
            expected = struct.unpack_from(layout, source)
            self.assertEqual(data.words[256:272].tolist(), [v & 0xffffffff for v in expected], layout)

    # Each lane takes a ticket: the old value of the counter is where it stores. Uniforms: the counter, how to
    # add, the tickets.
    TICKETS = """
        mov tmud, 1
        ldunifrf.rf2
        mov tmuau, rf2 ; thrsw
        nop
        nop
        ldtmu.rf3
        shl rf4, rf3, 2
        ldunifrf.rf5
        add rf5, rf5, rf4
        mov tmud, 1
        mov tmuau, rf5                      # counts the visits of the ticket
        tmuwt -
        nop ; thrsw
        nop
        nop
        ldtmu.rf3
    end
    """

    def test_atomic_tickets(self):
        batches = 100
        data = self.device.bo(4096 + batches * 64)
        add = atomic(0)
        self.run_program(self.TICKETS, [data.address, add, data.address + 4096, add], [data], batches, threads=4)
        self.assertEqual(data.words[0], batches * 16)
        self.assertEqual(data.words[1024:1024 + batches * 16].tolist(), [1] * (batches * 16))

    # Uniforms: operand table, words, configuration, old values.
    ATOMIC = """
        eidx rf1
        ldunifrf.rf2
        shl rf1, rf1, 2
        ldunifrf.rf3
        add tmua, rf2, rf1 ; thrsw
        nop
        nop
        ldtmu.rf4
        {operands}
        add tmuau, rf3, rf1 ; thrsw
        nop
        nop
        ldtmu.rf5
        mov tmud, rf5
        ldunifrf.rf6
        add tmua, rf6, rf1
        tmuwt -
    end
    """

    def test_atomic_operations(self):
        def signed(v):
            return v - (1 << 32) if v >> 31 else v
        operations = {  # name: operation, TMUD words, function of memory and operand
            "add": (0, 1, lambda m, v: m + v),
            "sub": (1, 1, lambda m, v: m - v),
            "exchange": (2, 1, lambda m, v: v),
            "compare and exchange": (3, 2, lambda m, v: v + 1 if m == v else m),
            "umin": (4, 1, min),
            "umax": (5, 1, max),
            "smin": (6, 1, lambda m, v: min(m, v, key=signed)),
            "smax": (7, 1, lambda m, v: max(m, v, key=signed)),
            "and": (8, 1, lambda m, v: m & v),
            "or": (9, 1, lambda m, v: m | v),
            "xor": (10, 1, lambda m, v: m ^ v),
            "increment": (8, 0, lambda m, v: m + 1),
            "decrement": (9, 0, lambda m, v: m - 1),
        }
        memory = [0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 7, 0xfffffff0, 100] * 2
        operand = [0] * 4 + [1, 7, 0x80000000, 0xffffffff] + [0xfffffffe, 1, 0x7fffffff, 5, 0xffffffff, 8, 9, 100]
        data = self.device.bo(4096)
        for name, (operation, words, function) in operations.items():
            for i in range(16):
                data.words[i], data.words[64 + i], data.words[128 + i] = operand[i], memory[i], 0
            push = ["", "mov tmud, rf4", "mov tmud, rf4\nadd tmud, rf4, 1"][words]
            self.run_program(self.ATOMIC.format(operands=push),
                             [data.address, data.address + 256, atomic(operation), data.address + 512], [data], 1)
            self.assertEqual(data.words[64:80].tolist(),
                             [function(m, v) & 0xffffffff for m, v in zip(memory, operand)], name)
            self.assertEqual(data.words[128:144].tolist(), memory, f"old values of {name}")


class UniformTest(QpuTest):
    # Sums a table by unifa while the main stream goes on. Uniforms: table, addend four times, result.
    UNIFA = """
        mov rf6, 0
        ldunifrf.unifa
        nop
        nop
        nop
""" + """
        ldunifarf.rf5
        add rf6, rf6, rf5
        ldunifrf.rf5
        add rf6, rf6, rf5
""" * 4 + """
        eidx rf1
        ldunifrf.rf2
        shl rf1, rf1, 2
        mov tmud, rf6
        add tmua, rf2, rf1
        tmuwt -
    end
    """

    def test_unifa_is_a_second_stream(self):
        data = self.device.bo(4096)
        data.words[:4] = memoryview(struct.pack("<4I", 1, 20, 300, 4000)).cast("I")
        self.run_program(self.UNIFA, [data.address, 10000, 20000, 30000, 40000, data.address + 256], [data], 1)
        self.assertEqual(data.words[64:80].tolist(), [104321] * 16)

    # Overwrites its own next uniform and then reads it. Uniforms: address of the fourth word, unused, result,
    # the word.
    OWN_UNIFORM = """
        ldunifrf.rf2
        mov tmud, 5
        mov tmua, rf2
        tmuwt -
        ldunifrf.rf3
        ldunifrf.rf3
        eidx rf1
        ldunifrf.rf4
        shl rf1, rf1, 2
        mov tmud, rf4
        add tmua, rf3, rf1
        tmuwt -
    end
    """

    def test_uniforms_are_those_of_the_start(self):
        data = self.device.bo(4096)
        own = self.program.address + qpu_program.UNIFORMS + 12
        self.run_program(self.OWN_UNIFORM, [own, 0, data.address, 77], [data], 1)
        self.assertEqual(data.words[0], 77)
        self.assertEqual(self.program.words[0x2003], 5)
        # The next dispatch reads what the first one stored.
        self.run_program(self.OWN_UNIFORM, [own, 0, data.address], [data], 1)
        self.assertEqual(data.words[0], 5)


class WorkgroupTest(QpuTest):
    # Counts at [((z * Y + y) * X + x) * size + local index]. Uniforms: Y, X, size, shift of the local index,
    # array, increment.
    COUNT = """
        workgroup_z rf1
        ldunifrf.rf10
        umul24 rf1, rf1, rf10
        workgroup_y rf4
        add rf1, rf1, rf4
        ldunifrf.rf10
        umul24 rf1, rf1, rf10
        workgroup_x rf4
        add rf1, rf1, rf4
        ldunifrf.rf10
        umul24 rf1, rf1, rf10
        ldunifrf.rf10
        shr rf4, rf2, rf10
        add rf1, rf1, rf4
        shl rf1, rf1, 2
        ldunifrf.rf10
        add tmuau, rf1, rf10 ; thrsw
        nop
        nop
        ldtmu.rf4
    end
    """

    def count(self, grid, size, wgs_per_sg):
        x, y, z = grid
        batches_per_sg = (wgs_per_sg * size + 15) // 16
        full, rest = divmod(x * y * z, wgs_per_sg)
        batches = full * batches_per_sg + (rest * size + 15) // 16
        total = x * y * z * size
        data = self.device.bo(4 * total + 4096)
        shift = 26 if size <= 64 else 25 if size <= 128 else 24
        self.run_program(self.COUNT, [y, x, size, shift, data.address, atomic(8)], [data], batches, grid=grid,
                         wg_size=size, wgs_per_sg=wgs_per_sg, batches_per_sg=batches_per_sg, threads=4)
        self.assertEqual(data.words[:total + 1024].tolist(), [1] * total + [0] * 1024)

    def test_every_invocation_runs_once(self):
        self.count((5, 3, 2), 64, 1)
        self.count((2, 3, 5), 256, 1)
        self.count((7, 1, 3), 112, 2)

    def test_workgroups_share_batches(self):
        self.count((3, 5, 2), 18, 8)
        self.count((17, 1, 1), 1, 16)
        self.count((4, 4, 4), 6, 3)  # padding lanes at the end of each supergroup


class TroubleTest(QpuTest):
    # Reads and writes where nothing is mapped, then stores what it read. Uniforms: nowhere, result.
    NOWHERE = """
        eidx rf1
        shl rf1, rf1, 2
        ldunifrf.rf2
        add tmua, rf2, rf1 ; thrsw
        nop
        nop
        ldtmu.rf4
        mov tmud, 1
        add tmua, rf2, rf1
        mov tmud, rf4
        ldunifrf.rf3
        add tmua, rf3, rf1
        tmuwt -
    end
    """

    def test_faults_do_not_end_a_job(self):
        data = self.device.bo(4096)
        for i in range(16):
            data.words[i] = 0xffffffff
        self.run_program(self.NOWHERE, [0xf0000000, data.address], [data], 1)
        self.assertEqual(data.words[:16].tolist(), [0] * 16)

    ENDLESS = """
    here:
        b here
        nop
        nop
        nop
    """

    def test_endless_programs_end_with_their_client(self):
        child = os.fork()
        if child == 0:
            try:
                self.device = v3d_drm.Device(os.environ.get("V3D_NODE", v3d_drm.CARD))
                self.program = self.device.bo(qpu_program.SIZE)
                self.launch(self.ENDLESS, [], [], self.device.qpus * 2)
                with self.assertRaises(OSError) as raised:
                    self.device.wait(self.program, 0.05)
                os._exit(0 if raised.exception.errno == errno.ETIME else 1)
            finally:
                os._exit(2)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.test_faults_do_not_end_a_job()  # the next client's turn

    def test_a_bad_program_does_not_stop_the_next(self):
        data = self.device.bo(4096)
        self.launch("thrsw\n" + "nop\n" * 8, [], [data], 3)  # runs into words that are no instructions
        self.device.wait(self.program)
        self.run_program(self.NOWHERE, [0xf0000000, data.address], [data], 1)
        self.assertEqual(data.words[0], 0)


if __name__ == "__main__":
    unittest.main()
