/// The cache says which parts of QPU registers the host's vector registers hold, at a place in the code. A
/// value never changes while a register holds it: who writes takes another register, so that several QPU
/// registers may share one.
#pragma once

#include <array>
#include <cstdint>

#include "gpu/qpu/isa/isa.h"

namespace v3d::qpu::jit::avx2 {

/// What is cached: QPU registers by their numbers, and after them other lanes of the thread.
enum Cached : uint8_t { kCachedFlagA = kNumRegisters, kCachedFlagB, kCachedRtop, kNumCached };

/// 8 lanes of one of them.
using Slot = uint8_t;
inline constexpr int kNumSlots = 2 * kNumCached;
constexpr Slot slot_of(int cached, int part) { return static_cast<Slot>(2 * cached + part); }

constexpr bool is_flag(Slot slot) { return slot / 2 == kCachedFlagA || slot / 2 == kCachedFlagB; }

class Cache {
 public:
  static constexpr int kHosts = 16;
  static constexpr int kNone = -1;

  Cache() {
    host_.fill(kNone);
    first_.fill(kNoSlot);
  }

  /// The host register, or kNone.
  int host(Slot slot) const { return host_[slot]; }
  /// Whether memory does not have it.
  bool dirty(Slot slot) const { return dirty_[slot]; }
  bool empty(int host) const { return first_[static_cast<size_t>(host)] == kNoSlot; }
  void bind(Slot slot, int host, bool dirty) {
    unbind(slot);
    host_[slot] = host;
    dirty_[slot] = dirty;
    next_[slot] = first_[static_cast<size_t>(host)];
    first_[static_cast<size_t>(host)] = slot;
  }
  void unbind(Slot slot) {
    if (host_[slot] == kNone) return;
    uint8_t* link = &first_[static_cast<size_t>(host_[slot])];
    while (*link != slot) link = &next_[*link];
    *link = next_[slot];
    host_[slot] = kNone;
    dirty_[slot] = false;
  }
  void clean(Slot slot) { dirty_[slot] = false; }
  /// Calls fn(Slot) for what the host register holds; fn may unbind it.
  template <typename Fn>
  void for_each(int host, const Fn& fn) const {
    for (uint8_t slot = first_[static_cast<size_t>(host)]; slot != kNoSlot;) {
      const uint8_t next = next_[slot];
      fn(slot);
      slot = next;
    }
  }

 private:
  static constexpr uint8_t kNoSlot = 0xff;
  static_assert(kNumSlots < kNoSlot);

  std::array<int, kNumSlots> host_;
  std::array<bool, kNumSlots> dirty_{};
  std::array<uint8_t, kNumSlots> next_{};
  std::array<uint8_t, kHosts> first_;
};

}  // namespace v3d::qpu::jit::avx2
