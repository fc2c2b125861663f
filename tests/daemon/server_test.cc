// The daemon in this process, spoken to over its sockets.
#include "daemon/server.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "daemon/gpus.h"
#include "gpu/base/log.h"
#include "ioctl/abi/core.h"
#include "ioctl/abi/dma_buf.h"
#include "ioctl/abi/v3d.h"
#include "tests/daemon/client.h"
#include "tests/daemon/server_fixture.h"

namespace v3d::daemon::test {
namespace {

TEST_F(ServerTest, HelloComesFirst) {
  start();
  Client rude(path_, false);
  const wire::OpenRequest open = {kRenderNode, O_RDWR};
  EXPECT_EQ(rude.ask(wire::kOpen, &open, sizeof open).error, EPROTO);
  EXPECT_EQ(rude.ask(wire::kOpen, &open, sizeof open).error, -1);  // hung up
  Client old(path_, false);
  const wire::HelloRequest hello = {wire::kProtocol + 1, 1, "old"};
  EXPECT_EQ(old.ask(wire::kHello, &hello, sizeof hello).error, EPROTONOSUPPORT);
}

TEST_F(ServerTest, OtherUsersAreRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to be somebody else";
  start();
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  ASSERT_EQ(chmod(path_.c_str(), 0777), 0);
  std::thread([this] {
    ASSERT_EQ(syscall(SYS_setresuid, -1, 65534, -1), 0);  // of this thread alone
    Client other(path_, false);
    const wire::HelloRequest hello = {wire::kProtocol, getpid(), "other"};
    EXPECT_EQ(other.ask(wire::kHello, &hello, sizeof hello).error, -1);  // hung up
  }).join();
  EXPECT_NE(status().find("rpi5"), std::string::npos);
}

TEST_F(ServerTest, SaysWhichDebugOutputItDoesNotWrite) {
  start();
  Client client(path_);
  EXPECT_NE(client.command("debug cl").find("logs nothing, not cl as V3DEMU_DEBUG asks"), std::string::npos);
  EXPECT_NE(client.command("debug nonsense").find("no category \"nonsense\"; there are"), std::string::npos);
  EXPECT_NE(client.command("debug help").find("\n  cl "), std::string::npos);
  g_debug_mask = static_cast<uint32_t>(Debug::kCl) | static_cast<uint32_t>(Debug::kTfu);
  EXPECT_EQ(client.command("debug cl"), "");
  EXPECT_NE(client.command("debug cl,qpu").find("logs cl,tfu, not cl,qpu"), std::string::npos);
  g_debug_mask = 0;
}

TEST_F(ServerTest, AFloodOfOneClientsMistakesIsCounted) {
  testing::internal::CaptureStderr();
  start();
  {
    Client client(path_);
    for (uint32_t i = 0; i < LogLimiter::kLines + 7; ++i) EXPECT_EQ(client.ask(99, nullptr, 0).error, EPROTO);
  }
  server_->stop();
  loop_.join();
  server_.reset();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), LogLimiter::kLines + 1) << log;
  EXPECT_NE(log.find("limit: 7 more of this kind of tester (pid "), std::string::npos) << log;
}

