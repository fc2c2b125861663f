"""Compute programs that never end by themselves: the kernel's reset ends them, and the client's next job works.

The kernel resets the GPU and cancels the job. Waits succeed: what a client sees is the fence of the cache clean that
follows each compute job, and a clean does not inherit the error (Linux v3d_submit_csd_ioctl, drm_sched). The daemon
counts the failed job, and $V3DEMU status shows it. After an MMU fault or the end of the uniforms hardware goes on.

The daemon ($V3DEMUD, on $V3DEMU_SOCKET) is the test's own and resets after a hundredth of the kernel's second of GPU
time, which an interpreter of one instruction in several nanoseconds takes long to reach.
"""

import os
import subprocess
import unittest

import kernels
import qpu_program
import v3d_drm

SIGNALLED = 1
ENDS, IS_RESET = 0, 1  # failed jobs

UNTOUCHED = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


class HostileComputeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        subprocess.run([os.environ["V3DEMUD"], "--reset-after", "0.01", "--exit-when-idle", "10"], env=UNTOUCHED,
                       check=True)

    def setUp(self):
        self.device = v3d_drm.Device(os.environ.get("V3D_NODE", v3d_drm.CARD))
        self.addCleanup(self.device.close)
        self.data = self.device.bo(4096)

    def run_program(self, text, uniforms, batches=1, seconds=300, **config):
        """Runs to the end, whichever it is; returns the number of failed jobs of this client since its start."""
        program = self.device.bo(qpu_program.SIZE)
        qpu_program.load(program, text, uniforms, self.device.version)
        syncobj = self.device.syncobj()
        cfg = qpu_program.config(self.device, program, batches, **config)
        self.device.submit_csd(cfg, [program], out_sync=syncobj)
        self.device.wait(program, seconds)
        self.assertEqual(self.device.status(syncobj), SIGNALLED)
        return self.failed_jobs()

    def failed_jobs(self):
        text = subprocess.run([os.environ["V3DEMU"], "status"], env=UNTOUCHED, check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        lines = [line.split() for line in text.splitlines()]
        names = next(line for line in lines if "failed" in line)
        # A client that gave itself no name has one word less.
        mine = [line for line in lines if len(line) >= len(names) - 1 and line[names.index("pid")] == str(os.getpid())]
        self.assertEqual(len(mine), 1, text)
        return int(mine[0][names.index("failed")])

    def check(self, expected, *args, **kwargs):
        self.assertEqual(self.run_program(*args, **kwargs), expected)
        for i in range(16):
            self.data.words[i] = 0
        self.assertEqual(self.run_program(kernels.STORE, [self.data.address, 42]), expected)
        self.assertEqual(self.data.words[:16].tolist(), [42] * 16)
        self.assertEqual(self.device.param(v3d_drm.PARAM_CONTEXT_RESETS), expected)

    def test_endless_loop(self):
        self.check(IS_RESET, "here:\nb here\nnop\nnop\nnop\n", [], batches=self.device.qpus * 2)

    def test_endless_loop_that_reads_memory(self):
        text = "ldunifrf.rf3\nhere:\nmov tmua, rf3 ; thrsw\nnop\nnop\nldtmu.rf4\nb here\nnop\nnop\nnop\n"
        self.check(IS_RESET, text, [self.data.address], batches=4)

    def test_jump_out_of_memory(self):
        self.check(IS_RESET, "ldunifrf.rf3\nnop\nb rf3\nnop\nnop\nnop\n", [0xfff00000])

    def test_falls_off_its_code(self):
        self.check(IS_RESET, "nop\n", [])

    def test_result_of_no_lookup(self):
        self.check(IS_RESET, "nop ; thrsw\nnop\nnop\nldtmu.rf4\nend", [])

    def test_barrier_that_one_never_reaches(self):
        # The second workgroup of the supergroup loops for ever.
        text = """
            workgroup_x rf1
            mov.pushz -, rf1
            b.alla wait
            nop
            nop
            nop
        here:
            b here
            nop
            nop
            nop
        wait:
            barrierid syncb ; thrsw
            nop
            nop
        end
        """
        self.check(IS_RESET, text, [], batches=2, wgs_per_sg=2, batches_per_sg=2)

    def test_uniforms_without_end(self):
        self.check(IS_RESET, "here:\nldunifrf.rf3\nb here\nnop\nnop\nnop\n", [])

    def test_more_uniforms_than_memory(self):
        # 32 Ki uniforms lie beyond the end of the program's memory, at addresses that nothing maps.
        text = """
            mov rf5, 1
            shl rf5, rf5, 15
        loop:
            ldunifrf.rf3
            sub.pushz rf5, rf5, 1
            b.anyna loop
            nop
            nop
            nop
        end
        """
        self.check(ENDS, text, [])

    def test_wild_addresses(self):
        # 4096 reads, writes and atomic additions all over the address space; the uniform is the increment.
        text = """
            eidx rf1
            mov rf2, 15
            shl rf2, rf2, 8
            ldunifrf.rf3
            ldunifrf.rf6
        loop:
            add rf1, rf1, rf3
            ldunifrf.rf4
            or rf7, rf1, rf6
            mov tmua, rf7 ; thrsw
            sub.pushz rf2, rf2, 1
            nop
            ldtmu.rf5
            mov tmud, rf5
            mov tmua, rf7
            b.anyna loop
            nop
            nop
            nop
            tmuwt -
        end
        """
        self.check(ENDS, text, [0x9e3779b1, 0x80000000])


if __name__ == "__main__":
    unittest.main()
