#include "daemon/scheduler.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <exception>
#include <new>
#include <optional>
#include <stdexcept>

#include "daemon/job_report.h"
#include "gpu/base/log.h"
#include "gpu/base/pause.h"
#include "gpu/base/thread_pool.h"
#include "gpu/perf/timing/prediction.h"
#include "ioctl/wakes.h"

namespace v3d::daemon {

using ioctl::Job;
using ioctl::JobPtr;
using ioctl::Queue;

/// A job on its way through a queue; watches the fences it depends on, and holds the job when it is the turn
/// of others.
class Scheduler::Node : public ioctl::Watcher, public Turn {
 public:
  Node(Scheduler& s, JobPtr j)
      : scheduler(s),
        job(std::move(j)),
        user(job->user ? job->user : job->client->user()),
        process(user->pid) {}

  void notify() override {
    if (pending.fetch_sub(1, std::memory_order_acq_rel) == 1) scheduler.on_ready(*this);
  }

  bool orphaned() const { return job->charge.orphaned(); }
  /// With whose clock of FairShares it competes.
  uint64_t competitor() const { return orphaned() ? kTheDead : static_cast<uint64_t>(process); }
  static constexpr uint64_t kTheDead = ~uint64_t{0};

  Scheduler& scheduler;
  const JobPtr job;
  const std::shared_ptr<const ioctl::User> user;
  const int32_t process;
  std::atomic<int> pending{1};           // unsignalled dependencies, and the push itself
  std::atomic<int64_t> slice_end_ns{0};  // of the job that runs: when it looks whether others want to
  // Under the scheduler's mutex:
  uint64_t seqno = 0;
  bool ready = false;
  bool killed = false;  // before it started
  bool in_flight = false;
  bool over = false;       // in flight no more than until its fence is signalled
  bool paced = false;      // in flight without a thread: it has been executed
  int64_t least_ns = 0;    // of a paced one: how long it has its queue
  int error = 0;           // of one that has been executed
  int64_t granted_ns = 0;  // when its slice began
  int64_t ran_ns = 0;      // in earlier slices
  std::condition_variable resumed;

  void set_held(bool held) {
    held_ = held;
    attention_ = held;
    if (!held) resumed.notify_all();
  }
  void set_attention(bool on) { attention_ = on; }