TEST_F(ServerTest, NonsenseEndsTheConnectionOnly) {
  start();
  {
    Client client(path_);
    const char garbage[64] = "these are no headers";
    EXPECT_EQ(write(client.fd(), garbage, sizeof garbage), ssize_t{sizeof garbage});
    EXPECT_EQ(client.hear(0).error, -1);
  }
  {
    Client client(path_);
    const wire::MessageHeader huge = {wire::kMagic, wire::kIoctl, wire::kMaxPayload + 1, 0};
    EXPECT_EQ(write(client.fd(), &huge, sizeof huge), ssize_t{sizeof huge});
    EXPECT_EQ(client.hear(0).error, -1);
  }
  {
    Client client(path_);
    EXPECT_EQ(client.ask(99, nullptr, 0).error, EPROTO);
    EXPECT_EQ(client.ask(wire::kIoctl, nullptr, 0).error, EPROTO);
    EXPECT_EQ(client.ask(wire::kMmap, nullptr, 0).error, EPROTO);
    EXPECT_EQ(client.ask(wire::kAdopt, nullptr, 0).error, EPROTO);
    // A payload that promises more than it holds.
    drm::CreateBo args = {};
    std::vector<uint8_t> payload = Client::ioctl_payload(1, kCreateBo, &args);
    for (size_t cut = 0; cut < payload.size(); cut += 7)
      EXPECT_EQ(client.ask(wire::kIoctl, payload.data(), cut).error, EPROTO);
    payload = Client::ioctl_payload(1, kCreateBo, &args, {{0x1000, {1, 2, 3, 4}}});
    payload.resize(payload.size() - 1);
    EXPECT_EQ(client.ask(wire::kIoctl, payload.data(), payload.size()).error, EPROTO);
    payload = Client::ioctl_payload(1, kCreateBo, &args, {}, {0});  // names a descriptor, brings none
    EXPECT_EQ(client.ask(wire::kIoctl, payload.data(), payload.size()).error, EPROTO);
    // An unknown token.
    EXPECT_EQ(client.ioctl(12345, kCreateBo, args), EBADF);
    EXPECT_EQ(client.mmap(12345, 0, 4096, MAP_SHARED).error, EBADF);
  }
  Client(path_).command("status");
}

TEST_F(ServerTest, OpenIoctlMmap) {
  start();
  Client client(path_);
  uint64_t token = 0;
  const UniqueFd fd = client.open(kRenderNode, &token);
  ASSERT_TRUE(fd);
  EXPECT_NE(token, 0u);
  const uint32_t handle = create_bo(client, token, 8192);
  drm::MmapBo map = {.handle = handle, .flags = 0, .offset = 0};
  ASSERT_EQ(client.ioctl(token, kMmapBo, map), 0);
  Answer answer = client.mmap(token, map.offset, 100, MAP_SHARED);
  ASSERT_EQ(answer.error, 0);
  ASSERT_EQ(answer.fds.size(), 1u);
  void* mapped = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, answer.fds[0].get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  static_cast<char*>(mapped)[8191] = 1;
  munmap(mapped, 8192);
  EXPECT_EQ(client.mmap(token, map.offset, 100, MAP_PRIVATE).error, EINVAL);
  EXPECT_EQ(client.mmap(token, map.offset + 4096, 100, MAP_SHARED).error, EINVAL);

  uint64_t none;
  EXPECT_FALSE(client.open(7, &none));
  const UniqueFd nonblocking = client.open(kRenderNode, &none, O_RDWR | O_NONBLOCK);
  EXPECT_TRUE(fcntl(nonblocking.get(), F_GETFL) & O_NONBLOCK);
  EXPECT_FALSE(fcntl(fd.get(), F_GETFL) & O_NONBLOCK);
}

TEST_F(ServerTest, WrittenMemoryComesBack) {
  start();
  Client client(path_);
  uint64_t token;
  const UniqueFd fd = client.open(kRenderNode, &token);
  drm::Version version = {};
  version.name_len = 2;
  version.name = 0x5000;
  std::vector<uint8_t> payload = Client::ioctl_payload(token, 0xc0406400, &version);
  const wire::Segment out = {0x5000, 2, wire::kOut};
  const auto* raw = reinterpret_cast<const uint8_t*>(&out);
  payload.insert(payload.end(), raw, raw + sizeof out);
  const uint32_t one = 1;
  std::memcpy(payload.data() + offsetof(wire::IoctlRequest, num_segments), &one, sizeof one);
  const Answer answer = client.ask(wire::kIoctl, payload.data(), payload.size());
  ASSERT_EQ(answer.error, 0);
  wire::IoctlReply reply;
  std::memcpy(&reply, answer.payload.data(), sizeof reply);
  EXPECT_EQ(reply.arg_size, 64u);
  ASSERT_EQ(reply.num_writes, 1u);
  wire::Segment written;
  const uint8_t* at = answer.payload.data() + sizeof reply + reply.arg_size;
  std::memcpy(&written, at, sizeof written);
  EXPECT_EQ(written.address, 0x5000u);
  EXPECT_EQ(written.size, 2u);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(at) + sizeof written, 2), "v3");
}

