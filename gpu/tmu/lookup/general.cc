#include "gpu/tmu/lookup/general.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "gpu/base/log.h"
#include "gpu/base/vector.h"
#include "gpu/tmu/lookup/atomic.h"

namespace v3d::tmu {
namespace {

using Type = GeneralType;

bool all_equal(Lanes v) { return nonzero(v ^ splat(v[0])) == 0; }
bool consecutive_words(Lanes address) { return all_equal(address - kLaneIndex * 4u); }

/// Address of component k of a vector access.
Lanes component(Lanes address, uint32_t k, bool wrap16) {
  return wrap16 ? (address & ~15u) | ((address + 4 * k) & 15u) : address + 4 * k;
}

Lanes load_words(Memory memory, Lanes address, LaneMask active) {
  if (active == kAllLanes) {
    if (consecutive_words(address)) return memory.load<Lanes>(address[0]);
    if (all_equal(address)) return splat(memory.load<uint32_t>(address[0]));
  }
  return gather(memory, address, active);
}

void store_words(Memory memory, Lanes address, Lanes value, LaneMask active) {
  if (active == kAllLanes && consecutive_words(address))
    memory.store(address[0], value);
  else
    scatter(memory, address, value, active);
}

Lanes load_small(Memory memory, Lanes address, LaneMask active, Type type) {
  const Lanes value = gather_small(memory, address, active, type.bytes);
  if (!type.is_signed) return value;
  const int unused = 32 - 8 * type.bytes;
  return as_uint(as_int(value << unused) >> unused);
}

void store_small(Memory memory, Lanes address, Lanes value, LaneMask active, Type type) {
  for (int i = 0; i < kLanes; ++i) {
    if (!((active >> i) & 1)) continue;
    if (type.bytes == 1)
      memory.store(address[i], static_cast<uint8_t>(value[i]));
    else
      memory.store(address[i], static_cast<uint16_t>(value[i]));
  }
}

/// A lane of a vector in memory: those in registers cost as much as an update.
uint32_t lane_of(const Lanes& v, int lane) {
  uint32_t word;
  std::memcpy(&word, reinterpret_cast<const uint8_t*>(&v) + sizeof(word) * static_cast<size_t>(lane),
              sizeof(word));
  return word;
}

/// update(word, data 0, data 1) for each lane in ascending order. @param old  gets what it returned; none of
/// the others
template <typename Update>
void update_each(Memory memory, const Lanes& address, const Lanes& a, const Lanes& b, LaneMask active,
                 Lanes& old, const Update& update) {
  const auto update_lane = [&](int i) {
    const uint32_t before = update(reinterpret_cast<uint32_t*>(memory.host(lane_of(address, i) & ~3u)),
                                   lane_of(a, i), lane_of(b, i));
    std::memcpy(reinterpret_cast<uint8_t*>(&old) + sizeof(before) * static_cast<size_t>(i), &before,
                sizeof(before));
  };
  if (active == kAllLanes) {
    for (int i = 0; i < kLanes; ++i) update_lane(i);
    return;
  }
  old = Lanes{};
  for (uint32_t left = active; left != 0; left &= left - 1) update_lane(std::countr_zero(left));
}

template <Op op>
void update_words(uint8_t* memory, const Lanes* address, const Lanes* data, uint32_t active, Lanes* old) {
  update_each(Memory(memory), *address, *data, *data, static_cast<LaneMask>(active), *old,
              [](uint32_t* at, uint32_t a, uint32_t) { return atomic<uint32_t>(at, op, 1, a, 0); });
}

Lanes atomics(Memory memory, const GeneralLookup& lookup, uint32_t op, LaneMask active) {
  Lanes old;
  if (const AtomicFn with_data = find_atomic(op); with_data != nullptr && lookup.num_data > 0) {
    with_data(memory.host(0), &lookup.address, &lookup.data[0], active, &old);
    return old;
  }
  const Lanes none{}, &a = lookup.num_data > 0 ? lookup.data[0] : none,
                      &b = lookup.num_data > 1 ? lookup.data[1] : none;
  update_each(memory, lookup.address, a, b, active, old, [&](uint32_t* at, uint32_t x, uint32_t y) {
    return atomic<uint32_t>(at, op, lookup.num_data, x, y);
  });
  return old;
}

}  // namespace

AtomicFn find_atomic(uint32_t op) {
  // By Op.
  static constexpr AtomicFn kFunctions[] = {
      update_words<kAdd>,      update_words<kSub>,     update_words<kXchg>,    nullptr,
      update_words<kUmin>,     update_words<kUmax>,    update_words<kSmin>,    update_words<kSmax>,
      update_words<kAndOrInc>, update_words<kOrOrDec>, update_words<kXorOrNot>};
  static_assert(std::size(kFunctions) == kXorOrNot + 1);
  return op < std::size(kFunctions) ? kFunctions[op] : nullptr;
}

int general_lookup(Memory memory, bool wrap16, const GeneralLookup& lookup, Lanes* out) {
  const uint32_t op = (uint32_t{lookup.config} >> kGeneralOpShift) & kOpMask;
  const Type type = kGeneralTypes[lookup.config & 7];
  const LaneMask active = general_lanes(lookup);

  if (op == kRegular) {
    const Lanes address = lookup.address & ~(uint32_t{type.bytes} - 1);
    if (lookup.num_data == 0) {
      for (uint32_t k = 0; k < type.words; ++k)
        out[k] = type.bytes == 4 ? load_words(memory, component(address, k, wrap16), active)
                                 : load_small(memory, address, active, type);
      return type.words;
    }
    if (lookup.num_data != type.words)
      log_debug(Debug::kTmu, "TMU: store of %d words with a type of %d", lookup.num_data, type.words);
    for (uint32_t k = 0; k < std::min(type.words, lookup.num_data); ++k) {
      if (type.bytes == 4)
        store_words(memory, component(address, k, wrap16), lookup.data[k], active);
      else
        store_small(memory, address, lookup.data[k], active, type);
    }
    return 0;
  }
  if (is_atomic(op, lookup.num_data > 0)) {
    out[0] = atomics(memory, lookup, op, active);
    return 1;
  }
  return 0;  // prefetches and cache maintenance: memory is coherent here
}

}  // namespace v3d::tmu
