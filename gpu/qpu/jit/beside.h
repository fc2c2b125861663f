/// A CompilerThread does what takes too long for a thread that others wait for.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <tuple>

#include "gpu/base/memory.h"

namespace v3d::qpu::jit {

/// Thread safe. The thread is made for the first work, and runs at a lower priority than those who wait for
/// nothing else.
class CompilerThread {
 public:
  /// Works that wait: of one owner, and of all together.
  static constexpr size_t kMostOfOwner = 4, kMost = 64;

  /// Of what the work is: there is one of each at a time.
  struct Subject {
    const void* owner;
    GpuAddr entry;
    bool final_section;
    bool operator==(const Subject&) const = default;
  };

  CompilerThread() = default;
  /// Drops what waits, and waits for what is being done.
  ~CompilerThread();
  CompilerThread(const CompilerThread&) = delete;
  CompilerThread& operator=(const CompilerThread&) = delete;

  /// Nothing happens when such work waits or is being done, and when there is no room for more.
  void add(const Subject& subject, std::function<void()> work);
  /// Waits until nothing is left to do.
  void finish();

 private:
  struct Work {
    Subject subject;
    std::function<void()> run;
  };
  void run();
  std::list<Work>::iterator next();

  std::mutex mutex_;  // protects all below
  std::condition_variable change_;
  std::list<Work> waiting_;
  Subject current_{};  // of what is being done
  bool is_busy_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace v3d::qpu::jit