TEST_F(ServerTest, AdoptFindsTheFileFromAnyDuplicate) {
  start();
  Client client(path_), second(path_);
  uint64_t token;
  const UniqueFd fd = client.open(kRenderNode, &token), copy(dup(fd.get()));
  const Answer answer = second.ask(wire::kAdopt, nullptr, 0, {copy.get()});
  ASSERT_EQ(answer.error, 0);
  wire::FileReply file;
  std::memcpy(&file, answer.payload.data(), sizeof file);
  EXPECT_EQ(file.token, token);
  EXPECT_EQ(file.minor, kRenderNode);
  EXPECT_EQ(file.driver, wire::FileDriver::kV3d);
  EXPECT_EQ(create_bo(second, file.token), 1u);
  EXPECT_EQ(create_bo(client, token), 2u);
  // Other descriptors are nobody's.
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  const UniqueFd foreign(ends[0]), other(ends[1]);
  EXPECT_EQ(second.ask(wire::kAdopt, nullptr, 0, {foreign.get()}).error, ENOTTY);
  EXPECT_EQ(second.ask(wire::kAdopt, nullptr, 0, {0}).error, ENOTTY);
}

TEST_F(ServerTest, LastCloseReleasesTheFile) {
  start();
  Client client(path_);
  uint64_t token;
  UniqueFd fd = client.open(kRenderNode, &token), copy(dup(fd.get()));
  create_bo(client, token);
  EXPECT_NE(status().find("1 open nodes"), std::string::npos) << status();
  fd.reset();
  EXPECT_EQ(create_bo(client, token), 2u);  // a duplicate keeps it
  copy.reset();
  EXPECT_TRUE(eventually([&] { return no_open_nodes(); }));
  drm::CreateBo args = {.size = 1, .flags = 0, .handle = 0, .offset = 0};
  EXPECT_EQ(client.ioctl(token, kCreateBo, args), EBADF);
}

/// As Linux, where close() has given up all that the file had when it returns.
TEST_F(ServerTest, WhoOpensAfterTheMasterHasClosedIsMaster) {
  start();
  Client client(path_);
  drm::None none;
  uint64_t former, token;
  const UniqueFd waits = client.open(kDisplayNode, &former);
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(client.ioctl(former, kDropMaster, none), 0) << i;
    UniqueFd fd = client.open(kDisplayNode, &token);
    ASSERT_EQ(client.ioctl(token, kSetMaster, none), 0) << i;  // it is already
    fd.reset();
    fd = client.open(kDisplayNode, &token);
    ASSERT_EQ(client.ioctl(former, kSetMaster, none), EBUSY) << i;
    fd.reset();
    ASSERT_EQ(client.ioctl(former, kSetMaster, none), 0) << i;
  }
}

TEST_F(ServerTest, FileSentOverItselfIsRefused) {
  start();
  Client client(path_);
  uint64_t token;
  UniqueFd fd = client.open(kRenderNode, &token);
  EXPECT_EQ(send_descriptor(fd.get(), fd.get()), 0);  // and dropped: it does not keep itself open
  const uint32_t syncobj = create_syncobj(client, token);
  for (const uint32_t flags : {0u, 1u}) {  // a syncobj, a sync_file
    drm::SyncobjHandle args = {.handle = syncobj, .flags = flags, .fd = -1, .pad = 0};
    drm::SyncobjArray array = {0x1000, 1, 0};
    ASSERT_EQ(client.ioctl(token, kSyncobjSignal, array, {{0x1000, bytes_of(syncobj)}}), 0);
    UniqueFd exported;
    ASSERT_EQ(client.ioctl(token, kSyncobjHandleToFd, args, {}, {}, &exported), 0);
    EXPECT_EQ(send_descriptor(exported.get(), fd.get()), EPIPE);
  }
  fd.reset();
  client.disconnect();
  EXPECT_TRUE(eventually([&] { return no_open_nodes(); }));
}

