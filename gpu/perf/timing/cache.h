/// A Cache knows which lines it holds: it has sets of ways, of which the least recently used one goes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace v3d::timing {

/// Sectors of a line; caches of one sector leave the others alone.
inline constexpr uint32_t kSectors = 4;

class Cache {
 public:
  struct Line {
    uint32_t address = 0;  ///< in lines
    bool used = false;
    uint8_t valid = 0, dirty = 0;               ///< bit n: sector n
    uint64_t last_use = 0;                      ///< number of the access
    std::array<uint64_t, kSectors> ready = {};  ///< clock at which the sector has its data
  };

  /// @param lines, ways  1 or more; at least one set is made
  Cache(uint64_t lines, uint64_t ways)
      : ways_(ways), sets_(lines / ways > 0 ? lines / ways : 1), lines_(ways_ * sets_) {}

  /// nullptr: it is not there.
  Line* find(uint32_t address) {
    Line* const set = set_of(address);
    for (uint64_t way = 0; way < ways_; ++way) {
      Line& line = set[way];
      if (!line.used || line.address != address) continue;
      line.last_use = ++accesses_;
      return &line;
    }
    return nullptr;
  }
  /// The place for a line that is not there, with what it held before; the caller overwrites it.
  Line& replace(uint32_t address) {
    Line* const set = set_of(address);
    Line* oldest = set;
    for (uint64_t way = 0; way < ways_; ++way) {
      if (!set[way].used) return touch(set[way]);
      if (set[way].last_use < oldest->last_use) oldest = &set[way];
    }
    return touch(*oldest);
  }
  std::vector<Line>& lines() { return lines_; }

 private:
  Line* set_of(uint32_t address) { return &lines_[address % sets_ * ways_]; }
  Line& touch(Line& line) {
    line.last_use = ++accesses_;
    return line;
  }

  uint64_t ways_, sets_;
  uint64_t accesses_ = 0;
  std::vector<Line> lines_;
};

/// Clocks in which at least one of some requests waits, each counted once. They may come a little out of the
/// order of their times.
class Waits {
 public:
  /// @return  those that are new
  uint64_t add(uint64_t from, uint64_t to) {
    if (to <= end_) return 0;
    const uint64_t begin = from > end_ ? from : end_;
    end_ = to;
    return to - (begin < to ? begin : to);
  }
  /// Of [from, to), those in which one waits.
  uint64_t overlap(uint64_t from, uint64_t to) const {
    if (from >= end_) return 0;
    return (to < end_ ? to : end_) - from;
  }

 private:
  uint64_t end_ = 0;
};

/// Clocks at which the last requests of a unit that may have so many under way are done, oldest first.
class InFlight {
 public:
  explicit InFlight(uint64_t limit) : done_(limit > 0 ? limit : 1) {}
  /// When the next request may begin that could at `clock`.
  uint64_t admit(uint64_t clock) const { return clock > done_[next_] ? clock : done_[next_]; }
  /// Those that are not done.
  uint64_t under_way(uint64_t clock) const {
    uint64_t count = 0;
    for (const uint64_t done : done_) count += done > clock;
    return count;
  }
  void add(uint64_t done) {
    done_[next_] = done;
    next_ = next_ + 1 == done_.size() ? 0 : next_ + 1;
  }

 private:
  std::vector<uint64_t> done_;
  size_t next_ = 0;
};

}  // namespace v3d::timing
