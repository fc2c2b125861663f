/// The daemon remembers the last GPU errors for `v3demu status`, in memory of a fixed size.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/string_view.h"
#include "ioctl/jobs/job.h"

namespace v3d::daemon {

enum class GpuErrorKind : uint8_t {
  kHang,     ///< no progress: the GPU was reset
  kFault,    ///< accesses to memory that is not mapped; the job went on
  kRefused,  ///< a list, record or program that the GPU does not take; the GPU was reset
  kRule,     ///< QPU programs broke rules, which only a strict daemon tells (qpu::WatchOptions)
};
inline constexpr int kNumGpuErrorKinds = 4;

struct GpuErrorKindRow {
  const char* word;  ///< of run reports
  const char* one;   ///< "1 job hung ..."
  const char* many;  ///< "2 jobs hung ..."
  const char* short_text;
};
inline constexpr GpuErrorKindRow kGpuErrorKinds[kNumGpuErrorKinds] = {
    {"hang", "job hung and was reset", "jobs hung and were reset", "hangs"},
    {"fault", "job accessed memory that is not mapped (MMU fault)",
     "jobs accessed memory that is not mapped (MMU faults)", "jobs with MMU faults"},
    {"refused", "job was refused", "jobs were refused", "refused jobs"},
    {"rule", "job broke rules of QPU programs", "jobs broke rules of QPU programs", "jobs with broken rules"},
};
constexpr const GpuErrorKindRow& row_of(GpuErrorKind kind) {
  return kGpuErrorKinds[static_cast<size_t>(kind)];
}

/// Thread safe. Allocates nothing to remember an error.
class GpuErrors {
 public:
  static constexpr size_t kRemembered = 16, kMostText = 512, kMostProgram = 16;

  struct Error {
    uint64_t number = 0;  ///< from 1, of all of this daemon
    int64_t time_ns = 0;  ///< ioctl::monotonic_ns()
    GpuErrorKind kind = GpuErrorKind::kHang;
    ioctl::Queue queue = ioctl::Queue::kBin;
    uint64_t job = 0;
    int32_t pid = 0;
    std::string program, text;
  };

  /// Also tells the run of the user, if there is one. @param text  what happened, with shader and instruction
  /// where that is known; longer ones are cut
  void add(GpuErrorKind kind, const ioctl::Job& job, const ioctl::User& user, std::string_view text);

  /// In their order.
  std::vector<Error> last() const;
  uint64_t count(GpuErrorKind kind) const;

 private:
  template <size_t N>
  struct Text {
    std::array<char, N> bytes;
    uint16_t size = 0;
    void set(std::string_view text);
    absl::string_view view() const { return {bytes.data(), size}; }
  };
  struct Entry {
    int64_t time_ns;
    GpuErrorKind kind;
    ioctl::Queue queue;
    uint64_t job;
    int32_t pid;
    Text<kMostProgram> program;
    Text<kMostText> text;
  };

  mutable std::mutex mutex_;
  std::array<Entry, kRemembered> entries_;  // error n in entries_[(n - 1) % kRemembered]
  uint64_t added_ = 0;
  std::array<uint64_t, kNumGpuErrorKinds> counts_{};
};

}  // namespace v3d::daemon
