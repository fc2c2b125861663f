#include "tools/xproxy/fence.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

extern "C" {
#include <X11/xshmfence.h>
}

#include "ioctl/base/unique_fd.h"

namespace v3d::xproxy {
namespace {

TEST(Fence, IsSharedWithWhoMadeIt) {
  const ioctl::UniqueFd page(xshmfence_alloc_shm());
  ASSERT_TRUE(page);
  const auto fence = Fence::map(page.get()), other = Fence::map(page.get());
  ASSERT_TRUE(fence && other);
  EXPECT_FALSE(other->triggered());
  fence->trigger();
  EXPECT_TRUE(other->triggered());
  other->reset();
  EXPECT_FALSE(fence->triggered());
}

TEST(Fence, LeavesTheDescriptorAlone) {
  const ioctl::UniqueFd page(xshmfence_alloc_shm());
  const ioctl::UniqueFd probe(dup(page.get()));
  const int next = probe.get();
  { const auto fence = Fence::map(page.get()); }
  EXPECT_EQ(fcntl(page.get(), F_GETFD) & ~FD_CLOEXEC, 0);
  const ioctl::UniqueFd after(dup(page.get()));
  EXPECT_EQ(after.get(), next + 1);  // nothing else stayed open
}

TEST(Fence, OutlivesItsPage) {
  const ioctl::UniqueFd page(memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(page.get(), 4096), 0);
  const auto fence = Fence::map(page.get());
  ASSERT_TRUE(fence);
  ASSERT_EQ(ftruncate(page.get(), 0), 0);
  EXPECT_FALSE(fence->triggered());
  fence->trigger();
  EXPECT_TRUE(fence->triggered());
}

TEST(Fence, IsNoneWhereNothingCanBeMapped) {
  const ioctl::UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(Fence::map(null.get()), nullptr);
  EXPECT_EQ(Fence::map(-1), nullptr);
}

TEST(FenceDeathTest, OtherFaultsStillEndTheProcess) {
  const ioctl::UniqueFd page(memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(page.get(), 4096), 0);
  const auto fence = Fence::map(page.get());
  auto* other = static_cast<volatile int*>(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, page.get(), 0));
  ASSERT_EQ(ftruncate(page.get(), 0), 0);
  EXPECT_DEATH(static_cast<void>(*other), "");
}

}  // namespace
}  // namespace v3d::xproxy
