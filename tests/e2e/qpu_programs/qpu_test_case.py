"""What the tests of programs share: a device, and a program on it.

The node to open is $V3D_NODE, by default the card node of a Raspberry Pi 5. The programs are those of its chip.
"""

import os
import struct
import unittest

import qpu_program
import v3d_drm


def float_bits(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


class QpuTest(unittest.TestCase):
    def setUp(self):
        self.device = v3d_drm.Device(os.environ.get("V3D_NODE", v3d_drm.CARD))
        self.addCleanup(self.device.close)
        self.program = self.device.bo(qpu_program.SIZE)

    def launch(self, text, uniforms, bos, batches, old_struct=False, **config):
        qpu_program.load(self.program, text, uniforms, self.device.version)
        cfg = qpu_program.config(self.device, self.program, batches, **config)
        self.device.submit_csd(cfg, [self.program, *bos], old_struct)

    def run_program(self, *args, **kwargs):
        self.launch(*args, **kwargs)
        self.device.wait(self.program)

    def whole_machine(self, per_qpu):
        """One supergroup with `per_qpu` batches for each QPU: (batches, configuration, shift of TIDX)."""
        qpus = self.device.qpus
        config = dict(wg_size=16 * per_qpu, wgs_per_sg=qpus, batches_per_sg=qpus * per_qpu, grid=(qpus, 1, 1),
                      threads=4 if per_qpu == 4 else 2)
        return qpus * per_qpu, config, {1: 2, 2: 1, 4: 0}[per_qpu]
