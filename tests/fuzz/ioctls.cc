/// Input: repeated {u8 choice, argument of the request's size, u8 n, 4 n bytes of the caller's memory}; where
/// there is firmware, also {u8 from kAskFirmware on, u8 call, 3 words}.
#include <sys/socket.h>

#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "daemon/gpus.h"
#include "ioctl/abi/request.h"
#include "ioctl/abi/vc4.h"
#include "ioctl/core/kernel.h"
#include "ioctl/firmware/client.h"
#include "ioctl/ioctl_table.h"
#include "ioctl/link/firmware.h"
#include "tests/fuzz/input.h"

namespace v3d::fuzz {
namespace {

using namespace ioctl;

/// All DRM request words that a render or primary node knows (drm-abi.md 2.2, 2.4, 6.1), and two it does not.
/// The last rows are newer kernels', what is asked of the display, and what changes it.
constexpr uint32_t kRequests[] = {
    0xc0406400, 0xc0106401, 0x40086409, 0xc010640c, 0x4010640d, 0xc00c642d, 0xc00c642e, 0xc0486440,
    0xc0106441, 0xc0106442, 0xc0106443, 0xc0106444, 0xc0086445, 0x40586446, 0x40586447, 0xc0286448,
    0xc0046449, 0xc010644a, 0x4018644b, 0xc168644c, 0xc02064b2, 0xc01064b3, 0xc00464b4, 0xc00864bf,
    0xc00864c0, 0xc01064c1, 0xc01064c2, 0xc02864c3, 0xc01064c4, 0xc01064c5, 0xc03064ca, 0xc01864cb,
    0xc02064cc, 0xc01864cd, 0xc0106405, 0x00006488, 0x4008644d, 0xc01864c1, 0xc01864c2, 0xc01064d1,
    0xc00864d2, 0xc04064a0, 0xc05064a7, 0xc04064aa, 0xc01064ac, 0xc01064b5, 0xc02064b6, 0xc02064b9,
    0xc018643a, 0xc018643b, 0xc018643c, 0xc06864a1, 0xc06864a2, 0xc01c64a3, 0xc02064a4, 0xc02064a5,
    0xc01064ab, 0xc01c64ad, 0xc01c64ae, 0xc00464af, 0xc01864b0, 0xc01864b1, 0xc03064b7, 0xc06864b8,
    0xc01864ba, 0xc02464bb, 0xc03864bc, 0xc01064bd, 0xc00464be, 0xc06864ce, 0xc00864d0, 0xc01864c6,
    0xc01064c7, 0xc01064c8, 0xc00464c9};

/// Those that a node of the driver vc4 knows.
std::vector<uint32_t> requests_of_vc4() {
  using namespace drm::vc4;
  std::vector<uint32_t> requests = {kSubmitCl,   kSubmitCl,      kWaitSeqno,      kWaitBo,
                                    kCreateBo,   kMmapBo,        kCreateShaderBo, kGetHangState,
                                    kGetParam,   kSetTiling,     kGetTiling,      kLabelBo,
                                    kGemMadvise, kPerfmonCreate, kPerfmonDestroy, kPerfmonGetValues};
  for (const uint32_t request : kRequests) {
    const uint32_t number = drm::request_nr(request);
    if (number < 0x40 || number >= 0xa0) requests.push_back(request);
  }
  return requests;
}

/// The caller's memory: the current bytes at kBase, wherever else nothing.
class Window : public UserMemory {
 public:
  static constexpr uint64_t kBase = 0x10000;
  void set(Bytes bytes) { bytes_.assign(bytes.begin(), bytes.end()); }
  bool read(uint64_t address, void* to, uint64_t count) override {
    if (!inside(address, count)) return false;
    if (count) std::memcpy(to, bytes_.data() + (address - kBase), count);
    return true;
  }
  bool write(uint64_t address, const void* from, uint64_t count) override {
    if (!inside(address, count)) return false;
    if (count) std::memcpy(bytes_.data() + (address - kBase), from, count);
    return true;
  }

 private:
  bool inside(uint64_t address, uint64_t count) const {
    return address >= kBase && address - kBase <= bytes_.size() && count <= bytes_.size() - (address - kBase);
  }
  std::vector<uint8_t> bytes_;
};

/// Descriptors that were given are found under small numbers.
class Descriptors : public UserFds {
 public:
  void replace_mappings(MovedMemory) override {}
  int find(int number) override {
    return number >= 0 && static_cast<size_t>(number) < given_.size()
               ? given_[static_cast<size_t>(number)].get()
               : -1;
  }
  void give_in_argument(uint32_t, UniqueFd fd, bool) override { given_.push_back(std::move(fd)); }
  void give_in_memory(uint64_t, UniqueFd fd, bool) override { given_.push_back(std::move(fd)); }

