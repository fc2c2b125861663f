#include "tests/fuzz/fuzz_job.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace v3d::fuzz {
namespace {

/// One thread for all jobs: sets the flag of the job under way when its time is over.
class Watchdog {
 public:
  static Watchdog& get() {
    static Watchdog* const watchdog = new Watchdog;  // runs until the process ends
    return *watchdog;
  }
  void watch(std::atomic<bool>* cancel) {
    const std::lock_guard lock(mutex_);
    cancel_ = cancel;
    deadline_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    cancel_ = nullptr;
  }

 private:
  Watchdog() {
    std::thread([this] {
      for (;;) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        const std::lock_guard lock(mutex_);
        if (cancel_ && std::chrono::steady_clock::now() > deadline_) *cancel_ = true;
      }
    }).detach();
  }
  std::mutex mutex_;  // protects all below
  std::atomic<bool>* cancel_ = nullptr;
  std::chrono::steady_clock::time_point deadline_;
};

}  // namespace

JobMemory::JobMemory() : space_(mmu::AddressSpace::create().value()) {
  if (!space_->map_zeros(kBase, kSize).ok()) std::abort();
}

void JobMemory::reset(Bytes image) {
  space_->take_faults();
  if (madvise(memory().host(kBase), kSize, MADV_DONTNEED) != 0) std::abort();
  memory().write(kBase, image.data(), std::min<size_t>(image.size(), kSize));
}

FuzzJob::FuzzJob(JobMemory& memory, chip::Generation generation)
    : profile_(chip::default_profile()),
      programs_(generation),
      job_{.memory = memory.memory(),
           .profile = &profile_,
           .pool = &pool_,
           .programs = &programs_,
           .counts = &counts_,
           .error = &error_,
           .cancel = &cancel_} {
  profile_.generation = generation;
  job_.instruction_limit = 5000;
  Watchdog::get().watch(&cancel_);
}

FuzzJob::~FuzzJob() { Watchdog::get().forget(); }

}  // namespace v3d::fuzz
