#include "shim/drm/parked_mappings.h"

#include <atomic>
#include <span>

#include "shim/process/raw.h"

namespace v3d::shim {
namespace {

/// A slot's word: the address, in whose low bits are a state and how often the slot was filled, lest
/// somebody who read a slot takes the one that it became.
enum State : uint64_t { kFilling = 1, kMapped = 2, kParked = 3 };
constexpr uint64_t kStates = 3, kRound = 4;

constexpr uint64_t address_of(uint64_t word) { return word & ~(raw::kPage - 1); }
constexpr uint64_t state_of(uint64_t word) { return word & kStates; }
constexpr uint64_t with_state(uint64_t word, State state) { return (word & ~kStates) | state; }

/// Whoever changes the word has what it leads to.
struct MappingSlot {
  std::atomic<uint64_t> word;  ///< no state: free
  std::atomic<uint64_t> inode, offset, bytes;
  std::atomic<uint32_t> epoch, parked_at;

  bool change(uint64_t from, uint64_t to) { return word.compare_exchange_strong(from, to); }
  bool is(const SlabRange& range) const {
    return inode.load() == range.inode && offset.load() == range.offset && bytes.load() == range.bytes &&
           epoch.load() == range.epoch;
  }
};
MappingSlot slots[256];
/// No slot from there on was ever filled: programs unmap much that is no BO.
std::atomic<uint32_t> slots_used{0};
std::atomic<uint32_t> parked_so_far{0};

std::span<MappingSlot> used_slots() { return {slots, slots_used.load()}; }
void use_slot(uint32_t index) {
  uint32_t used = slots_used.load();
  while (used <= index && !slots_used.compare_exchange_weak(used, index + 1)) {
  }
}

/// Unmaps what is parked in the slot, unless it is something else by now.
void unmap_parked(MappingSlot& slot, uint64_t word) {
  const auto bytes = static_cast<size_t>(slot.bytes.load());
  if (slot.change(word, word & ~kStates)) raw::unmap_memory(raw::pointer(address_of(word)), bytes);
}

/// Unmaps the oldest of more than there may be.
void unmap_oldest() {
  MappingSlot* oldest = nullptr;
  uint64_t oldest_word = 0;
  uint32_t parked = 0, greatest_age = 0;
  const uint32_t now = parked_so_far.load();
  for (MappingSlot& slot : used_slots()) {
    const uint64_t word = slot.word.load();
    if (state_of(word) != kParked) continue;
    ++parked;
    const uint32_t age = now - slot.parked_at.load();
    if (oldest && age <= greatest_age) continue;
    oldest = &slot;
    oldest_word = word;
    greatest_age = age;
  }
  if (parked > kMaxParked) unmap_parked(*oldest, oldest_word);
}

}  // namespace

void note_mapping(uint64_t address, const SlabRange& range) {
  for (uint32_t i = 0; i < std::size(slots); ++i) {
    MappingSlot& slot = slots[i];
    const uint64_t word = slot.word.load();
    if (state_of(word) != 0 || !slot.change(word, with_state(word, kFilling))) continue;
    use_slot(i);
    slot.inode.store(range.inode);
    slot.offset.store(range.offset);
    slot.bytes.store(range.bytes);
    slot.epoch.store(range.epoch);
    const uint64_t round = (word + kRound) & (raw::kPage - 1) & ~kStates;
    slot.word.store(address | round | kMapped);
    return;
  }
}

bool park_mapping(uint64_t address, size_t length) {
  for (MappingSlot& slot : used_slots()) {
    const uint64_t word = slot.word.load();
    if (state_of(word) != kMapped || address_of(word) != address ||
        slot.bytes.load() != raw::whole_pages(length)) {
      continue;
    }
    slot.parked_at.store(parked_so_far.fetch_add(1));
    if (!slot.change(word, with_state(word, kParked))) return false;
    unmap_oldest();
    return true;
  }
  return false;
}

uint64_t take_parked(const SlabRange& range) {
  for (MappingSlot& slot : used_slots()) {
    const uint64_t word = slot.word.load();
    if (state_of(word) == kParked && slot.is(range) && slot.change(word, with_state(word, kMapped)))
      return address_of(word);
  }
  return 0;
}

void forget_mappings(uint64_t address, size_t length) {
  const uint64_t end = address + raw::whole_pages(length);
  for (MappingSlot& slot : used_slots()) {
    const uint64_t word = slot.word.load();
    const uint64_t start = address_of(word);
    if (state_of(word) < kMapped || start >= end || start + slot.bytes.load() <= address) continue;
    if (state_of(word) == kParked)
      unmap_parked(slot, word);
    else
      slot.change(word, word & ~kStates);
  }
}

}  // namespace v3d::shim
