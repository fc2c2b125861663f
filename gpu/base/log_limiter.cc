#include "gpu/base/log_limiter.h"

#include <iterator>

namespace v3d {

void LogLimiter::report(const Key& key, Window& window, std::vector<LeftOut>* left_out) {
  if (window.left_out) left_out->push_back({window.client, key.second, window.left_out});
  window.left_out = 0;
}

bool LogLimiter::admit(const LogClient& client, const char* kind, int64_t now_ns,
                       std::vector<LeftOut>* ended) {
  const Key key{client.id, kind};
  Window& window = windows_.try_emplace(key, Window{now_ns, 0, 0, false, client.name}).first->second;
  if (now_ns - window.begin_ns >= kWindowNs) {
    report(key, window, ended);
    window = {now_ns, 0, 0, false, client.name};
  }
  if (window.written == kLines) {
    ++window.left_out;
    return false;
  }
  ++window.written;
  return true;
}

void LogLimiter::end_windows(int64_t now_ns, std::vector<LeftOut>* ended) {
  for (auto entry = windows_.begin(); entry != windows_.end();) {
    const bool over = now_ns - entry->second.begin_ns >= kWindowNs;
    if (over) report(entry->first, entry->second, ended);
    entry = over ? windows_.erase(entry) : std::next(entry);
  }
}

void LogLimiter::leave(uint64_t client, std::vector<LeftOut>* left_out) {
  for (auto entry = windows_.lower_bound({client, nullptr});
       entry != windows_.end() && entry->first.first == client; ++entry) {
    if (entry->second.has_left) continue;
    entry->second.has_left = entry->second.left_out > 0;
    report(entry->first, entry->second, left_out);
  }
}

}  // namespace v3d
