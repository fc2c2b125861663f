/// The fixture submits SUBMIT_CPU with the extensions of its job types.
#pragma once

#include <cstring>
#include <vector>

#include "tests/ioctl/fixture.h"

namespace v3d::ioctl::test {

class CpuJobTest : public IoctlTest {
 protected:
  using IoctlTest::IoctlTest;

  int submit(uint64_t extensions, const std::vector<uint32_t>& bos, uint32_t flags = drm::kSubmitExtension) {
    drm::SubmitCpu args = {.bo_handles = memory_.place(bos),
                           .bo_handle_count = static_cast<uint32_t>(bos.size()),
                           .flags = flags,
                           .extensions = extensions};
    return ioctl(kSubmitCpu, args);
  }
  uint64_t timestamp(const std::vector<uint32_t>& offsets, const std::vector<uint32_t>& syncs,
                     uint64_t next = 0) {
    return memory_.place(drm::TimestampQuery{{next, drm::kExtCpuTimestampQuery, 0},
                                             memory_.place(offsets),
                                             memory_.place(syncs),
                                             static_cast<uint32_t>(offsets.size()),
                                             0});
  }
  uint64_t reset_timestamp(uint32_t offset, const std::vector<uint32_t>& syncs) {
    return memory_.place(drm::ResetTimestampQuery{{0, drm::kExtCpuResetTimestampQuery, 0},
                                                  memory_.place(syncs),
                                                  offset,
                                                  static_cast<uint32_t>(syncs.size())});
  }
  drm::CopyTimestampQuery copy_timestamp(const std::vector<uint32_t>& offsets,
                                         const std::vector<uint32_t>& syncs) {
    drm::CopyTimestampQuery args = {};
    args.base.id = drm::kExtCpuCopyTimestampQuery;
    args.do_64bit = args.availability_bit = 1;
    args.offset = 16;
    args.stride = 24;
    args.count = static_cast<uint32_t>(offsets.size());
    args.offsets = memory_.place(offsets);
    args.syncs = memory_.place(syncs);
    return args;
  }
  drm::IndirectCsd indirect_csd() {
    drm::IndirectCsd args = {};
    args.base.id = drm::kExtCpuIndirectCsd;
    for (uint32_t i = 0; i < 7; ++i) args.submit.cfg[i] = 1 << 16;
    args.submit.bo_handles = memory_.place(std::vector<uint32_t>{bo_});
    args.submit.bo_handle_count = 1;
    args.indirect = uniforms_;
    args.offset = 8;
    args.wg_size = 33;
    args.wg_uniform_offsets[0] = 2;
    args.wg_uniform_offsets[1] = 0xffffffff;
    args.wg_uniform_offsets[2] = 5;
    return args;
  }
  template <typename T>
  T read(uint32_t bo, size_t offset) {
    T value;
    std::memcpy(&value, bo_memory(bo) + offset, sizeof value);
    return value;
  }
  template <typename T>
  void write(uint32_t bo, size_t offset, T value) {
    std::memcpy(bo_memory(bo) + offset, &value, sizeof value);
  }

  const uint32_t bo_ = create_bo(), pool_ = create_bo(), uniforms_ = create_bo();
};

}  // namespace v3d::ioctl::test