/// Nobody looks for each at once, but what is closed is there for those that come.
TEST_F(ServerTest, SyncFilesThatAreClosedMakeRoomForOthers) {
  Server::Options options;
  options.limits[ioctl::Resource::kDescriptors].per_client = 24;
  start(options);
  Client client(path_);
  uint64_t token;
  const UniqueFd fd = client.open(kRenderNode, &token);
  const uint32_t syncobj = create_syncobj(client, token);
  drm::SyncobjArray array = {0x1000, 1, 0};
  ASSERT_EQ(client.ioctl(token, kSyncobjSignal, array, {{0x1000, bytes_of(syncobj)}}), 0);
  const auto export_one = [&](UniqueFd* exported) {
    drm::SyncobjHandle args = {.handle = syncobj, .flags = drm::kSyncobjSyncFile, .fd = -1, .pad = 0};
    return client.ioctl(token, kSyncobjHandleToFd, args, {}, {}, exported);
  };
  for (int i = 0; i < 500; ++i) {
    UniqueFd exported;
    ASSERT_EQ(export_one(&exported), 0) << i;
  }
  std::vector<UniqueFd> kept;
  int error = 0;
  while (error == 0 && kept.size() < 100) error = export_one(&kept.emplace_back());
  EXPECT_EQ(error, EMFILE);
  EXPECT_LE(kept.size(), 24u);
  kept.clear();
  EXPECT_EQ(export_one(&kept.emplace_back()), 0);
}

TEST_F(ServerTest, DeadClientEndsAlthoughTheDaemonHoldsItsConnection) {
  start();
  for (const bool whole_request : {true, false}) {
    const pid_t child = fork();
    if (child == 0) {
      Client client(path_);
      uint64_t token;
      const UniqueFd fd = client.open(kRenderNode, &token);
      drm::SyncobjCreate syncobj = {};
      client.ioctl(token, kSyncobjCreate, syncobj);
      drm::SyncobjWait wait = {};
      wait.handles = 0x1000;
      wait.count_handles = 1;
      wait.flags = drm::kWaitForSubmit;
      wait.timeout_ns = INT64_MAX;
      const std::vector<int> held = {client.fd(), fd.get()};
      const auto payload =
          Client::ioctl_payload(token, kSyncobjWait, &wait, {{0x1000, bytes_of(syncobj.handle)}}, held);
      if (whole_request) {
        client.tell(wire::kIoctl, payload.data(), payload.size(), held);
      } else {
        const wire::MessageHeader header = {wire::kMagic, wire::kIoctl, 1000, 0};
        send_descriptor(client.fd(), client.fd(), &header, sizeof header);
      }
      usleep(20000);  // the daemon has it, or finds it in its queue
      _exit(0);
    }
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
    EXPECT_TRUE(eventually([&] {
      return status().find("0 open nodes, 1 connections, 0 clients leaving") != std::string::npos;
    })) << status();
  }
}

TEST_F(ServerTest, WaitsOfOneThreadDoNotHoldUpAnother) {
  start();
  Client waiting(path_), working(path_);
  uint64_t token;
  const UniqueFd fd = waiting.open(kRenderNode, &token);
  const uint32_t syncobj = create_syncobj(waiting, token), bo = create_bo(waiting, token);
  std::thread waiter([&] {
    EXPECT_EQ(wait_syncobj(waiting, token, syncobj, drm::kWaitForSubmit | drm::kWaitAll, INT64_MAX), 0);
  });
  EXPECT_EQ(wait_syncobj(working, token, syncobj, drm::kWaitForSubmit, 0), ETIME);
  EXPECT_EQ(submit_tfu(working, token, bo, syncobj), 0);
  waiter.join();
  drm::WaitBo wait = {.handle = bo, .pad = 0, .timeout_ns = ~uint64_t{0}};
  EXPECT_EQ(working.ioctl(token, kWaitBo, wait), 0);
}

