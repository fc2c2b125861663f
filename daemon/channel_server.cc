#include "daemon/channel_server.h"

#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <optional>

#include "gpu/base/pause.h"
#include "ioctl/sync/fence.h"

namespace v3d::daemon {
namespace {

/// Looks at all channels between two at the socket, which is a system call. (Clients say in their channels
/// when they have sent something there; this is for those that do not, or are no more.)
constexpr uint32_t kLooks = 64;

/// So often it looks at requests between two looks at the time and at everything else.
constexpr int kPauses = 16;

/// So long the thread stays where it is, even on its client's processor,
constexpr int64_t kStay = 300'000;
/// and until it has served so many requests since it was woken up: to move takes longer than a few of them.
constexpr int kMany = 16;

/// So many requests in a row have to be the last of a burst, or the first, until the next are taken for such.
constexpr int kSure = 2;

/// Has the thread go on on another processor, if it may: the client whose request woke it up is on this one.
void leave_cpu(uint32_t cpu) {
  cpu_set_t allowed, others;
  if (cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  others = allowed;
  CPU_CLR(cpu, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return;
  sched_setaffinity(0, sizeof allowed, &allowed);
}

/// Whether there is a request, or the end of the connection.
bool has_news(int socket) {
  char byte;
  return recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EINTR);
}

}  // namespace

void ChannelServer::enter(std::shared_ptr<Entry> entry) {
  const std::lock_guard lock(mutex_);
  entries_.push_back(std::move(entry));
  ++version_;
}

void ChannelServer::leave(const std::shared_ptr<Entry>& entry) {
  entry->leaves_ = true;
  {
    const std::lock_guard lock(entry->mutex_);
    entry->serve_ = nullptr;
  }
  const std::lock_guard lock(mutex_);
  std::erase(entries_, entry);
  ++version_;
}

bool ChannelServer::look(const Entry& entry, int socket, int64_t came_ns) {
  const int64_t now_ns = ioctl::monotonic_ns();
  const int64_t before = last_over_ns_.exchange(now_ns, std::memory_order_relaxed);
  if (came_ns - before > options_.close_ns || looking_.exchange(true)) return false;
  const bool more = serve_channels(entry, socket);
  looking_ = false;
  return more;
}

void ChannelServer::get_out_of_the_way(uint32_t client_cpu, int64_t now_ns) {
  if (client_cpu != static_cast<uint32_t>(sched_getcpu()) || now_ns - moved_ns_ < kStay) return;
  moved_ns_ = now_ns;
  leave_cpu(client_cpu);
}

void ChannelServer::wait_for_post(const Entries& entries) {
  const auto is_posted = [](const auto& entry) { return entry->channel_->is_posted(); };
  for (int i = 0; i < kPauses && std::none_of(entries.begin(), entries.end(), is_posted); ++i) pause();
}

bool ChannelServer::serve(Entry& entry) {
  if (!entry.channel_->is_posted() || entry.leaves_.load(std::memory_order_relaxed)) return false;
  // Where the session itself is at it, the client breaks the rule of one request.
  const std::unique_lock lock(entry.mutex_, std::try_to_lock);
  if (!lock || !entry.serve_) return false;
  entry.serve_(*entry.channel_);
  return true;
}

bool ChannelServer::find_entries(Entries* entries, uint64_t* version) {
  const uint64_t now = version_.load();
  if (now == *version) return true;
  *version = now;
  const std::lock_guard lock(mutex_);
  try {
    *entries = entries_;
  } catch (const std::bad_alloc&) {
    return false;
  }
  for (const auto& entry : *entries) {
    entry->channel_->say_cpu(static_cast<uint32_t>(sched_getcpu()));
    entry->channel_->listen();
  }
  return true;
}

/// What one look at channels has come to.
struct ChannelServer::Look {
  explicit Look(int64_t now_ns) : begun_ns(now_ns), last_ns(now_ns) {}

  const int64_t begun_ns;
  int64_t last_ns;                              // when somebody last had news
  uint32_t cpu = wire::Channel::kNoCpu;         // of this thread
  uint32_t client_cpu = wire::Channel::kNoCpu;  // of the client that made the last request
  int num_served = 0;                           // requests
  bool has_begun = false;                       // whether a burst goes on from the request before is known
  std::optional<int64_t> put_off_ns = {};       // since when jobs are not started

  bool news = false, others_news = false, own_news = false;  // of the last round
};

/// Looks at each channel once, and serves what is posted.
void ChannelServer::serve_each(const Entries& entries, const Entry& own, Look* look) {
  if (const auto now = static_cast<uint32_t>(sched_getcpu()); now != look->cpu) {
    look->cpu = now;
    for (const auto& entry : entries) entry->channel_->say_cpu(now);
  }
  look->news = look->others_news = look->own_news = false;
  for (const auto& entry : entries) {
    if (serve(*entry)) {
      look->news = true;
      ++look->num_served;
      look->client_cpu = entry->channel_->client_cpu();
    } else if (entry->channel_->went_to_socket()) {
      (entry.get() == &own ? look->own_news : look->others_news) = true;
    }
  }
}

/// Learns whether another request comes at once after one of a socket.
void ChannelServer::learn(bool is_next, int64_t now_ns, Look* look) {
  if (look->has_begun || (!is_next && now_ns - look->begun_ns < options_.burst_ns)) return;
  look->has_begun = true;
  bursts_ = std::clamp(bursts_ + (is_next ? 1 : -1), -kSure, kSure);
}

/// Starts the jobs that came with requests, or puts that off while a burst of them may go on.
void ChannelServer::start_jobs(int64_t now_ns, Look* look) {
  if (look->news && !look->put_off_ns) look->put_off_ns = now_ns;
  if (!look->put_off_ns) return;
  const bool may_go_on = bursts_ > 0 && now_ns - look->last_ns < options_.burst_ns;
  if (may_go_on && now_ns - *look->put_off_ns < options_.longest_burst_ns) return;
  start_jobs_();
  look->put_off_ns.reset();
}

/// @return whether the socket has more
bool ChannelServer::serve_channels(const Entry& own, int socket) {
  uint64_t version = ~uint64_t{0};
  Entries entries;
  Look look(ioctl::monotonic_ns());
  look.put_off_ns = look.begun_ns;
  bool more = false;
  for (uint32_t looks = 1; find_entries(&entries, &version); ++looks) {
    serve_each(entries, own, &look);
    const int64_t now_ns = ioctl::monotonic_ns();
    more = (look.own_news || looks % kLooks == 0) && has_news(socket);
    learn(look.news || more, now_ns, &look);
    if (more) break;
    if (look.news || look.others_news) look.last_ns = now_ns;
    start_jobs(now_ns, &look);
    const int64_t quiet_ns = now_ns - look.last_ns;
    if (quiet_ns >= options_.patience_ns) break;
    if (quiet_ns >= options_.short_patience_ns && is_in_the_way_()) break;
    if (look.news && look.num_served >= kMany)
      get_out_of_the_way(look.client_cpu, now_ns);
    else if (look.others_news || look.client_cpu == look.cpu)
      sched_yield();  // to the session's thread, or to the client
    else if (!look.news)
      wait_for_post(entries);
  }
  for (const auto& entry : entries)
    while (!entry->channel_->turn_away() && (serve(*entry) || !entry->channel_->is_posted())) {
    }
  last_over_ns_ = look.last_ns;
  return more;
}

}  // namespace v3d::daemon
