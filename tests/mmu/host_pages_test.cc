#include "gpu/mmu/host_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace v3d::mmu {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(HostPages, MayNotBeLargerThanThoseOfTheGpu) {
  EXPECT_TRUE(check_host_pages(4096).ok());
  for (const uint64_t bytes : {16384, 65536}) {
    const absl::Status refusal = check_host_pages(bytes);
    EXPECT_EQ(refusal.code(), absl::StatusCode::kFailedPrecondition);
    const std::string sentence(refusal.message());
    EXPECT_THAT(sentence, HasSubstr("pages have " + std::to_string(bytes) + " bytes"));
    EXPECT_THAT(sentence, HasSubstr("kernel8.img"));
    EXPECT_THAT(sentence, Not(HasSubstr("\n")));
  }
}

TEST(HostPages, OfThisHostAreSmallEnough) { EXPECT_TRUE(check_host_pages().ok()); }

}  // namespace
}  // namespace v3d::mmu
