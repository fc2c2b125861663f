/// Lookups of VideoCore IV are configured by words of the uniform stream and give one word of four bytes
/// (vc4-graphics.md 5).
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "gpu/base/lanes.h"
#include "gpu/chip/generation.h"
#include "gpu/tmu/image/texture_config.h"
#include "gpu/tmu/lookup/plan.h"

namespace v3d::tmu {

struct PackedPlan;
using RunPacked = Lanes (*)(const PackedPlan& plan, TexelMemory& texels, const PackedLookup& lookup,
                            LaneMask active);

/// Lane i of every table belongs to level i; levels beyond the last repeat it.
struct PackedLevels {
  Lanes address;
  LanesI width, height;
  Lanes tiled;  ///< all bits of levels in T tiles, 0 of LT
  Lanes pitch;  ///< bytes of a row of tiles, or of utiles
};

/// Everything that is constant in such a lookup.
struct PackedPlan {
  /// The words that make lookups equal; the rest is lane data.
  struct Key {
    std::array<uint32_t, kConfigWords> p;
    uint32_t written;  // no padding behind it
    /// Of so many bytes the compiler compares words; an array's own comparison is a call.
    bool operator==(const Key& other) const { return __builtin_memcmp(this, &other, sizeof(Key)) == 0; }
  } key;
  RunPacked run;
  /// Of lookups that are all of the base level: the filter in one function. Null: there is none.
  RunPacked run_base;
  /// Texels are the bytes that lookups give, with these bits set.
  bool in_order;
  uint32_t always_set;
  /// What the rules of sampling.h ask: sampler, texture and what follows from them.
  Plan rules;
  PackedLevels levels;
  bool etc_flipped;
  int32_t most_magnified;  ///< the level of detail, in 1/256, up to which the magnifying filter is used
};

/// Decodes the words and picks the function. Any words are harmless.
void make_packed_plan(const PackedPlan::Key& key, chip::Generation generation, PackedPlan& plan);

/// The plans of a unit.
class PackedPlans {
 public:
  explicit PackedPlans(chip::Generation generation)
      : generation_(generation), slots_(std::make_unique<Slot[]>(kSlots)) {}
  /// The plan of a lookup, valid until the next call.
  const PackedPlan& find(const PackedLookup& lookup);

 private:
  static constexpr uint32_t kSlotBits = 6, kSlots = 1u << kSlotBits;
  struct Slot {
    bool used = false;
    PackedPlan plan;
  };
  const chip::Generation generation_;
  std::unique_ptr<Slot[]> slots_;
};

}  // namespace v3d::tmu
