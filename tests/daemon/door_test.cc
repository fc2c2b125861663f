// Connections that come through the descriptor of an open node, and descriptors that are none.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

#include "ioctl/abi/core.h"
#include "ioctl/base/received_fd.h"
#include "tests/daemon/server_fixture.h"

namespace v3d::daemon::test {
namespace {

constexpr uid_t kOther = 65534;
constexpr int kLingerSeconds = 4;

/// A connection over TCP whose last close(2) takes kLingerSeconds, since nobody reads what it has sent.
class Lingering {
 public:
  Lingering() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_.get(), name, size), 0);
    EXPECT_EQ(listen(listener_.get(), 1), 0);
    EXPECT_EQ(getsockname(listener_.get(), name, &size), 0);
    end_.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(end_.get(), name, size), 0);
    reader_.reset(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::vector<char> words(1 << 16);
    while (send(end_.get(), words.data(), words.size(), MSG_DONTWAIT) > 0) {
    }
    const linger long_time = {1, kLingerSeconds};
    EXPECT_EQ(setsockopt(end_.get(), SOL_SOCKET, SO_LINGER, &long_time, sizeof long_time), 0);
  }
  int fd() const { return end_.get(); }
  /// Somebody else is the last to close it from here on. (Closed while another holder lives, it does not
  /// wait.)
  void pass_on() { end_.reset(); }
  /// Whoever closes it has waited long enough.
  void let_go() { reader_.reset(); }

 private:
  UniqueFd listener_, reader_, end_;
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

class DoorTest : public ServerTest {
 protected:
  /// One end of a connection, whose other end was sent through the node.
  static UniqueFd knock(int node) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return {};
    UniqueFd mine(ends[0]), theirs(ends[1]);
    return send_descriptor(node, theirs.get()) == 0 ? std::move(mine) : UniqueFd();
  }
  static bool is_over(const UniqueFd& connection) {
    char byte;
    return recv(connection.get(), &byte, 1, 0) <= 0;
  }
  static void greet(Client& client) {
    const wire::HelloRequest hello = {wire::kProtocol, getpid(), "knocker"};
    EXPECT_EQ(client.ask(wire::kHello, &hello, sizeof hello).error, 0);
  }
  template <typename Work>
  static bool holds_in_child(Work&& work) {
    const pid_t child = fork();
    if (child == 0) {
      work();
      _exit(::testing::Test::HasFailure());
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status == 0;
  }
};

TEST_F(DoorTest, IsAConnectionAsAnyOther) {
  start();
  Client client(path_);
  uint64_t token;
  const UniqueFd node = client.open(kRenderNode, &token);
  Client through(knock(node.get()));
  greet(through);
  EXPECT_NE(create_bo(through, token), 0u);
  EXPECT_NE(through.command("status").find("connections"), std::string::npos);
}

TEST_F(DoorTest, TakesNothingElse) {
  start();
  Client client(path_);
  uint64_t token;
  const UniqueFd node = client.open(kRenderNode, &token);
  // A stream socket that somebody else made: the daemon itself, at the other end of a control connection.
  const Client other(path_);
  EXPECT_EQ(send_descriptor(node.get(), other.fd()), 0);
  UniqueFd datagrams[2];
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  datagrams[0].reset(ends[0]);
  datagrams[1].reset(ends[1]);
  EXPECT_EQ(send_descriptor(node.get(), datagrams[1].get()), 0);
  datagrams[1].reset();
  EXPECT_TRUE(is_over(datagrams[0]));
  Client through(knock(node.get()));  // it goes on
  greet(through);
  // Who sends what is no knock is not listened to any more, but is no burden either.
  EXPECT_EQ(send(node.get(), "words", 5, MSG_NOSIGNAL), 5);
  EXPECT_NE(create_bo(client, token), 0u);
  EXPECT_NE(create_bo(through, token), 0u);
}

TEST_F(DoorTest, NothingStaysInItsQueue) {
  start();
  Client client(path_);
  uint64_t token;
  UniqueFd node = client.open(kRenderNode, &token);
  // By its own descriptor in its queue a node would stay open for ever.
  EXPECT_EQ(send(node.get(), "no", 2, MSG_NOSIGNAL), 2);
  send_descriptor(node.get(), node.get());
  EXPECT_TRUE(eventually([&] { return send(node.get(), "x", 1, MSG_NOSIGNAL) < 0; }));
  node.reset();
  client.disconnect();
  EXPECT_TRUE(eventually([&] { return no_open_nodes(); }));
}

