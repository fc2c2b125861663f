#include "gpu/qpu/jit/beside.h"

#include <sys/resource.h>

#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>

#include "gpu/base/log.h"

namespace v3d::qpu::jit {
namespace {

/// Beside threads that interpret what is not compiled yet it gets about a third of what one of them gets.
constexpr int kNice = 5;

}  // namespace

CompilerThread::~CompilerThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    waiting_.clear();
    change_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void CompilerThread::add(const Subject& subject, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (stop_ || (is_busy_ && current_ == subject) || waiting_.size() >= kMost) return;
  size_t of_owner = 0;
  for (const Work& other : waiting_) {
    if (other.subject == subject) return;
    of_owner += other.subject.owner == subject.owner;
  }
  if (of_owner >= kMostOfOwner) return;
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error&) {  // the host gives no more threads
      return;
    }
  }
  waiting_.push_back({subject, std::move(work)});
  change_.notify_all();
}

void CompilerThread::finish() {
  std::unique_lock lock(mutex_);
  change_.wait(lock, [this] { return waiting_.empty() && !is_busy_; });
}

/// The first of another owner than the last one, if there is any.
std::list<CompilerThread::Work>::iterator CompilerThread::next() {
  const auto other = std::find_if(waiting_.begin(), waiting_.end(),
                                  [this](const Work& w) { return w.subject.owner != current_.owner; });
  return other == waiting_.end() ? waiting_.begin() : other;
}

void CompilerThread::run() {
  setpriority(PRIO_PROCESS, 0, kNice);  // of this thread alone, under Linux
  std::unique_lock lock(mutex_);
  for (;;) {
    change_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
    if (stop_) return;
    std::list<Work> work;
    work.splice(work.begin(), waiting_, next());
    current_ = work.front().subject;
    is_busy_ = true;
    lock.unlock();
    try {
      work.front().run();
    } catch (const std::exception& error) {  // there is no memory: the program is interpreted
      log_debug(Debug::kJit, "jit: %s", error.what());
    }
    work.clear();
    lock.lock();
    is_busy_ = false;
    change_.notify_all();
  }
}

}  // namespace v3d::qpu::jit
