/// The clock says when what is presented is shown. A server without a display of its own counts frames (MSC)
/// by the monotonic clock, from its start.
#pragma once

#include <cstdint>

namespace v3d::xproxy {

/// CLOCK_MONOTONIC in ns.
int64_t monotonic_ns();

class Clock {
 public:
  /// @param hz  frames in a second; 0: frames follow each other as fast as they are made
  Clock(double hz, int64_t start_ns) : hz_(hz), start_(start_ns) {}

  bool is_free() const { return hz_ == 0; }
  uint64_t msc(int64_t now_ns) const;
  /// When that frame begins; now, if frames take no time.
  int64_t when_ns(uint64_t msc, int64_t now_ns) const;
  /// That a frame was shown, for a clock that follows them.
  void advance(uint64_t msc) {
    if (msc > shown_) shown_ = msc;
  }

  /// The frame in which something is to be shown (Present 1.2, PresentPixmap): at `target`; if that has been,
  /// in the next frame whose number leaves `remainder` when divided by `divisor`, or without a divisor in
  /// the next one. An asynchronous one may be shown in the frame that is on already.
  static uint64_t choose(uint64_t now, uint64_t target, uint64_t divisor, uint64_t remainder, bool async);

 private:
  double hz_;
  int64_t start_;
  uint64_t shown_ = 0;
};

}  // namespace v3d::xproxy
