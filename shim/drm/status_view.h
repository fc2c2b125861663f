/// A view reads what the status of a file (wire::Status) says of its syncobjs and BOs, and clients change
/// them through it.
#pragma once

#include <linux/futex.h>
#include <linux/time_types.h>
#include <time.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <span>

#include "ioctl/link/wire.h"
#include "shim/process/counts.h"
#include "shim/process/raw.h"

namespace v3d::shim {

/// A fence that was pending when it was looked up.
struct Pending {
  uint32_t index, number;
};

/// @param place  upper half of a kPending entry, or of a change
constexpr Pending pending_in(uint32_t place) {
  return {place & ((1u << wire::kFenceIndexBits) - 1), place >> wire::kFenceIndexBits};
}

class StatusView {
 public:
  explicit StatusView(wire::Status* status) : status_(*status) {}

  /// A syncobj as it was looked at.
  struct Syncobj {
    wire::SyncobjState state;
    uint32_t entry;   ///< lower half of its entry; not of kAsk
    uint64_t change;  ///< its entry of Status::changes
    Pending pending;  ///< of kPending
  };

  Syncobj look(uint32_t handle) const {
    if (handle >= wire::Status::kSyncobjs) return {wire::kAsk, 0, 0, {}};
    const uint64_t whole = load(status_.syncobjs[handle]), change = load(status_.changes[handle]);
    Syncobj seen{static_cast<wire::SyncobjState>(whole & 3), lower(whole), change, {}};
    if (seen.state == wire::kAsk) return seen;
    uint32_t place = upper(whole);
    if (lower(change) == seen.entry) {
      place = upper(change);
      seen.state = state_of_change(place);
    }
    if (seen.state != wire::kPending) return seen;
    seen.pending = pending_in(place);
    if (!is_pending(seen.pending)) seen.state = wire::kSignalled;
    return seen;
  }
  /// False of what a daemon would not say.
  bool is_pending(const Pending& fence) const {
    return fence.index < wire::Status::kFences && load(status_.fences[fence.index]) == fence.number * 2;
  }
  /// The entry of a syncobj that holds what the daemon has given it; 0 when it may hold something else.
  uint32_t entry_as_said(uint32_t handle) const {
    const Syncobj seen = look(handle);
    return seen.state == wire::kAsk || lower(seen.change) == seen.entry ? 0 : seen.entry;
  }

  /// Whether it is said that no job uses a BO.
  bool is_idle(uint32_t handle) const {
    if (handle >= wire::Status::kBos) return false;
    const uint32_t place = load(status_.bos[handle]);
    if (place == wire::kAskOfBo || place == wire::kIdleBo) return place == wire::kIdleBo;
    const Pending fence = pending_in(place);
    return fence.index < wire::Status::kFences && !is_pending(fence);
  }

  /// Makes something else of a syncobj, and wakes who waits for a fence there. False when the daemon has to
  /// be asked, which changes nothing if this did.
  /// @param to  a wire::Change, or the place of a fence
  bool change(uint32_t handle, uint32_t to) {
    for (;;) {
      const Syncobj seen = look(handle);
      if (seen.state == wire::kAsk) return false;
      if (to == wire::kEmptied && seen.state == wire::kEmpty) return true;
      // Another thread has changed a later entry meanwhile; or the last change is too old to compare.
      if (lower(seen.change) != 0 && static_cast<int32_t>(seen.entry - lower(seen.change)) < 0) {
        if (look(handle).entry == seen.entry) return false;
        continue;
      }
      if (exchange(handle, seen.change, seen.entry, to)) return is_still_said(handle);
    }
  }

  /// The syncobj is no more, until revive(). False when the daemon has to be asked.
  bool destroy(uint32_t handle) {
    if (!change(handle, wire::kDestroyed)) return false;
    for (uint32_t& spare : status_.spares) {
      uint32_t none = 0;
      if (std::atomic_ref<uint32_t>(spare).compare_exchange_strong(none, handle)) return true;
    }
    // It is destroyed for good: first there has to be something to destroy.
    revive(handle, wire::kEmptied);
    return false;
  }
  /// The handle of a syncobj that was destroyed and is one again, 0 when there is none.
  uint32_t create(uint32_t holding) {
    for (uint32_t& spare : status_.spares) {
      if (load(spare) == 0) continue;
      const uint32_t handle = std::atomic_ref<uint32_t>(spare).exchange(0);
      if (handle != 0 && handle < wire::Status::kSyncobjs && revive(handle, holding)) return handle;
    }
    return 0;
  }