// Who closes descriptors may be busy, and a node that lies in its own queue wait for that, but not for ever.
TEST_F(DoorTest, NothingStaysInItsQueueWhileNoMoreCanBeClosed) {
  start();
  Client client(path_);
  uint64_t token;
  UniqueFd later = client.open(kRenderNode, &token), last_words = client.open(kRenderNode, &token);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  UniqueFd sender(ends[0]), queue(ends[1]);
  Lingering slow;
  ASSERT_EQ(send_descriptor(sender.get(), slow.fd()), 0);
  slow.pass_on();
  ioctl::close_elsewhere(std::move(queue));
  while (ioctl::closer_has_room()) ioctl::close_elsewhere(UniqueFd(dup(sender.get())));
  EXPECT_EQ(send_descriptor(later.get(), later.get()), 0);
  EXPECT_EQ(send_descriptor(last_words.get(), last_words.get(), "no", 2), 0);
  send_descriptor(last_words.get(), last_words.get());
  EXPECT_NE(client.command("status"), "");
  later.reset();
  last_words.reset();
  client.disconnect();
  EXPECT_FALSE(ioctl::closer_has_room());
  slow.let_go();
  EXPECT_TRUE(eventually([&] { return no_open_nodes(); }));
}

TEST_F(DoorTest, OutlivesAShutDirection) {
  start();
  Client client(path_);
  uint64_t token;
  UniqueFd node = client.open(kRenderNode, &token);
  ASSERT_EQ(shutdown(node.get(), SHUT_WR), 0);
  EXPECT_NE(create_bo(client, token), 0u);
  EXPECT_FALSE(knock(node.get()));
  node.reset();
  client.disconnect();
  EXPECT_TRUE(eventually([&] { return no_open_nodes(); }));
}

TEST_F(DoorTest, GoesByWhoMadeTheConnection) {
  start();
  Client client(path_);
  uint64_t token;
  const UniqueFd node = client.open(kRenderNode, &token);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  UniqueFd mine(ends[0]), theirs(ends[1]);
  // The child passes on what its parent made.
  EXPECT_TRUE(holds_in_child([&] { EXPECT_EQ(send_descriptor(node.get(), theirs.get()), 0); }));
  theirs.reset();
  EXPECT_TRUE(is_over(mine));
}

// Such a descriptor takes its time, and nobody but a thread that closes it.
TEST_F(DoorTest, NobodyWaitsForTheEndOfADescriptor) {
  start();
  Client client(path_);
  uint64_t token;
  UniqueFd node = client.open(kRenderNode, &token);
  for (const bool is_last_message : {false, true}) {
    Lingering slow;
    EXPECT_EQ(send_descriptor(node.get(), slow.fd(), "xx", is_last_message ? 2 : 1), 0);
    slow.pass_on();
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_NE(Client(path_).command("status"), "");
    EXPECT_LT(seconds_since(begin), kLingerSeconds / 2.0);
  }
  // In the queue of a node, and in that of a connection which ends before anybody has looked there.
  Lingering in_node, in_connection;
  Client leaving(path_);
  EXPECT_EQ(
      send_descriptor(leaving.fd(), in_connection.fd(), "no request, which is the end of a connection", 45),
      0);
  // Unless the daemon was faster.
  EXPECT_THAT(send_descriptor(leaving.fd(), in_connection.fd()), testing::AnyOf(0, EPIPE));
  UniqueFd other = client.open(kRenderNode, &token);
  EXPECT_EQ(send_descriptor(other.get(), in_node.fd()), 0);
  in_connection.pass_on();
  in_node.pass_on();
  const auto begin = std::chrono::steady_clock::now();
  leaving.disconnect();
  other.reset();
  node.reset();
  client.disconnect();
  EXPECT_TRUE(eventually([&] { return no_open_nodes(); }));
  EXPECT_LT(seconds_since(begin), kLingerSeconds / 2.0);
}

TEST_F(DoorTest, WhatNoRequestCanMeanIsClosedElsewhere) {
  start();
  Client client(path_);
  uint64_t token;
  const UniqueFd node = client.open(kRenderNode, &token);
  Lingering slow;
  drm::PrimeHandle args = {};
  args.fd = slow.fd();
  const std::vector<uint8_t> payload = Client::ioctl_payload(token, kPrimeFdToHandle, &args, {}, {slow.fd()});
  EXPECT_TRUE(client.tell(wire::kIoctl, payload.data(), payload.size(), {slow.fd()}));
  slow.pass_on();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(client.hear(wire::kIoctl).error, EINVAL);
  EXPECT_NE(create_bo(client, token), 0u);
  EXPECT_LT(seconds_since(begin), kLingerSeconds / 2.0);
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  args.fd = null.get();
  EXPECT_EQ(client.ioctl(token, kPrimeFdToHandle, args, {}, {null.get()}), EINVAL);
}

