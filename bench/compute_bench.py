#!/usr/bin/env python3
"""Compute figures of the device as a client of the kernel interface sees them, beside those of a real Raspberry Pi 5.

  build/release/bin/v3demu run -- python3 bench/compute_bench.py [--repeat N] [--vulkan-bench PROGRAM] [--json]

SGEMM and SCOPY are QPU code of our own (tests/e2e/qpu_programs/kernels.py) that SUBMIT_CSD starts; times run from
the submit to the end of WAIT_BO, the best of N. Submit and dispatch latency come from vulkan_bench, through the real
v3dv. The Pi's figures: py-videocore7's README (sgemm, scopy), daedalus-fourier phase 3 (latencies).
"""

import argparse
import array
import json
import os
import pathlib
import random
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e/qpu_programs"))
import kernels  # noqa: E402
import qpu_program  # noqa: E402
import v3d_drm  # noqa: E402

# The assembler of V3D 4.2.
os.environ.setdefault("V3DEMU", str(ROOT / "build/release/bin/v3demu"))


class Bench:
    def __init__(self, repeat):
        self.device = v3d_drm.Device(os.environ.get("V3D_NODE", v3d_drm.RENDER))
        self.program = self.device.bo(qpu_program.SIZE)
        self.repeat = repeat

    def seconds(self, text, uniforms, batches, grid, **config):
        """Of each of the dispatches."""
        qpu_program.load(self.program, text, uniforms, self.device.version)
        cfg = qpu_program.config(self.device, self.program, batches, grid, **config)
        times = []
        for _ in range(self.repeat):
            start = time.perf_counter()
            self.device.submit_csd(cfg, [self.program])
            self.device.wait(self.program, 600)
            times.append(time.perf_counter() - start)
        return times

    def sgemm(self, n):
        """Gflop/s of n x n products; checks 100 elements."""
        numbers = random.Random(1)
        values = [array.array("f", (numbers.uniform(-1, 1) for _ in range(n * n))) for _ in range(2)]
        a, b, c = (self.device.bo(4 * n * (n + kernels.SGEMM_SLACK_ROWS)) for _ in range(3))
        for bo, source in zip((a, b), values):
            bo.floats[:n * n] = memoryview(source)
        times = self.seconds(kernels.SGEMM[self.device.version],
                             [a.address, 4 * n, b.address, 4 * n, c.address, n // kernels.SGEMM_K],
                             n * n // 256, (n // 16, n // 16, 1))
        for _ in range(100):
            row, column = numbers.randrange(n), numbers.randrange(n)
            expected = sum(values[0][row * n + k] * values[1][k * n + column] for k in range(n))
            got = c.floats[row * n + column]
            if abs(got - expected) > 1e-3:
                sys.exit(f"sgemm: element {row}, {column} is {got} and not {expected}")
        return [2 * n ** 3 / seconds / 1e9 for seconds in times]

    def scopy(self, floats, per_qpu):
        """GB/s as the real figures count it: bytes read and bytes written are one and the same. Checks all."""
        if per_qpu:
            qpus = self.device.qpus
            threads = qpus * per_qpu
            config = dict(grid=(qpus, 1, 1), wg_size=16 * per_qpu, wgs_per_sg=qpus, batches_per_sg=threads)
            shift = 2 - per_qpu // 2
        else:
            threads, config, shift = 1, dict(grid=(1, 1, 1)), 8
        step = kernels.SCOPY_UNROLL * 16
        turns = floats // (threads * step)
        count = turns * threads * step
        source, result = (self.device.bo(4 * floats + kernels.SCOPY_SLACK_BYTES) for _ in range(2))
        values = memoryview(array.array("f", range(step * 1024)))
        for start in range(0, count, len(values)):
            part = min(len(values), count - start)
            source.floats[start:start + part] = values[:part]
        source.words[7], source.words[count - 1] = 0x12345678, 0x87654321
        times = self.seconds(kernels.SCOPY[self.device.version],
                             [shift, turns, 4 * turns * step, source.address, result.address], threads, **config)
        if result.words[:count] != source.words[:count]:
            sys.exit("scopy: the copy differs")
        return [4 * count / seconds / 1e9 for seconds in times]


def latencies(program):
    """Microseconds of vulkan_bench's benchmarks by name."""
    output = subprocess.run([program, "--benchmark_filter=^(empty_queue_submit|dispatch_one_workgroup)/",
                             "--benchmark_format=json"], check=True, stdout=subprocess.PIPE).stdout
    return {b["name"].split("/")[0]: b["real_time"] for b in json.loads(output)["benchmarks"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each kernel (default %(default)s)")
    parser.add_argument("--vulkan-bench", default=str(ROOT / "build/release/bin/vulkan_bench"))
    parser.add_argument("--json", action="store_true", help="all runs of sgemm and scopy, and nothing else")
    options = parser.parse_args()
    bench = Bench(options.repeat)
    if options.json:
        print(json.dumps({"sgemm": bench.sgemm(1024), "scopy": bench.scopy(24 << 20, 2)}))
        return
    waits = latencies(options.vulkan_bench)
    print(f"{'':36}{'v3demu':>10}{'Pi 5':>10}")
    for name, unit, value, pi in (
            ("sgemm 1024 x 1024", "Gflop/s", max(bench.sgemm(1024)), 21.4),
            ("scopy 24 Mi floats, 1 thread", "GB/s", max(bench.scopy(24 << 20, 0)), 1.69),
            ("scopy 24 Mi floats, all threads", "GB/s", max(bench.scopy(24 << 20, 2)), 4.14),
            ("empty vkQueueSubmit", "us", waits["empty_queue_submit"], 22.7),
            ("dispatch of one workgroup, waited", "us", waits["dispatch_one_workgroup"], 55.6)):
        print(f"{name:36}{value:10.2f}{pi:10.2f} {unit}", flush=True)


if __name__ == "__main__":
    main()
