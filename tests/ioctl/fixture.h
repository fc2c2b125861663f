/// The fixture is an opened node with everything around it faked: user memory, descriptors, GPU and
/// scheduler.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ioctl/abi/core.h"
#include "ioctl/abi/v3d.h"
#include "ioctl/ioctl_table.h"

namespace v3d::ioctl::test {

/// For tests that run on each.
inline std::vector<const Abi*> kernels() {
  std::vector<const Abi*> kernels;
  for (const Abi& abi : all_abis()) kernels.push_back(&abi);
  return kernels;
}
inline std::string kernel_name(const ::testing::TestParamInfo<const Abi*>& info) {
  std::string name = "Linux" + std::string(info.param->name);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

/// Regions at addresses of its choice; everything else is EFAULT.
class FakeMemory : public UserMemory {
 public:
  /// Places bytes at a fresh address with unreadable memory around them.
  uint64_t place(const void* from, size_t bytes) {
    const uint64_t address = next_;
    next_ += (bytes + 0x1fff) & ~uint64_t{0xfff};
    const auto* begin = static_cast<const uint8_t*>(from);
    regions_[address].assign(begin, begin + bytes);
    return address;
  }
  template <typename T>
  uint64_t place(const T& value) {
    return place(&value, sizeof(T));
  }
  template <typename T>
  uint64_t place(const std::vector<T>& values) {
    return place(values.data(), values.size() * sizeof(T));
  }
  template <typename T>
  T at(uint64_t address) {
    T value = {};
    EXPECT_TRUE(read(address, &value, sizeof value));
    return value;
  }

  bool read(uint64_t address, void* to, uint64_t bytes) override {
    uint8_t* host = find(address, bytes);
    if (host && bytes) std::memcpy(to, host, bytes);
    return host;
  }
  bool write(uint64_t address, const void* from, uint64_t bytes) override {
    uint8_t* host = find(address, bytes);
    if (host && bytes) std::memcpy(host, from, bytes);
    return host;
  }

 private:
  uint8_t* find(uint64_t address, uint64_t bytes) {
    auto it = regions_.upper_bound(address);
    if (it == regions_.begin()) return nullptr;
    --it;
    const uint64_t offset = address - it->first;
    if (offset > it->second.size() || bytes > it->second.size() - offset) return nullptr;
    return it->second.data() + offset;
  }
  std::map<uint64_t, std::vector<uint8_t>> regions_;
  uint64_t next_ = 0x7f0000000000;
};

/// The test's own descriptors under their own numbers; what a handler gives is kept in `given`.
class FakeFds : public UserFds {
 public:
  int find(int number) override { return fcntl_valid(number) ? number : -1; }
  void give_in_argument(uint32_t offset, UniqueFd fd, bool close_on_exec) override {
    given = std::move(fd);
    given_offset = offset;
    given_cloexec = close_on_exec;
  }
  void give_in_memory(uint64_t address, UniqueFd fd, bool close_on_exec) override {
    given = std::move(fd);
    given_address = address;
    given_cloexec = close_on_exec;
  }
  void replace_mappings(MovedMemory memory) override { moved.push_back(std::move(memory)); }
  std::vector<MovedMemory> moved;
  UniqueFd given;
  uint32_t given_offset = 0;
  uint64_t given_address = 0;
  bool given_cloexec = false;

 private:
  static bool fcntl_valid(int number) {
    const int copy = number >= 0 ? dup(number) : -1;
    if (copy >= 0) close(copy);
    return copy >= 0;
  }
};

/// Remembers what ran.
class FakeGpu : public Gpu {
 public:
  explicit FakeGpu(const char* name = "rpi5") : profile_(*chip::find_profile(name)) {}
  /// On a board whose driver is vc4.
  explicit FakeGpu(const std::optional<Vc4Board>& board) : FakeGpu(board ? "rpi3" : "rpi5") {
    board_ = board;
  }
  const Vc4Board* vc4_board() const override { return board_ ? &*board_ : nullptr; }
  const chip::Profile& profile() const override { return profile_; }
  absl::StatusOr<std::unique_ptr<GpuContext>> create_context() override {
    auto space = mmu::AddressSpace::create();
    if (!space.ok()) return space.status();
    return std::make_unique<Context>(*this, *std::move(space));
  }

  device::ClJob bin, render;
  device::CsdJob csd;
  device::TfuJob tfu;
  int bins = 0, renders = 0, csds = 0, tfus = 0;
  device::SurfaceJob surfaces;
  bool render_had_bin_result = false, render_counted = false;  // of the last one
  perf::Counts counts;
  device::JobResult::End end = device::JobResult::End::kDone;  ///< of all jobs

 private:
  class Context : public GpuContext {
   public:
    Context(FakeGpu& gpu, std::unique_ptr<mmu::AddressSpace> space) : gpu_(gpu), space_(std::move(space)) {}
    mmu::AddressSpace& space() override { return *space_; }
    device::JobResult run_bin(const device::ClJob& job, JobControl&,
                              std::shared_ptr<const draw::BinResult>* result) override;
    device::JobResult run_render(const device::ClJob& job, JobControl& control,
                                 std::shared_ptr<const draw::BinResult> bin) override {
      gpu_.render = job;
      gpu_.render_had_bin_result = bin != nullptr;
      gpu_.render_counted = control.counted();
      ++gpu_.renders;
      return gpu_.done();
    }
    device::JobResult run_csd(const device::CsdJob& job, JobControl&) override {
      gpu_.csd = job;
      ++gpu_.csds;
      return gpu_.done();
    }
    device::JobResult run_tfu(const device::TfuJob& job, JobControl&) override {
      gpu_.tfu = job;
      ++gpu_.tfus;
      return gpu_.done();
    }
    device::JobResult run_surfaces(const device::SurfaceJob& job, JobControl&) override {
      gpu_.surfaces = job;
      return gpu_.done();
    }

   private:
    FakeGpu& gpu_;
    const std::unique_ptr<mmu::AddressSpace> space_;
  };
  device::JobResult done() const {
    device::JobResult result;
    result.end = end;
    result.counts = counts;
    return result;
  }
  const chip::Profile& profile_;
  std::optional<Vc4Board> board_;
};

/// Keeps jobs until the test runs them.
class FakeHost : public Host {
 public:
  void push(const std::vector<JobPtr>& submitted) override {
    jobs.insert(jobs.end(), submitted.begin(), submitted.end());
  }
  bool watch_hangup(int, std::function<void()> gone) override {
    hangups.push_back(std::move(gone));
    return true;
  }

  void finish_closes(const File*) override {
    if (close) close();
  }
  std::function<void()> close;  ///< what is closed, and not yet released

  int give_descriptor(std::shared_ptr<File> file, int flags, Account&, UniqueFd* fd) override {
    UniqueFd own_end;
    if (!make_one_way_pair(fd, &own_end)) return EMFILE;
    given.push_back(std::move(file));
    given_flags = flags;
    return 0;
  }
  std::vector<std::shared_ptr<File>> given;  ///< opened by ioctls
  int given_flags = 0;

  void bury(std::shared_ptr<void> what) noexcept override {
    if (keeps_remains) remains.push_back(std::move(what));
  }
  bool keeps_remains = false;
  std::vector<std::shared_ptr<void>> remains;  ///< of closed files

  void wake_display() override { ++display_wakes; }
  std::atomic<int> display_wakes{0};

  /// Runs a job and signals its fence, whatever it depends on.
  static void run(const JobPtr& job, int error = 0) {
    JobControl control;
    if (job->run && !error) {
      if (job->run(control).end != device::JobResult::End::kDone) error = ECANCELED;
    }
    job->done->signal(error);
  }
  /// Runs everything in order of submission.
  void run_all() {
    for (const JobPtr& job : std::exchange(jobs, {})) run(job);
  }

  std::vector<JobPtr> jobs;
  std::vector<std::function<void()>> hangups;
};

class IoctlTest : public ::testing::Test {
 protected:
  explicit IoctlTest(const Abi& abi = default_abi(), const std::optional<Vc4Board>& board = {})
      : gpu_(board), kernel_(gpu_, host_, ResourceLimits(), abi) {}
  void TearDown() override {
    // Jobs use the kernel, which goes first.
    host_.jobs.clear();
    host_.hangups.clear();
    host_.given.clear();
  }

  std::shared_ptr<File> open(uint32_t minor, bool privileged = false, const char* program = "test") {
    return kernel_.open(minor, 1000, program, privileged);
  }

  static std::shared_ptr<Account> admit(Kernel& kernel, int32_t pid = 1000) {
    Resource scarce;
    return kernel.budget().admit({pid, 1}, "test", &scarce);
  }

  /// A kernel with limits of its own, and a client that has its render node open.
  struct Limited {
    Limited(IoctlTest& test, const ResourceLimits& limits) : kernel(test.gpu_, test.host_, limits) {}
    int create_bo(uint64_t size) { return file->create_bo(*account, size, &bo, &handle); }

    Kernel kernel;
    std::shared_ptr<Account> account = admit(kernel);
    std::shared_ptr<File> file = kernel.open(kMinorV3dRender, 1, "test", false);
    std::shared_ptr<Bo> bo;  ///< made last
    uint32_t handle = 0;     ///< likewise
  };

  /// @return 0 or the errno, as ioctl(2) would
  int raw_ioctl(File& file, uint32_t request, std::vector<uint8_t>* arg) {
    Call call{kernel_, file, memory_, fds_, waiter_, *account_};
    return drm_ioctl(call, request, arg);
  }
  template <typename T>
  int ioctl(File& file, uint32_t request, T& args) {
    std::vector<uint8_t> bytes(drm::request_size(request));
    if (!bytes.empty()) std::memcpy(bytes.data(), &args, std::min(bytes.size(), sizeof args));
    const int error = raw_ioctl(file, request, &bytes);
    if (!bytes.empty())
      std::memcpy(static_cast<void*>(&args), bytes.data(), std::min(bytes.size(), sizeof args));
    return error;
  }
  template <typename T>
  int ioctl(uint32_t request, T& args) {
    return ioctl(*file_, request, args);
  }

  uint32_t create_bo(File& file, uint32_t size = 4096) {
    drm::CreateBo args = {.size = size, .flags = 0, .handle = 0, .offset = 0};
    EXPECT_EQ(ioctl(file, kCreateBo, args), 0);
    return args.handle;
  }
  uint32_t create_bo(uint32_t size = 4096) { return create_bo(*file_, size); }
  uint32_t create_syncobj(File& file, bool signalled = false) {
    drm::SyncobjCreate args = {.handle = 0, .flags = signalled};
    EXPECT_EQ(ioctl(file, kSyncobjCreate, args), 0);
    return args.handle;
  }
  uint32_t create_syncobj(bool signalled = false) { return create_syncobj(*file_, signalled); }
  FencePtr fence_of(uint32_t syncobj) { return file_->find_syncobj(syncobj)->fence(); }
  /// Puts a fence that has not signalled into a syncobj.
  FencePtr make_pending(uint32_t syncobj) {
    auto fence = std::make_shared<Fence>("test", "test", new_fence_context(), 1);
    file_->find_syncobj(syncobj)->replace(fence);
    return fence;
  }
  static std::vector<drm::Sem> sems(const std::vector<uint32_t>& handles) {
    std::vector<drm::Sem> sems;
    // Only the handle is looked at.
    for (const uint32_t handle : handles) sems.push_back({handle, 0xff, 0xff, {1, 2}});
    return sems;
  }
  /// The address of a MULTI_SYNC extension.
  uint64_t multi_sync(Queue wait_stage, const std::vector<uint32_t>& in, const std::vector<uint32_t>& out,
                      uint64_t next = 0) {
    drm::MultiSync args = {};
    args.base = {next, drm::kExtMultiSync, 0x55};
    args.in_syncs = memory_.place(sems(in));
    args.in_sync_count = static_cast<uint32_t>(in.size());
    args.out_syncs = memory_.place(sems(out));
    args.out_sync_count = static_cast<uint32_t>(out.size());
    args.wait_stage = static_cast<uint32_t>(wait_stage);
    return memory_.place(args);
  }
  uint8_t* bo_memory(uint32_t handle) {
    const auto bo = file_->find_bo(handle);
    return bo->host(0, bo->size());
  }
  /// Exports a handle as a dma-buf.
  UniqueFd export_bo(File& file, uint32_t handle) {
    drm::PrimeHandle args = {.handle = handle, .flags = drm::kCloexec, .fd = -1};
    EXPECT_EQ(ioctl(file, kPrimeHandleToFd, args), 0);
    return std::move(fds_.given);
  }
  int import_bo(File& file, int fd, uint32_t* handle) {
    drm::PrimeHandle args = {.handle = 0, .flags = 0, .fd = fd};
    const int error = ioctl(file, kPrimeFdToHandle, args);
    *handle = args.handle;
    return error;
  }

  // Request words, drm-abi.md 2.2, 2.4, 6.1.
  static constexpr uint32_t kVersion = 0xc0406400, kGemClose = 0x40086409, kGetCap = 0xc010640c;
  static constexpr uint32_t kPrimeHandleToFd = 0xc00c642d, kPrimeFdToHandle = 0xc00c642e;
  static constexpr uint32_t kSubmitCl = 0xc0486440, kWaitBo = 0xc0106441, kCreateBo = 0xc0106442;
  static constexpr uint32_t kMmapBo = 0xc0106443, kGetParam = 0xc0106444, kGetBoOffset = 0xc0086445;
  static constexpr uint32_t kSubmitTfu = 0x40586446, kSubmitCsd = 0x40586447, kPerfmonCreate = 0xc0286448;
  static constexpr uint32_t kPerfmonDestroy = 0xc0046449, kPerfmonGetValues = 0xc010644a;
  static constexpr uint32_t kSubmitCpu = 0x4018644b, kPerfmonGetCounter = 0xc168644c;
  static constexpr uint32_t kSyncobjCreate = 0xc00864bf, kSyncobjDestroy = 0xc00864c0;
  static constexpr uint32_t kSyncobjHandleToFd = 0xc01864c1, kSyncobjFdToHandle = 0xc01864c2;
  static constexpr uint32_t kSyncobjWait = 0xc02864c3, kSyncobjReset = 0xc01064c4,
                            kSyncobjSignal = 0xc01064c5;
  static constexpr uint32_t kCreateDumb = 0xc02064b2, kMapDumb = 0xc01064b3, kDestroyDumb = 0xc00464b4;

  FakeGpu gpu_;
  FakeHost host_;
  Kernel kernel_;
  FakeMemory memory_;
  FakeFds fds_;
  std::shared_ptr<Waiter> waiter_ = std::make_shared<Waiter>();
  std::shared_ptr<Account> account_ = admit(kernel_);
  std::shared_ptr<File> file_ = open(kMinorV3dRender);
};

}  // namespace v3d::ioctl::test
