#include "daemon/pace.h"

#include <algorithm>

namespace v3d::daemon {

int64_t Pace::left(QueuedJob& job, uint64_t predicted_ns, int64_t now_ns) const {
  job.least_ns = static_cast<int64_t>(std::min<uint64_t>(predicted_ns, INT64_MAX / 2));
  return job.least_ns - slices_.ran(job, now_ns);
}

void Pace::begin(QueuedJob& job) {
  queues_.leave_thread(job);
  job.paced = true;
}

QueuedJobPtr Pace::find_due(int64_t now_ns) const {
  for (const JobQueue& queue : queues_.all()) {
    for (const auto& [client, jobs] : queue.entities) {
      const QueuedJobPtr& head = jobs.front();
      if (!head->paced || head->over) continue;
      if (slices_.ran(*head, now_ns) >= head->least_ns || head->cancelled() || head->orphaned()) return head;
    }
  }
  return nullptr;
}

/// @return when to look again
int64_t Pace::let_others(JobQueue& queue, int64_t now_ns, int& needed_threads) {
  const auto is_paced = [&] { return queue.running && queue.running->paced; };
  if (!is_paced()) return kNever;
  if (TimeSlices::elapsed(*queue.running, now_ns) >= slices_.length(queue) &&
      slices_.needs_start(queue, now_ns)) {
    ++needed_threads;  // one takes over; until then this job goes on
    return now_ns + slices_.patience();
  }
  if (!is_paced()) return kNever;
  const QueuedJob& job = *queue.running;
  return job.granted_ns + std::min(slices_.length(queue), job.least_ns - job.ran_ns);
}

Pace::Look Pace::let_others(int64_t now_ns) {
  Look look;
  queues_.for_each_running_queue([&](JobQueue& queue) {
    look.next_ns = std::min(look.next_ns, let_others(queue, now_ns, look.needed_threads));
  });
  return look;
}

}  // namespace v3d::daemon
