// Which ioctls may be answered without a message.
#include "shim/drm/local_call.h"

#include <gtest/gtest.h>

#include <cstddef>

#include "ioctl/abi/core.h"
#include "ioctl/abi/request.h"
#include "ioctl/abi/v3d.h"
#include "ioctl/abi/vc4.h"

namespace v3d::shim {
namespace {

namespace drm = ioctl::drm;
namespace request = drm::request;

TEST(LocalCall, HasRowsForTheWholeWord) {
  for (const uint32_t word :
       {request::kVersion, request::kGetCap, request::kGetParam, request::kPerfmonGetCounter,
        request::kWaitBo, request::kMmapBo, request::kSyncobjWait, request::kSyncobjReset,
        request::kSyncobjCreate, request::kSyncobjDestroy, request::kSyncobjHandleToFd,
        request::kSyncobjFdToHandle}) {
    const LocalIoctl* known = find_local_ioctl(Driver::kV3d, word);
    ASSERT_NE(known, nullptr) << std::hex << word;
    EXPECT_EQ(known->request, word);
    EXPECT_EQ(known->size, drm::request_size(word));
    EXPECT_LE(known->size, LocalCall::kMostBytes);
    // Callers that read nothing back, or give nothing, mean something else.
    EXPECT_EQ(find_local_ioctl(Driver::kV3d, word & ~drm::kDirectionIn), nullptr);
    EXPECT_EQ(find_local_ioctl(Driver::kV3d, word & ~drm::kDirectionOut), nullptr);
    EXPECT_EQ(find_local_ioctl(Driver::kV3d, drm::request_of_size(word, known->size + 8)), nullptr);
    EXPECT_EQ(find_local_ioctl(Driver::kV3d, drm::request_of_size(word, 4)), nullptr);
  }
}

TEST(LocalCall, KnowsTheShorterArgumentsOfOlderCallers) {
  const LocalIoctl* wait = find_local_ioctl(
      Driver::kV3d, drm::request_of_size(request::kSyncobjWait, offsetof(drm::SyncobjWait, deadline_ns)));
  ASSERT_NE(wait, nullptr);
  EXPECT_EQ(wait->size, sizeof(drm::SyncobjWait));
  const uint32_t without_point = offsetof(drm::SyncobjHandle, point);
  for (const uint32_t word : {request::kSyncobjHandleToFd, request::kSyncobjFdToHandle})
    EXPECT_NE(find_local_ioctl(Driver::kV3d, drm::request_of_size(word, without_point)), nullptr);
}

TEST(LocalCall, TakesNoNumberOfOneDriverForTheOthers) {
  for (const uint32_t word :
       {request::kWaitBo, request::kMmapBo, request::kGetParam, request::kPerfmonGetCounter})
    EXPECT_EQ(find_local_ioctl(Driver::kVc4, word), nullptr) << std::hex << word;
  for (const uint32_t word : {drm::vc4::kWaitBo, drm::vc4::kGetParam}) {
    EXPECT_NE(find_local_ioctl(Driver::kVc4, word), nullptr) << std::hex << word;
    EXPECT_EQ(find_local_ioctl(Driver::kV3d, word), nullptr) << std::hex << word;
  }
  for (const uint32_t word : {request::kVersion, request::kGetCap, request::kSyncobjWait})
    EXPECT_EQ(find_local_ioctl(Driver::kVc4, word), find_local_ioctl(Driver::kV3d, word)) << std::hex << word;
}

TEST(LocalCall, LeavesWhatHasToBeAskedToTheDaemon) {
  for (const uint32_t word : {request::kSubmitCl, request::kCreateBo, request::kGemClose, request::kSetMaster,
                              request::kSyncobjSignal})
    EXPECT_EQ(find_local_ioctl(Driver::kV3d, word), nullptr) << std::hex << word;
}

}  // namespace
}  // namespace v3d::shim
