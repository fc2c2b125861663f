#include "daemon/scheduler.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <ctime>
#include <exception>
#include <list>
#include <new>
#include <optional>
#include <stdexcept>

#include "daemon/job_report.h"
#include "daemon/reply_first.h"
#include "gpu/base/host_time.h"
#include "gpu/base/log.h"
#include "gpu/base/pause.h"
#include "gpu/base/thread_pool.h"
#include "gpu/perf/timing/prediction.h"
#include "ioctl/sync/deferred_wakes.h"

namespace v3d::daemon {

using ioctl::Job;
using ioctl::JobPtr;
using ioctl::Queue;

/// Watches the fences that a job depends on, and holds the job when it is the turn of others.
class Scheduler::Node : public ioctl::Watcher, public QueuedJob {
 public:
  Node(Scheduler& s, JobPtr j) : QueuedJob(std::move(j)), scheduler(s) {}

  void notify() override {
    if (pending.fetch_sub(1, std::memory_order_acq_rel) == 1) scheduler.on_ready(*this);
  }

  Scheduler& scheduler;
  std::atomic<int> pending{1};  // unsignalled dependencies, and the push itself
  std::condition_variable resumed;

 private:
  void resume() override {
    resumed.notify_all();
    if (paced) scheduler.alarm_->ring();
  }
  void consider() override {
    if (cancelled_ || held_ || ioctl::monotonic_ns() < slice_end_ns.load(std::memory_order_relaxed)) return;
    scheduler.reconsider(*this);
  }
  bool attend() override {
    if (cancelled_) return false;
    consider();
    const host_time::Scope waiting(host_time::Block::kWaiting);
    return held() && scheduler.wait(*this);
  }
};

namespace {

/// This thread is a worker that signals the end of a job: it will look for the next one itself. A render job
/// thus follows its bin job without waking anybody.
thread_local bool t_finishing = false;
/// This thread pushes a small job, and will look itself whether it can run it.
thread_local bool t_runs_small = false;

/// A job that takes its thread longer is not small, whatever it looks like, and so many next ones of its file
/// are not believed.
constexpr int64_t kSmallNs = 200'000;
constexpr uint32_t kNotBelieved = 64;

/// Of the calling thread: what others take of its processor meanwhile does not count.
int64_t processor_ns() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

/// To wake a thread that ends a job takes longer than that.
constexpr int64_t kShortNs = 50'000;

void pass_time(int64_t until_ns, const JobControl& control) {
  while (ioctl::monotonic_ns() < until_ns && !control.cancelled()) {
    pause();
  }
}

/// How a job ended that threw. The messages need no memory.
device::JobResult failure(const Job& job, const std::exception& error) {
  device::JobResult result;
  result.end = device::JobResult::End::kError;
  const bool no_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                         dynamic_cast<const std::length_error*>(&error) != nullptr;
  result.message = no_memory ? "out of memory" : "internal error";
  if (!no_memory) log_error("%s job threw: %s", ioctl::queue_name(job.queue), error.what());
  return result;
}

device::JobResult run_to_end(const Job& job, JobControl& control) {
  try {
    return job.run(control);
  } catch (const std::exception& error) {
    return failure(job, error);
  }
}

}  // namespace

Scheduler::Scheduler(const Options& options)
    : options_(options),
      queues_(options.slice_ns, options.max_threads),
      slices_(queues_, options.slice_ns),
      pace_(queues_, slices_),
      threads_(kIdleWorkers, [this] { work(); }) {
  // Cache cleans have nothing to do and end where their dependencies do; all other queues may run at once.
  try {
    if (options.pace)
      alarm_ = std::make_unique<Alarm>(
          mutex_, [this](std::unique_lock<std::mutex>& lock) { return look_at_paced(lock); });
    threads_.start(kIdleWorkers);
  } catch (...) {
    stop();
    throw;
  }
}

Scheduler::~Scheduler() { stop(); }

void Scheduler::stop() {
  {
    const auto lock = lock_soon(mutex_);
    stop_ = true;
    queues_.drop_all();
    threads_.wake_all();
    if (alarm_) alarm_->ring();
  }
  threads_.join(mutex_);
  alarm_.reset();  // after the workers, who wait for what it ends
}

void Scheduler::push(const std::vector<JobPtr>& jobs) {
  std::vector<std::list<QueuedJobPtr>> entries(jobs.size());
  std::vector<Node*> nodes;
  nodes.reserve(jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i) {
    auto node = std::make_shared<Node>(*this, jobs[i]);
    nodes.push_back(node.get());
    entries[i].push_back(std::move(node));
  }
  const auto forget = [&] {
    for (Node* node : nodes)
      for (const ioctl::FencePtr& fence : node->job->dependencies) fence->unwatch(node);
  };
  try {
    for (size_t i = 0; i < jobs.size(); ++i) {
      const std::shared_ptr<Node> node(entries[i].front(), nodes[i]);
      node->pending += static_cast<int>(node->job->dependencies.size());
      for (const ioctl::FencePtr& fence : node->job->dependencies)
        if (!fence->watch(node)) node->notify();
    }
    const auto lock = lock_soon(mutex_);
    try {
      for (const Node* node : nodes) queues_.make_places(*node);
    } catch (const std::bad_alloc&) {
      for (const Node* node : nodes) queues_.drop_empty_places(*node);
      throw;
    }
    for (std::list<QueuedJobPtr>& entry : entries) queues_.enqueue(entry, stop_);
  } catch (const std::bad_alloc&) {
    forget();
    throw;
  }
  // The last one first: who ends what it depends on then finds that this was all it waited for, and goes on
  // with it, whatever becomes of this thread meanwhile.
  for (size_t n = nodes.size(); n-- > 0;) {
    t_runs_small = is_small(*nodes[n]->job);
    nodes[n]->notify();
  }
  t_runs_small = false;
}

bool Scheduler::is_small(const Job& job) {
  return job.small && job.client->not_small.load(std::memory_order_relaxed) == 0;
}

void Scheduler::run_small(const std::vector<JobPtr>& jobs) {
  if (std::none_of(jobs.begin(), jobs.end(), [](const JobPtr& job) { return job->small; })) return;
  ioctl::ClientInfo& client = *jobs.front()->client;
  const int64_t processor_before_ns = processor_ns();
  auto lock = lock_soon(mutex_);
  for (const JobPtr& job : jobs) {
    QueuedJobPtr started = is_small(*job) ? slices_.start_alone(job, ioctl::monotonic_ns()) : nullptr;
    if (!started) continue;
    const int64_t start_ns = started->granted_ns;
    ++small_in_flight_;
    {
      const ReplyFirst::Pause pause;
      run(lock, std::move(started));
    }
    --small_in_flight_;
    if (ioctl::monotonic_ns() - start_ns > kSmallNs && processor_ns() - processor_before_ns > kSmallNs)
      client.not_small = kNotBelieved;
  }
  if (const uint32_t left = client.not_small) client.not_small = left - 1;
  // Those that this thread left alone, and others that came meanwhile.
  if (lacks_threads()) summon();
  lock.unlock();
  threads_.wake_summoned(mutex_);
}

void Scheduler::on_ready(QueuedJob& job) {
  auto lock = lock_soon(mutex_);
  job.ready = true;
  if (job.job->queue == Queue::kCacheClean) {
    run_empty_jobs(lock);
    return;
  }
  if (QueuedJob* running = queues_.of(job).running.get()) running->set_attention(true);  // it has a rival
  if (!t_finishing && !t_runs_small && lacks_threads()) summon();
  lock.unlock();
  threads_.wake_summoned(mutex_);
}

void Scheduler::run_empty_jobs(std::unique_lock<std::mutex>& lock) {
  // Whoever is at it already sees the new one: ending one job may make the next ready, without recursion.
  if (running_empty_jobs_) return;
  running_empty_jobs_ = true;
  while (QueuedJobPtr job = queues_.first_clean()) {
    queues_.of(Queue::kCacheClean).running = job;
    const int error = job->killed ? ESRCH : 0;
    queues_.count(*job);
    lock.unlock();
    job->job->done->signal(error);
    lock_soon(lock);
    queues_.finish(job);
    lock.unlock();
    job.reset();
    lock_soon(lock);
  }
  running_empty_jobs_ = false;
}

/// A thread of a job asks whether the job may go on.
void Scheduler::reconsider(Node& node) {
  auto lock = lock_soon(mutex_);
  if (!slices_.reconsider(node, ioctl::monotonic_ns())) return;
  summon();
  lock.unlock();
  threads_.wake_summoned(mutex_);
}

/// @return whether the job was held
bool Scheduler::wait(Node& node) {
  const ThreadPool::Away away;
  auto lock = lock_soon(mutex_);
  if (!node.held()) return false;
  node.resumed.wait(lock, [&] { return !node.held(); });
  return true;
}

/// Whether more threads would find something to do than have been summoned.
bool Scheduler::lacks_threads() {
  if (queues_.killed() > 0 || stop_) return true;
  return slices_.count_to_start(ioctl::monotonic_ns()) > threads_.summoned();
}

void Scheduler::summon() {
  const int limit = stop_ ? 0 : queues_.thread_limit();
  if (!threads_.summon(queues_.in_flight() - small_in_flight_, limit))
    queues_.limit_threads(threads_.count());
}

void Scheduler::make_way() { threads_.make_way(mutex_); }

void Scheduler::work() {
  auto lock = lock_soon(mutex_);
  while (true) {
    TimeSlices::Choice choice = slices_.choose(ioctl::monotonic_ns());
    if (choice.more) summon();
    if (choice.start) {
      if (choice.start->killed)
        bury(lock, choice.start);
      else
        run(lock, std::move(choice.start));
      continue;
    }
    if (stop_ && queues_.is_empty()) {
      threads_.wake_all();  // the others may go too
      return;
    }
    if (!threads_.rest(lock)) return;
  }
}

/// The job is over, perhaps while it was to be held; what comes until its thread looks for the next is not
/// its time. Its fence says so after that: who waits for it finds the job counted.
/// @return  how long it ran
int64_t Scheduler::stop_clock(QueuedJob& job) {
  const auto lock = lock_soon(mutex_);
  slices_.end(job, ioctl::monotonic_ns());
  queues_.count(job);
  return job.ran_ns;
}

/// Ends a job that was dropped before it started.
void Scheduler::bury(std::unique_lock<std::mutex>& lock, const QueuedJobPtr& job) {
  job->ready = false;  // nobody else does
  queues_.count(*job);
  lock.unlock();
  threads_.wake_summoned(mutex_);
  t_finishing = true;
  job->job->done->signal(ESRCH);
  t_finishing = false;
  lock_soon(lock);
  queues_.finish(job);
}

void Scheduler::run(std::unique_lock<std::mutex>& lock, QueuedJobPtr queued) {
  lock.unlock();
  threads_.wake_summoned(mutex_);
  const Job& job = *queued->job;
  const ioctl::User& user = *queued->user;
  bool paced;
  // A client that wakes up may take this processor: others would wait for what is left to do here.
  std::optional<ioctl::DeferredWakes> wakes;
  {
    const LogScope scope(&user.log);
    log_debug(Debug::kSched, "%s job %d of %s (pid %d) starts", ioctl::queue_name(job.queue),
              job.done->seqno(), user.program, user.pid);
    device::JobResult result = run_to_end(job, *queued);
    queued->error = settle(job, user, result, options_.errors);
    paced = alarm_ && keep_pace(*queued, result);
    if (!alarm_) predictor_.take(std::move(result));
    if (!paced) {
      const int64_t ran_ns = stop_clock(*queued);
      if (!ioctl::DeferredWakes::current()) wakes.emplace(job.done->shown_in());
      t_finishing = true;
      tell_end(*queued, ran_ns);
      t_finishing = false;
    }
  }

  if (!paced) {
    lock_soon(lock);
    queues_.finish(queued);
    lock.unlock();
  }
  wakes.reset();
  queued.reset();  // what only the job held is freed without the lock
  lock_soon(lock);
}

/// The job is over: its fence says so.
void Scheduler::tell_end(const QueuedJob& queued, int64_t ran_ns) {
  const Job& job = *queued.job;
  const ioctl::User& user = *queued.user;
  log_debug(Debug::kSched, "%s job %d of %s (pid %d) ends after %d us%s", ioctl::queue_name(job.queue),
            job.done->seqno(), user.program, user.pid, ran_ns / 1000, queued.error ? " with an error" : "");
  job.done->signal(queued.error);
}

/// @param job  executed by this thread. @return  whether it still has its queue, without a thread: it may be
/// over by the time that this returns
bool Scheduler::keep_pace(QueuedJob& job, device::JobResult& result) {
  result.predict();
  if (!result.prediction) return false;
  auto lock = lock_soon(mutex_);
  const int64_t now_ns = ioctl::monotonic_ns();
  const int64_t left_ns = pace_.left(job, result.prediction->ns(), now_ns);
  if (left_ns <= 0 || stop_ || job.cancelled() || job.orphaned()) return false;
  if (left_ns <= kShortNs) {
    lock.unlock();
    pass_time(now_ns + left_ns, job);
    return false;
  }
  pace_.begin(job);
  alarm_->ring();
  return true;
}

void Scheduler::end_paced(std::unique_lock<std::mutex>& lock, QueuedJobPtr job) {
  slices_.end(*job, ioctl::monotonic_ns());
  queues_.count(*job);
  lock.unlock();
  {
    const LogScope scope(&job->user->log);
    tell_end(*job, job->ran_ns);
  }
  lock_soon(lock);
  queues_.finish(job);
  if (!queues_.is_empty()) summon();
  if (stop_) threads_.wake_all();  // they wait for the last one
  lock.unlock();
  threads_.wake_summoned(mutex_);
  job.reset();
  lock_soon(lock);
}

int64_t Scheduler::look_at_paced(std::unique_lock<std::mutex>& lock) {
  while (QueuedJobPtr job = pace_.find_due(ioctl::monotonic_ns())) end_paced(lock, std::move(job));
  const Pace::Look look = pace_.let_others(ioctl::monotonic_ns());
  if (look.needed_threads == 0) return look.next_ns;
  for (int n = 0; n < look.needed_threads; ++n) summon();
  lock.unlock();
  threads_.wake_summoned(mutex_);
  lock_soon(lock);
  return look.next_ns;
}

void Scheduler::kill(uint64_t client) {
  const auto lock = lock_soon(mutex_);
  queues_.drop_all_of(client);
  threads_.wake_all();
  if (alarm_) alarm_->ring();
}

Scheduler::Activity Scheduler::activity(const ioctl::ClientInfo& client) const {
  Activity activity;
  const auto lock = lock_soon(mutex_);
  for (size_t q = 0; q < queues_.all().size(); ++q) {
    const JobQueue& queue = queues_.all()[q];
    activity.ran_ns += static_cast<int64_t>(client.busy_ns[q].load());
    const auto entity = queue.entities.find(client.id);
    if (entity == queue.entities.end()) continue;
    activity.idle = false;
    if (!entity->second.front()->in_flight) continue;
    ++activity.in_flight;
    if (queue.running == entity->second.front())
      activity.ran_ns += TimeSlices::elapsed(*queue.running, ioctl::monotonic_ns());
  }
  return activity;
}

std::array<Scheduler::QueueStatus, ioctl::kNumQueues> Scheduler::status() const {
  std::array<QueueStatus, ioctl::kNumQueues> status = {};
  const auto lock = lock_soon(mutex_);
  for (size_t q = 0; q < queues_.all().size(); ++q) {
    const JobQueue& queue = queues_.all()[q];
    for (const auto& [client, jobs] : queue.entities) status[q].queued += jobs.size();
    status[q].in_flight = queue.in_flight;
    status[q].jobs_done = queue.jobs_done;
    status[q].busy_ns = queue.busy_ns;
  }
  return status;
}

}  // namespace v3d::daemon