// Nothing that one of them holds or is refused is the other's.
TEST(ProcessTest, WasKilledBySigkillAlone) {
  EXPECT_FALSE(was_killed(ioctl::UniqueFd()));
  bool told = false;
  for (const int signal : {SIGTERM, SIGKILL}) {
    const pid_t child = fork();
    if (child == 0)
      while (true) pause();
    const ioctl::UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
    EXPECT_FALSE(was_killed(process));  // it lives
    EXPECT_EQ(kill(child, signal), 0);
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
    told = was_killed(process);
    EXPECT_FALSE(told && signal == SIGTERM);
  }
  if (!told) GTEST_SKIP() << "this kernel does not tell how a process ended";
}

TEST(ProcessTest, StrangersWhomNobodyCanTellApartShareNothing) {
  int ends[4];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends + 2), 0);
  const UniqueFd one(ends[0]), one_end(ends[1]), two(ends[2]), two_end(ends[3]);
  const UniqueFd no_pidfd;  // as on older kernels
  const ioctl::ProcessId first = identify(one.get(), 0, no_pidfd);
  EXPECT_NE(first, identify(two.get(), 0, no_pidfd));
  EXPECT_EQ(first, identify(one.get(), 0, no_pidfd));
  // One that is known is one, by whichever connection.
  const UniqueFd self(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  for (const UniqueFd* process : {&no_pidfd, &self}) {
    EXPECT_EQ(identify(one.get(), getpid(), *process), identify(two.get(), getpid(), *process));
    EXPECT_NE(identify(one.get(), getpid(), *process), first);
  }
}

// By what closes at once.
TEST(ReceivedFd, IsKnownByWhatItIs) {
  const UniqueFd memory(memfd_create("anything", MFD_CLOEXEC)), null(open("/dev/null", O_RDWR | O_CLOEXEC)),
      tcp(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      program(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(ioctl::closes_at_once(memory.get()));
  for (const UniqueFd* other : {&null, &tcp, &program}) EXPECT_FALSE(ioctl::closes_at_once(other->get()));
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd one(ends[0]), two(ends[1]);
  EXPECT_TRUE(ioctl::is_own_socket(one.get()));
  const pid_t child = fork();
  if (child == 0) _exit(ioctl::is_own_socket(one.get()));  // its parent's
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// A message of no bytes is not the end of a queue.
TEST(ReceivedFd, AQueueIsEmptiedToItsEnd) {
  for (const int type : {SOCK_SEQPACKET, SOCK_STREAM}) {
    int ends[2], pipe_ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends), 0);
    const UniqueFd client(ends[0]), own(ends[1]);
    ASSERT_EQ(pipe2(pipe_ends, O_CLOEXEC), 0);
    const UniqueFd reader(pipe_ends[0]);
    UniqueFd writer(pipe_ends[1]);
    send(client.get(), "", 0, 0);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(send_with_descriptor(client.get(), writer.get(), "ab", 2), 0);
    send(client.get(), "", 0, 0);
    writer.reset();
    EXPECT_TRUE(ioctl::empty_queue(own.get()));
    pollfd hung_up = {reader.get(), 0, 0};
    EXPECT_EQ(poll(&hung_up, 1, 10'000), 1);  // no end for writing is left
    EXPECT_LT(send(client.get(), "x", 1, MSG_NOSIGNAL), 0);
  }
}

TEST_F(DoorTest, StrangersAreGuests) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  start();
  Client client(path_);
  uint64_t token, card;
  const UniqueFd node = client.open(kRenderNode, &token), display = client.open(kDisplayNode, &card);
  EXPECT_TRUE(holds_in_child([&] {
    ASSERT_EQ(syscall(SYS_setresuid, kOther, kOther, kOther), 0);
    Client guest(knock(node.get()));
    greet(guest);
    EXPECT_NE(create_bo(guest, token), 0u);
    uint64_t fresh;
    EXPECT_TRUE(guest.open(kRenderNode, &fresh));
    EXPECT_FALSE(guest.open(kDisplayNode, &fresh));
    int error = 0;
    for (const char* command : {"status", "shutdown", "settings\n"}) {
      guest.command(command, &error);
      EXPECT_EQ(error, EPERM) << command;
    }
    const wire::ScreenRequest look = {};
    EXPECT_EQ(guest.ask(wire::kScreen, &look, sizeof look).error, EPERM);
    Client beside_display(knock(display.get()));
    greet(beside_display);
    EXPECT_FALSE(beside_display.open(kDisplayNode, &fresh));  // with what others show
    EXPECT_FALSE(beside_display.open(wire::kFramebufferMinor, &fresh));
  }));
  EXPECT_NE(create_bo(client, token), 0u);
}

}  // namespace
}  // namespace v3d::daemon::test
