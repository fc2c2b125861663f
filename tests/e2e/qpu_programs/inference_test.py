"""Neural network layers in QPU assembly: a product of byte matrices by the dot product, and softmax by the SFU."""

import math
import random
import unittest

import kernels
from qpu_test_case import QpuTest, float_bits


class ByteGemmTest(QpuTest):
    ROWS = COLUMNS = INNER = 128

    def setUp(self):
        super().setUp()
        if self.device.version < 71:
            self.skipTest("the chip has no dot product")

    def multiply(self, mode):
        """The product of random matrices; `mode` tells whose bytes are signed."""
        numbers = random.Random(mode)
        inner, corners = self.INNER, {"u": (0, 255), "s": (-128, 127)}

        def matrix(sign, rows, columns):
            low, high = corners[sign]
            return [[numbers.choice((low, high, numbers.randint(low, high))) for _ in range(columns)]
                    for _ in range(rows)]

        a, b = matrix(mode[0], self.ROWS, inner), matrix(mode[1], inner, self.COLUMNS)
        columns = list(zip(*b))
        left, right, result = (self.device.bo(1 << 17) for _ in range(3))

        def word(elements):
            return int.from_bytes(bytes(x & 255 for x in elements), "little")

        for i, row in enumerate(a):
            for k in range(0, inner, 4):
                left.words[(i * inner + k) // 4] = word(row[k:k + 4])
        for j, column in enumerate(columns):
            for k in range(0, inner, 4):
                right.words[k // 4 * self.COLUMNS + j] = word(column[k:k + 4])
        self.run_program(kernels.IGEMM8[mode], [left.address, inner, right.address, 4 * self.COLUMNS, result.address,
                                                inner // kernels.IGEMM8_K], [left, right, result],
                         self.ROWS * self.COLUMNS // 256, grid=(self.COLUMNS // 16, self.ROWS // 16, 1))
        expected = [sum(x * y for x, y in zip(row, column)) & 0xffffffff for row in a for column in columns]
        self.assertEqual(result.words[:len(expected)].tolist(), expected)

    def test_signed(self):
        self.multiply("ss")

    def test_unsigned(self):
        self.multiply("uu")

    def test_signed_by_unsigned(self):
        self.multiply("su")

    def test_unsigned_by_signed(self):
        self.multiply("us")

    def test_several_turns_of_the_inner_loop(self):
        self.ROWS, self.COLUMNS, self.INNER = 32, 48, 384
        self.multiply("ss")


class SoftmaxTest(QpuTest):
    # x - maximum and its product with log2(e) round to 24 bits, which 2 ** x turns into a relative error of the result.
    TOLERANCE = 1e-5
    VECTORS = 7

    def softmax(self, rows):
        source, result = (self.device.bo(1 << 16) for _ in range(2))
        for i, value in enumerate(sum(rows, [])):
            source.floats[i] = value
        rows = [source.floats[i * len(row):(i + 1) * len(row)].tolist() for i, row in enumerate(rows)]  # as f32
        uniforms = [source.address, result.address, self.VECTORS, float_bits(-math.inf), float_bits(math.log2(math.e))]
        self.run_program(kernels.SOFTMAX[self.device.version], uniforms, [source, result], len(rows))
        for i, row in enumerate(rows):
            powers = [math.exp(x - max(row)) for x in row]
            actual = result.floats[i * len(row):(i + 1) * len(row)].tolist()
            for power, value in zip(powers, actual):
                # Powers below the least normal float are 0.
                self.assertAlmostEqual(value, power / sum(powers), delta=self.TOLERANCE * power / sum(powers) + 1e-37)
            self.assertAlmostEqual(sum(actual), 1, delta=self.TOLERANCE)

    def test_random_rows(self):
        numbers = random.Random(4)
        self.softmax([[numbers.uniform(-20, 20) for _ in range(16 * self.VECTORS)] for _ in range(50)])

    def test_rows_of_extremes(self):
        columns = 16 * self.VECTORS
        self.softmax([[3.0] * columns,
                      [1e30] + [0.0] * (columns - 1),                       # no overflow: the maximum is taken off
                      [-math.inf] * (columns - 1) + [-5.0],                 # masked elements
                      [float(-i) for i in range(columns)],                  # down to powers below the least float
                      [(-1.0) ** i * 88.0 for i in range(columns)]])


if __name__ == "__main__":
    unittest.main()
