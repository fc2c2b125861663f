/// This is a V3D node for programs that need the kernel's interface alone: open, ioctl, mmap.
#pragma once

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <initializer_list>

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
/// As kernels before 5.15 declared it; programs built against them still pass it. What was padding is
/// perfmon_id to later ones.
struct OldSubmitCsd {
  uint32_t cfg[7], coef[4];
  uint64_t bo_handles;
  uint32_t bo_handle_count, in_sync, out_sync, pad;
};
struct SubmitCsd {
  uint32_t cfg[7], coef[4];
  uint64_t bo_handles;
  uint32_t bo_handle_count, in_sync, out_sync, perfmon_id;
  uint64_t extensions;
  uint32_t flags, pad;
};
static_assert(sizeof(OldSubmitCsd) == 72 && sizeof(SubmitCsd) == 88);

constexpr unsigned long kWaitBo = _IOWR('d', 0x41, WaitBo);
constexpr unsigned long kCreateBo = _IOWR('d', 0x42, CreateBo);
constexpr unsigned long kMmapBo = _IOWR('d', 0x43, MmapBo);
constexpr unsigned long kGetParam = _IOWR('d', 0x44, GetParam);
template <typename Submit>
constexpr unsigned long kSubmitCsd = _IOW('d', 0x47, Submit);
constexpr uint32_t kParamHubIdent3 = 3, kParamCore0Ident0 = 4, kParamCore0Ident1 = 5;

[[noreturn]] inline void fail(const char* what) {
  std::perror(what);
  _exit(1);
}

struct Bo {
  uint32_t handle, address;
  uint32_t* words;
  float* floats() const { return reinterpret_cast<float*>(words); }
};

class Device {
 public:
  explicit Device(const char* node) : fd_(open(node, O_RDWR | O_CLOEXEC)) {
    if (fd_ < 0) fail(node);
    const uint32_t ident1 = param(kParamCore0Ident1);
    num_qpus_ = (ident1 >> 4 & 15) * (ident1 >> 8 & 15);
    version_ = (param(kParamCore0Ident0) >> 24) * 10 + (ident1 & 15);
    revision_ = param(kParamHubIdent3) >> 8 & 255;
  }

  uint32_t num_qpus() const { return num_qpus_; }
  uint32_t version() const { return version_; }  ///< 71 or 42

  Bo make_bo(uint32_t size) const {
    const auto made =
        call(kCreateBo, CreateBo{.size = size, .flags = 0, .handle = 0, .offset = 0}, "CREATE_BO");
    const auto where = call(kMmapBo, MmapBo{.handle = made.handle, .flags = 0, .offset = 0}, "MMAP_BO");
    void* memory =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, static_cast<off_t>(where.offset));
    if (memory == MAP_FAILED) fail("mmap");
    return {made.handle, made.offset, static_cast<uint32_t*>(memory)};
  }

  /// What CFG4 holds of a number of batches: all chips but the newest take it minus 1.
  uint32_t batches(uint32_t count) const { return version_ >= 71 && revision_ >= 6 ? count : count - 1; }

  template <typename Submit>
  void submit(Submit submit, std::initializer_list<uint32_t> handles) const {
    submit.bo_handles = reinterpret_cast<uintptr_t>(handles.begin());
    submit.bo_handle_count = static_cast<uint32_t>(handles.size());
    call(kSubmitCsd<Submit>, submit, "SUBMIT_CSD");
  }

  void wait(const Bo& bo) const {
    call(kWaitBo, WaitBo{.handle = bo.handle, .pad = 0, .timeout_ns = ~uint64_t{0}}, "WAIT_BO");
  }

 private:
  template <typename T>
  T call(unsigned long request, T argument, const char* name) const {
    if (ioctl(fd_, request, &argument) != 0) fail(name);
    return argument;
  }
  uint32_t param(uint32_t number) const {
    const GetParam got = call(kGetParam, GetParam{.param = number, .pad = 0, .value = 0}, "GET_PARAM");
    return static_cast<uint32_t>(got.value);
  }

  int fd_;
  uint32_t num_qpus_ = 0, version_ = 0, revision_ = 0;
};
