/// Serves the channels of one client process on one thread that looks at all of them, as long as requests
/// come so fast that waking a thread for each would cost more. One thread, as there may be no more than two
/// processors: the other one is the client's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "daemon/channel.h"
#include "ioctl/account.h"

namespace v3d::daemon {

/// Thread safe.
class Express {
 public:
  /// Where a session has its channel. Its requests are served by one thread at a time: that of the session,
  /// or the express thread.
  class Seat {
   public:
    /// @param serve  serves what is posted; called under mutex()
    Seat(std::unique_ptr<Channel> channel, std::function<void(Channel&)> serve)
        : channel_(std::move(channel)), serve_(std::move(serve)) {}
    std::mutex& mutex() { return mutex_; }

   private:
    friend class Express;
    const std::unique_ptr<Channel> channel_;
    std::atomic<bool> leaves_{false};      // the session waits for the mutex
    std::mutex mutex_;                     // protects serve_
    std::function<void(Channel&)> serve_;  // empty: the session has ended
  };

  struct Options {
    /// Requests that follow each other this fast are worth a thread that looks for them.
    int64_t close_ns = 300'000;
    /// So long it looks for the first one, as it and the client wake up at one time; and after each.
    int64_t first_patience_ns = 300'000, patience_ns = 60'000;
  };

  Express(std::shared_ptr<ioctl::Account> account, const Options& options)
      : options_(options), account_(std::move(account)) {}
  ~Express();
  Express(const Express&) = delete;
  Express& operator=(const Express&) = delete;

  void enter(std::shared_ptr<Seat> seat);
  /// When it returns, the seat's function is not called any more. Its mutex is not held.
  void leave(const std::shared_ptr<Seat>& seat);

  /// A session has served a request that came over its socket. @param came_ns  when
  void note_request(int64_t came_ns, int64_t over_ns);

 private:
  using Seats = std::vector<std::shared_ptr<Seat>>;

  void run();
  /// Looks at channels until none has had news for a while. @return requests served
  uint64_t serve_channels();
  static bool serve(Seat& seat);
  bool start_thread();

  const Options options_;
  const std::shared_ptr<ioctl::Account> account_;
  std::atomic<int64_t> last_over_ns_{0};  // end of the last request that came over a socket
  std::atomic<bool> hot_{false};          // the thread is at it, or about to be
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> version_{0};  // of seats_

  std::mutex mutex_;  // protects all below
  std::condition_variable wake_;
  Seats seats_;
  ioctl::Charge connection_, mappings_;  // of the thread
  std::thread thread_;
  uint32_t failures_ = 0;  // times in a row that looking was not worth it
  uint32_t skipped_ = 0;   // requests since then that would have been a reason to look
};

}  // namespace v3d::daemon
