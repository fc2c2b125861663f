/// A JobContext is what every block needs to know of the job it works for.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "gpu/base/job_control.h"
#include "gpu/base/memory.h"
#include "gpu/base/thread_pool.h"

namespace v3d {

namespace chip {
struct Profile;
}
namespace qpu {
class ProgramCache;
class ThreadWatch;
}  // namespace qpu
namespace perf {
class JobCounts;
}
class TileWatch;
class WorkWatch;

/// The first error of a job, with its message. Thread safe.
class JobError {
 public:
  enum class Kind : uint8_t {
    kWrong,  ///< something in the job does not exist, or is not implemented
    kHang,   ///< the job does not come to an end, or not in a time that the kernel would grant
  };
  /// Later calls are ignored: one job, one message.
  void set(std::string message, Kind kind = Kind::kWrong) {
    const std::lock_guard lock(mutex_);
    if (failed_.load(std::memory_order_relaxed)) return;
    message_ = std::move(message);
    kind_ = kind;
    failed_ = true;
  }
  void set_hang(std::string message) { set(std::move(message), Kind::kHang); }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  /// Of the message, while there is one.
  Kind kind() const {
    const std::lock_guard lock(mutex_);
    return kind_;
  }
  std::string message() const {
    const std::lock_guard lock(mutex_);
    return message_;
  }

 private:
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  std::string message_;
  Kind kind_ = Kind::kWrong;
};

/// What the QPUs did since a control list last moved on, of which the kernel sees the address (drm-abi.md
/// 3.5). Thread safe.
class ListProgress {
 public:
  /// @param limit  instructions of all QPUs without a move at which the job hangs
  explicit ListProgress(uint64_t limit) : limit_(limit) {}
  /// A packet, a primitive of a tile's list or a tile is done.
  void move() {
    if (spent_.load(std::memory_order_relaxed) != 0) spent_.store(0, std::memory_order_relaxed);
  }
  /// Counts instructions of a long program. @return  false when the limit is reached
  bool spend(uint64_t instructions) {
    return spent_.fetch_add(instructions, std::memory_order_relaxed) + instructions < limit_;
  }

 private:
  const uint64_t limit_;
  std::atomic<uint64_t> spent_{0};
};

/// JobContext::instruction_limit of a job that may run for ever.
inline constexpr uint64_t kNoInstructionLimit = ~uint64_t{0};

/// Context of one bin, render, compute or TFU job. All pointers outlive the job.
struct JobContext {
  Memory memory;
  const chip::Profile* profile;
  ThreadPool* pool;
  qpu::ProgramCache* programs;
  perf::JobCounts* counts;
  JobError* error;
  /// Set from outside to end the job early (its client is gone, or the reset of a hang).
  const std::atomic<bool>* cancel;
  /// Instructions that one QPU thread may execute before the job counts as hung: at a patience of 1, five
  /// seconds of a QPU, since what waits for a thread need not be what the kernel looks at.
  uint64_t instruction_limit = 1'000'000'000;
  /// Seconds of GPU time that a job may go without progress (drm-abi.md 3.5): a dispatch without a batch that
  /// ends, a list without a packet or primitive. Of GPU time, not of ours: what a Pi does in a second may
  /// take a minute here.
  double patience = 1;
  qpu::ThreadWatch* watch = nullptr;  ///< null: nobody watches the QPU threads
  WorkWatch* work = nullptr;          ///< null: nobody watches the other units
  TileWatch* tile = nullptr;          ///< the same, of the tile that this context is for
  /// Somebody compares all memory after the job: what programs keep there for themselves, too.
  bool compares_memory = false;
  /// TIDX of worker slot s is first_tidx + s: unique over the stages of a client that run at one time.
  uint32_t first_tidx = 0;
  JobControl* control = nullptr;     ///< null: nobody else wants the GPU
  ListProgress* progress = nullptr;  ///< of bin and render jobs; null: nobody asks for it

  /// Whether there is nothing more to do. To be asked between small pieces of work: waits while it is the
  /// turn of others.
  bool stopped() const {
    if (control) control->checkpoint();
    return ended();
  }
  /// The same without waiting.
  bool ended() const { return cancel->load(std::memory_order_relaxed) || error->failed(); }
  /// JobControl::take_memory(). @return  false, and the job has an error
  bool take_memory(uint64_t bytes) const {
    if (!control || control->take_memory(bytes)) return true;
    error->set("out of memory: what is made of the lists of the client's jobs exceeds derived-bytes");
    return false;
  }
  /// Somebody may read the performance counters.
  bool counted() const { return !control || control->counted(); }
  /// Somebody counts or watches what is done, and so has to see all of it, in the order of the hardware.
  bool is_seen() const { return counted() || watch != nullptr || work != nullptr || tile != nullptr; }
  /// The list moved on.
  void moved() const {
    if (progress) progress->move();
  }
};

}  // namespace v3d
