// Connections that look at the screen.
#include "daemon/viewer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/daemon/server_fixture.h"

namespace v3d::daemon::test {
namespace {

/// What one client may have (ioctl/base/account.cc).
constexpr size_t kViewersOfAClient = 8;

Answer look(Client& client, const wire::ScreenRequest& request) {
  return client.ask(wire::kScreen, &request, sizeof request);
}

TEST_F(ServerTest, AScreenOnWhichNobodyShowsAnythingIsBlank) {
  start();
  Client client(path_);
  for (const uint32_t flags : {0u, uint32_t{wire::kLastPicture}}) {
    const Answer answer = look(client, {0, 0, flags});
    ASSERT_EQ(answer.error, 0);
    ASSERT_EQ(answer.payload.size(), sizeof(wire::ScreenReply));
    wire::ScreenReply reply;
    std::memcpy(&reply, answer.payload.data(), sizeof reply);
    EXPECT_EQ(reply.active, flags == 0);  // the console is shown, on which nobody has drawn
    EXPECT_EQ(reply.num_planes, 0u);
    EXPECT_TRUE(answer.fds.empty());
  }
}

TEST_F(ServerTest, ViewersWaitForAFrameNoLongerThanTheySay) {
  start();
  Client client(path_);
  EXPECT_EQ(look(client, {0, 1, wire::kNextFrame}).error, ETIME);
  EXPECT_EQ(look(client, {0, wire::kMaxScreenWaitMs + 1, wire::kNextFrame}).error, EINVAL);
  EXPECT_EQ(look(client, {0, 0, 4}).error, EINVAL);
  EXPECT_EQ(look(client, {0, 0, 0}).error, 0);
}

TEST_F(ServerTest, AViewerThatLeavesIsNotWaitedFor) {
  start();
  auto client = std::make_unique<Client>(path_);
  const wire::ScreenRequest request = {0, wire::kMaxScreenWaitMs, wire::kNextFrame};
  ASSERT_TRUE(client->tell(wire::kScreen, &request, sizeof request));
  client.reset();
  Client other(path_);
  EXPECT_EQ(look(other, {0, 0, 0}).error, 0);
}

TEST_F(ServerTest, OneClientHasEightViewersAtMost) {
  start();
  std::vector<std::unique_ptr<Client>> clients;
  for (size_t i = 0; i < kViewersOfAClient; ++i) {
    clients.push_back(std::make_unique<Client>(path_));
    EXPECT_EQ(look(*clients.back(), {0, 0, 0}).error, 0) << i;
  }
  Client one_more(path_);
  EXPECT_EQ(look(one_more, {0, 0, 0}).error, EBUSY);
  EXPECT_EQ(look(*clients[0], {0, 0, 0}).error, 0);  // who looks may look again
  clients.pop_back();
  EXPECT_TRUE(eventually([&] { return look(one_more, {0, 0, 0}).error == 0; }));
}

// A descriptor that is open for reading is another one by way of /proc. What is shown is its program's to
// draw.
TEST_F(ServerTest, WhoLooksAtTheScreenCannotDrawOnIt) {
  start();
  ioctl::UniqueFd framebuffer;
  ASSERT_EQ(server_->kernel().fbdev().open(O_RDWR, &framebuffer), 0);
  const uint16_t red = 0xf800, green = 0x07e0;
  constexpr off_t kPixel = 3840 + 2;
  ASSERT_EQ(pwrite(framebuffer.get(), &red, sizeof red, kPixel), ssize_t{sizeof red});
  Client client(path_);
  const Answer answer = look(client, {0, 0, 0});
  ASSERT_EQ(answer.error, 0);
  ASSERT_EQ(answer.fds.size(), 1u);
  wire::ScreenPlane plane;
  ASSERT_EQ(answer.payload.size(), sizeof(wire::ScreenReply) + sizeof plane);
  std::memcpy(&plane, answer.payload.data() + sizeof(wire::ScreenReply), sizeof plane);
  const auto place = static_cast<off_t>(plane.parts[0].offset) + kPixel;
  const int seen = answer.fds[0].get();
  uint16_t pixel = 0;
  ASSERT_EQ(pread(seen, &pixel, sizeof pixel, place), ssize_t{sizeof pixel});
  EXPECT_EQ(pixel, red);
  const std::string anew = "/proc/self/fd/" + std::to_string(seen);
  const ioctl::UniqueFd writable(::open(anew.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_TRUE(!writable || pwrite(writable.get(), &green, sizeof green, place) == -1);
  EXPECT_EQ(fallocate(seen, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
  EXPECT_EQ(ftruncate(seen, 0), -1);
  ASSERT_EQ(pread(framebuffer.get(), &pixel, sizeof pixel, kPixel), ssize_t{sizeof pixel});
  EXPECT_EQ(pixel, red);
  // And it is what was shown then.
  ASSERT_EQ(pwrite(framebuffer.get(), &green, sizeof green, kPixel), ssize_t{sizeof green});
  ASSERT_EQ(pread(seen, &pixel, sizeof pixel, place), ssize_t{sizeof pixel});
  EXPECT_EQ(pixel, red);
}

}  // namespace
}  // namespace v3d::daemon::test
