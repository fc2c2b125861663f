/// A thread of its own does what may take long and nobody waits for.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

namespace v3d::daemon {

class Chores {
 public:
  /// Throws std::system_error when the host has no thread.
  Chores() : thread_([this] { work(); }) {}
  /// When all are done.
  ~Chores();
  Chores(const Chores&) = delete;
  Chores& operator=(const Chores&) = delete;

  /// In the order of the calls. Where memory is short, the caller does it at once.
  void add(std::function<void()> chore);

 private:
  void work();

  std::mutex mutex_;  // protects all below
  std::list<std::function<void()>> waiting_;
  bool ends_ = false;
  std::condition_variable some_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace v3d::daemon
