#include "daemon/time_slices.h"

#include <algorithm>

namespace v3d::daemon {

/// In a crowd shorter, so that who comes waits no longer for all others than for five: down to a tenth.
int64_t TimeSlices::length(const JobQueue& queue) const {
  return std::max({slice_ns_ / 10, 5 * slice_ns_ / std::max<int64_t>(queue.competitors, 5), int64_t{1}});
}

int64_t TimeSlices::ran(const QueuedJob& job, int64_t now_ns) const {
  const bool runs = queues_.of(job).running.get() == &job;
  return job.ran_ns + (runs ? elapsed(job, now_ns) : 0);
}

void TimeSlices::charge(JobQueue& queue, QueuedJob& job, int64_t now_ns) {
  const int64_t ran = std::max<int64_t>(elapsed(job, now_ns), 0);
  job.ran_ns += ran;
  queue.busy_ns += static_cast<uint64_t>(ran);
  job.job->client->busy_ns[static_cast<size_t>(job.job->queue)] += static_cast<uint64_t>(ran);
  queue.shares.charge(job.competitor(), ran, queue.competitors);
}

/// Of all jobs that could run the one to run now, that which runs among them. Null when there is none.
QueuedJobPtr TimeSlices::next_of(JobQueue& queue, int64_t now_ns) {
  // Less than half a slice is no difference: then the kernel's order holds.
  struct Rank {
    int64_t process_halves, file_halves;
    uint64_t seqno;
    auto operator<=>(const Rank&) const = default;
  };
  const int64_t half = std::max<int64_t>(length(queue) / 2, 1);
  const QueuedJobPtr* best = nullptr;
  Rank best_rank{};
  int64_t files = 0, living = 0, least = 0;
  for (const auto& [client, jobs] : queue.entities) {
    const QueuedJobPtr& head = jobs.front();
    if (!head->ready || head->killed || head->over || head->cancelled()) continue;
    if (!head->in_flight && (queues_.is_blocked(*head) || !queues_.has_thread_for(*head))) continue;
    ++files;
    const uint64_t key = head->competitor();
    if (key != QueuedJob::kTheDead) ++living;
    const bool is_served = queue.running && key == queue.running->competitor();
    const int64_t now_served = is_served ? elapsed(*queue.running, now_ns) : 0;
    const int64_t running = head == queue.running ? now_served : 0;
    const int64_t clock = queue.shares.clock(key) + now_served;
    least = best ? std::min(least, clock) : clock;
    const Rank rank{(queue.shares.excess(key) + now_served) / half, (head->ran_ns + running) / half,
                    head->seqno};
    if (!best || rank < best_rank) {
      best = &head;
      best_rank = rank;
    }
  }
  queue.contested = files > 1;
  queue.competitors = std::max<int64_t>(living + (files > living), 1);
  if (!best) return nullptr;
  queue.shares.advance_to(least);
  return *best;
}

/// Whether the slice of the job that runs is over, or another process is so far behind that it does not wait
/// for it.
bool TimeSlices::may_replace(const JobQueue& queue, const QueuedJob& job, int64_t now_ns) const {
  const QueuedJob& running = *queue.running;
  const int64_t ran = elapsed(running, now_ns);
  if (ran >= length(queue) || running.cancelled()) return true;
  return job.competitor() != running.competitor() &&
         queue.shares.clock(job.competitor()) + length(queue) / 2 <=
             queue.shares.clock(running.competitor()) + ran;
}

void TimeSlices::hold(JobQueue& queue, int64_t now_ns) {
  QueuedJob& job = *queue.running;
  charge(queue, job, now_ns);
  if (!job.cancelled()) job.set_held(true);  // else it is about to end
  queue.running = nullptr;
}

void TimeSlices::grant(JobQueue& queue, const QueuedJobPtr& job, int64_t now_ns) {
  queue.running = job;
  job->granted_ns = now_ns;
  job->slice_end_ns = now_ns + length(queue);
  job->set_held(false);
  job->set_attention(queue.contested);
}

/// Lets the right job of a queue run. @return  one that needs a thread, or null. It counts as in flight with
/// may_start, for the caller to run; else it is left to another thread
QueuedJobPtr TimeSlices::arrange(JobQueue& queue, int64_t now_ns, bool may_start) {
  if (queue.entities.empty()) return nullptr;
  QueuedJobPtr next = next_of(queue, now_ns);
  if (!next) return nullptr;
  if (queue.running) {
    const bool stays = next == queue.running;
    if (stays && elapsed(*next, now_ns) >= length(queue)) {  // another slice for it
      charge(queue, *next, now_ns);
      grant(queue, next, now_ns);
    }
    if (stays || !may_replace(queue, *next, now_ns)) {
      queue.running->set_attention(queue.contested);
      return nullptr;
    }
    if (!next->in_flight && !may_start) return next;
    hold(queue, now_ns);
  }
  const bool starts = !next->in_flight;
  if (starts && !may_start) return next;
  grant(queue, next, now_ns);
  if (!starts) return nullptr;
  queues_.begin(next);
  return next;
}

TimeSlices::Choice TimeSlices::choose(int64_t now_ns) {
  Choice choice;
  if (queues_.killed() > 0 && (choice.start = queues_.find_killed())) return choice;
  queues_.for_each_running_queue([&](JobQueue& queue) {
    QueuedJobPtr job = arrange(queue, now_ns, !choice.start);
    if (!job) return;
    if (!choice.start)
      choice.start = std::move(job);
    else if (!choice.start->job->small || job->job->client != choice.start->job->client)
      choice.more = true;
  });
  return choice;
}

int TimeSlices::count_to_start(int64_t now_ns) {
  int count = 0;
  queues_.for_each_running_queue([&](JobQueue& queue) { count += needs_start(queue, now_ns); });
  return count;
}

QueuedJobPtr TimeSlices::start_alone(const ioctl::JobPtr& job, int64_t now_ns) {
  JobQueue& queue = queues_.of(job->queue);
  const auto entity = queue.entities.find(job->client->id);
  if (entity == queue.entities.end()) return nullptr;
  QueuedJobPtr head = entity->second.front();
  if (head->job != job || !head->ready || head->killed || head->in_flight || queue.running) return nullptr;
  if (next_of(queue, now_ns) != head) return nullptr;
  grant(queue, head, now_ns);
  queues_.begin(head);
  return head;
}

bool TimeSlices::reconsider(QueuedJob& job, int64_t now_ns) {
  JobQueue& queue = queues_.of(job);
  if (queue.running.get() != &job) return false;
  const QueuedJobPtr next = next_of(queue, now_ns);
  if (next && !next->in_flight) {
    job.slice_end_ns = now_ns + patience();
    return true;
  }
  arrange(queue, now_ns, false);
  return false;
}

void TimeSlices::end(QueuedJob& job, int64_t now_ns) {
  JobQueue& queue = queues_.of(job);
  if (queue.running.get() == &job) {
    charge(queue, job, now_ns);
    queue.running = nullptr;
  }
  job.over = true;
}

}  // namespace v3d::daemon
