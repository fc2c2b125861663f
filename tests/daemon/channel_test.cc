// Channels: short requests in shared memory, from honest clients and from others.
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <random>
#include <span>
#include <thread>

#include "daemon/gpus.h"
#include "daemon/server.h"
#include "ioctl/abi/core.h"
#include "ioctl/abi/v3d.h"
#include "tests/base/temporary_folder.h"
#include "tests/daemon/channel_client.h"

namespace v3d::daemon::test {
namespace {

namespace drm = ioctl::drm;

constexpr uint32_t kSyncobjCreate = 0xc00864bf, kSyncobjDestroy = 0xc00864c0, kSyncobjWait = 0xc02864c3;
constexpr uint32_t kCreateBo = 0xc0106442, kSubmitCl = 0xc0486440;
constexpr uint32_t kRenderNode = 128;

constexpr int64_t kHourNs = int64_t{3600} * 1'000'000'000;

/// Executes nothing, and says what it is told to.
class PretendingGpu : public ioctl::Gpu {
 public:
  const chip::Profile& profile() const override { return idle_->profile(); }
  absl::StatusOr<std::unique_ptr<ioctl::GpuContext>> create_context() override {
    return idle_->create_context();
  }
  bool takes_all_processors() const override { return takes_all; }

  std::atomic<bool> takes_all{false};

 private:
  const std::unique_ptr<ioctl::Gpu> idle_ = make_idle_gpu({});
};

class ChannelTest : public ::testing::Test {
 protected:
  /// @param patience_ns  also on a machine that does many other things
  void start(Server::Options options = {}, int64_t patience_ns = 50'000'000) {
    options.channel_server = {
        .close_ns = kHourNs, .patience_ns = patience_ns, .short_patience_ns = 1'000'000};
    UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(listener.get(), 64), 0);
    server_ = std::make_unique<Server>(gpu_, options);
    loop_ = std::thread(
        [this, fd = std::make_shared<UniqueFd>(std::move(listener))] { server_->run(std::move(*fd)); });
  }
  void stop() {
    if (server_) server_->stop();
    if (loop_.joinable()) loop_.join();
    server_.reset();
  }
  void TearDown() override { stop(); }
  /// Another client is served, with and without a channel.
  void expect_alive() {
    Client client(path_);
    uint64_t token;
    const UniqueFd fd = client.open(kRenderNode, &token);
    drm::SyncobjCreate create = {};
    EXPECT_EQ(client.ioctl(token, kSyncobjCreate, create), 0);
    ChannelClient channel(client);
    ASSERT_EQ(channel.error(), 0);
    int error;
    EXPECT_EQ(channel.ioctl(token, kSyncobjCreate, create, &error), wire::kReplied);
    EXPECT_EQ(error, 0);
    EXPECT_EQ(create.handle, 2u);
  }

  PretendingGpu gpu_;
  const v3d::test::TemporaryFolder own_;
  const std::string path_ = own_ / "socket";
  std::unique_ptr<Server> server_;
  std::thread loop_;
};

TEST_F(ChannelTest, ServesShortRequests) {
  start();
  Client client(path_);
  uint64_t token;
  const UniqueFd fd = client.open(kRenderNode, &token);
  ChannelClient channel(client);
  ASSERT_EQ(channel.error(), 0);
  EXPECT_EQ(ChannelClient(client).error(), EBUSY);
  for (uint32_t i = 1; i <= 50; ++i) {
    drm::SyncobjCreate create = {};
    int error = -1;
    ASSERT_EQ(channel.ioctl(token, kSyncobjCreate, create, &error), wire::kReplied);
    EXPECT_EQ(error, 0);
    EXPECT_EQ(create.handle, i);
  }
  drm::SyncobjDestroy destroy = {.handle = 999, .pad = 0};
  int error = 0;
  EXPECT_EQ(channel.ioctl(token, kSyncobjDestroy, destroy, &error), wire::kReplied);
  EXPECT_EQ(error, EINVAL);
  EXPECT_EQ(channel.ioctl(token + 1, kSyncobjDestroy, destroy, &error), wire::kReplied);
  EXPECT_EQ(error, EBADF);
}

TEST_F(ChannelTest, FallsSilentAndListensAgain) {
  start();
  Client client(path_);
  uint64_t token;
  const UniqueFd fd = client.open(kRenderNode, &token);
  ChannelClient channel(client);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(channel.warm_up(token));
    for (int k = 0; k < 5000 && channel.load(channel.memory().request) != wire::kDeaf; ++k) usleep(1000);
    EXPECT_EQ(channel.load(channel.memory().request), wire::kDeaf);
  }
}

