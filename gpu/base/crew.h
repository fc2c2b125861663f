/// The threads of somebody who makes more of them when they are needed and lets them go when they are not.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

namespace v3d {

/// Everything but join() under the owner's mutex.
class Crew {
 public:
  size_t size() const { return threads_.size(); }

  /// Throws as std::thread does, and for lack of memory; then nothing has changed.
  template <typename Body>
  void start(Body&& body) {
    threads_.emplace_back(std::forward<Body>(body));
  }

  /// The calling thread is one of them, and from now on does nothing but unlock the mutex and return.
  void leave() {
    for (std::thread& thread : gone_) thread.join();  // they have unlocked it
    gone_.clear();
    for (auto it = threads_.begin(); it != threads_.end(); ++it) {
      if (it->get_id() != std::this_thread::get_id()) continue;
      gone_.splice(gone_.end(), threads_, it);
      return;
    }
  }

  /// Waits for all; none is started any more. @param mutex  the owner's, not held
  void join(std::mutex& mutex) {
    while (true) {
      std::list<std::thread> one;
      {
        const std::lock_guard lock(mutex);
        std::list<std::thread>& from = gone_.empty() ? threads_ : gone_;
        if (from.empty()) return;
        one.splice(one.end(), from, from.begin());
      }
      one.front().join();
    }
  }

 private:
  std::list<std::thread> threads_;
  std::list<std::thread> gone_;  // have ended, or are about to
};

/// Which threads of a crew have nothing to do. Whoever wakes a waiting thread takes any of them, so that each
/// has something to do now and then, however many there are: what counts is how many never did at one time.
/// All under the owner's mutex.
class Idlers {
 public:
  static constexpr std::chrono::seconds kPeriod{2};

  /// @param keep  idle threads that stay
  explicit Idlers(int keep) : keep_(keep) {}

  int count() const { return idle_; }

  /// For a thread that has nothing to do: waits on `wake`, or is to leave the crew (false).
  /// @param lock   of the owner's mutex
  /// @param again  when it looks for work even if nobody wakes it; 0: never
  bool wait(std::unique_lock<std::mutex>& lock, std::condition_variable& wake,
            std::chrono::milliseconds again = {}) {
    if (is_superfluous()) return false;
    if (is_spare() && again == again.zero()) again = kPeriod;
    begin();
    if (again != again.zero())
      wake.wait_for(lock, again);
    else
      wake.wait(lock);
    end();
    return true;
  }

  /// What wait() consists of.
  void begin() { ++idle_; }
  void end() { least_ = std::min(least_, --idle_); }

  /// Before begin(): whether enough others wait. Such a thread waits for a kPeriod only.
  bool is_spare() const { return idle_ >= keep_; }
  /// Before begin(): whether the thread is to leave instead.
  bool is_superfluous(std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now()) {
    if (now - since_ >= kPeriod) {
      superfluous_ = least_ - keep_;
      least_ = idle_;
      since_ = now;
    }
    if (superfluous_ <= 0 || !is_spare()) return false;
    --superfluous_;
    return true;
  }

 private:
  const int keep_;
  int idle_ = 0;
  int least_ = 0;        // since then
  int superfluous_ = 0;  // of the period before
  std::chrono::steady_clock::time_point since_{};
};

}  // namespace v3d