TEST_F(ServerTest, ClosedConnectionAbortsItsWait) {
  start();
  uint64_t token;
  Client opener(path_);
  const UniqueFd fd = opener.open(kRenderNode, &token);
  const uint32_t syncobj = create_syncobj(opener, token);
  Client client(path_);
  drm::SyncobjWait args = {};
  args.handles = 0x1000;
  args.count_handles = 1;
  args.flags = drm::kWaitForSubmit;
  args.timeout_ns = INT64_MAX;
  const auto payload = Client::ioctl_payload(token, kSyncobjWait, &args, {{0x1000, bytes_of(syncobj)}});
  ASSERT_TRUE(client.tell(wire::kIoctl, payload.data(), payload.size()));
  EXPECT_TRUE(eventually([&] { return status().find(" 3 connections") != std::string::npos; }));
  client.disconnect();
  // Itself and the opener are left.
  EXPECT_TRUE(eventually([&] { return status().find(" 2 connections") != std::string::npos; })) << status();
}

TEST_F(ServerTest, PrimeAndSyncFilesBetweenTwoClients) {
  start();
  Client a(path_), b(path_);
  uint64_t ta, tb;
  const UniqueFd fa = a.open(kRenderNode, &ta), fb = b.open(kRenderNode, &tb);
  const uint32_t bo = create_bo(a, ta);
  UniqueFd dma_buf;
  drm::PrimeHandle prime = {.handle = bo, .flags = drm::kCloexec, .fd = -1};
  ASSERT_EQ(a.ioctl(ta, kPrimeHandleToFd, prime, {}, {}, &dma_buf), 0);
  ASSERT_TRUE(dma_buf);
  EXPECT_EQ(lseek(dma_buf.get(), 0, SEEK_END), 4096);
  prime = {.handle = 0, .flags = 0, .fd = dma_buf.get()};
  ASSERT_EQ(b.ioctl(tb, kPrimeFdToHandle, prime, {}, {dma_buf.get()}), 0);
  const uint32_t imported = prime.handle;
  prime.fd = 77;  // not attached: the client has no such descriptor
  EXPECT_EQ(b.ioctl(tb, kPrimeFdToHandle, prime), EBADF);

  // A job of one is waited for by the other, and through a sync_file.
  gpu_.open = false;
  const uint32_t out = create_syncobj(a, ta);
  ASSERT_EQ(submit_tfu(a, ta, bo, out), 0);
  drm::WaitBo wait = {.handle = imported, .pad = 0, .timeout_ns = 0};
  EXPECT_EQ(b.ioctl(tb, kWaitBo, wait), ETIME);
  UniqueFd sync_file;
  drm::SyncobjHandle to_fd = {.handle = out, .flags = drm::kSyncobjSyncFile, .fd = -1, .pad = 0};
  ASSERT_EQ(a.ioctl(ta, kSyncobjHandleToFd, to_fd, {}, {}, &sync_file), 0);
  pollfd p = {sync_file.get(), POLLIN, 0};
  EXPECT_EQ(poll(&p, 1, 0), 0);
  const uint32_t mirror = create_syncobj(b, tb);
  drm::SyncobjHandle from_fd = {
      .handle = mirror, .flags = drm::kSyncobjSyncFile, .fd = sync_file.get(), .pad = 0};
  ASSERT_EQ(b.ioctl(tb, kSyncobjFdToHandle, from_fd, {}, {sync_file.get()}), 0);
  EXPECT_EQ(wait_syncobj(b, tb, mirror, 0, 0), ETIME);
  gpu_.open = true;
  EXPECT_EQ(wait_syncobj(b, tb, mirror, 0, INT64_MAX), 0);
  EXPECT_EQ(poll(&p, 1, -1), 1);
  EXPECT_EQ(p.revents, POLLIN);

  // FILE_INFO goes to the descriptor itself.
  drm::SyncFileInfo info = {};
  const auto payload = Client::ioctl_payload(0, drm::request::kSyncFileInfo, &info);
  const Answer answer = a.ask(wire::kFdIoctl, payload.data(), payload.size(), {sync_file.get()});
  ASSERT_EQ(answer.error, 0);
  std::memcpy(&info, answer.payload.data() + sizeof(wire::IoctlReply), sizeof info);
  EXPECT_EQ(info.status, 1);
  EXPECT_EQ(a.ask(wire::kFdIoctl, payload.data(), payload.size(), {0}).error, ENOTTY);
}

