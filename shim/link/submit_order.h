/// A program hears of the end of a job after the thread that submitted it has its answer, and had a moment to
/// go on: on a board even the shortest job takes longer than the ioctl that starts it. Mesa's threads that
/// submit (vk_queue.c) still touch, behind the ioctl, timelines that the program may destroy once the job has
/// ended.
#pragma once

#include <atomic>
#include <cstdint>

#include "shim/process/raw.h"

namespace v3d::shim {

/// Syncobjs by their handles, some of which look alike.
using SyncobjSet = uint64_t;
constexpr SyncobjSet kAnySyncobj = ~SyncobjSet{0};
constexpr SyncobjSet set_of(uint32_t handle) { return SyncobjSet{1} << (handle % 64); }

class SubmitOrder {
  struct Submit;

 public:
  /// Around the ioctl of a submit.
  class Scope {
   public:
    Scope() = default;
    /// @param signals  what gets a fence of the job; of none nobody can hear
    void begin(SyncobjSet signals) {
      if (signals == 0) return;
      submit_ = &s_submits[s_next.fetch_add(1, std::memory_order_relaxed) % kMostSubmits];
      submit_->thread.store(this_thread(), std::memory_order_relaxed);
      submit_->ended_ns.store(0, std::memory_order_relaxed);
      submit_->signals.store(signals, std::memory_order_release);
    }
    ~Scope() {
      if (submit_ == nullptr) return;
      submit_->cpu.store(raw::current_cpu(), std::memory_order_relaxed);
      submit_->ended_ns.store(raw::fast_monotonic_ns(), std::memory_order_release);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Submit* submit_ = nullptr;
  };

  /// Behind a wait of this thread, for submits of others with one of these.
  static void let_others_go_on(SyncobjSet waited) {
    for (Submit& submit : s_submits) {
      if ((submit.signals.load(std::memory_order_acquire) & waited) == 0 ||
          submit.thread.load(std::memory_order_relaxed) == this_thread())
        continue;
      const uint64_t ended = await_answer(submit), now = raw::fast_monotonic_ns();
      // The other one may be ready on this processor, and wait for it.
      if (now < ended + kSlice && submit.cpu.load(std::memory_order_relaxed) == raw::current_cpu())
        raw::call(SYS_sched_yield);
      while (raw::fast_monotonic_ns() < ended + kMoment) raw::pause();
    }
  }

  /// In the child of a fork: who was submitting is not there.
  static void forget() {
    for (Submit& submit : s_submits) submit.signals.store(0, std::memory_order_relaxed);
  }

 private:
  /// The last one of each thread that submits counts: so many are known.
  static constexpr uint32_t kMostSubmits = 8;
  /// So long what Mesa does behind a submit takes, several times over.
  static constexpr uint64_t kMoment = 10'000;
  /// So long a thread may have to wait for a processor.
  static constexpr uint64_t kSlice = 3'000'000;
  /// So long another one is waited for at most: it may have been ended in there.
  static constexpr uint64_t kMost = 1'000'000'000;

  struct Submit {
    std::atomic<SyncobjSet> signals;
    std::atomic<uint64_t> ended_ns;  // 0: it has not
    std::atomic<const void*> thread;
    std::atomic<uint32_t> cpu;
  };

  static const void* this_thread() { return __builtin_thread_pointer(); }
  /// @return  when the thread had it
  static uint64_t await_answer(Submit& submit) {
    const uint64_t until = raw::fast_monotonic_ns() + kMost;
    uint64_t ended;
    while ((ended = submit.ended_ns.load(std::memory_order_acquire)) == 0) {
      if (raw::fast_monotonic_ns() > until) {
        submit.signals.store(0, std::memory_order_relaxed);
        break;
      }
      raw::call(SYS_sched_yield);
    }
    return ended;
  }

  static inline Submit s_submits[kMostSubmits];
  static inline std::atomic<uint32_t> s_next;
};

}  // namespace v3d::shim
