// Connections that come through the descriptor of an open node.
#include <sys/wait.h>
#include <unistd.h>

#include "tests/daemon/server_fixture.h"

namespace v3d::daemon::test {
namespace {

constexpr uid_t kOther = 65534;

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