TEST_F(ServerTest, KilledClientTakesItsJobsWithIt) {
  start({.limits = {}, .run_after_exit = 0.2});
  gpu_.open = false;
  const pid_t child = fork_with_jobs(3);
  ASSERT_TRUE(eventually([&] { return gpu_.started == 1; }));
  EXPECT_EQ(kill(child, SIGKILL), 0);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(eventually([&] { return gpu_.cancelled == 1; }));
  EXPECT_TRUE(eventually([&] {
    return status().find("0 open nodes, 1 connections, 0 clients leaving") != std::string::npos;
  })) << status();
  EXPECT_EQ(gpu_.started, 1);  // the others never ran
}

TEST_F(ServerTest, WhoIsKilledGetsLessTimeThanWhoExits) {
  start({.limits = {}, .run_after_exit = 3600});
  gpu_.open = false;
  const pid_t child = fork_with_jobs(1);
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  ASSERT_TRUE(eventually([&] { return gpu_.started == 1; }));
  EXPECT_EQ(kill(child, SIGKILL), 0);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  if (!was_killed(process)) {
    gpu_.open = true;
    GTEST_SKIP() << "this kernel does not tell how a process ended";
  }
  EXPECT_TRUE(eventually([&] { return gpu_.cancelled == 1; }));
}

// It is abandoned when the daemon ends (deadline.h).
TEST_F(ServerTest, AJobOfTheDeadThatDoesNotEndKeepsNoDaemon) {
  std::atomic<int64_t> now_ns{ioctl::monotonic_ns()};
  start({.exit_when_idle = 1, .run_after_exit = 0.2, .now_ns = [&] { return now_ns.load(); }});
  gpu_.open = false;
  gpu_.deaf = true;
  const pid_t child = fork_with_jobs(1);
  EXPECT_TRUE(eventually([&] { return gpu_.started == 1; }));
  EXPECT_EQ(kill(child, SIGKILL), 0);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  auto left = std::async(std::launch::async, [loop = std::move(loop_)]() mutable { loop.join(); });
  EXPECT_TRUE(eventually([&] {
    now_ns += 100'000'000;
    return left.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }));
  EXPECT_EQ(gpu_.cancelled, 0);
  gpu_.open = true;  // it may be destroyed now
  server_->stop();
  left.get();
}

