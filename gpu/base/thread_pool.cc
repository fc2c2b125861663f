#include "gpu/base/thread_pool.h"

#include <algorithm>

#include "gpu/base/log.h"

namespace v3d {

struct ThreadPool::Task {
  const std::function<void(int, int)>* fn;
  int count;
  const LogClient* client;  // of the caller: what workers say is on its behalf
  std::atomic<int> next{0};
  std::atomic<int> slots{0};
  std::atomic<int> pending;
  std::mutex mutex;
  std::condition_variable done;
};

ThreadPool::ThreadPool(int workers) {
  threads_.reserve(static_cast<size_t>(std::max(workers, 0)));
  for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { worker(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& t : threads_) t.join();
}

void ThreadPool::help(Task& task) {
  const LogScope scope(task.client);
  const int slot = task.slots.fetch_add(1);
  int finished = 0;
  for (int i; (i = task.next.fetch_add(1)) < task.count; ++finished) (*task.fn)(i, slot);
  if (finished && task.pending.fetch_sub(finished) == finished) {
    const std::lock_guard lock(task.mutex);
    task.done.notify_all();
  }
}

void ThreadPool::worker() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
    if (stop_) return;
    std::shared_ptr<Task> task = tasks_.front();
    if (task->next.load() >= task->count) {
      tasks_.pop_front();
      continue;
    }
    lock.unlock();
    help(*task);
    lock.lock();
  }
}

void ThreadPool::parallel_for(int count, const std::function<void(int, int)>& fn) {
  if (count <= 0) return;
  if (threads_.empty() || count == 1) {
    for (int i = 0; i < count; ++i) fn(i, 0);
    return;
  }
  auto task = std::make_shared<Task>();
  task->fn = &fn;
  task->count = count;
  task->client = log_client();
  task->pending = count;
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(task);
  }
  wake_.notify_all();
  help(*task);
  std::unique_lock lock(task->mutex);
  task->done.wait(lock, [&] { return task->pending.load() == 0; });
}

}  // namespace v3d
