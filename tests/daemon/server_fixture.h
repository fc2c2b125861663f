/// The fixture is a daemon in the test's process, with a GPU that works when it is told to.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "daemon/gpus.h"
#include "daemon/server.h"
#include "ioctl/abi/core.h"
#include "ioctl/abi/v3d.h"
#include "tests/base/temporary_folder.h"
#include "tests/daemon/client.h"

namespace v3d::daemon::test {

namespace drm = ioctl::drm;

inline constexpr uint32_t kCreateBo = 0xc0106442, kMmapBo = 0xc0106443, kSubmitTfu = 0x40586446,
                          kWaitBo = 0xc0106441;
inline constexpr uint32_t kSyncobjCreate = 0xc00864bf, kSyncobjWait = 0xc02864c3, kSyncobjSignal = 0xc01064c5;
inline constexpr uint32_t kSyncobjHandleToFd = 0xc01064c1, kSyncobjFdToHandle = 0xc01064c2;
inline constexpr uint32_t kPrimeHandleToFd = 0xc00c642d, kPrimeFdToHandle = 0xc00c642e;
inline constexpr uint32_t kSetMaster = 0x641e, kDropMaster = 0x641f;
inline constexpr uint32_t kRenderNode = 128, kDisplayNode = 1;

/// TFU jobs run until they are cancelled, unless they are deaf to that, or the gate opens.
class GatedGpu : public ioctl::Gpu {
 public:
  GatedGpu() : idle_(make_idle_gpu({})) {}
  const chip::Profile& profile() const override { return idle_->profile(); }
  absl::StatusOr<std::unique_ptr<ioctl::GpuContext>> create_context() override {
    auto context = idle_->create_context();
    if (!context.ok()) return context.status();
    return std::make_unique<Context>(*this, *std::move(context));
  }
  std::atomic<bool> open{true}, deaf{false};
  std::atomic<int> started{0}, cancelled{0};

 private:
  class Context : public ioctl::GpuContext {
   public:
    Context(GatedGpu& gpu, std::unique_ptr<ioctl::GpuContext> idle) : gpu_(gpu), idle_(std::move(idle)) {}
    mmu::AddressSpace& space() override { return idle_->space(); }
    device::JobResult run_bin(const device::ClJob& job, JobControl& control,
                              std::shared_ptr<const draw::BinResult>* result) override {
      return idle_->run_bin(job, control, result);
    }
    device::JobResult run_render(const device::ClJob& job, JobControl& control,
                                 std::shared_ptr<const draw::BinResult> bin) override {
      return idle_->run_render(job, control, std::move(bin));
    }
    device::JobResult run_csd(const device::CsdJob& job, JobControl& control) override {
      return idle_->run_csd(job, control);
    }
    device::JobResult run_surfaces(const device::SurfaceJob& job, JobControl& control) override {
      return idle_->run_surfaces(job, control);
    }
    device::JobResult run_tfu(const device::TfuJob&, JobControl& control) override {
      ++gpu_.started;
      while (!gpu_.open && (gpu_.deaf || !control.cancelled())) usleep(200);
      device::JobResult result;
      if (!gpu_.open) {
        ++gpu_.cancelled;
        result.end = device::JobResult::End::kCancelled;
      }
      return result;
    }

   private:
    GatedGpu& gpu_;
    const std::unique_ptr<ioctl::GpuContext> idle_;
  };
  const std::unique_ptr<ioctl::Gpu> idle_;
};

/// A message that carries a descriptor. @return 0 or the errno
inline int send_with_descriptor(int socket, int descriptor, const void* bytes, size_t size) {
  iovec part = {const_cast<void*>(bytes), size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* c = CMSG_FIRSTHDR(&message);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(c), &descriptor, sizeof descriptor);
  return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? errno : 0;
}

class ServerTest : public ::testing::Test {
 protected:
  void start(const Server::Options& options = {}) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(listener.get(), 16), 0);
    server_ = std::make_unique<Server>(gpu_, options);
    loop_ = std::thread([this, fd = listener.release()] { server_->run(UniqueFd(fd)); });
  }
  void TearDown() override {
    if (server_) server_->stop();
    if (loop_.joinable()) loop_.join();
    server_.reset();
  }
  /// Waits for something that the daemon does on its own.
  template <typename Fn>
  static bool eventually(Fn&& condition) {
    for (int i = 0; i < 2000; ++i) {
      if (condition()) return true;
      usleep(5000);
    }
    return false;
  }
  std::string status() { return Client(path_).command("status"); }
  bool no_open_nodes() { return status().find("\n0 open nodes") != std::string::npos; }

  static uint32_t create_bo(Client& client, uint64_t token, uint32_t size = 4096) {
    drm::CreateBo args = {.size = size, .flags = 0, .handle = 0, .offset = 0};
    EXPECT_EQ(client.ioctl(token, kCreateBo, args), 0);
    return args.handle;
  }
  static uint32_t create_syncobj(Client& client, uint64_t token) {
    drm::SyncobjCreate args = {};
    EXPECT_EQ(client.ioctl(token, kSyncobjCreate, args), 0);
    return args.handle;
  }
  static std::vector<uint8_t> bytes_of(uint32_t value) {
    std::vector<uint8_t> bytes(4);
    std::memcpy(bytes.data(), &value, 4);
    return bytes;
  }
  static int wait_syncobj(Client& client, uint64_t token, uint32_t handle, uint32_t flags,
                          int64_t timeout_ns) {
    drm::SyncobjWait args = {};
    args.handles = 0x1000;
    args.count_handles = 1;
    args.flags = flags;
    args.timeout_ns = timeout_ns;
    return client.ioctl(token, kSyncobjWait, args, {{0x1000, bytes_of(handle)}});
  }
  static int send_descriptor(int socket, int descriptor, const void* bytes = "x", size_t size = 1) {
    return send_with_descriptor(socket, descriptor, bytes, size);
  }
  static int submit_tfu(Client& client, uint64_t token, uint32_t bo, uint32_t out_sync = 0) {
    drm::SubmitTfu args = {};
    args.bo_handles[0] = bo;
    args.out_sync = out_sync;
    return client.ioctl(token, kSubmitTfu, args);
  }
  enum class Then { kStays, kExits };
  /// A process that sends jobs and waits for none of them.
  pid_t fork_with_jobs(int jobs, Then then = Then::kStays) const {
    const pid_t child = fork();
    if (child != 0) return child;
    // No gtest in here: this process only dies.
    Client client(path_);
    uint64_t token;
    const UniqueFd fd = client.open(kRenderNode, &token);
    drm::CreateBo bo = {.size = 4096, .flags = 0, .handle = 0, .offset = 0};
    client.ioctl(token, kCreateBo, bo);
    for (int i = 0; i < jobs; ++i) submit_tfu(client, token, bo.handle);
    if (then == Then::kExits) _exit(0);
    while (true) pause();
  }

  GatedGpu gpu_;
  const v3d::test::TemporaryFolder own_;
  const std::string folder_ = own_.path(), path_ = own_ / "socket";
  std::unique_ptr<Server> server_;
  std::thread loop_;
};

}  // namespace v3d::daemon::test
