#include "daemon/scheduler.h"

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "gpu/base/log.h"

namespace v3d::daemon {

using ioctl::Job;
using ioctl::JobPtr;
using ioctl::Queue;

/// A job on its way through a queue; watches the fences it depends on.
struct Scheduler::Node : ioctl::Watcher {
  Node(Scheduler& s, JobPtr j) : scheduler(s), job(std::move(j)) {}

  void notify() override {
    if (pending.fetch_sub(1, std::memory_order_acq_rel) == 1) scheduler.on_ready(*this);
  }

  Scheduler& scheduler;
  const JobPtr job;
  std::atomic<int> pending{1};  // unsignalled dependencies, and the push itself
  std::atomic<bool> cancel{false};
  // Under the scheduler's mutex:
  uint64_t seqno = 0;
  bool ready = false;
  bool killed = false;  // before it started
};

namespace {

/// This thread is a worker that signals the end of a job: it will look for the next one itself. A render job
/// thus follows its bin job without waking anybody.
thread_local bool t_finishing = false;

bool is_cl(Queue queue) { return queue == Queue::kBin || queue == Queue::kRender; }

void report_faults(const Job& job, const mmu::Faults& faults) {
  ioctl::ClientInfo& client = *job.client;
  client.mmu_faults += faults.count;
  const uint64_t jobs = ++client.faulty_jobs;
  if (!ioctl::worth_a_line(jobs)) return;
  log_warning(
      "MMU error from client %s of %s (pid %d) at 0x%x, pte invalid (%d accesses in job %d; faulty job %d)",
      ioctl::queue_name(job.queue), client.program, client.pid, faults.first_address, faults.count,
      job.done->seqno(), jobs);
}

void report_failure(const Job& job, const char* what, const std::string& message) {
  ioctl::ClientInfo& client = *job.client;
  const uint64_t failures = ++client.failed_jobs;
  if (!ioctl::worth_a_line(failures)) return;
  log_error("%s job %d of %s (pid %d) %s: %s (failed job %d)", ioctl::queue_name(job.queue),
            job.done->seqno(), client.program, client.pid, what, message, failures);
}

/// Logs how a job ended and says what error its fence carries.
int settle(const Job& job, const device::JobResult& result) {
  using End = device::JobResult::End;
  if (result.faults.count) report_faults(job, result.faults);
  switch (result.end) {
    case End::kDone:
      return 0;
    case End::kError:
      report_failure(job, "failed", result.message);
      return ECANCELED;
    case End::kHang:
      report_failure(job, "hangs, resetting", result.message);
      return ECANCELED;
    case End::kCancelled:
      return ESRCH;
  }
  return ECANCELED;
}

}  // namespace

Scheduler::Scheduler() {
  // Cache cleans have nothing to do and end where their dependencies do; all other queues may run at once.
  for (int i = 0; i < ioctl::kNumQueues - 1; ++i) workers_.emplace_back([this] { work(); });
}

Scheduler::~Scheduler() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    for (QueueState& queue : queues_) {
      for (auto& [client, jobs] : queue.entities)
        for (const NodePtr& node : jobs) node->killed = true;
      if (queue.running) queue.running->cancel = true;
    }
    wake_.notify_all();
  }
  for (std::thread& worker : workers_) worker.join();
}

void Scheduler::push(const std::vector<JobPtr>& jobs) {
  std::vector<NodePtr> nodes;
  nodes.reserve(jobs.size());
  {
    const std::lock_guard lock(mutex_);
    for (const JobPtr& job : jobs) {
      const auto node = std::make_shared<Node>(*this, job);
      node->seqno = next_seqno_++;
      node->killed = stop_;
      state(job->queue).entities[job->client->id].push_back(node);
      nodes.push_back(node);
    }
  }
  for (const NodePtr& node : nodes) {
    node->pending += static_cast<int>(node->job->dependencies.size());
    for (const ioctl::FencePtr& fence : node->job->dependencies)
      if (!fence->watch(node)) node->notify();
    node->notify();
  }
}

void Scheduler::on_ready(Node& node) {
  std::unique_lock lock(mutex_);
  node.ready = true;
  if (node.job->queue == Queue::kCacheClean)
    run_empty_jobs(lock);
  else if (!t_finishing && idle_workers_ > 0)
    wake_.notify_one();
}

void Scheduler::run_empty_jobs(std::unique_lock<std::mutex>& lock) {
  // Whoever is at it already sees the new one: ending one job may make the next ready, without recursion.
  if (running_empty_jobs_) return;
  running_empty_jobs_ = true;
  while (NodePtr node = pick(Queue::kCacheClean)) {
    start(node);
    const int error = node->killed ? ESRCH : 0;
    lock.unlock();
    ++node->job->client->jobs_done[static_cast<size_t>(Queue::kCacheClean)];
    node->job->done->signal(error);
    lock.lock();
    finish(node, 0);
    lock.unlock();
    node.reset();
    lock.lock();
  }
  running_empty_jobs_ = false;
}

bool Scheduler::earlier_ready(Queue queue, const Node& than) const {
  const auto& entities = queues_[static_cast<size_t>(queue)].entities;
  const auto it = entities.find(than.job->client->id);
  if (it == entities.end()) return false;
  const Node& head = *it->second.front();
  return head.ready && !head.killed && head.seqno < than.seqno && head.job->room == than.job->room;
}