// A request of a client that dies may submit a job after the file was closed.
TEST_F(ServerTest, AFileIsNotDoneWithWhileARequestHoldsIt) {
  start();
  int tokens[2];
  ASSERT_EQ(pipe2(tokens, O_CLOEXEC), 0);
  const UniqueFd from(tokens[0]), to(tokens[1]);
  const pid_t child = fork();
  if (child == 0) {
    Client client(path_);
    uint64_t token;
    const UniqueFd fd = client.open(kRenderNode, &token);
    [[maybe_unused]] const ssize_t written = write(to.get(), &token, sizeof token);
    while (true) pause();
  }
  uint64_t token = 0;
  ASSERT_EQ(read(from.get(), &token, sizeof token), ssize_t{sizeof token});
  std::shared_ptr<ioctl::File> file = server_->find_file(token);
  ASSERT_TRUE(file);
  EXPECT_EQ(kill(child, SIGKILL), 0);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  ASSERT_TRUE(eventually([&] { return no_open_nodes(); }));
  usleep(50'000);  // it is looked at more than once
  EXPECT_NE(status().find("1 clients leaving"), std::string::npos) << status();
  file.reset();
  EXPECT_TRUE(eventually([&] { return status().find("0 clients leaving") != std::string::npos; }));
}

// An X server opens the node for its clients and lives on.
TEST_F(ServerTest, JobsEndWithTheProgramThatUsedTheFileLast) {
  start({.limits = {}, .run_after_exit = 0.2});
  gpu_.open = false;
  Client server(path_);
  uint64_t token;
  UniqueFd fd = server.open(kRenderNode, &token);
  const uint32_t bo = create_bo(server, token);
  const pid_t child = fork();
  if (child == 0) {
    Client client(path_);
    for (int i = 0; i < 3; ++i) submit_tfu(client, token, bo);
    while (true) pause();
  }
  fd.reset();  // the child's copy is the last
  ASSERT_TRUE(eventually([&] { return gpu_.started == 1; }));
  EXPECT_NE(status().find(std::to_string(child)), std::string::npos) << status();
  EXPECT_EQ(kill(child, SIGKILL), 0);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(eventually([&] { return status().find(" 0 clients leaving") != std::string::npos; }))
      << status();
  EXPECT_EQ(gpu_.cancelled, 1);
  EXPECT_EQ(gpu_.started, 1);
}

// What a program submits before it exits still runs.
TEST_F(ServerTest, JobsOfAProgramThatExitsAtOnceRun) {
  start();
  gpu_.open = false;
  const pid_t child = fork_with_jobs(3, Then::kExits);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(eventually([&] { return status().find("1 clients leaving") != std::string::npos; }))
      << status();
  usleep(1'200'000);  // longer than the kernel's grace, for what takes a Pi far less
  EXPECT_EQ(gpu_.cancelled, 0);
  gpu_.open = true;
  EXPECT_TRUE(eventually([&] { return status().find(" 0 clients leaving") != std::string::npos; }));
  EXPECT_EQ(gpu_.started, 3);
}

TEST_F(ServerTest, JobsOfAClosedFileOfALivingClientEndByThemselves) {
  start();
  gpu_.open = false;
  Client client(path_);
  uint64_t token;
  UniqueFd fd = client.open(kRenderNode, &token);
  const uint32_t bo = create_bo(client, token);
  ASSERT_EQ(submit_tfu(client, token, bo), 0);
  ASSERT_EQ(submit_tfu(client, token, bo), 0);
  fd.reset();
  EXPECT_TRUE(eventually([&] { return status().find("1 clients leaving") != std::string::npos; }));
  usleep(1'200'000);  // longer than the grace of a dead client
  EXPECT_EQ(gpu_.cancelled, 0);
  gpu_.open = true;
  EXPECT_TRUE(eventually([&] { return status().find("0 clients leaving") != std::string::npos; }));
  EXPECT_EQ(gpu_.started, 2);
}

TEST_F(ServerTest, StatusNamesClients) {
  start();
  Client client(path_);
  uint64_t token;
  const UniqueFd fd = client.open(kRenderNode, &token);
  const uint32_t bo = create_bo(client, token, 1 << 20);
  ASSERT_EQ(submit_tfu(client, token, bo), 0);
  drm::WaitBo wait = {.handle = bo, .pad = 0, .timeout_ns = ~uint64_t{0}};
  ASSERT_EQ(client.ioctl(token, kWaitBo, wait), 0);
  drm::SetClientName name = {.name_len = 8, .name = 0x1000};
  ASSERT_EQ(client.ioctl(token, 0xc01064d1, name, {{0x1000, {'c', 'o', 'm', 'p', 'o', 's', '-', '7'}}}), 0);
  const std::string text = client.command("status");
  for (const char* word : {"rpi5", "Linux 7.3, 0 GPU resets", "tester", "renderD128", "1024", "render",
                           "cache_clean", "compos-7"})
    EXPECT_NE(text.find(word), std::string::npos) << word << " in\n" << text;
  EXPECT_NE(text.find(std::to_string(getpid())), std::string::npos);
  int error;
  EXPECT_NE(client.command("dance", &error).find("status"), std::string::npos);
  EXPECT_EQ(error, EINVAL);
}

TEST_F(ServerTest, ShutdownCommand) {
  start();
  Client client(path_);
  uint64_t token;
  const UniqueFd fd = client.open(kRenderNode, &token);
  gpu_.open = false;
  submit_tfu(client, token, create_bo(client, token));
  ASSERT_TRUE(eventually([&] { return gpu_.started == 1; }));
  EXPECT_EQ(client.command("shutdown"), "leaving\n");
  loop_.join();
  server_.reset();  // with a client and a job
  EXPECT_EQ(gpu_.cancelled, 1);
  char byte;
  EXPECT_EQ(recv(fd.get(), &byte, 1, 0), 0);  // the DRM descriptor is dead
}

/// Time that stands still until it is let go; from then on it is an hour later with every look at it.
class JumpingClock {
 public:
  int64_t now() {
    const std::lock_guard lock(mutex_);
    ++looks_;
    looked_.notify_all();
    return now_ns_ += jumping_ ? 3'600'000'000'000 : 0;
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    jumping_ = true;
  }
  int looks() {
    const std::lock_guard lock(mutex_);
    return looks_;
  }
  void wait_for(int looks) {
    std::unique_lock lock(mutex_);
    looked_.wait(lock, [&] { return looks_ >= looks; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable looked_;
  bool jumping_ = false;
  int looks_ = 0;
  int64_t now_ns_ = 0;
};

TEST_F(ServerTest, LeavesWhenIdle) {
  JumpingClock clock;
  // By the clock that stands still it does not leave before the client comes, however little it waits.
  start({.exit_when_idle = 0.001, .now_ns = [&] { return clock.now(); }});
  Client client(path_);
  uint64_t token, other_token;
  UniqueFd other = client.open(kRenderNode, &other_token);
  clock.let_go();
  // A file that is closed makes the daemon look around: at the clock after that, and before it waits again.
  int looks = clock.looks();
  other.reset();
  clock.wait_for(looks + 2);
  UniqueFd fd = client.open(kRenderNode, &token);  // still there for the connection,
  other = client.open(kRenderNode, &other_token);
  client.leave();
  looks = clock.looks();
  other.reset();
  clock.wait_for(looks + 2);
  Client again(path_);  // and for the file alone
  EXPECT_EQ(create_bo(again, token), 1u);
  fd.reset();
  again.leave();
  loop_.join();
}

TEST_F(ServerTest, TooManyConnectionsAreRefused) {
  Server::Options options;
  options.limits[ioctl::Resource::kConnections].per_client = 2;
  start(options);
  Client a(path_), b(path_), c(path_, false);
  EXPECT_EQ(c.hear(wire::kHello).error, ENOMEM);
  const wire::HelloRequest hello = {wire::kProtocol, 1, "c"};
  a.disconnect();
  EXPECT_TRUE(eventually([&] {
    Client d(path_, false);
    return d.ask(wire::kHello, &hello, sizeof hello).error == 0;
  }));
}

TEST_F(ServerTest, ManyClientsAtOnce) {
  start();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      Client client(path_);
      for (int i = 0; i < 10; ++i) {
        uint64_t token;
        const UniqueFd fd = client.open(kRenderNode, &token);
        const uint32_t syncobj = create_syncobj(client, token);
        const uint32_t bo = create_bo(client, token);
        EXPECT_EQ(submit_tfu(client, token, bo, syncobj), 0);
        EXPECT_EQ(wait_syncobj(client, token, syncobj, drm::kWaitAll, INT64_MAX), 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(eventually([&] { return no_open_nodes(); }));
}

}  // namespace
}  // namespace v3d::daemon::test
