/// A placement says where a window has been, as several connections tell it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

#include "tools/xproxy/events.h"

namespace v3d::xproxy {

/// Each connection hears of a window's changes in the order in which they happened, but one hears of a change
/// when another already knows the next one. Told to clients as they come in, a window would seem to go back.
class Placements {
 public:
  static constexpr size_t kMost =
      64;  ///< remembered; a connection that is further behind is taken to be there

  /// @param source  whoever told it first
  Placements(const void* source, const Placement& first) : known_{first}, next_{{source, 1}} {}

  /// @param source  which connection tells it
  /// @return whether none has told it before
  bool tell(const void* source, const Placement& placement);
  void forget(const void* source) { next_.erase(source); }

 private:
  uint64_t first_ = 0;  ///< number of the first one of known_
  std::deque<Placement> known_;
  std::map<const void*, uint64_t> next_;  ///< number of what a connection tells next; it may leave out some
};

}  // namespace v3d::xproxy
