#include "daemon/chores.h"

#include <new>
#include <utility>

namespace v3d::daemon {

Chores::~Chores() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  some_.notify_one();
  thread_.join();
}

void Chores::add(std::function<void()> chore) {
  std::list<std::function<void()>> one;
  try {
    one.emplace_back();
  } catch (const std::bad_alloc&) {
    return chore();
  }
  one.front() = std::move(chore);
  {
    const std::lock_guard lock(mutex_);
    waiting_.splice(waiting_.end(), one);
  }
  some_.notify_one();
}

void Chores::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    some_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    std::list<std::function<void()>> one;
    one.splice(one.end(), waiting_, waiting_.begin());
    lock.unlock();
    one.front()();
    one.clear();  // with what it holds
    lock.lock();
  }
}

}  // namespace v3d::daemon
