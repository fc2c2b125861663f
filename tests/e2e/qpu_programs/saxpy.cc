// y = a * x + y on all QPUs, from C++ with the kernel's interface alone: open, ioctl, mmap.
// Usage: saxpy NODE. Exit code 0 when the result is right.

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "tests/e2e/qpu_programs/device.h"

namespace {

// Uniforms: TIDX shift, iterations of 16 elements per thread, addresses of x and y, a.
constexpr uint64_t kProgram71[] = {
    0x38002189bb03f001,  // tidx rf9
    0x3982b186bb03f000,  // ldunifrf.rf10
    0x380021897d03f24a,  // shr rf9, rf9, rf10
    0x38002181bb03f002,  // eidx rf1
    0x3982b186bb03f000,  // ldunifrf.rf10
    0x0c001006bb24a000,  // umul24 rf0, rf9, rf10
    0x39e021807c03f004,  // shl rf0, rf0, 4
    0x380021803803f001,  // add rf0, rf0, rf1
    0x3982f186bb03f000,  // ldunifrf.rf11
    0x39e021807c03f002,  // shl rf0, rf0, 2
    0x39833186bb03f000,  // ldunifrf.rf12
    0x3800218b3803f2c0,  // add rf11, rf11, rf0
    0x39837186bb03f000,  // ldunifrf.rf13
    0x3800218c3803f300,  // add rf12, rf12, rf0
    0x39c0218ef903f103,  // mov rf14, 4
    0x39e0218e7c03f384,  // shl rf14, rf14, 4
    0x3820318cf903f2c3,  // mov tmua, rf11 ; thrsw
    0x3800218b3803f2ce,  // add rf11, rf11, rf14
    0x38003186bb03f000,  // nop
    0x38853186bb03f000,  // ldtmu.rf20
    0x3820318cf903f303,  // mov tmua, rf12 ; thrsw
    0x54001506bb50d000,  // fmul rf20, rf20, rf13
    0x38003186bb03f000,  // nop
    0x38857186bb03f000,  // ldtmu.rf21
    0x3800318b0503f515,  // fadd tmud, rf20, rf21
    0x3800318cf903f303,  // mov tmua, rf12
    0x39e0618a3c03f281,  // sub.pushz rf10, rf10, 1
    0x02ffff8dff001000,  // b.anyna -120
    0x3800218c3803f30e,  // add rf12, rf12, rf14
    0x38003186bb03f000,  // nop
    0x38003186bb03f000,  // nop
    0x38003186bb03f00f,  // tmuwt -
    0x38203186bb03f000,  // nop ; thrsw
    0x38203186bb03f000,  // nop ; thrsw
    0x38003186bb03f000,  // nop
    0x38003186bb03f000,  // nop
    0x38203186bb03f000,  // nop ; thrsw
    0x38003186bb03f000,  // nop
    0x38003186bb03f000,  // nop
    0x38003186bb03f000,  // nop
};
// The same for V3D 4.2.
constexpr uint64_t kProgram42[] = {
    0x3c002189bb801000,  // tidx rf9
    0x3d82b186bb800000,  // ldunifrf.rf10
    0x3c0021897d83e24a,  // shr rf9, rf9, rf10
    0x3c002181bb802000,  // eidx rf1
    0x3d82b186bb800000,  // ldunifrf.rf10
    0x0c001006bbf8024a,  // umul24 rf0, rf9, rf10
    0x3de021807c83e004,  // shl rf0, rf0, 4
    0x3c0021803883e001,  // add rf0, rf0, rf1
    0x3d82f186bb800000,  // ldunifrf.rf11
    0x3de021807c83e002,  // shl rf0, rf0, 2
    0x3d833186bb800000,  // ldunifrf.rf12
    0x3c00218b3883e2c0,  // add rf11, rf11, rf0
    0x3d837186bb800000,  // ldunifrf.rf13
    0x3c00218c3883e300,  // add rf12, rf12, rf0
    0x3de01386bbfc0004,  // mov rf14, 4
    0x3de0218e7c83e384,  // shl rf14, rf14, 4
    0x3c203306bbf802c0,  // mov tmua, rf11 ; thrsw
    0x3c00218b3883e2ce,  // add rf11, rf11, rf14
    0x3c003186bb800000,  // nop
    0x3c853186bb800000,  // ldtmu.rf20
    0x3c203306bbf80300,  // mov tmua, rf12 ; thrsw
    0x54001506bbf8050d,  // fmul rf20, rf20, rf13
    0x3c003186bb800000,  // nop
    0x3c857186bb800000,  // ldtmu.rf21
    0x3c00318b0583e515,  // fadd tmud, rf20, rf21
    0x3c003306bbf80300,  // mov tmua, rf12
    0x3de0618a3c83e281,  // sub.pushz rf10, rf10, 1
    0x02ffff8dff001000,  // b.anyna -120
    0x3c00218c3883e30e,  // add rf12, rf12, rf14
    0x3c003186bb800000,  // nop
    0x3c003186bb800000,  // nop
    0x3c003186bb815000,  // tmuwt -
    0x3c203186bb800000,  // nop ; thrsw
    0x3c203186bb800000,  // nop ; thrsw
    0x3c003186bb800000,  // nop
    0x3c003186bb800000,  // nop
    0x3c203186bb800000,  // nop ; thrsw
    0x3c003186bb800000,  // nop
    0x3c003186bb800000,  // nop
    0x3c003186bb800000,  // nop
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s NODE\n", argv[0]);
    return 2;
  }
  const Device device(argv[1]);
  const uint32_t qpus = device.num_qpus(), threads = 2 * qpus;
  constexpr uint32_t kIterations = 64;
  constexpr float kFactor = 3;
  const uint32_t count = threads * kIterations * 16;

  const Bo program = device.make_bo(4096), data = device.make_bo(8 * count);
  static_assert(sizeof kProgram71 == sizeof kProgram42);
  std::memcpy(program.words, device.version() >= 71 ? kProgram71 : kProgram42, sizeof(kProgram71));
  uint32_t* const uniforms = program.words + 512;
  const uint32_t values[] = {1, kIterations, data.address, data.address + 4 * count};
  std::memcpy(uniforms, values, sizeof(values));
  std::memcpy(uniforms + 4, &kFactor, sizeof(kFactor));
  float* const x = data.floats();
  float* const y = x + count;
  for (uint32_t i = 0; i < count; ++i) {
    x[i] = static_cast<float>(i);
    y[i] = 0.25f;
  }

  // One supergroup of all threads: as many workgroups of 32 invocations as there are QPUs.
  SubmitCsd submit = {};
  submit.cfg[0] = qpus << 16;
  submit.cfg[1] = submit.cfg[2] = 1 << 16;
  submit.cfg[3] = 32 | (qpus & 15) << 8 | (threads - 1) << 12;
  submit.cfg[4] = device.batches(threads);
  submit.cfg[5] = program.address;
  submit.cfg[6] = program.address + 2048;
  device.submit(submit, {program.handle, data.handle});
  device.wait(data);

  for (uint32_t i = 0; i < count; ++i) {
    if (y[i] == kFactor * static_cast<float>(i) + 0.25f) continue;
    std::fprintf(stderr, "y[%u] is %g\n", i, static_cast<double>(y[i]));
    return 1;
  }
  std::printf("saxpy: %u elements on %u threads are right\n", count, threads);
  return 0;
}
