#include "tools/xproxy/stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "tools/xproxy/limits.h"

namespace v3d::xproxy {
namespace {

struct Pair {
  Pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    near = Stream(ioctl::UniqueFd(ends[0]));
    far = Stream(ioctl::UniqueFd(ends[1]));
  }
  Stream near, far;
};

ioctl::UniqueFd file(off_t size) {
  ioctl::UniqueFd memory(memfd_create("test", MFD_CLOEXEC));
  EXPECT_EQ(ftruncate(memory.get(), size), 0);
  return memory;
}

off_t size_of(const ioctl::ReceivedFd& descriptor) {
  struct stat info {};
  EXPECT_EQ(fstat(descriptor.get(), &info), 0);
  return info.st_size;
}

std::vector<uint8_t> numbers(size_t count) {
  std::vector<uint8_t> bytes(count);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  return bytes;
}

TEST(Stream, PassesBytesOnInParts) {
  Pair pair;
  const std::vector<uint8_t> sent = numbers(3'000'000);
  std::vector<uint8_t> received;
  pair.near.write(sent);
  while (received.size() < sent.size()) {
    ASSERT_TRUE(pair.near.flush());
    ASSERT_TRUE(pair.far.fill());
    const Bytes input = pair.far.input();
    const size_t taken = std::min<size_t>(input.size(), 4097);
    received.insert(received.end(), input.begin(), input.begin() + static_cast<ptrdiff_t>(taken));
    pair.far.consume(taken);
  }
  EXPECT_EQ(received, sent);
  EXPECT_EQ(pair.near.queued(), 0u);
}

TEST(Stream, ReceivesIntoAPlaceWhatFitsThere) {
  Pair pair;
  const std::vector<uint8_t> sent = numbers(1'000'000);
  std::vector<uint8_t> place(600'000);
  pair.near.write(sent);
  ASSERT_TRUE(pair.near.flush());
  ASSERT_TRUE(pair.far.fill());
  const size_t before = pair.far.input().size();
  pair.far.receive_into(place);
  // What had arrived before stays, and comes first.
  ASSERT_TRUE(pair.far.fill());
  const size_t first = pair.far.input().size();
  EXPECT_GE(first, before);
  EXPECT_TRUE(
      std::equal(sent.begin(), sent.begin() + static_cast<ptrdiff_t>(first), pair.far.input().begin()));
  pair.far.consume(first);
  while (pair.far.missing() > 0) {
    ASSERT_TRUE(pair.near.flush());
    ASSERT_TRUE(pair.far.fill());
    EXPECT_TRUE(pair.far.input().empty());
  }
  EXPECT_TRUE(std::equal(place.begin(), place.end(), sent.begin() + static_cast<ptrdiff_t>(first)));
  ASSERT_TRUE(pair.near.flush());
  ASSERT_TRUE(pair.far.fill());
  EXPECT_EQ(pair.far.input().front(), sent[first + place.size()]);
}

TEST(Stream, DescriptorsComeInOrderNotAfterTheirBytes) {
  Pair pair;
  for (int i = 1; i <= 8; ++i) pair.near.write(numbers(1000), i % 2 ? file(i) : ioctl::UniqueFd());
  ASSERT_TRUE(pair.near.flush());
  size_t bytes = 0;
  std::vector<off_t> sizes;
  while (bytes < 8000) {
    ASSERT_TRUE(pair.far.fill());
    bytes += pair.far.input().size();
    pair.far.consume(pair.far.input().size());
    while (pair.far.has_descriptors()) {
      sizes.push_back(size_of(pair.far.take_descriptor()));
      // The kernel ends a read before the next descriptors: these are not of later bytes.
      EXPECT_LE((static_cast<size_t>(sizes.back()) - 1) * 1000, bytes);
    }
    for (const off_t expected : {1, 3, 5, 7}) {
      if (bytes <= static_cast<size_t>(expected - 1) * 1000) continue;
      EXPECT_NE(std::find(sizes.begin(), sizes.end(), expected), sizes.end()) << expected;
    }
  }
  EXPECT_EQ(sizes, (std::vector<off_t>{1, 3, 5, 7}));
  EXPECT_FALSE(pair.far.take_descriptor());
}

TEST(Stream, KeepsNoMoreDescriptorsThanItsLimit) {
  Pair pair;
  bool open = true;
  for (size_t i = 0; i <= kMostDescriptors && open; ++i) {
    pair.near.write(numbers(1), file(1));
    ASSERT_TRUE(pair.near.flush());
    open = pair.far.fill();
    EXPECT_EQ(open, i < kMostDescriptors);
  }
  EXPECT_FALSE(open);
}

// Others' descriptors are as slow to close as they like: that is no affair of the thread that relays.
TEST(Stream, LeavesWhatMayTakeLongToCloseToAnotherThread) {
  Pair pair;
  ioctl::UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  for (size_t i = 0; i < 2; ++i) {
    pair.near.write(numbers(1), ioctl::UniqueFd(fcntl(null.get(), F_DUPFD_CLOEXEC, 0)));
    ASSERT_TRUE(pair.near.flush());
  }
  ASSERT_TRUE(pair.far.fill());
  const ioctl::ReceivedFd taken = pair.far.take_descriptor();
  EXPECT_TRUE(taken);
  EXPECT_FALSE(ioctl::closes_at_once(taken.get()));
  // What nobody has taken goes with the stream, what nobody has looked at as well.
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const ioctl::UniqueFd reader(ends[0]);
  pair.near.write(numbers(1), ioctl::UniqueFd(ends[1]));
  ASSERT_TRUE(pair.near.flush());
  pair.far = Stream();
  pollfd hung_up{reader.get(), 0, 0};
  EXPECT_EQ(poll(&hung_up, 1, 10'000), 1);
}

TEST(Stream, TellsThatTheOtherEndHasGone) {
  Pair pair;
  pair.near.write(numbers(5));
  ASSERT_TRUE(pair.near.flush());
  pair.near = Stream();
  EXPECT_TRUE(pair.far.fill());
  EXPECT_EQ(pair.far.input().size(), 5u);
  EXPECT_FALSE(pair.far.fill());
  pair.far.write(numbers(5));
  EXPECT_FALSE(pair.far.flush());
}

}  // namespace
}  // namespace v3d::xproxy