/// Compute excludes bin and render in one address space. The one that was pushed first goes first, so that
/// neither starves.
bool Scheduler::is_blocked(const Node& node) const {
  if (!node.job->room || node.killed) return false;
  const auto it = rooms_.find(node.job->room.get());
  const RoomUse use = it == rooms_.end() ? RoomUse() : it->second;
  if (node.job->queue == Queue::kCsd)
    return use.cl > 0 || earlier_ready(Queue::kBin, node) || earlier_ready(Queue::kRender, node);
  if (is_cl(node.job->queue)) return use.csd || earlier_ready(Queue::kCsd, node);
  return false;
}

Scheduler::NodePtr Scheduler::pick(Queue queue) const {
  const QueueState& state = queues_[static_cast<size_t>(queue)];
  if (state.running) return nullptr;
  const NodePtr* best = nullptr;
  for (const auto& [client, jobs] : state.entities) {
    const NodePtr& head = jobs.front();
    if (head->ready && !is_blocked(*head) && (!best || head->seqno < (*best)->seqno)) best = &head;
  }
  return best ? *best : nullptr;
}

Scheduler::NodePtr Scheduler::pick() const {
  NodePtr best;
  for (size_t q = 0; q < queues_.size(); ++q) {
    if (static_cast<Queue>(q) == Queue::kCacheClean) continue;
    NodePtr node = pick(static_cast<Queue>(q));
    if (node && (!best || node->seqno < best->seqno)) best = std::move(node);
  }
  return best;
}

bool Scheduler::is_empty() const {
  return std::all_of(queues_.begin(), queues_.end(), [](const QueueState& q) { return q.entities.empty(); });
}

void Scheduler::start(const NodePtr& node) {
  const Job& job = *node->job;
  state(job.queue).running = node;
  if (!job.room) return;
  RoomUse& use = rooms_[job.room.get()];
  if (job.queue == Queue::kCsd) use.csd = true;
  if (is_cl(job.queue)) ++use.cl;
}

void Scheduler::finish(const NodePtr& node, int64_t busy_ns) {
  const Job& job = *node->job;
  QueueState& queue = state(job.queue);
  queue.running = nullptr;
  ++queue.jobs_done;
  queue.busy_ns += static_cast<uint64_t>(busy_ns);
  const auto entity = queue.entities.find(job.client->id);
  entity->second.pop_front();
  if (entity->second.empty()) queue.entities.erase(entity);
  if (!job.room) return;
  const auto use = rooms_.find(job.room.get());
  if (job.queue == Queue::kCsd) use->second.csd = false;
  if (is_cl(job.queue)) --use->second.cl;
  if (use->second.cl == 0 && !use->second.csd) rooms_.erase(use);
}

void Scheduler::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (NodePtr node = pick()) {
      run(lock, std::move(node));
      continue;
    }
    if (stop_ && is_empty()) {
      wake_.notify_all();  // the others may go too
      return;
    }
    ++idle_workers_;
    wake_.wait(lock);
    --idle_workers_;
  }
}

void Scheduler::run(std::unique_lock<std::mutex>& lock, NodePtr node) {
  start(node);
  if (idle_workers_ > 0 && pick()) wake_.notify_one();  // there is more than this thread can do
  const bool killed = node->killed;
  lock.unlock();

  const Job& job = *node->job;
  ioctl::ClientInfo& client = *job.client;
  const auto queue = static_cast<size_t>(job.queue);
  const int64_t begin = ioctl::monotonic_ns();
  log_debug(Debug::kSched, "%s job %d of %s (pid %d) starts", ioctl::queue_name(job.queue), job.done->seqno(),
            client.program, client.pid);
  const int error = killed ? ESRCH : settle(job, job.run(node->cancel));
  const int64_t busy = ioctl::monotonic_ns() - begin;
  ++client.jobs_done[queue];
  client.busy_ns[queue] += static_cast<uint64_t>(busy);
  log_debug(Debug::kSched, "%s job %d of %s (pid %d) ends after %d us%s", ioctl::queue_name(job.queue),
            job.done->seqno(), client.program, client.pid, busy / 1000, error ? " with an error" : "");
  t_finishing = true;
  job.done->signal(error);
  t_finishing = false;

  lock.lock();
  finish(node, busy);
  lock.unlock();
  node.reset();  // what only the job held is freed without the lock
  lock.lock();
}

void Scheduler::kill(uint64_t client) {
  const std::lock_guard lock(mutex_);
  for (QueueState& queue : queues_) {
    const auto entity = queue.entities.find(client);
    if (entity == queue.entities.end()) continue;
    for (const NodePtr& node : entity->second) {
      if (node == queue.running)
        node->cancel = true;
      else
        node->killed = true;
    }
  }
  wake_.notify_all();  // what exclusion held back may end now
}

bool Scheduler::is_idle(uint64_t client) const {
  const std::lock_guard lock(mutex_);
  for (const QueueState& queue : queues_)
    if (queue.entities.contains(client)) return false;
  return true;
}

std::array<Scheduler::QueueStatus, ioctl::kNumQueues> Scheduler::status() const {
  std::array<QueueStatus, ioctl::kNumQueues> status = {};
  const std::lock_guard lock(mutex_);
  for (size_t q = 0; q < queues_.size(); ++q) {
    for (const auto& [client, jobs] : queues_[q].entities) status[q].queued += jobs.size();
    status[q].running = queues_[q].running != nullptr;
    status[q].jobs_done = queues_[q].jobs_done;
    status[q].busy_ns = queues_[q].busy_ns;
  }
  return status;
}

}  // namespace v3d::daemon