  /// Sleeps until the word is another, a signal comes or it is time. 0, -EINTR, -ETIMEDOUT, or -ENOSYS.
  /// A handler with SA_RESTART does not end it, as it would end a futex(FUTEX_WAIT) with a time.
  int sleep_while_pending(const Pending& fence, int64_t until_ns) {
    const Word word{&status_.fences[fence.index], fence.number * 2};
    return sleep_while({&word, 1}, until_ns);
  }
  /// The same while a syncobj is what was seen.
  int sleep_while_same(uint32_t handle, const Syncobj& seen, int64_t until_ns) {
    auto* const change = reinterpret_cast<uint32_t*>(&status_.changes[handle]);
    const Word words[] = {{reinterpret_cast<uint32_t*>(&status_.syncobjs[handle]), seen.entry},
                          {change + 1, upper(seen.change)},
                          {change, lower(seen.change)}};
    return sleep_while(words, until_ns);
  }

  /// Who sleeps there, in any process.
  static void wake(uint32_t* futex) {
    count(kFutexCalls);
    raw::call(SYS_futex, raw::word(futex), FUTEX_WAKE, INT_MAX);
  }

 private:
  struct Word {
    uint32_t* futex;
    uint32_t value;
  };

  template <typename T>
  static T load(T& word) {
    return std::atomic_ref<T>(word).load();
  }
  static uint32_t lower(uint64_t entry) { return static_cast<uint32_t>(entry); }
  static uint32_t upper(uint64_t entry) { return static_cast<uint32_t>(entry >> 32); }

  static wire::SyncobjState state_of_change(uint32_t change) {
    if (change == wire::kEmptied) return wire::kEmpty;
    if (change == wire::kDestroyed) return wire::kAsk;
    return change == wire::kSignalledNow ? wire::kSignalled : wire::kPending;
  }

  std::atomic_ref<uint32_t> sleepers_on(const uint32_t* futex) {
    const uint64_t offset = raw::address_of(futex) - raw::address_of(&status_);
    return std::atomic_ref<uint32_t>(status_.sleepers[wire::sleepers_of(offset)]);
  }

  bool exchange(uint32_t handle, uint64_t old, uint32_t entry, uint32_t to) {
    std::atomic_ref<uint64_t> change(status_.changes[handle]);
    if (!change.compare_exchange_strong(old, uint64_t{to} << 32 | entry)) return false;
    auto* const futex = reinterpret_cast<uint32_t*>(&status_.changes[handle]) + 1;
    if (sleepers_on(futex).load() != 0) wake(futex);
    return true;
  }
  /// The daemon may have ceased to listen since the syncobj was looked at.
  bool is_still_said(uint32_t handle) const { return (load(status_.syncobjs[handle]) & 3) != wire::kAsk; }

  bool revive(uint32_t handle, uint32_t holding) {
    const uint64_t whole = load(status_.syncobjs[handle]), change = load(status_.changes[handle]);
    return (whole & 3) != wire::kAsk && change == (uint64_t{wire::kDestroyed} << 32 | lower(whole)) &&
           exchange(handle, change, lower(whole), holding) && is_still_said(handle);
  }

  int sleep_while(std::span<const Word> words, int64_t until_ns) {
    constexpr int64_t kSecond = 1'000'000'000;
    const __kernel_timespec time{until_ns / kSecond, until_ns % kSecond};
    futex_waitv waiters[3] = {};
    for (size_t i = 0; i < words.size(); ++i) {
      waiters[i].uaddr = raw::address_of(words[i].futex);
      waiters[i].val = words[i].value;
      waiters[i].flags = FUTEX_32;
      sleepers_on(words[i].futex).fetch_add(1);
    }
    count(kFutexCalls);
    const long error = raw::call(SYS_futex_waitv, raw::word(waiters), static_cast<long>(words.size()), 0,
                                 raw::word(&time), CLOCK_MONOTONIC);
    for (const Word& word : words) sleepers_on(word.futex).fetch_sub(1);
    return error < 0 && error != -EAGAIN ? static_cast<int>(error) : 0;
  }

  wire::Status& status_;
};

}  // namespace v3d::shim
