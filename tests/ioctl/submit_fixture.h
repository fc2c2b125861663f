/// The fixture makes submissions of one BO each, to be spoilt by the tests.
#pragma once

#include <algorithm>
#include <vector>

#include "tests/ioctl/fixture.h"

namespace v3d::ioctl::test {

class SubmitTest : public IoctlTest {
 protected:
  using IoctlTest::IoctlTest;

  /// A CL submit of a bin and a render job with one BO.
  drm::SubmitCl cl() {
    drm::SubmitCl args = {};
    args.bcl_start = 0x1000;
    args.bcl_end = 0x1100;
    args.rcl_start = 0x2000;
    args.rcl_end = 0x2100;
    args.bo_handles = memory_.place(std::vector<uint32_t>{bo_});
    args.bo_handle_count = 1;
    return args;
  }
  drm::SubmitCsd csd() {
    drm::SubmitCsd args = {};
    args.cfg[0] = args.cfg[1] = args.cfg[2] = 1 << 16;
    args.bo_handles = memory_.place(std::vector<uint32_t>{bo_});
    args.bo_handle_count = 1;
    return args;
  }
  drm::SubmitTfu tfu() {
    drm::SubmitTfu args = {};
    args.bo_handles[0] = bo_;
    return args;
  }
  /// A change of sound arguments, and the error that it gives.
  template <typename Args>
  struct Spoilt {
    const char* what;
    void (*spoil)(Args&);
    int error;
  };
  template <typename Args>
  void refuses(uint32_t request, const Args& sound, const std::vector<Spoilt<Args>>& cases) {
    for (const auto& c : cases) {
      Args args = sound;
      c.spoil(args);
      EXPECT_EQ(ioctl(request, args), c.error) << c.what;
    }
  }
  std::vector<Queue> queues() const {
    std::vector<Queue> queues;
    for (const JobPtr& job : host_.jobs) queues.push_back(job->queue);
    return queues;
  }
  static bool depends(const JobPtr& job, const FencePtr& fence) {
    return std::find(job->dependencies.begin(), job->dependencies.end(), fence) != job->dependencies.end();
  }
  using Queues = std::vector<Queue>;

  const uint32_t bo_ = create_bo();
};

}  // namespace v3d::ioctl::test
