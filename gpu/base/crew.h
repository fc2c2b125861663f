/// A crew has the threads of somebody who makes more of them when they are needed and lets them go when they
/// are not.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "gpu/base/short_mutex.h"

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
///
/// Linux may put a thread that is woken up behind the one that does so, on the same processor, and leave it
/// there for milliseconds although another one has become idle: send_away() is for who sees that nobody
/// comes.
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
    Sleeper self(sleepers_);
    if (again != again.zero())
      wake.wait_for(lock, again);
    else
      wake.wait(lock);
    end();
    return true;
  }

  /// For a thread that looks for work for a while before it waits: `look` runs without the lock.
  template <typename Look>
  void look(std::unique_lock<std::mutex>& lock, const Look& look) {
    ++looking_;
    {
      Sleeper self(sleepers_, /*looks=*/true);
      lock.unlock();
      look();
      lock_soon(lock);
    }
    --looking_;
  }
  /// Threads that do.
  int looking() const { return looking_; }

  /// Which threads are meant.
  enum class Whom : uint8_t { kSleeping, kLookingToo };
  /// By a thread that goes on running: those that sleep, or were woken up and have not begun to run, do it on
  /// another processor, if there is one.
  void send_away(Whom whom = Whom::kSleeping) {
    if (sleepers_ == nullptr) return;
    cpu_set_t allowed;
    const int cpu = sched_getcpu();
    if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
    cpu_set_t others = allowed;
    CPU_CLR(cpu, &others);
    if (CPU_COUNT(&others) == 0) return;
    for (Sleeper* sleeper = sleepers_; sleeper; sleeper = sleeper->next)
      if (!sleeper->looking || whom == Whom::kLookingToo) sleeper->send_to(others, allowed);
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
  /// A thread in wait() or look().
  struct Sleeper {
    explicit Sleeper(Sleeper*& first, bool looks = false) : looking(looks), next(first), link(&first) {
      if (next) next->link = &next;
      first = this;
    }
    ~Sleeper() {
      *link = next;
      if (next) next->link = link;
      if (is_away) sched_setaffinity(0, sizeof(back), &back);
    }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

    /// Also when it was sent elsewhere before: the processor there may have got something else to do.
    /// @param whole  where it may run again when it has begun to
    void send_to(const cpu_set_t& others, const cpu_set_t& whole) {
      if (is_away && CPU_EQUAL(&others, &away)) return;
      if (pthread_setaffinity_np(thread, sizeof(others), &others) != 0) return;
      away = others;
      if (!std::exchange(is_away, true)) back = whole;
    }

    const bool looking;
    Sleeper* next;
    Sleeper** link;  ///< to this
    const pthread_t thread = pthread_self();
    bool is_away = false;
    cpu_set_t away, back;
  };

  const int keep_;
  Sleeper* sleepers_ = nullptr;  // all of them, linked
  int looking_ = 0;
  int idle_ = 0;
  int least_ = 0;        // since then
  int superfluous_ = 0;  // of the period before
  std::chrono::steady_clock::time_point since_{};
};

}  // namespace v3d
