/// These are the sequence numbers of one relayed connection. The server counts the requests that the proxy
/// adds, the client does not; and responses carry the lower 16 bits alone.
#pragma once

#include <cstdint>
#include <deque>

namespace v3d::xproxy {

class Sequence {
 public:
  /// A request of the client, or what stands for it, is sent. @return its number, as the server counts
  uint64_t pass() { return ++sent_; }
  /// The same with a request that the client knows nothing of.
  uint64_t inject() {
    injected_.push_back(++sent_);
    return sent_;
  }

  /// The request that a response is about, as the server counts, from the number in the response.
  uint64_t receive(uint16_t number) {
    uint64_t full = (seen_ & ~uint64_t{0xffff}) | number;
    if (full < seen_) full += 0x10000;
    if (full <= sent_) seen_ = full;  // else the server is wrong, and nothing is learnt
    while (!injected_.empty() && injected_.front() < seen_) {
      injected_.pop_front();
      ++passed_by_;
    }
    return seen_;
  }

  /// The client's number of the last request that the server has told of.
  uint64_t seen_by_client() const { return to_client(seen_); }

  /// The client's number of a request that the server has not gone beyond; of an injected one, that of the
  /// request before it.
  uint64_t to_client(uint64_t number) const {
    uint64_t before = passed_by_;
    for (const uint64_t one : injected_) {
      if (one > number) break;
      ++before;
    }
    return number - before;
  }

 private:
  uint64_t sent_ = 0, seen_ = 0;
  uint64_t passed_by_ = 0;         ///< injected requests that the server has gone beyond
  std::deque<uint64_t> injected_;  ///< the others
};

}  // namespace v3d::xproxy
