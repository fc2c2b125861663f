/// @file Lookups by integer coordinates (TMUSF): texel fetch, image load, store and atomics.
#include "gpu/base/float16.h"
#include "gpu/tmu/lookup/addressing.h"
#include "gpu/tmu/lookup/atomic.h"
#include "gpu/tmu/lookup/sampling.h"

namespace v3d::tmu {
namespace {

struct Target {
  TexelPlace place;
  LaneMask valid;  ///< active lanes whose coordinates, layer and level exist
};

LanesI inside(LanesI v, LanesI size) { return as_uint(v) < as_uint(size); }

/// @param kBlocks  compressed @param kFlips  an axis of the texture is flipped
template <bool kBlocks, bool kFlips>
Target find_target(const Plan& plan, const TextureLookup& lookup, LaneMask active) {
  const LanesI base = splat_int(plan.texture.base_level), last = splat_int(plan.texture.max_level);
  LanesI level = base, valid = expand(active);
  if (lookup.written & kB) {
    level = as_int(as_uint(base) + lookup.b);
    valid &= (as_int(lookup.b) >= 0) & (level >= base) & (level <= last);
  }
  const LevelLanes lanes = levels_at(plan, level);
  LanesI offset[3] = {};
  if (plan.general_wrap) texel_offsets(plan, lookup, offset);

  const Lanes x = lookup.s + as_uint(offset[0]);
  valid &= inside(as_int(x), lanes.width);
  const Lanes stored_x = kFlips && plan.texture.flip_x ? flipped(as_int(x), lanes.width) : x;
  Lanes address = lanes.address;
  if (lookup.written & kI) {
    valid &= inside(as_int(lookup.i), splat_int(static_cast<int32_t>(plan.texture.depth)));
    address += lookup.i * plan.texture.array_stride;
  }
  Target target;
  if (plan.dims == 1) {
    target.place = place_1d<kBlocks>(plan, address, stored_x);
  } else {
    const Lanes y = lookup.t + as_uint(offset[1]);
    valid &= inside(as_int(y), lanes.height);
    if (plan.dims == 3) {
      const Lanes z = lookup.r + as_uint(offset[2]);
      valid &= inside(as_int(z), lanes.depth);
      address += z * lanes.slice_size;
    }
    const Lanes stored_y = kFlips && plan.texture.flip_y ? flipped(as_int(y), lanes.height) : y;
    target.place =
        place(address, column<kBlocks>(plan, lanes, stored_x), row<kBlocks>(plan, lanes, stored_y));
  }
  target.valid = mask_bits(valid);
  return target;
}

template <typename T>
Lanes image_atomics(Memory memory, const Plan& plan, const TextureLookup& lookup, const Target& target) {
  Lanes old{};
  for (int i = 0; i < kLanes; ++i) {
    if (!((target.valid >> i) & 1)) continue;
    auto* at = reinterpret_cast<T*>(memory.host(target.place.address[i]));
    const T a = static_cast<T>(lookup.num_data > 0 ? lookup.data[0][i] : 0);
    const T b = static_cast<T>(lookup.num_data > 1 ? lookup.data[1][i] : 0);
    const T value = atomic<T>(at, plan.options.op, lookup.num_data, a, b);
    old[i] = plan.format->kind == Kind::kInt
                 ? static_cast<uint32_t>(static_cast<std::make_signed_t<T>>(value))
                 : value;
  }
  return old;
}

template <typename T>
void store_small(Memory memory, const Target& target, Lanes value) {
  for (int i = 0; i < kLanes; ++i)
    if ((target.valid >> i) & 1) memory.store(target.place.address[i], static_cast<T>(value[i]));
}

template <bool kBlocks, bool kFlips>
void run_texel_fetch(const Plan& plan, TexelMemory& texels, const TextureLookup& lookup, LaneMask active,
                     Lanes* out) {
  const Target target = find_target<kBlocks, kFlips>(plan, lookup, active);
  Texel texel = read_texel<kBlocks>(plan, texels, target.place, target.valid);
  if (target.valid != kAllLanes)
    for (Lanes& c : texel.c) c = select(target.valid, c, Lanes{});  // 0 in alpha too, outside the image
  finish(plan, texel.c, active, out);
}

/// All lanes in one level of a 2D texture: what most fetches are.
void run_level_fetch(const Plan& plan, TexelMemory& texels, const TextureLookup& lookup, LaneMask active,
                     Lanes* out) {
  uint32_t level = static_cast<uint32_t>(plan.texture.base_level);
  if (lookup.written & kB) {
    level += lookup.b[0];
    const bool exists = lookup.b[0] < kMaxLevels && level <= static_cast<uint32_t>(plan.texture.max_level);
    if (!exists || nonzero(lookup.b ^ splat(lookup.b[0])) != 0)
      return run_texel_fetch<false, false>(plan, texels, lookup, active, out);
  }
  const LevelLanes lanes = level_in_all_lanes(plan, static_cast<int>(level));
  Target target;
  target.valid = active & mask_bits(inside(as_int(lookup.s), lanes.width)) &
                 mask_bits(inside(as_int(lookup.t), lanes.height));
  target.place =
      place(lanes.address, column<false>(plan, lanes, lookup.s), row<false>(plan, lanes, lookup.t));
  Texel texel = read_plain(plan, texels, target.place, target.valid);
  if (target.valid != kAllLanes)
    for (Lanes& c : texel.c) c = select(target.valid, c, Lanes{});
  finish(plan, texel.c, active, out);
}

void store_words(TexelMemory& texels, const Plan& plan, const Target& target, const Lanes* words,
                 uint32_t count) {
  if (texels.footprint) texels.footprint->add_store(target.place.address, target.valid, plan.format->cpp);
  const Memory memory = texels.memory;
  switch (plan.format->cpp) {
    case 1:
      return store_small<uint8_t>(memory, target, words[0]);
    case 2:
      return store_small<uint16_t>(memory, target, words[0]);
    default:
      for (uint32_t i = 0; i < plan.format->cpp / 4u && i < count; ++i)
        scatter(memory, target.place.address + 4 * i, words[i], target.valid);
  }
}

/// The colour that TMUD words stand for, in the form of the output type; words that were not written are 0.
void colors_of_data(const Plan& plan, const TextureLookup& lookup, Lanes* rgba) {
  for (uint32_t c = 0; c < 4; ++c) {
    const uint32_t word = plan.wide_output ? c : c / 2;
    const Lanes data = word < lookup.num_data ? lookup.data[word] : Lanes{};
    if (plan.wide_output) {
      rgba[c] = data;
      continue;
    }
    const Lanes half = c % 2 ? data >> 16 : data & 0xffffu;
    rgba[c] = plan.format->kind == Kind::kFloat ? as_uint(half_to_float(half))
              : plan.format->kind == Kind::kInt ? as_uint(as_int(half << 16) >> 16)
                                                : half;
  }
}

template <bool kFlips>
void run_image_store(const Plan& plan, TexelMemory& texels, const TextureLookup& lookup, LaneMask active,
                     Lanes* out) {
  run_nothing(plan, texels, lookup, active, out);
  store_words(texels, plan, find_target<false, kFlips>(plan, lookup, active), lookup.data, lookup.num_data);
}

/// Assumed of the write conversion, of which only the name is public: the data are a colour in the form in
/// which a lookup with this output type returns one, and become a texel as the TFU makes it; swizzles have no
/// part in it.
template <bool kFlips>
void run_converting_store(const Plan& plan, TexelMemory& texels, const TextureLookup& lookup, LaneMask active,
                          Lanes* out) {
  run_nothing(plan, texels, lookup, active, out);
  Lanes rgba[4], stored[4], words[4];
  colors_of_data(plan, lookup, rgba);
  for (int c = 0; c < 4; ++c) stored[plan.order[c]] = rgba[c];
  encode_texels(*plan.packing, stored, words);
  store_words(texels, plan, find_target<false, kFlips>(plan, lookup, active), words, 4);
}

template <bool kFlips>
void run_image_atomic(const Plan& plan, TexelMemory& texels, const TextureLookup& lookup, LaneMask active,
                      Lanes* out) {
  run_nothing(plan, texels, lookup, active, out);
  const Target target = find_target<false, kFlips>(plan, lookup, active);
  if (texels.footprint) texels.footprint->add_store(target.place.address, target.valid, plan.format->cpp);
  Lanes old;
  switch (plan.format->cpp) {
    case 1:
      old = image_atomics<uint8_t>(texels.memory, plan, lookup, target);
      break;
    case 2:
      old = image_atomics<uint16_t>(texels.memory, plan, lookup, target);
      break;
    default:
      old = image_atomics<uint32_t>(texels.memory, plan, lookup, target);
  }
  if (plan.num_words > 0) out[0] = old;
}

}  // namespace

/// Assumed, as the field's name is all that is public: integers, the record's width, height and depth in the
/// level that B picks (depth is halved only with R written: it counts layers else), and the number of levels.
/// B is an integer for fetches, else a float, rounded down; levels that do not exist give 0 four times.
void run_dimension_query(const Plan& plan, TexelMemory&, const TextureLookup& lookup, LaneMask active,
                         Lanes* out) {
  const TextureState& texture = plan.texture;
  const bool is_fetch = lookup.launcher == Launcher::kSF;
  const LanesI base = splat_int(texture.base_level), last = max(base, splat_int(texture.max_level));
  LanesI level = base;
  if (lookup.written & kB)
    level += is_fetch ? clamp(as_int(lookup.b), splat_int(-16), splat_int(16))
                      : floor_to_int(min(max(as_float(lookup.b), splat(-16.0f)), splat(16.0f)));
  const Lanes exists = as_uint((level >= base) & (level <= last)), shift = as_uint(level) & 15u;
  const auto halved = [&](uint32_t size) { return as_uint(max(as_int(splat(size) >> shift), splat_int(1))); };
  const Lanes values[4] = {halved(texture.width) & exists, halved(texture.height) & exists,
                           (plan.dims == 3 ? halved(texture.depth) : splat(texture.depth)) & exists,
                           as_uint(last - base + 1) & exists};
  finish_integers(plan, values, active, out);
}

Run fetch_function(const Plan& plan) {
  if (plan.format->compressed())
    return plan.flips ? run_texel_fetch<true, true> : run_texel_fetch<true, false>;
  const bool has_layers = plan.key.shape & kI;
  if (plan.dims == 2 && !plan.flips && !plan.general_wrap && !has_layers) return run_level_fetch;
  return plan.flips ? run_texel_fetch<false, true> : run_texel_fetch<false, false>;
}

Run store_function(const Plan& plan) {
  if (plan.packing) return plan.flips ? run_converting_store<true> : run_converting_store<false>;
  return plan.flips ? run_image_store<true> : run_image_store<false>;
}

Run atomic_function(const Plan& plan) {
  return plan.flips ? run_image_atomic<true> : run_image_atomic<false>;
}

}  // namespace v3d::tmu
