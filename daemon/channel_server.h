/// A ChannelServer serves the channels of one client process as long as requests come so fast that waking a
/// thread for each would cost more. A session that has served a request of its socket then looks at all of
/// them for a while, and at its socket too; one at a time, as there may be no more than two processors, of
/// which the other is the client's.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "daemon/channel.h"

namespace v3d::daemon {

/// Thread safe.
class ChannelServer {
 public:
  /// An entry is a session's channel. Its requests are served by one thread at a time: that of the session,
  /// or that of the one that looks.
  class Entry {
   public:
    /// @param serve  serves what is posted; called under mutex()
    Entry(std::unique_ptr<Channel> channel, std::function<void(Channel&)> serve)
        : channel_(std::move(channel)), serve_(std::move(serve)) {}
    std::mutex& mutex() { return mutex_; }

   private:
    friend class ChannelServer;
    const std::unique_ptr<Channel> channel_;
    std::atomic<bool> leaves_{false};      // the session waits for the mutex
    std::mutex mutex_;                     // protects serve_
    std::function<void(Channel&)> serve_;  // empty: the session has ended
  };

  struct Options {
    /// Requests that follow each other this fast are worth looking for the next.
    int64_t close_ns = 300'000;
    /// So long it looks after each.
    int64_t patience_ns = 50'000;
    /// The same while others could do with the processor.
    int64_t short_patience_ns = 20'000;
    /// Requests that come in bursts are this close. Jobs are started after a burst, not in it,
    int64_t burst_ns = 20'000;
    /// but are not put off for longer.
    int64_t longest_burst_ns = 100'000;
  };

  /// @param is_in_the_way  asked when a thread has looked for a short while: whether it takes a processor
  ///   from jobs. Thread safe
  /// @param start_jobs  by the thread that looks: jobs of the requests that it has served may begin. Thread
  ///   safe
  explicit ChannelServer(
      const Options& options, std::function<bool()> is_in_the_way = [] { return false; },
      std::function<void()> start_jobs = [] {})
      : options_(options), is_in_the_way_(std::move(is_in_the_way)), start_jobs_(std::move(start_jobs)) {}
  ChannelServer(const ChannelServer&) = delete;
  ChannelServer& operator=(const ChannelServer&) = delete;

  void enter(std::shared_ptr<Entry> entry);
  /// When it returns, the function of the entry is not called any more. Its mutex is not held.
  void leave(const std::shared_ptr<Entry>& entry);

  /// Whether one thread of the client at most has a channel.
  bool is_of_one_thread() {
    const std::lock_guard lock(mutex_);
    return entries_.size() <= 1;
  }

  /// A session has served a request that came over its socket, and calls this before it waits for the next:
  /// looks at channels until none has had news for a while, if that is worth it and nobody else does.
  /// @param entry  the session's
  /// @param came_ns  when the request came
  /// @return whether the socket has more
  bool look(const Entry& entry, int socket, int64_t came_ns);

 private:
  using Entries = std::vector<std::shared_ptr<Entry>>;

  struct Look;

  bool serve_channels(const Entry& own, int socket);
  static void serve_each(const Entries& entries, const Entry& own, Look* look);
  void learn(bool is_next, int64_t now_ns, Look* look);
  void start_jobs(int64_t now_ns, Look* look);
  /// Those of now, listening; false when there is no memory.
  bool find_entries(Entries* entries, uint64_t* version);
  static void wait_for_post(const Entries& entries);
  static bool serve(Entry& entry);
  void get_out_of_the_way(uint32_t client_cpu, int64_t now_ns);

  const Options options_;
  const std::function<bool()> is_in_the_way_;
  const std::function<void()> start_jobs_;
  std::atomic<int> bursts_{0};            // how often the last requests were followed by another one at once
  std::atomic<int64_t> last_over_ns_{0};  // end of the last request over a socket, or of a look
  std::atomic<bool> looking_{false};      // a session is
  int64_t moved_ns_ = 0;                  // when one that looks last changed its processor; of that session
  std::atomic<uint64_t> version_{0};      // of entries_
  std::mutex mutex_;                      // protects entries_
  Entries entries_;
};

}  // namespace v3d::daemon
