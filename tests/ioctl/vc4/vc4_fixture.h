/// The fixture is an opened render node of a board whose driver is vc4.
#pragma once

#include <sys/mman.h>

#include <string>
#include <vector>

#include "ioctl/abi/vc4.h"
#include "tests/ioctl/fixture.h"
#include "tests/ioctl/vc4/job_source.h"
#include "tests/ioctl/vc4/words.h"

namespace v3d::ioctl::vc4::test {

/// The binner takes 16 MiB of it.
inline constexpr uint64_t kBoardMemory = 32 << 20;
inline constexpr Vc4Board kBoard = {{0x02443356, 0xc1102431, 0x121}, kBoardMemory};

inline const Abi& linux61() { return *find_abi("6.1"); }

class Vc4Test : public ioctl::test::IoctlTest {
 protected:
  explicit Vc4Test(const Abi& abi = default_abi()) : IoctlTest(abi, kBoard) {}

  uint32_t create(File& file, uint32_t bytes = 4096) {
    drm::vc4::CreateBo args = {.size = bytes, .flags = 0, .handle = 0, .pad = 0};
    EXPECT_EQ(ioctl(file, drm::vc4::kCreateBo, args), 0);
    return args.handle;
  }
  uint32_t create(uint32_t bytes = 4096) { return create(*file_, bytes); }
  int create_shader(const std::vector<uint64_t>& words, uint32_t* handle) {
    drm::vc4::CreateShaderBo args = {};
    args.size = static_cast<uint32_t>(words.size() * sizeof words[0]);
    args.data = memory_.place(words);
    const int error = ioctl(drm::vc4::kCreateShaderBo, args);
    *handle = args.handle;
    return error;
  }
  /// @return the errno; *retained is what it says
  int advise(uint32_t handle, uint32_t madv, uint32_t* retained) {
    drm::vc4::GemMadvise args = {.handle = handle, .madv = madv, .retained = 99, .pad = 0};
    const int error = ioctl(drm::vc4::kGemMadvise, args);
    *retained = args.retained;
    return error;
  }
  uint32_t retained(uint32_t handle, uint32_t madv) {
    uint32_t retained = 99;
    EXPECT_EQ(advise(handle, madv, &retained), 0);
    return retained;
  }
  int mmap_node(File& file, uint32_t handle, int prot) {
    ioctl::Call call{kernel_, file, memory_, fds_, waiter_, *account_};
    Buffer::Backing backing;
    const auto bo = file.find_bo(handle);
    return mmap_file(call, bo->mmap_offset(), bo->size(), prot, MAP_SHARED, &backing);
  }

  /// A clear of one BO, of 16 by 16 pixels.
  drm::vc4::SubmitCl clear(const std::vector<uint32_t>& bos) {
    drm::vc4::SubmitCl args = {};
    for (drm::vc4::Surface* s :
         {&args.color_read, &args.zs_read, &args.zs_write, &args.msaa_color_write, &args.msaa_zs_write})
      s->hindex = drm::vc4::kNoSurface;
    args.color_write = {0, 0, 0x04, 0};
    args.width = args.height = 16;
    args.flags = drm::vc4::kUseClearColor;
    args.bo_handles = memory_.place(bos);
    args.bo_handle_count = static_cast<uint32_t>(bos.size());
    return args;
  }
  void bin(const Bytes& list, const Bytes& records, const Bytes& uniforms, uint32_t num_records,
           drm::vc4::SubmitCl* args) {
    args->bin_cl = memory_.place(list.data(), list.size());
    args->bin_cl_size = static_cast<uint32_t>(list.size());
    args->shader_rec = memory_.place(records.data(), records.size());
    args->shader_rec_size = static_cast<uint32_t>(records.size());
    args->shader_rec_count = num_records;
    args->uniforms = memory_.place(uniforms.data(), uniforms.size());
    args->uniforms_size = static_cast<uint32_t>(uniforms.size());
  }
  int submit(drm::vc4::SubmitCl& args) { return ioctl(drm::vc4::kSubmitCl, args); }
  int wait_seqno(uint64_t seqno, uint64_t timeout_ns = 0) {
    drm::vc4::WaitSeqno args = {seqno, timeout_ns};
    return ioctl(drm::vc4::kWaitSeqno, args);
  }
  int wait_bo(uint32_t handle, uint64_t timeout_ns = 0) {
    drm::vc4::WaitBo args = {handle, 0, timeout_ns};
    return ioctl(drm::vc4::kWaitBo, args);
  }
};

}  // namespace v3d::ioctl::vc4::test
