#include "gpu/base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "gpu/base/host_time.h"
#include "gpu/base/log.h"
#include "gpu/base/pause.h"

namespace v3d {

struct ThreadPool::Task {
  const std::function<void(int, int)>* fn;
  int count;
  const JobControl* control;
  Next next_call;
  const LogClient* client;      // of the caller: what workers say is on its behalf
  std::vector<int> free_slots;  // under the pool's mutex
  std::atomic<int> next{0};
  std::atomic<int> pending;
  std::atomic<bool> passed_over{false};  // by workers, while its job was held
  std::atomic<bool> joined{false};       // by a worker
  std::atomic<bool> failed{false};       // pieces that have not begun are left out
  std::mutex mutex;
  std::condition_variable done;
  std::exception_ptr failure;  // the first, under mutex

  bool has_pieces() const { return next.load(std::memory_order_relaxed) < count; }
  bool is_held() const { return control && control->held(); }
  void run(int i, int slot) {
    if (failed.load(std::memory_order_relaxed)) return;
    try {
      (*fn)(i, slot);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      failed = true;
    }
  }
};

namespace {

thread_local ThreadPool* t_pool = nullptr;  // of which this thread is a worker

/// So long a thread looks for what it waits for before it sleeps: calls follow each other, and pieces end, in
/// less than it takes to wake somebody.
constexpr std::chrono::microseconds kLinger{50};

template <typename Condition>
void linger(const Condition& is_over) {
  const auto end = std::chrono::steady_clock::now() + kLinger;
  do {
    for (int i = 0; i < 16; ++i) {
      if (is_over()) return;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
}

/// So long few workers look for the next job's call while such calls come in less: a program that waits for
/// each job makes the next one in that time, and to wake a worker on another processor takes the caller
/// longer than a frame of it can spare. They yield to whoever wants their processor.
constexpr std::chrono::microseconds kLingerForJob{300};
/// After so many times in vain one of 2^kMostVain looks is tried.
constexpr uint32_t kMostVain = 6;

/// A yield that takes longer has let somebody run who is busy for long, and not a client for a call or two.
constexpr std::chrono::microseconds kYielded{500};

/// @return  false when others want the processor: who sleeps and is woken up has one sooner than who yields
template <typename Condition>
bool linger_and_yield(const Condition& is_over) {
  auto now = std::chrono::steady_clock::now();
  const auto end = now + kLingerForJob;
  while (now < end) {
    const auto before = now;
    sched_yield();
    now = std::chrono::steady_clock::now();
    if (now - before >= kYielded) return false;
    for (int i = 0; i < 16; ++i) {
      if (is_over()) return true;
      pause();
    }
  }
  return true;
}

/// A caller that has been alone for longer looks why: to wake a worker takes less, mostly.
constexpr std::chrono::microseconds kAlone{50};

/// So few workers are sent away from the caller's processor before they are woken up: where there are few
/// processors, another one is seldom idle at that moment.
constexpr int kFew = 3;

}  // namespace

ThreadPool::ThreadPool(int workers) : workers_(std::max(workers, 0)), idlers_(workers_) {
  try {
    for (int i = 0; i < workers_; ++i) threads_.start([this] { worker(); });
  } catch (...) {
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  {
    const auto lock = lock_soon(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  threads_.join(mutex_);
}

/// Pieces until none is left; a worker leaves earlier when the job is held or others want it.
void ThreadPool::help(Task& task, int slot, bool is_worker) {
  const LogScope scope(task.client);
  std::chrono::steady_clock::time_point crowded_since{};
  const auto begun = std::chrono::steady_clock::now();
  bool called = false;
  int finished = 0;
  for (int i; (i = task.next.fetch_add(1)) < task.count;) {
    if (task.passed_over.load(std::memory_order_relaxed)) invite_again(task);
    task.run(i, slot);
    ++finished;
    if (!is_worker) {
      if (!called && !task.joined.load(std::memory_order_relaxed) &&
          std::chrono::steady_clock::now() - begun >= kAlone) {
        called = true;
        call_for_help(task);
      }
      continue;
    }
    if (task.is_held()) break;
    if (!is_crowded()) continue;
    const auto now = std::chrono::steady_clock::now();
    if (crowded_since == std::chrono::steady_clock::time_point{})
      crowded_since = now;
    else if (now - crowded_since >= kShare)
      break;
  }
  if (finished && task.pending.fetch_sub(finished) == finished) {
    { const std::lock_guard lock(task.mutex); }  // whoever saw pieces pending waits by now
    task.done.notify_all();
  }
}

/// Workers that found the job held sleep: it goes on. Those of its threads that begin no piece do not say so,
/// hence worker() looks again by itself.
void ThreadPool::invite_again(Task& task) {
  if (task.is_held() || !task.passed_over.exchange(false)) return;
  const auto lock = lock_soon(mutex_);
  if (idlers_.count() > 0) wake_.notify_all();
}

/// By the caller of the task, which is alone although all were woken up.
void ThreadPool::call_for_help(const Task& task) {
  const auto lock = lock_soon(mutex_);
  if (!task.joined) idlers_.send_away(Idlers::Whom::kLookingToo);
}

/// The next task that this thread can help, moved to the end of the row. Null when there is none.
std::shared_ptr<ThreadPool::Task> ThreadPool::find_task(bool* passed_over) {
  for (auto it = tasks_.begin(); it != tasks_.end(); ++it) {
    Task& task = **it;
    if (!task.has_pieces() || task.free_slots.empty()) continue;
    if (task.is_held()) {
      task.passed_over = true;
      if (task.is_held()) {  // else it went on just now, and nobody would tell
        *passed_over = true;
        continue;
      }
    }
    tasks_.splice(tasks_.end(), tasks_, it);
    return tasks_.back();
  }
  return nullptr;
}

/// Until there is one, or it is not worth looking any more.
/// @param next  of the call that the worker has helped with
void ThreadPool::look_for_call(std::unique_lock<std::mutex>& lock, Next next) {
  const bool looks_long =
      workers_ <= kFew && (vain_ == 0 || ++skipped_ % (1u << std::min(vain_, kMostVain)) == 0);
  if (!looks_long && next != Next::kSoon) return;
  const uint32_t known = num_calls_.load(std::memory_order_relaxed);
  const auto is_called = [&] { return num_calls_.load(std::memory_order_relaxed) != known; };
  bool alone = true;
  idlers_.look(lock, [&] {
    if (next == Next::kSoon) linger(is_called);
    if (looks_long && !is_called()) alone = linger_and_yield(is_called);
  });
  if (!alone)
    vain_ = kMostVain;
  else if (is_called())
    vain_ = 0;
  else if (looks_long)
    ++vain_;
}

void ThreadPool::worker() {
  t_pool = this;
  bool has_helped = false;  // with a call, and has not looked for the next since
  Next next = Next::kLater;
  auto lock = lock_soon(mutex_);
  while (!stop_) {
    bool passed_over = false;
    const std::shared_ptr<Task> task = working_ < workers_ ? find_task(&passed_over) : nullptr;
    if (!task && std::exchange(has_helped, false)) {
      look_for_call(lock, next);
      continue;
    }
    if (!task) {
      if (idlers_.wait(lock, wake_, passed_over ? kShare : std::chrono::milliseconds())) continue;
      threads_.leave();
      return;
    }
    task->joined = true;
    const int slot = task->free_slots.back();
    task->free_slots.pop_back();
    ++working_;
    lock.unlock();
    help(*task, slot, true);
    has_helped = true;
    next = task->next_call;
    lock_soon(lock);
    --working_;
    task->free_slots.push_back(slot);
  }
}

void ThreadPool::add_thread() {
  if (threads_.size() >= static_cast<size_t>(workers_) + kMaxSpare) return;
  try {
    threads_.start([this] { worker(); });
  } catch (const std::exception&) {  // no thread or no memory for one: jobs run on fewer
  }
}

void ThreadPool::parallel_for(int count, const std::function<void(int, int)>& fn, const JobControl* control,
                              Next next) {
  if (count <= 0) return;
  if (workers_ == 0 || count == 1) {
    for (int i = 0; i < count; ++i) fn(i, 0);
    return;
  }
  const auto task = std::make_shared<Task>();
  task->fn = &fn;
  task->count = count;
  task->control = control;
  task->next_call = next;
  task->client = log_client();
  task->pending = count;
  for (int slot = workers_; slot > 0; --slot) task->free_slots.push_back(slot);
  std::list<std::shared_ptr<Task>> entry{task};
  const auto place = entry.begin();
  int wanted = std::min(workers_, count - 1);
  bool more_sleep;
  {
    const auto lock = lock_soon(mutex_);
    tasks_.splice(tasks_.end(), entry);
    ++num_calls_;
    ++crowd_;
    if (workers_ <= kFew) idlers_.send_away();
    wanted -= std::min(wanted, idlers_.looking());
    more_sleep = idlers_.count() > wanted;
  }
  // Spare threads, too: each that wakes up in vain takes as long to wake as one that has something to do.
  if (more_sleep)
    for (int i = 0; i < wanted; ++i) wake_.notify_one();
  else
    wake_.notify_all();
  help(*task, 0, false);
  {
    const auto lock = lock_soon(mutex_);
    tasks_.erase(place);
    --crowd_;
  }
  const host_time::Scope waiting(host_time::Block::kWaiting);
  const auto is_done = [&] { return task->pending.load() == 0; };
  linger(is_done);
  std::unique_lock lock(task->mutex);
  task->done.wait(lock, is_done);
  if (task->failure) std::rethrow_exception(task->failure);
}

ThreadPool::Away::Away() : pool_(t_pool) {
  if (!pool_) return;
  const auto lock = lock_soon(pool_->mutex_);
  --pool_->working_;
  if (pool_->idlers_.looking() > 0)
    ++pool_->num_calls_;  // who looks for the next one finds this place, too
  else if (pool_->idlers_.count() > 0)
    pool_->wake_.notify_one();
  else
    pool_->add_thread();
}

ThreadPool::Away::~Away() {
  if (!pool_) return;
  const auto lock = lock_soon(pool_->mutex_);
  ++pool_->working_;
}

}  // namespace v3d