 private:
  void consider() override {
    if (cancelled_ || held_ || ioctl::monotonic_ns() < slice_end_ns.load(std::memory_order_relaxed)) return;
    scheduler.consider(*this);
  }
  bool attend() override {
    if (cancelled_) return false;
    consider();
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

void pass_time(int64_t until_ns, const Turn& turn) {
  while (ioctl::monotonic_ns() < until_ns && !turn.cancelled()) {
    pause();
  }
}

bool is_cl(Queue queue) { return queue == Queue::kBin || queue == Queue::kRender; }

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

device::JobResult run_to_end(const Job& job, Turn& turn) {
  try {
    return job.run(turn);
  } catch (const std::exception& error) {
    return failure(job, error);
  }
}

}  // namespace

Scheduler::Scheduler(const Options& options)
    : options_(options),
      queues_(ioctl::kNumQueues, QueueState(options.slice_ns)),
      thread_limit_(options.max_threads) {
  for (QueueState& queue : queues_) {
    queue.shares.make_place(Node::kTheDead);
    queue.shares.enter(Node::kTheDead);
  }
  // Cache cleans have nothing to do and end where their dependencies do; all other queues may run at once.
  try {
    if (options.pace)
      alarm_ = std::make_unique<Alarm>(
          mutex_, [this](std::unique_lock<std::mutex>& lock) { return look_at_paced(lock); });
    for (int i = 0; i < kIdleWorkers; ++i) workers_.start([this] { work(); });
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
    for (QueueState& queue : queues_)
      for (auto& [client, jobs] : queue.entities)
        for (const NodePtr& node : jobs) drop(*node);
    wake_.notify_all();
    if (alarm_) alarm_->ring();
  }
  workers_.join(mutex_);
  alarm_.reset();  // behind the workers, who wait for what it ends
}

/// Ends a job, or sees to it that it does not start.
void Scheduler::drop(Node& node) {
  if (node.in_flight) {
    node.cancel();
    node.set_held(false);
  } else if (!node.killed) {
    node.killed = true;
    ++killed_;
  }
}

void Scheduler::push(const std::vector<JobPtr>& jobs) {
  std::vector<std::list<NodePtr>> entries(jobs.size());
  std::vector<Node*> nodes;
  nodes.reserve(jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i) {
    entries[i].push_back(std::make_shared<Node>(*this, jobs[i]));
    nodes.push_back(entries[i].front().get());
  }
  const auto forget = [&] {
    for (Node* node : nodes)
      for (const ioctl::FencePtr& fence : node->job->dependencies) fence->unwatch(node);
  };
  try {
    for (const std::list<NodePtr>& entry : entries) {
      const NodePtr& node = entry.front();
      node->pending += static_cast<int>(node->job->dependencies.size());
      for (const ioctl::FencePtr& fence : node->job->dependencies)
        if (!fence->watch(node)) node->notify();
    }
    const auto lock = lock_soon(mutex_);
    try {
      for (const Node* node : nodes) make_places(*node);
    } catch (const std::bad_alloc&) {
      for (const Node* node : nodes) drop_empty_places(*node);
      throw;
    }
    for (std::list<NodePtr>& entry : entries) enqueue(entry);
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

/// The job as one that is in flight, if it is the next of its queue and nothing runs there. Else it is left
/// to the workers.
Scheduler::NodePtr Scheduler::start_small(const JobPtr& job) {
  QueueState& queue = state(job->queue);
  const auto entity = queue.entities.find(job->client->id);
  if (entity == queue.entities.end()) return nullptr;
  NodePtr head = entity->second.front();
  if (head->job != job || !head->ready || head->killed || head->in_flight || queue.running) return nullptr;
  const int64_t now_ns = ioctl::monotonic_ns();
  if (next_of(queue, now_ns) != head) return nullptr;
  grant(queue, head, now_ns);
  begin(head);
  return head;
}

void Scheduler::run_small(const std::vector<JobPtr>& jobs) {
  if (std::none_of(jobs.begin(), jobs.end(), [](const JobPtr& job) { return job->small; })) return;
  ioctl::ClientInfo& client = *jobs.front()->client;
  const int64_t processor_before_ns = processor_ns();
  auto lock = lock_soon(mutex_);
  for (const JobPtr& job : jobs) {
    NodePtr node = is_small(*job) ? start_small(job) : nullptr;
    if (!node) continue;
    const int64_t start_ns = node->granted_ns;
    ++small_in_flight_;
    run(lock, std::move(node));
    --small_in_flight_;
    if (ioctl::monotonic_ns() - start_ns > kSmallNs && processor_ns() - processor_before_ns > kSmallNs)
      client.not_small = kNotBelieved;
  }
  if (const uint32_t left = client.not_small) client.not_small = left - 1;
  // Those that this thread left alone, and others that came meanwhile.
  if (lacks_threads()) summon();
  lock.unlock();
  wake_summoned();
}

/// Empty ones where there is none yet.
void Scheduler::make_places(const Node& node) {
  QueueState& queue = state(node.job->queue);
  queue.entities.try_emplace(node.job->client->id);
  queue.shares.make_place(static_cast<uint64_t>(node.process));
  processes_.try_emplace(node.process);
  if (node.job->space) spaces_.try_emplace(node.job->space.get());
}

void Scheduler::drop_empty_places(const Node& node) {
  auto& entities = state(node.job->queue).entities;
  if (const auto it = entities.find(node.job->client->id); it != entities.end() && it->second.empty())
    entities.erase(it);
  if (const auto it = processes_.find(node.process); it != processes_.end() && it->second.jobs == 0)
    processes_.erase(it);
  if (const auto it = spaces_.find(node.job->space.get()); it != spaces_.end() && it->second.jobs == 0)
    spaces_.erase(it);
}

/// @param entry  one node, which has its places
void Scheduler::enqueue(std::list<NodePtr>& entry) {
  Node& node = *entry.front();
  QueueState& queue = state(node.job->queue);
  node.seqno = next_seqno_++;
  node.killed = stop_;
  killed_ += stop_;
  queue.shares.enter(static_cast<uint64_t>(node.process));
  ++processes_.find(node.process)->second.jobs;
  if (node.job->space) ++spaces_.find(node.job->space.get())->second.jobs;
  std::list<NodePtr>& entity = queue.entities.find(node.job->client->id)->second;
  entity.splice(entity.end(), entry);
}

/// @param node  the first of its file
void Scheduler::dequeue(const NodePtr& node) {
  QueueState& queue = state(node->job->queue);
  queue.shares.leave(static_cast<uint64_t>(node->process));
  --processes_.find(node->process)->second.jobs;
  if (node->job->space) --spaces_.find(node->job->space.get())->second.jobs;
  queue.entities.find(node->job->client->id)->second.pop_front();
  drop_empty_places(*node);
}

void Scheduler::on_ready(Node& node) {
  auto lock = lock_soon(mutex_);
  node.ready = true;
  QueueState& queue = state(node.job->queue);
  if (node.job->queue == Queue::kCacheClean) {
    run_empty_jobs(lock);
    return;
  }
  if (queue.running) queue.running->set_attention(true);  // it has a rival
  if (!t_finishing && !t_runs_small && lacks_threads()) summon();
  lock.unlock();
  wake_summoned();
}

/// The first job of all whose dependencies are signalled.
Scheduler::NodePtr Scheduler::first_clean() const {
  const QueueState& queue = state(Queue::kCacheClean);
  if (queue.running) return nullptr;
  const NodePtr* best = nullptr;
  for (const auto& [client, jobs] : queue.entities) {
    const NodePtr& head = jobs.front();
    if (head->ready && (!best || head->seqno < (*best)->seqno)) best = &head;
  }
  return best ? *best : nullptr;
}

void Scheduler::run_empty_jobs(std::unique_lock<std::mutex>& lock) {
  // Whoever is at it already sees the new one: ending one job may make the next ready, without recursion.
  if (running_empty_jobs_) return;
  running_empty_jobs_ = true;
  while (NodePtr node = first_clean()) {
    state(Queue::kCacheClean).running = node;
    const int error = node->killed ? ESRCH : 0;
    lock.unlock();
    ++node->job->client->jobs_done[static_cast<size_t>(Queue::kCacheClean)];
    node->job->done->signal(error);
    lock_soon(lock);
    finish(node);
    lock.unlock();
    node.reset();
    lock_soon(lock);
  }
  running_empty_jobs_ = false;
}

bool Scheduler::earlier_ready(Queue queue, const Node& than) const {
  const auto& entities = state(queue).entities;
  const auto it = entities.find(than.job->client->id);
  if (it == entities.end()) return false;
  const Node& head = *it->second.front();
  return head.ready && !head.killed && !head.paced && head.seqno < than.seqno &&
         head.job->space == than.job->space;
}

/// Compute excludes bin and render in one address space. The one that was pushed first goes first, so that
/// neither starves.
bool Scheduler::is_blocked(const Node& node) const {
  if (!node.job->space) return false;
  const SpaceUse& use = spaces_.find(node.job->space.get())->second;
  if (node.job->queue == Queue::kCsd)
    return use.cl > 0 || earlier_ready(Queue::kBin, node) || earlier_ready(Queue::kRender, node);
  if (is_cl(node.job->queue)) return use.csd || earlier_ready(Queue::kCsd, node);
  return false;
}

void Scheduler::enter_space(const Job& job) {
  if (!job.space) return;
  SpaceUse& use = spaces_.find(job.space.get())->second;
  if (job.queue == Queue::kCsd) use.csd = true;
  if (is_cl(job.queue)) ++use.cl;
}

void Scheduler::leave_space(const Job& job) {
  if (!job.space) return;
  SpaceUse& use = spaces_.find(job.space.get())->second;
  if (job.queue == Queue::kCsd) use.csd = false;
  if (is_cl(job.queue)) --use.cl;
}

/// Whether a job may have a thread for itself. The jobs in flight of processes that have one already do not
/// take what others need for their first, nor do those of the dead.
bool Scheduler::has_thread_for(const Node& node) const {
  const int limit = thread_limit_;
  const bool is_first = !node.orphaned() && processes_.find(node.process)->second.in_flight == 0;
  return in_flight_ < limit &&
         (in_flight_ < limit - kFirstJobThreads || in_flight_ < ioctl::kNumQueues - 1 || is_first);
}

int64_t Scheduler::elapsed(const Node& node, int64_t now_ns) { return now_ns - node.granted_ns; }

void Scheduler::charge(QueueState& queue, Node& node, int64_t now_ns) {
  const int64_t ran = std::max<int64_t>(elapsed(node, now_ns), 0);
  node.ran_ns += ran;
  queue.busy_ns += static_cast<uint64_t>(ran);
  node.job->client->busy_ns[static_cast<size_t>(node.job->queue)] += static_cast<uint64_t>(ran);
  queue.shares.charge(node.competitor(), ran, queue.competitors);
}

/// In a crowd shorter, so that who comes waits no longer for all others than for five: down to a tenth.
int64_t Scheduler::slice(const QueueState& queue) const {
  return std::max(
      {options_.slice_ns / 10, 5 * options_.slice_ns / std::max<int64_t>(queue.competitors, 5), int64_t{1}});
}

/// Of all jobs that could run the one to run now, that which runs among them. Null when there is none.
Scheduler::NodePtr Scheduler::next_of(QueueState& queue, int64_t now_ns) {
  // Less than half a slice is no difference: then the kernel's order holds.
  struct Rank {
    int64_t process_halves, file_halves;
    uint64_t seqno;
    auto operator<=>(const Rank&) const = default;
  };
  const int64_t half = std::max<int64_t>(slice(queue) / 2, 1);
  const NodePtr* best = nullptr;
  Rank best_rank{};
  int64_t files = 0, living = 0, least = 0;
  for (const auto& [client, jobs] : queue.entities) {
    const NodePtr& head = jobs.front();
    if (!head->ready || head->killed || head->over || head->cancelled()) continue;
    if (!head->in_flight && (is_blocked(*head) || !has_thread_for(*head))) continue;
    ++files;
    const uint64_t key = head->competitor();
    if (key != Node::kTheDead) ++living;
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
bool Scheduler::may_replace(const QueueState& queue, const Node& node, int64_t now_ns) const {
  const Node& running = *queue.running;
  const int64_t ran = elapsed(running, now_ns);
  if (ran >= slice(queue) || running.cancelled()) return true;
  return node.competitor() != running.competitor() &&
         queue.shares.clock(node.competitor()) + slice(queue) / 2 <=
             queue.shares.clock(running.competitor()) + ran;
}

void Scheduler::hold(QueueState& queue, int64_t now_ns) {
  Node& node = *queue.running;
  charge(queue, node, now_ns);
  if (!node.cancelled()) node.set_held(true);  // else it is about to end
  queue.running = nullptr;
}

void Scheduler::grant(QueueState& queue, const NodePtr& node, int64_t now_ns) {
  queue.running = node;
  node->granted_ns = now_ns;
  node->slice_end_ns = now_ns + slice(queue);
  node->set_held(false);
  node->set_attention(queue.contested);
  if (node->paced) alarm_->ring();
}

/// Lets the right job of a queue run. @return  one that needs a thread, or null. It counts as in flight with
/// may_start, for the caller to run; else it is left to another thread
Scheduler::NodePtr Scheduler::arrange(QueueState& queue, int64_t now_ns, bool may_start) {
  if (queue.entities.empty()) return nullptr;
  NodePtr next = next_of(queue, now_ns);
  if (!next) return nullptr;
  if (queue.running) {
    const bool stays = next == queue.running;
    if (stays && elapsed(*next, now_ns) >= slice(queue)) {  // another slice for it
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
  begin(next);
  return next;
}

Scheduler::NodePtr Scheduler::find_killed() const {
  for (const QueueState& queue : queues_) {
    if (&queue == &state(Queue::kCacheClean)) continue;
    for (const auto& [client, jobs] : queue.entities)
      if (jobs.front()->ready && jobs.front()->killed) return jobs.front();
  }
  return nullptr;
}

/// Lets the right jobs of all queues run. @return  one that the calling thread is to start, or null
Scheduler::NodePtr Scheduler::arrange() {
  if (killed_ > 0)
    if (NodePtr node = find_killed()) return node;
  const int64_t now_ns = ioctl::monotonic_ns();
  NodePtr start;
  bool more = false;
  for (QueueState& queue : queues_) {
    if (&queue == &state(Queue::kCacheClean)) continue;
    NodePtr node = arrange(queue, now_ns, !start);
    if (!node) continue;
    if (start)
      more = true;
    else
      start = std::move(node);
  }
  if (more) summon();
  return start;
}

/// A thread of a job asks whether the job may go on.
void Scheduler::consider(Node& node) {
  auto lock = lock_soon(mutex_);
  QueueState& queue = state(node.job->queue);
  if (queue.running.get() != &node) return;
  const int64_t now_ns = ioctl::monotonic_ns();
  const NodePtr next = next_of(queue, now_ns);
  if (next && !next->in_flight) {
    // The thread that is to start it does the rest; until then this job goes on.
    node.slice_end_ns = now_ns + options_.slice_ns / 20;
    summon();
    lock.unlock();
    wake_summoned();
  } else {
    arrange(queue, now_ns, false);
  }
}

/// @return whether the job was held
bool Scheduler::wait(Node& node) {
  const ThreadPool::Away away;
  auto lock = lock_soon(mutex_);
  if (!node.held()) return false;
  node.resumed.wait(lock, [&] { return !node.held(); });
  return true;
}

bool Scheduler::is_empty() const {
  return std::all_of(queues_.begin(), queues_.end(), [](const QueueState& q) { return q.entities.empty(); });
}

/// Whether more threads would find something to do than have been summoned.
bool Scheduler::lacks_threads() {
  if (killed_ > 0 || stop_) return true;
  const int64_t now_ns = ioctl::monotonic_ns();
  return std::count_if(queues_.begin(), queues_.end(), [&](QueueState& queue) {
           return &queue != &state(Queue::kCacheClean) && arrange(queue, now_ns, false);
         }) > summoned_;
}

/// Has a thread look for something to do, if need be a new one: behind wake_summoned().
void Scheduler::summon() {
  const int threads = static_cast<int>(workers_.size());
  if (idlers_.count() > summoned_) {
    ++summoned_;
    summons_ = true;
    ++to_wake_;
    return;
  }
  if (in_flight_ - small_in_flight_ < threads || stop_) return;  // one is about to look
  if (threads >= thread_limit_) return;
  try {
    workers_.start([this] { work(); });
  } catch (const std::exception&) {  // no thread, or no memory for one
    thread_limit_ = threads;
  }
}

/// Without the mutex, for which who wakes up would have to wait first.
void Scheduler::wake_summoned() {
  if (to_wake_.load(std::memory_order_relaxed) == 0) return;
  for (int n = to_wake_.exchange(0); n > 0; --n) wake_.notify_one();
}

void Scheduler::make_way() {
  if (!summons_.load(std::memory_order_relaxed)) return;
  const auto lock = lock_soon(mutex_);
  if (summons_.exchange(false)) idlers_.send_away();
}

void Scheduler::work() {
  auto lock = lock_soon(mutex_);
  while (true) {
    if (NodePtr node = arrange()) {
      if (node->killed)
        bury(lock, node);
      else
        run(lock, std::move(node));
      continue;
    }
    if (stop_ && is_empty()) {
      wake_.notify_all();  // the others may go too
      return;
    }
    const bool stays = idlers_.wait(lock, wake_);
    if (summoned_ > 0) --summoned_;
    summons_ = false;
    if (stays) continue;
    workers_.leave();
    return;
  }
}

/// The job is over, perhaps while it was to be held; what comes until its thread looks for the next is not
/// its time. @return  how long it ran
int64_t Scheduler::stop_clock(Node& node) {
  const auto lock = lock_soon(mutex_);
  QueueState& queue = state(node.job->queue);
  if (queue.running.get() == &node) {
    charge(queue, node, ioctl::monotonic_ns());
    queue.running = nullptr;
  }
  node.over = true;
  return node.ran_ns;
}

void Scheduler::begin(const NodePtr& node) {
  node->in_flight = true;
  ++state(node->job->queue).in_flight;
  ++in_flight_;
  ++processes_.find(node->process)->second.in_flight;
  enter_space(*node->job);
}

/// The job of a thread has been executed.
void Scheduler::leave_thread(const Node& node) {
  --in_flight_;
  --processes_.find(node.process)->second.in_flight;
  leave_space(*node.job);
  thread_limit_ = options_.max_threads;  // the host may have threads again
}

void Scheduler::finish(const NodePtr& node) {
  QueueState& queue = state(node->job->queue);
  if (node->in_flight) --queue.in_flight;
  if (node->in_flight && !node->paced) leave_thread(*node);
  if (queue.running == node) queue.running = nullptr;
  killed_ -= node->killed;
  ++queue.jobs_done;
  dequeue(node);
}

/// Ends a job that was dropped before it started.
void Scheduler::bury(std::unique_lock<std::mutex>& lock, const NodePtr& node) {
  node->ready = false;  // nobody else does
  lock.unlock();
  wake_summoned();
  ++node->job->client->jobs_done[static_cast<size_t>(node->job->queue)];
  t_finishing = true;
  node->job->done->signal(ESRCH);
  t_finishing = false;
  lock_soon(lock);
  finish(node);
}

void Scheduler::run(std::unique_lock<std::mutex>& lock, NodePtr node) {
  lock.unlock();
  wake_summoned();
  const Job& job = *node->job;
  const ioctl::User& user = *node->user;
  bool paced;
  // A client that wakes up may take this processor: others would wait for what is left to do here.
  std::optional<ioctl::Wakes> wakes;
  {
    const LogScope scope(&user.log);
    log_debug(Debug::kSched, "%s job %d of %s (pid %d) starts", ioctl::queue_name(job.queue),
              job.done->seqno(), user.program, user.pid);
    device::JobResult result = run_to_end(job, *node);
    node->error = settle(job, user, result, options_.errors);
    paced = alarm_ && keep_pace(*node, result);
    if (!alarm_) predictor_.take(std::move(result));
    if (!paced) {
      const int64_t ran_ns = stop_clock(*node);
      if (!ioctl::Wakes::current()) wakes.emplace(job.done->shown_in());
      t_finishing = true;
      tell_end(*node, ran_ns);
      t_finishing = false;
    }
  }

  if (!paced) {
    lock_soon(lock);
    finish(node);
    lock.unlock();
  }
  wakes.reset();
  node.reset();  // what only the job held is freed without the lock
  lock_soon(lock);
}

/// The job is over: its fence says so.
void Scheduler::tell_end(const Node& node, int64_t ran_ns) {
  const Job& job = *node.job;
  const ioctl::User& user = *node.user;
  ++job.client->jobs_done[static_cast<size_t>(job.queue)];
  log_debug(Debug::kSched, "%s job %d of %s (pid %d) ends after %d us%s", ioctl::queue_name(job.queue),
            job.done->seqno(), user.program, user.pid, ran_ns / 1000, node.error ? " with an error" : "");
  job.done->signal(node.error);
}

/// @param node  executed by this thread. @return  whether it still has its queue, without a thread: it may be
/// over by the time that this returns
bool Scheduler::keep_pace(Node& node, device::JobResult& result) {
  result.predict();
  if (!result.prediction) return false;
  auto lock = lock_soon(mutex_);
  node.least_ns = static_cast<int64_t>(std::min<uint64_t>(result.prediction->ns(), INT64_MAX / 2));
  const bool runs = state(node.job->queue).running.get() == &node;
  const int64_t now_ns = ioctl::monotonic_ns();
  const int64_t left_ns = node.least_ns - node.ran_ns - (runs ? elapsed(node, now_ns) : 0);
  if (left_ns <= 0 || stop_ || node.cancelled() || node.orphaned()) return false;
  if (left_ns <= kShortNs) {
    lock.unlock();
    pass_time(now_ns + left_ns, node);
    return false;
  }
  leave_thread(node);
  node.paced = true;
  alarm_->ring();
  return true;
}

/// One whose time is over, or nobody waits for.
Scheduler::NodePtr Scheduler::find_due(int64_t now_ns) const {
  for (const QueueState& queue : queues_) {
    for (const auto& [client, jobs] : queue.entities) {
      const NodePtr& head = jobs.front();
      if (!head->paced || head->over) continue;
      const int64_t ran_ns = head->ran_ns + (queue.running == head ? elapsed(*head, now_ns) : 0);
      if (ran_ns >= head->least_ns || head->cancelled() || head->orphaned()) return head;
    }
  }
  return nullptr;
}

void Scheduler::end_paced(std::unique_lock<std::mutex>& lock, NodePtr node) {
  QueueState& queue = state(node->job->queue);
  if (queue.running == node) charge(queue, *node, ioctl::monotonic_ns());
  if (queue.running == node) queue.running = nullptr;
  node->over = true;
  lock.unlock();
  {
    const LogScope scope(&node->user->log);
    tell_end(*node, node->ran_ns);
  }
  lock_soon(lock);
  finish(node);
  if (!is_empty()) summon();
  if (stop_) wake_.notify_all();  // workers wait for the last one
  lock.unlock();
  wake_summoned();
  node.reset();
  lock_soon(lock);
}

/// Whoever wants a queue whose time is a paced job's gets it behind the slice of that, for the job itself
/// never comes to a checkpoint. @return  when to look again
int64_t Scheduler::let_others(QueueState& queue, int64_t now_ns) {
  if (!queue.running || !queue.running->paced) return Alarm::kNever;
  if (elapsed(*queue.running, now_ns) >= slice(queue) && arrange(queue, now_ns, false)) {
    summon();  // a thread that takes over; until then this job goes on
    return now_ns + options_.slice_ns / 20;
  }
  if (!queue.running || !queue.running->paced) return Alarm::kNever;
  const Node& node = *queue.running;
  return node.granted_ns + std::min(slice(queue), node.least_ns - node.ran_ns);
}

int64_t Scheduler::look_at_paced(std::unique_lock<std::mutex>& lock) {
  while (NodePtr node = find_due(ioctl::monotonic_ns())) end_paced(lock, std::move(node));
  int64_t next_ns = Alarm::kNever;
  const int64_t now_ns = ioctl::monotonic_ns();
  for (QueueState& queue : queues_) next_ns = std::min(next_ns, let_others(queue, now_ns));
  wake_summoned();
  return next_ns;
}

void Scheduler::kill(uint64_t client) {
  const auto lock = lock_soon(mutex_);
  for (QueueState& queue : queues_) {
    const auto entity = queue.entities.find(client);
    if (entity == queue.entities.end()) continue;
    for (const NodePtr& node : entity->second) drop(*node);
  }
  wake_.notify_all();
  if (alarm_) alarm_->ring();
}

Scheduler::Activity Scheduler::activity(const ioctl::ClientInfo& client) const {
  Activity activity;
  const auto lock = lock_soon(mutex_);
  for (size_t q = 0; q < queues_.size(); ++q) {
    const QueueState& queue = queues_[q];
    activity.ran_ns += static_cast<int64_t>(client.busy_ns[q].load());
    const auto entity = queue.entities.find(client.id);
    if (entity == queue.entities.end()) continue;
    activity.idle = false;
    if (!entity->second.front()->in_flight) continue;
    ++activity.in_flight;
    if (queue.running == entity->second.front())
      activity.ran_ns += elapsed(*queue.running, ioctl::monotonic_ns());
  }
  return activity;
}

std::array<Scheduler::QueueStatus, ioctl::kNumQueues> Scheduler::status() const {
  std::array<QueueStatus, ioctl::kNumQueues> status = {};
  const auto lock = lock_soon(mutex_);
  for (size_t q = 0; q < queues_.size(); ++q) {
    for (const auto& [client, jobs] : queues_[q].entities) status[q].queued += jobs.size();
    status[q].in_flight = queues_[q].in_flight;
    status[q].jobs_done = queues_[q].jobs_done;
    status[q].busy_ns = queues_[q].busy_ns;
  }
  return status;
}

}  // namespace v3d::daemon
