// y = a * x + y on all QPUs, from C++ with the kernel's interface alone: open, ioctl, mmap.
// Usage: saxpy NODE. Exit code 0 when the result is right.

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

// Linux include/uapi/drm/v3d_drm.h.
struct WaitBo {
  uint32_t handle, pad;
  uint64_t timeout_ns;
};
struct CreateBo {
  uint32_t size, flags, handle, offset;
};
struct MmapBo {
  uint32_t handle, flags;
  uint64_t offset;
};
struct GetParam {
  uint32_t param, pad;
  uint64_t value;
};
struct SubmitCsd {
  uint32_t cfg[7], coef[4];
  uint64_t bo_handles;
  uint32_t bo_handle_count, in_sync, out_sync, perfmon_id;
  uint64_t extensions;
  uint32_t flags, pad;
};
static_assert(sizeof(SubmitCsd) == 88);

constexpr unsigned long kWaitBo = _IOWR('d', 0x41, WaitBo);
constexpr unsigned long kCreateBo = _IOWR('d', 0x42, CreateBo);
constexpr unsigned long kMmapBo = _IOWR('d', 0x43, MmapBo);
constexpr unsigned long kGetParam = _IOWR('d', 0x44, GetParam);
constexpr unsigned long kSubmitCsd = _IOW('d', 0x47, SubmitCsd);
constexpr uint32_t kParamHubIdent3 = 3, kParamCore0Ident0 = 4, kParamCore0Ident1 = 5;

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

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  _exit(1);
}

template <typename T>
T call(int fd, unsigned long request, T argument, const char* name) {
  if (ioctl(fd, request, &argument) != 0) fail(name);
  return argument;
}

struct Bo {
  uint32_t handle, address;
  uint32_t* words;
};

Bo make_bo(int fd, uint32_t size) {
  const CreateBo made =
      call(fd, kCreateBo, CreateBo{.size = size, .flags = 0, .handle = 0, .offset = 0}, "CREATE_BO");
  const MmapBo where = call(fd, kMmapBo, MmapBo{.handle = made.handle, .flags = 0, .offset = 0}, "MMAP_BO");
  void* memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(where.offset));
  if (memory == MAP_FAILED) fail("mmap");
  return {made.handle, made.offset, static_cast<uint32_t*>(memory)};
}

uint32_t param(int fd, uint32_t number) {
  return static_cast<uint32_t>(
      call(fd, kGetParam, GetParam{.param = number, .pad = 0, .value = 0}, "GET_PARAM").value);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s NODE\n", argv[0]);
    return 2;
  }
  const int fd = open(argv[1], O_RDWR | O_CLOEXEC);
  if (fd < 0) fail(argv[1]);

  const uint32_t ident1 = param(fd, kParamCore0Ident1), ident3 = param(fd, kParamHubIdent3);
  const bool is_71 = param(fd, kParamCore0Ident0) >> 24 == 7;
  const uint32_t qpus = (ident1 >> 4 & 15) * (ident1 >> 8 & 15), threads = 2 * qpus;
  constexpr uint32_t kIterations = 64;
  constexpr float kFactor = 3;
  const uint32_t count = threads * kIterations * 16;

  const Bo program = make_bo(fd, 4096), data = make_bo(fd, 8 * count);
  static_assert(sizeof kProgram71 == sizeof kProgram42);
  std::memcpy(program.words, is_71 ? kProgram71 : kProgram42, sizeof(kProgram71));
  uint32_t* const uniforms = program.words + 512;
  const uint32_t values[] = {1, kIterations, data.address, data.address + 4 * count};
  std::memcpy(uniforms, values, sizeof(values));
  std::memcpy(uniforms + 4, &kFactor, sizeof(kFactor));
  float* const x = reinterpret_cast<float*>(data.words);
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
  submit.cfg[4] = is_71 && (ident3 >> 8 & 255) >= 6 ? threads : threads - 1;
  submit.cfg[5] = program.address;
  submit.cfg[6] = program.address + 2048;
  const uint32_t handles[] = {program.handle, data.handle};
  submit.bo_handles = reinterpret_cast<uintptr_t>(handles);
  submit.bo_handle_count = 2;
  call(fd, kSubmitCsd, submit, "SUBMIT_CSD");
  call(fd, kWaitBo, WaitBo{.handle = data.handle, .pad = 0, .timeout_ns = ~uint64_t{0}}, "WAIT_BO");

  for (uint32_t i = 0; i < count; ++i) {
    if (y[i] == kFactor * static_cast<float>(i) + 0.25f) continue;
    std::fprintf(stderr, "y[%u] is %g\n", i, static_cast<double>(y[i]));
    return 1;
  }
  std::printf("saxpy: %u elements on %u threads are right\n", count, threads);
  return 0;
}