 private:
  std::vector<UniqueFd> given_;
};

/// Runs jobs at once, whatever they depend on.
class Now : public Host {
 public:
  void push(const std::vector<JobPtr>& jobs) override {
    for (const JobPtr& job : jobs) {
      JobControl control;
      if (job->run) job->run(control);
      job->done->signal(0);
    }
  }
  bool watch_hangup(int, std::function<void()>) override { return true; }
  void finish_closes(const ioctl::File*) override {}
  /// Nobody could ask anything of it.
  int give_descriptor(std::shared_ptr<File>, int, Account&, UniqueFd*) override { return EMFILE; }
  void wake_display() override {}
};

/// A board whose driver is vc4, and whose firmware runs programs.
class Vc4Gpu : public Gpu {
 public:
  const chip::Profile& profile() const override { return idle_->profile(); }
  absl::StatusOr<std::unique_ptr<GpuContext>> create_context() override { return idle_->create_context(); }
  const Vc4Board* vc4_board() const override { return &kBoard; }

 private:
  static constexpr Vc4Board kBoard = {{0x02443356, 0xc1102431, 0x121}, 32 << 20};
  const std::unique_ptr<Gpu> idle_ = daemon::make_idle_gpu({.profile = chip::find_profile("rpi3")});
};

constexpr uint8_t kAskFirmware = 0xe0;

/// What a program asks the firmware. @param last  what it answered before
void ask_firmware(Call& call, Input& input, uint32_t* last) {
  wire::FirmwareRequest request = {};
  request.call = static_cast<wire::FirmwareCall>(input.take<uint8_t>() % 11);
  for (uint32_t& word : request.words) {
    // Small numbers, the last answer (a handle, an address), or any.
    const auto kind = input.take<uint8_t>();
    word = kind < 0x80 ? kind : kind < 0xc0 ? *last + (kind - 0x80u) * 4 : input.take<uint32_t>();
  }
  wire::FirmwareReply reply = {};
  UniqueFd memory;
  const int error = firmware::answer(call, request, &reply, &memory);
  if (error < 0 || error >= 4096) std::abort();
  if (reply.word != 0) *last = reply.word;
}

void run(Bytes bytes, Gpu& gpu, std::span<const uint32_t> requests, std::span<const uint32_t> minors) {
  Now host;
  ResourceLimits limits;
  limits[Resource::kBoBytes].per_client = 64 << 20;
  for (const Resource r : {Resource::kBos, Resource::kSyncobjs, Resource::kPerfmons})
    limits[r].per_client = 256;
  limits[Resource::kDescriptors].per_client = 320;
  const auto abis = all_abis();
  Kernel kernel(gpu, host, limits, abis[bytes.size() % abis.size()]);
  Input input(bytes);
  // The client is gone: no wait takes time.
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  UniqueFd connection(ends[0]);
  UniqueFd(ends[1]).reset();
  const auto waiter = std::make_shared<Waiter>(connection.get());
  {
    Window memory;
    Descriptors fds;
    const auto file = kernel.open(minors[input.take<uint8_t>() % minors.size()], 1000, "fuzz", true);
    if (!file) std::abort();
    Resource scarce;
    const auto account = kernel.budget().admit({1000, 1}, "fuzz", &scarce);
    if (!account) std::abort();
    Call call{kernel, *file, memory, fds, waiter, *account};
    uint32_t last = 0;
    for (int calls = 0; calls < 32 && !input.empty(); ++calls) {
      const auto choice = input.take<uint8_t>();
      if (gpu.vc4_board() && choice >= kAskFirmware) {
        ask_firmware(call, input, &last);
        continue;
      }
      const uint32_t request = requests[choice % requests.size()];
      std::vector<uint8_t> arg(drm::request_size(request));
      const Bytes given = input.take_bytes(arg.size());
      std::copy(given.begin(), given.end(), arg.begin());
      memory.set(input.take_bytes(4u * input.take<uint8_t>()));
      const int error = drm_ioctl(call, request, &arg);
      if (error < 0 || error >= 4096) std::abort();
    }
    file->release();
  }
}

}  // namespace

void ioctls(Bytes bytes) {
  static const auto gpu = daemon::make_idle_gpu({});
  constexpr uint32_t kMinors[] = {128, 0, 1};
  run(bytes, *gpu, kRequests, kMinors);
}

void vc4_ioctls(Bytes bytes) {
  static Vc4Gpu gpu;
  static const std::vector<uint32_t> requests = requests_of_vc4();
  constexpr uint32_t kMinors[] = {128, 1};
  run(bytes, gpu, requests, kMinors);
}

}  // namespace v3d::fuzz
