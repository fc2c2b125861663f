/// FairShares tells who of those that compete for something has had least of it.
#pragma once

#include <cstdint>
#include <map>

namespace v3d::daemon {

/// Fair queueing: each competitor has a clock that runs while it is served, and the lowest is next. A common
/// clock follows the lowest. One that comes, or was kept from competing, is set a little before it (the
/// credit): it is served soon, but being away saves nothing up. However many come anew, the common clock goes
/// on, at half the pace that each would have if all were served at once, and so takes along whoever waits.
/// Not thread safe.
class FairShares {
 public:
  /// @param credit  in units of charge()
  explicit FairShares(int64_t credit) : credit_(credit) {}

  int64_t clock(uint64_t key) const;
  /// What it had beyond the credit of newcomers.
  int64_t excess(uint64_t key) const { return clock(key) - start(); }
  /// It may be charged from now on. Throws std::bad_alloc; nothing else here does.
  void make_place(uint64_t key) { clocks_.try_emplace(key, Entry{start(), 0}); }
  /// Its place is kept until it leaves as often as it enters.
  void enter(uint64_t key) { ++clocks_.find(key)->second.entered; }
  void leave(uint64_t key) { --clocks_.find(key)->second.entered; }
  /// @param key  one that has entered
  /// @param competitors  how many there are, this one included
  void charge(uint64_t key, int64_t amount, int64_t competitors);
  /// The lowest clock of those that compete: nobody is owed what lies before it.
  void advance_to(int64_t least);

 private:
  int64_t start() const { return common_ - credit_; }

  struct Entry {
    int64_t clock;
    int entered;
  };

  const int64_t credit_;
  int64_t common_ = 0;
  std::map<uint64_t, Entry> clocks_;  // absent ones stand at start()
};

}  // namespace v3d::daemon
