#include "daemon/job_queues.h"

#include <algorithm>

namespace v3d::daemon {

using ioctl::Job;
using ioctl::Queue;

namespace {

bool is_cl(Queue queue) { return queue == Queue::kBin || queue == Queue::kRender; }

}  // namespace

JobQueues::JobQueues(int64_t slice_ns, int max_threads)
    : queues_(ioctl::kNumQueues, JobQueue(slice_ns)), max_threads_(max_threads), thread_limit_(max_threads) {
  for (JobQueue& queue : queues_) {
    queue.shares.make_place(QueuedJob::kTheDead);
    queue.shares.enter(QueuedJob::kTheDead);
  }
}

void JobQueues::make_places(const QueuedJob& job) {
  JobQueue& queue = of(job);
  queue.entities.try_emplace(job.job->client->id);
  queue.shares.make_place(static_cast<uint64_t>(job.process));
  processes_.try_emplace(job.process);
  if (job.job->space) spaces_.try_emplace(job.job->space.get());
}

void JobQueues::drop_empty_places(const QueuedJob& job) {
  auto& entities = of(job).entities;
  if (const auto it = entities.find(job.job->client->id); it != entities.end() && it->second.empty())
    entities.erase(it);
  if (const auto it = processes_.find(job.process); it != processes_.end() && it->second.jobs == 0)
    processes_.erase(it);
  if (const auto it = spaces_.find(job.job->space.get()); it != spaces_.end() && it->second.jobs == 0)
    spaces_.erase(it);
}

void JobQueues::enqueue(std::list<QueuedJobPtr>& entry, bool killed) {
  QueuedJob& job = *entry.front();
  JobQueue& queue = of(job);
  job.seqno = next_seqno_++;
  job.killed = killed;
  killed_ += killed;
  queue.shares.enter(static_cast<uint64_t>(job.process));
  ++processes_.find(job.process)->second.jobs;
  if (job.job->space) ++spaces_.find(job.job->space.get())->second.jobs;
  std::list<QueuedJobPtr>& entity = queue.entities.find(job.job->client->id)->second;
  entity.splice(entity.end(), entry);
}

/// @param job  the first of its file
void JobQueues::dequeue(const QueuedJob& job) {
  JobQueue& queue = of(job);
  queue.shares.leave(static_cast<uint64_t>(job.process));
  --processes_.find(job.process)->second.jobs;
  if (job.job->space) --spaces_.find(job.job->space.get())->second.jobs;
  std::list<QueuedJobPtr>& jobs = queue.entities.find(job.job->client->id)->second;
  jobs.pop_front();
  if (!jobs.empty() && jobs.front()->seqno < jobs.front()->job->client->dropped_below) drop(*jobs.front());
  drop_empty_places(job);
}

void JobQueues::drop(QueuedJob& job) {
  if (job.in_flight) {
    job.cancel();
    job.set_held(false);
  } else if (!job.killed) {
    job.killed = true;
    ++killed_;
  }
}

void JobQueues::drop_all() {
  for (JobQueue& queue : queues_)
    for (auto& [client, jobs] : queue.entities)
      for (const QueuedJobPtr& job : jobs) drop(*job);
}

void JobQueues::drop_all_of(uint64_t client) {
  for (JobQueue& queue : queues_) {
    const auto entity = queue.entities.find(client);
    if (entity == queue.entities.end()) continue;
    QueuedJob& first = *entity->second.front();
    drop(first);
    first.job->client->dropped_below = next_seqno_;
  }
}

void JobQueues::begin(const QueuedJobPtr& job) {
  job->in_flight = true;
  ++of(*job).in_flight;
  ++in_flight_;
  ++processes_.find(job->process)->second.in_flight;
  enter_space(*job->job);
}

void JobQueues::leave_thread(const QueuedJob& job) {
  --in_flight_;
  --processes_.find(job.process)->second.in_flight;
  leave_space(*job.job);
  thread_limit_ = max_threads_;  // the host may have threads again
}

void JobQueues::count(const QueuedJob& job) {
  ++of(job).jobs_done;
  ++job.job->client->jobs_done[static_cast<size_t>(job.job->queue)];
}

void JobQueues::finish(const QueuedJobPtr& job) {
  JobQueue& queue = of(*job);
  if (job->in_flight) --queue.in_flight;
  if (job->in_flight && !job->paced) leave_thread(*job);
  if (queue.running == job) queue.running = nullptr;
  killed_ -= job->killed;
  dequeue(*job);
}

bool JobQueues::is_empty() const {
  return std::all_of(queues_.begin(), queues_.end(), [](const JobQueue& q) { return q.entities.empty(); });
}

QueuedJobPtr JobQueues::find_killed() const {
  for (const JobQueue& queue : queues_) {
    if (&queue == &of(Queue::kCacheClean)) continue;
    for (const auto& [client, jobs] : queue.entities)
      if (jobs.front()->ready && jobs.front()->killed) return jobs.front();
  }
  return nullptr;
}

QueuedJobPtr JobQueues::first_clean() const {
  const JobQueue& queue = of(Queue::kCacheClean);
  if (queue.running) return nullptr;
  const QueuedJobPtr* best = nullptr;
  for (const auto& [client, jobs] : queue.entities) {
    const QueuedJobPtr& head = jobs.front();
    if (head->ready && (!best || head->seqno < (*best)->seqno)) best = &head;
  }
  return best ? *best : nullptr;
}

bool JobQueues::earlier_ready(Queue queue, const QueuedJob& than) const {
  const auto& entities = of(queue).entities;
  const auto it = entities.find(than.job->client->id);
  if (it == entities.end()) return false;
  const QueuedJob& head = *it->second.front();
  return head.ready && !head.killed && !head.paced && head.seqno < than.seqno &&
         head.job->space == than.job->space;
}

bool JobQueues::is_blocked(const QueuedJob& job) const {
  if (!job.job->space) return false;
  const SpaceUse& use = spaces_.find(job.job->space.get())->second;
  if (job.job->queue == Queue::kCsd)
    return use.cl > 0 || earlier_ready(Queue::kBin, job) || earlier_ready(Queue::kRender, job);
  if (is_cl(job.job->queue)) return use.csd || earlier_ready(Queue::kCsd, job);
  return false;
}

bool JobQueues::has_thread_for(const QueuedJob& job) const {
  const bool is_first = !job.orphaned() && processes_.find(job.process)->second.in_flight == 0;
  return in_flight_ < thread_limit_ &&
         (in_flight_ < thread_limit_ - kFirstJobThreads || in_flight_ < ioctl::kNumQueues - 1 || is_first);
}

void JobQueues::enter_space(const Job& job) {
  if (!job.space) return;
  SpaceUse& use = spaces_.find(job.space.get())->second;
  if (job.queue == Queue::kCsd) use.csd = true;
  if (is_cl(job.queue)) ++use.cl;
}

void JobQueues::leave_space(const Job& job) {
  if (!job.space) return;
  SpaceUse& use = spaces_.find(job.space.get())->second;
  if (job.queue == Queue::kCsd) use.csd = false;
  if (is_cl(job.queue)) --use.cl;
}

}  // namespace v3d::daemon
