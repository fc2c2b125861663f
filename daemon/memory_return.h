/// MemoryReturn says when the daemon gives free memory back to the host: not while jobs come, as the next one
/// takes it.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>

namespace v3d::daemon {

/// One thread uses it.
class MemoryReturn {
 public:
  /// Between two looks, and between two times that memory goes back.
  static constexpr int64_t kPeriodNs = 1'000'000'000;

  /// What a client had is taken apart by others while memory goes back, and on a slow host long after that:
  /// it goes back again at the first, second, fourth and so on of so many looks from then on.
  static constexpr unsigned kLooksAfterLeaving = 8;

  /// Whether to look again.
  bool is_due(int64_t now_ns) const { return now_ns - looked_ns_ >= kPeriodNs; }
  /// Whether it is to go back at one of the next looks, jobs or none.
  bool goes_back_again() const { return looks_left_ > 0; }
  /// Once it is due: whether memory is to go back. It is when a client has left, and some looks from then on,
  /// or when jobs were done since it last went back, but none since the last look.
  /// @param jobs_done    by all clients so far
  /// @param client_left  since the last look
  bool look(int64_t now_ns, uint64_t jobs_done, bool client_left) {
    looked_ns_ = now_ns;
    const bool idle = std::exchange(jobs_seen_, jobs_done) == jobs_done && jobs_done != jobs_given_back_;
    const bool again =
        looks_left_ > 0 && !client_left && std::has_single_bit(kLooksAfterLeaving - --looks_left_);
    if (client_left) looks_left_ = kLooksAfterLeaving;
    if (!client_left && !again && !idle) return false;
    jobs_given_back_ = jobs_done;
    return true;
  }

 private:
  int64_t looked_ns_ = 0;
  uint64_t jobs_seen_ = 0, jobs_given_back_ = 0;
  unsigned looks_left_ = 0;
};

}  // namespace v3d::daemon