TEST_F(ChannelTest, DeclinesWhatMayWait) {
  start();
  Client client(path_);
  uint64_t token;
  const UniqueFd fd = client.open(kRenderNode, &token);
  ChannelClient channel(client);
  drm::SyncobjWait wait = {};
  int error;
  EXPECT_EQ(channel.ioctl(token, kSyncobjWait, wait, &error), wire::kDeclined);
  const auto post = [&](uint32_t op, uint32_t claimed, uint32_t magic) {
    const char payload[64] = {};
    do {
      ASSERT_TRUE(channel.warm_up(token));
    } while (!channel.post(op, payload, sizeof payload, claimed, magic));
    EXPECT_EQ(channel.hear(), wire::kDeclined);
  };
  post(wire::kHello, 64, wire::kMagic);
  post(wire::kCommand, 64, wire::kMagic);
  post(wire::kIoctl, 8, wire::kMagic);  // less than a request
  post(wire::kIoctl, 64, 0);
  for (const uint32_t size : {wire::Channel::kMessage, wire::kMaxPayload, ~0u})
    post(wire::kIoctl, size, wire::kMagic);
  expect_alive();
}

TEST_F(ChannelTest, ReachesSleepersOverTheSocket) {
  start();
  Client client(path_);
  uint64_t token;
  const UniqueFd fd = client.open(kRenderNode, &token);
  ChannelClient channel(client);
  drm::SyncobjCreate create = {};
  const std::vector<uint8_t> payload = Client::ioctl_payload(token, kSyncobjCreate, &create);
  const auto size = static_cast<uint32_t>(payload.size());
  int slept = 0;
  for (int i = 0; i < 50; ++i) {
    do {
      ASSERT_TRUE(channel.warm_up(token));
    } while (!channel.post(wire::kIoctl, payload.data(), size, size));
    uint32_t none = wire::kNoReply;
    if (!std::atomic_ref<uint32_t>(channel.memory().reply).compare_exchange_strong(none, wire::kSleeping)) {
      EXPECT_EQ(none, wire::kReplied);
      continue;
    }
    ++slept;
    EXPECT_EQ(client.hear(wire::kIoctl).error, 0);
  }
  EXPECT_GT(slept, 0);
}

