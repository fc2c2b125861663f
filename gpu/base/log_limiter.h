/// A LogLimiter keeps one client from filling the log: so many lines of a kind are written in a window of
/// time, and the rest is counted.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace v3d {

/// Who makes the daemon say something.
struct LogClient {
  uint64_t id = 0;  ///< of the process; a new program in it is the same client
  std::string name;
};

/// Not thread safe. Times are monotonic.
class LogLimiter {
 public:
  /// Linux's DEFAULT_RATELIMIT_BURST and DEFAULT_RATELIMIT_INTERVAL.
  static constexpr uint32_t kLines = 10;
  static constexpr int64_t kWindowNs = 5'000'000'000;

  struct LeftOut {
    std::string client;
    std::string kind;
    uint64_t lines;
  };

  /// Whether the line may be written. A window begins with its first line.
  /// @param kind  what its lines have in common: their format, by its address
  /// @param ended  receives what an earlier window left out
  bool admit(const LogClient& client, const char* kind, int64_t now_ns, std::vector<LeftOut>* ended);
  /// Forgets the windows that have ended. @param ended  receives what they left out
  void end_windows(int64_t now_ns, std::vector<LeftOut>* ended);
  /// Receives what was left out of a client so far, once in a window. Its windows go on: one that comes again
  /// at once gains nothing, and one that comes and goes is told of with their ends.
  void leave(uint64_t client, std::vector<LeftOut>* left_out);

 private:
  struct Window {
    int64_t begin_ns;
    uint32_t written;
    uint64_t left_out;
    bool has_left;
    std::string client;
  };
  using Key = std::pair<uint64_t, const char*>;
  static void report(const Key& key, Window& window, std::vector<LeftOut>* left_out);

  std::map<Key, Window> windows_;
};

}  // namespace v3d