/// A submit while somebody sleeps until its syncobj has a fence.
TEST_F(ChannelTest, ClientsWakeTheirSleepersThemselves) {
  start();
  Client client(path_);
  uint64_t token;
  UniqueFd status_fd;
  const UniqueFd fd = client.open(kRenderNode, &token, O_RDWR | O_CLOEXEC, &status_fd);
  void* memory = mmap(nullptr, sizeof(wire::Status), PROT_READ | PROT_WRITE, MAP_SHARED, status_fd.get(), 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* status = static_cast<wire::Status*>(memory);
  for (uint32_t& sleepers : status->sleepers) std::atomic_ref<uint32_t>(sleepers).store(1);
  drm::SyncobjCreate create = {};
  ASSERT_EQ(client.ioctl(token, kSyncobjCreate, create), 0);
  drm::CreateBo bo = {.size = 4096, .flags = 0, .handle = 0, .offset = 0};
  ASSERT_EQ(client.ioctl(token, kCreateBo, bo), 0);

  ChannelClient channel(client);
  const std::vector<uint8_t> handles(reinterpret_cast<uint8_t*>(&bo.handle),
                                     reinterpret_cast<uint8_t*>(&bo.handle) + sizeof bo.handle);
  drm::SubmitCl submit = {};
  submit.rcl_start = 0x2000;
  submit.rcl_end = 0x2100;
  submit.out_sync = create.handle;
  submit.bo_handles = 0x1000;
  submit.bo_handle_count = 1;
  const std::vector<uint8_t> payload =
      Client::ioctl_payload(token, kSubmitCl, &submit, {{submit.bo_handles, handles}});
  const auto size = static_cast<uint32_t>(payload.size());
  for (const uint32_t itself : {0u, 1u}) {
    std::atomic_ref<uint32_t>(channel.memory().wakes_itself).store(itself);
    do {
      ASSERT_TRUE(channel.warm_up(token));
    } while (!channel.post(wire::kIoctl, payload.data(), size, size));
    ASSERT_EQ(channel.hear(), wire::kReplied);
    wire::MessageHeader header;
    std::memcpy(&header, channel.memory().reply_message, sizeof header);
    EXPECT_EQ(header.error, 0);
    const std::span<uint32_t> wakes(channel.memory().wakes, channel.memory().num_wakes);
    EXPECT_EQ(std::ranges::count(wakes, offsetof(wire::Status, syncobjs) + 8 * create.handle), itself);
    EXPECT_EQ(wakes.empty(), itself == 0);
  }
  munmap(memory, sizeof(wire::Status));
}

TEST_F(ChannelTest, NobodyLooksForLongWhereJobsTakeAllProcessors) {
  start({}, kHourNs);
  Client client(path_);
  uint64_t token;
  const UniqueFd fd = client.open(kRenderNode, &token);
  ChannelClient channel(client);
  ASSERT_TRUE(channel.warm_up(token));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(channel.load(channel.memory().request), wire::kListening);
  gpu_.takes_all = true;
  for (int i = 0; i < 10'000 && channel.load(channel.memory().request) != wire::kDeaf; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(channel.load(channel.memory().request), wire::kDeaf);
}

TEST_F(ChannelTest, TheirMemoryIsCharged) {
  Server::Options options;
  options.limits[ioctl::Resource::kMappings].per_client = 2 * kConnectionMappings + 1;
  start(options);
  Client a(path_), b(path_);
  EXPECT_EQ(ChannelClient(a).error(), 0);
  EXPECT_EQ(ChannelClient(b).error(), ENOMEM);
  a.leave();
  // What the connection itself takes is given back a little later.
  std::unique_ptr<Client> c;
  const wire::HelloRequest hello = {wire::kProtocol, getpid(), "tester"};
  for (int i = 0; i < 1000; ++i) {
    c = std::make_unique<Client>(path_, false);
    if (c->ask(wire::kHello, &hello, sizeof hello).error == 0) break;
    usleep(10'000);
  }
  EXPECT_EQ(ChannelClient(*c).error(), 0);
}

TEST_F(ChannelTest, AClientThatScribblesHurtsItselfAlone) {
  start();
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (uint32_t seed = 0; seed < 2; ++seed) {
    threads.emplace_back([&, seed] {
      std::minstd_rand random(seed);
      while (!over) {
        Client client(path_);
        uint64_t token;
        const UniqueFd fd = client.open(kRenderNode, &token);
        ChannelClient channel(client);
        if (channel.error() || !channel.warm_up(token)) continue;
        drm::SyncobjCreate create = {};
        const std::vector<uint8_t> payload = Client::ioctl_payload(token, kSyncobjCreate, &create);
        wire::Channel& memory = channel.memory();
        for (int i = 0; i < 3000; ++i) {
          std::atomic_ref<uint32_t>(i % 5 ? memory.request : memory.reply).store(random() % 6);
          uint8_t* message = random() % 2 ? memory.request_message : memory.reply_message;
          message[random() % 128] = static_cast<uint8_t>(random());
          if (i % 7 == 0)
            channel.post(wire::kIoctl, payload.data(), payload.size(),
                         random() % 4 ? static_cast<uint32_t>(payload.size()) : random());
          // Both ways at once, and half a request.
          if (i % 500 == 499) client.tell(wire::kIoctl, payload.data(), payload.size());
        }
        if (random() % 2) client.tell(wire::kIoctl, payload.data(), payload.size() / 2);
      }
    });
  }
  for (int i = 0; i < 5; ++i) expect_alive();
  over = true;
  for (std::thread& thread : threads) thread.join();
  expect_alive();
}

TEST_F(ChannelTest, AClientThatNeverCeasesDoesNotHoldUpTheEnd) {
  start();
  std::atomic<bool> over{false};
  Client client(path_);
  uint64_t token;
  const UniqueFd fd = client.open(kRenderNode, &token);
  ChannelClient channel(client);
  ASSERT_TRUE(channel.warm_up(token));
  std::thread poster([&] {
    drm::SyncobjDestroy destroy = {};
    const std::vector<uint8_t> payload = Client::ioctl_payload(token, kSyncobjDestroy, &destroy);
    while (!over)
      channel.post(wire::kIoctl, payload.data(), payload.size(), static_cast<uint32_t>(payload.size()));
  });
  stop();
  over = true;
  poster.join();
}

TEST_F(ChannelTest, FalseWordOfTheSocketHoldsNothingUp) {
  start();
  std::atomic<bool> over{false};
  Client client(path_), other(path_);
  uint64_t token;
  const UniqueFd fd = client.open(kRenderNode, &token);
  ChannelClient channel(client), other_channel(other);
  ASSERT_TRUE(channel.warm_up(token) && other_channel.warm_up(token));
  std::thread liar([&] {
    while (!over)
      for (wire::Channel* memory : {&channel.memory(), &other_channel.memory()})
        std::atomic_ref<uint32_t>(memory->on_socket).store(1);
  });
  for (int i = 0; i < 100; ++i) {
    drm::SyncobjCreate create = {};
    int error = -1;
    EXPECT_EQ((i % 2 ? channel : other_channel).ioctl(token, kSyncobjCreate, create, &error), wire::kReplied);
    EXPECT_EQ(error, 0);
    if (i % 10 == 0) {
      EXPECT_EQ(other.ioctl(token, kSyncobjCreate, create), 0);
    }
  }
  expect_alive();
  stop();
  over = true;
  liar.join();
}

TEST_F(ChannelTest, AClosedConnectionEndsItsChannel) {
  start();
  Client client(path_);
  uint64_t token;
  const UniqueFd fd = client.open(kRenderNode, &token);
  ChannelClient channel(client);
  ASSERT_TRUE(channel.warm_up(token));
  client.disconnect();
  for (int i = 0; i < 5000 && channel.load(channel.memory().request) != wire::kDeaf; ++i) usleep(1000);
  EXPECT_EQ(channel.load(channel.memory().request), wire::kDeaf);
  expect_alive();
}

TEST_F(ChannelTest, ManyThreadsOfOneProcess) {
  start();
  Client opener(path_);
  uint64_t token;
  const UniqueFd fd = opener.open(kRenderNode, &token);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      Client client(path_);
      ChannelClient channel(client);
      for (int i = 0; i < 20; ++i) {
        drm::SyncobjCreate create = {};
        int error = -1;
        ASSERT_EQ(channel.ioctl(token, kSyncobjCreate, create, &error), wire::kReplied);
        EXPECT_EQ(error, 0);
        drm::SyncobjDestroy destroy = {.handle = create.handle, .pad = 0};
        ASSERT_EQ(channel.ioctl(token, kSyncobjDestroy, destroy, &error), wire::kReplied);
        EXPECT_EQ(error, 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace v3d::daemon::test
