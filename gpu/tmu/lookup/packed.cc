#include "gpu/tmu/lookup/packed.h"

#include <algorithm>
#include <bit>

#include "gpu/base/left_out.h"
#include "gpu/base/log.h"
#include "gpu/base/t_tiles.h"
#include "gpu/base/vector.h"
#include "gpu/tmu/lookup/cube.h"
#include "gpu/tmu/lookup/sampling.h"
#include "gpu/tmu/lookup/unsupported.h"

namespace v3d::tmu {
namespace {

// ---- Addresses (vc4-graphics.md 5.4, "for lanes")

struct PackedLevel {
  Lanes address;
  LanesI width, height;
  Lanes tiled, pitch;
};

PackedLevel levels_at(const PackedPlan& plan, LanesI level) {
  const PackedLevels& t = plan.levels;
  return {permute(t.address, level), permute(t.width, level), permute(t.height, level),
          permute(t.tiled, level), permute(t.pitch, level)};
}

constexpr uint32_t log2_of(uint32_t power_of_two) {
  return static_cast<uint32_t>(std::countr_zero(power_of_two));
}
constexpr uint32_t kLog2Utile = log2_of(t_tiles::kUtileBytes), kLog2Tile = log2_of(t_tiles::kTileBytes),
                   kLog2TileUtiles = log2_of(t_tiles::kTileUtiles),
                   kLog2SubtileUtiles = log2_of(t_tiles::kSubtileUtiles),
                   kLog2Subtile = log2_of(t_tiles::kSubtileBytes);

/// What x and y are of an offset. In T tiles the tile of a column counts backwards in every other row, and
/// the number of the subtile is an exclusive or.
struct PackedColumn {
  Lanes far, flip, near;
};
struct PackedRow {
  Lanes start, backwards, near;
};

PackedColumn column_of(const Plan& rules, const PackedLevel& level, Lanes x) {
  const Lanes ux = x >> rules.log2_utile_width;
  const Lanes inside = (x & ((1u << rules.log2_utile_width) - 1)) << rules.log2_cpp;
  const Lanes right = (ux >> kLog2SubtileUtiles) & 1u;
  return {((ux >> kLog2TileUtiles) << kLog2Tile & level.tiled) | (ux << kLog2Utile & ~level.tiled),
          right * (3u << kLog2Subtile) & level.tiled,
          inside | ((ux & (t_tiles::kSubtileUtiles - 1)) << kLog2Utile & level.tiled)};
}

PackedRow row_of(const Plan& rules, const PackedLevel& level, Lanes y) {
  const Lanes uy = y >> rules.log2_utile_height;
  const Lanes inside = (y & ((1u << rules.log2_utile_height) - 1))
                       << (rules.log2_cpp + rules.log2_utile_width);
  const Lanes ty = uy >> kLog2TileUtiles, odd = ty & 1u & level.tiled;
  const Lanes below = (uy >> kLog2SubtileUtiles) & 1u;
  const Lanes subtile = ((odd << 1) ^ below) << kLog2Subtile;
  const Lanes utile = (uy & (t_tiles::kSubtileUtiles - 1)) << (kLog2Utile + kLog2SubtileUtiles);
  const Lanes row = (ty & level.tiled) | (uy & ~level.tiled);
  const Lanes backwards = Lanes{} - odd;
  return {level.address + row * level.pitch + ((level.pitch - t_tiles::kTileBytes) & backwards), backwards,
          inside | ((subtile | utile) & level.tiled)};
}

Lanes address_of(const PackedColumn& x, const PackedRow& y) {
  return y.start + (x.far ^ y.backwards) - y.backwards + ((y.near ^ x.flip) | x.near);
}

// ---- Texels

/// One lookup under way.
struct Call {
  const PackedPlan& plan;
  TexelMemory& texels;
  LaneMask active;
  Coordinates at;
  Lanes face_offset;
  Lanes border;
};

/// A compressed texel of each lane. @param x, y  counted in texels
Lanes read_block(const Call& call, const PackedLevel& level, Lanes x, Lanes y) {
  const Plan& rules = call.plan.rules;
  const Format& format = *rules.format;
  const Lanes bx = x / format.block_width, by = y / format.block_height;
  const Lanes in_x = x - bx * format.block_width;
  Lanes in_y = y - by * format.block_height;
  if (call.plan.etc_flipped) in_y = format.block_height - 1u - in_y;
  const Lanes address = address_of(column_of(rules, level, bx), row_of(rules, level, by)) + call.face_offset;
  if (call.texels.footprint) call.texels.footprint->add(address, call.active, format.cpp);
  Lanes result = {};
  for (int i = 0; i < kLanes; ++i) {
    if (!((call.active >> i) & 1)) continue;
    const BlockTexel* block =
        call.texels.blocks.find(call.texels.meter, call.texels.memory, format, false, address[i]);
    const BlockTexel& texel = block[in_y[i] * format.block_width + in_x[i]];
    result[i] = texel[0] | uint32_t{texel[1]} << 8 | uint32_t{texel[2]} << 16 | 0xff000000u;
  }
  return result;
}

Lanes read_plain(const Call& call, Lanes address) {
  const Format& format = *call.plan.rules.format;
  if (call.texels.footprint) call.texels.footprint->add(address, call.active, format.cpp);
  const Memory memory = call.texels.memory;
  if (call.plan.in_order) return gather(memory, address, call.active) | call.plan.always_set;
  return format.bytes(format.cpp == 4 ? gather(memory, address, call.active)
                                      : gather_small(memory, address, call.active, format.cpp));
}

/// The texels at the columns x and the rows y, two of each.
void read_four(const Call& call, const PackedLevel& level, const Tap& x, const Tap& y, Lanes (&v)[4]) {
  const Plan& rules = call.plan.rules;
  if (rules.format->compressed()) {
    for (int k = 0; k < 4; ++k)
      v[k] = read_block(call, level, as_uint(x.index[k & 1]), as_uint(y.index[k >> 1]));
  } else {
    const PackedColumn columns[2] = {column_of(rules, level, as_uint(x.index[0])),
                                     column_of(rules, level, as_uint(x.index[1]))};
    const PackedRow rows[2] = {row_of(rules, level, as_uint(y.index[0])),
                               row_of(rules, level, as_uint(y.index[1]))};
    for (int k = 0; k < 4; ++k)
      v[k] = read_plain(call, address_of(columns[k & 1], rows[k >> 1]) + call.face_offset);
  }
  if (rules.has_border)
    for (int k = 0; k < 4; ++k) v[k] = select(x.outside[k & 1] | y.outside[k >> 1], call.border, v[k]);
}

// ---- Filters

/// Place in 1/256 texel: VideoCore IV rounds it to 1/128, halves away from zero, which for the faces of a
/// cube is their middle (vc4-graphics.md 5.6).
LanesI place(const Plan& rules, const Coordinates& c, int axis, LanesI size) {
  const LanesF from = rules.cube ? c.at[axis] - 0.5f : c.at[axis];
  const LanesF u = min(max(from * to_float(size), splat(-32768.0f)), splat(32767.0f));
  const LanesI distance = floor_to_int(abs(u) * 128.0f + 0.5f) << 1;
  const LanesI result = select(less(u, LanesF{}), -distance, distance);
  return rules.cube ? result + (size << 7) : result;
}

constexpr int32_t kWeightBits = 0xfc;  ///< of 1/256: a filter has six of them

Tap tap_of(const Plan& rules, const Coordinates& c, int axis, LanesI size) {
  const LanesI u = place(rules, c, axis, size) - 128;
  const LanesI i = u >> 8;
  const Wrap mode = rules.sampler.wrap[axis];
  Tap tap = {};
  tap.weight = u & kWeightBits;
  tap.index[0] = wrap_index(rules, mode, i, size, tap.outside[0]);
  tap.index[1] = wrap_index(rules, mode, i + 1, size, tap.outside[1]);
  return tap;
}

LanesI index_of(const Plan& rules, const Coordinates& c, int axis, LanesI size, LanesI& outside) {
  return wrap_index(rules, rules.sampler.wrap[axis], place(rules, c, axis, size) >> 8, size, outside);
}

/// Of each byte (a (256 - weight) + b weight) / 256, rounded.
Lanes blend_bytes(Lanes a, Lanes b, Lanes weight) {
  constexpr uint32_t kEven = 0x00ff00ffu, kHalves = 0x00800080u;
  const auto blend = [&](Lanes p, Lanes q) {
    // Two products of up to 16 bits side by side, neither of which reaches into the other.
    return (p * (256u - weight) + q * weight + kHalves) >> 8 & kEven;
  };
  return blend(a & kEven, b & kEven) | blend(a >> 8 & kEven, b >> 8 & kEven) << 8;
}

/// Of the bytes of four texels, across and then down.
Lanes blend_four(const Lanes (&v)[4], Lanes ws, Lanes wt) {
  return blend_bytes(blend_bytes(v[0], v[1], ws), blend_bytes(v[2], v[3], ws), wt);
}

[[gnu::flatten]] Lanes sample_nearest(const Call& call, const PackedLevel& level) {
  const Plan& rules = call.plan.rules;
  LanesI outside = {};
  const LanesI x = index_of(rules, call.at, 0, level.width, outside),
               y = index_of(rules, call.at, 1, level.height, outside);
  const Lanes texel = rules.format->compressed()
                          ? read_block(call, level, as_uint(x), as_uint(y))
                          : read_plain(call, address_of(column_of(rules, level, as_uint(x)),
                                                        row_of(rules, level, as_uint(y))) +
                                                 call.face_offset);
  return rules.has_border ? select(outside, call.border, texel) : texel;
}

[[gnu::flatten]] Lanes sample_linear(const Call& call, const PackedLevel& level) {
  const Plan& rules = call.plan.rules;
  const Tap x = tap_of(rules, call.at, 0, level.width), y = tap_of(rules, call.at, 1, level.height);
  Lanes v[4];
  read_four(call, level, x, y, v);
  return blend_four(v, as_uint(x.weight), as_uint(y.weight));
}

Lanes sample_level(const Call& call, LanesI level, LaneMask nearest) {
  const PackedLevel lanes = levels_at(call.plan, level);
  const LaneMask nearest_active = nearest & call.active;
  if (nearest_active == call.active) return sample_nearest(call, lanes);
  const Lanes linear = sample_linear(call, lanes);
  return nearest_active ? select(nearest, sample_nearest(call, lanes), linear) : linear;
}

// ---- Whole lookups

/// Coordinates, face and border colour, and the derivatives in texels of level 0 if the level depends on
/// them.
Derivatives set_up(Call& call, const PackedLookup& lookup) {
  const Plan& rules = call.plan.rules;
  const bool wants_derivatives = rules.needs_lod && !rules.explicit_lod;
  Derivatives derivatives;
  const LanesF width = splat(static_cast<float>(rules.texture.width)),
               height = splat(static_cast<float>(rules.texture.height));
  LanesF s = as_float(lookup.s), t = as_float(lookup.t);
  call.face_offset = call.border = Lanes{};
  if (rules.cube) {
    const LanesF point[3] = {s, t, as_float(lookup.r)};
    const LanesI face = major_face(point[0], point[1], point[2]);
    const FacePoint on_face = project(face, point[0], point[1], point[2]);
    if (wants_derivatives) derivatives.add_cube(point, width);
    call.face_offset = as_uint(face) * rules.texture.array_stride;
    // The program has divided by the major component.
    s = (on_face.s + 1.0f) * 0.5f;
    t = (on_face.t + 1.0f) * 0.5f;
  } else {
    if (wants_derivatives) {
      constexpr float kWholeImage = 1.0f;
      derivatives.add(s, width, kWholeImage);
      derivatives.add(t, height, kWholeImage);
    }
    if (lookup.written & kR) call.border = splat(static_cast<uint32_t>(lookup.r[0]));
  }
  if (rules.texture.flip_y) t = 1.0f - t;
  call.at.at[0] = reduce(rules.sampler.wrap[0], s);
  call.at.at[1] = reduce(rules.sampler.wrap[1], t);
  return derivatives;
}

/// The level of detail of vc4-graphics.md 5.6: B alone, or added to that of the derivatives.
LanesF level_of_detail(const Plan& rules, const PackedLookup& lookup, const Derivatives& derivatives) {
  LanesF lod = {};
  if (!rules.explicit_lod) lod = log2_of_square(max(derivatives.x2, derivatives.y2));
  if (lookup.written & kB) lod += as_float(lookup.b);
  return lod;
}

/// Floats as threads of the host have them: compiled programs call lookups while denormals are zeros.
#ifdef __x86_64__
class HostFloats {
 public:
  HostFloats() : before_(__builtin_ia32_stmxcsr()) { set(kHostMode); }
  ~HostFloats() { set(before_); }
  HostFloats(const HostFloats&) = delete;
  HostFloats& operator=(const HostFloats&) = delete;

 private:
  static constexpr unsigned kHostMode = 0x1f80, kFlags = 0x3f;
  void set(unsigned mode) const {
    if ((before_ & ~kFlags) != kHostMode) __builtin_ia32_ldmxcsr(mode);
  }
  const unsigned before_;
};
#else
struct HostFloats {};
#endif

Lanes run_sample(const PackedPlan& plan, TexelMemory& texels, const PackedLookup& lookup, LaneMask active) {
  [[maybe_unused]] HostFloats floats;
  Call call{plan, texels, active, {}, {}, {}};
  const Plan& rules = plan.rules;
  const Derivatives derivatives = set_up(call, lookup);
  if (!rules.needs_lod || all_magnified(rules, derivatives, active)) {
    if (plan.run_base) return plan.run_base(plan, texels, lookup, active);
    return sample_level(call, LanesI{}, rules.sampler.mag_nearest ? kAllLanes : 0);
  }
  const LevelChoice choice =
      choose_levels(rules, level_of_detail(rules, lookup, derivatives), plan.most_magnified);
  const Lanes first = sample_level(call, choice.level, choice.nearest);
  if (!(choice.blended & active)) return first;
  return blend_bytes(first, sample_level(call, choice.next, choice.nearest), as_uint(choice.weight));
}

// ---- Lookups of texels of four bytes in one level, which most are: all in one function, by what is the same
// for all lanes

constexpr uint32_t kAlpha = 0xff000000u;

/// Whether texels are R, G, B and A as lookups give them, or so but for A, which then is 255.
bool has_bytes_in_order(const Format& format) {
  const Packing& packing = format.packing;
  const auto is_byte = [&](int c) { return packing.channels[c] == Channel{static_cast<uint8_t>(8 * c), 8}; };
  return !format.compressed() && format.cpp == 4 && packing.number == Number::kUnorm && is_byte(0) &&
         is_byte(1) && is_byte(2) && (is_byte(3) || packing.channels[3].bits == 0);
}

template <bool kTiled>
PackedLevel base_level(const PackedLevels& levels) {
  return {splat(uint32_t{levels.address[0]}), splat_int(levels.width[0]), splat_int(levels.height[0]),
          kTiled ? ~Lanes{} : Lanes{}, splat(uint32_t{levels.pitch[0]})};
}

/// As run_sample(), and the same where denormals are zeros: they are less than any part of a texel that
/// counts.
template <bool kLinear, bool kTiled>
[[gnu::flatten]] Lanes run_base_level(const PackedPlan& plan, TexelMemory& texels, const PackedLookup& lookup,
                                      LaneMask active) {
  const Plan& rules = plan.rules;
  const PackedLevel level = base_level<kTiled>(plan.levels);
  const LanesF t = as_float(lookup.t);
  Coordinates at;
  at.at[0] = reduce(rules.sampler.wrap[0], as_float(lookup.s));
  at.at[1] = reduce(rules.sampler.wrap[1], rules.texture.flip_y ? 1.0f - t : t);
  const auto texel = [&](const PackedColumn& x, const PackedRow& y) {
    const Lanes address = address_of(x, y);
    if (texels.footprint) [[unlikely]]
      texels.footprint->add(address, active, sizeof(uint32_t));
    return gather(texels.memory, address, active);
  };
  if constexpr (!kLinear) {
    LanesI outside = {};
    const LanesI x = index_of(rules, at, 0, level.width, outside),
                 y = index_of(rules, at, 1, level.height, outside);
    return texel(column_of(rules, level, as_uint(x)), row_of(rules, level, as_uint(y))) | plan.always_set;
  } else {
    const Tap x = tap_of(rules, at, 0, level.width), y = tap_of(rules, at, 1, level.height);
    const PackedColumn left = column_of(rules, level, as_uint(x.index[0])),
                       right = column_of(rules, level, as_uint(x.index[1]));
    const PackedRow above = row_of(rules, level, as_uint(y.index[0])),
                    below = row_of(rules, level, as_uint(y.index[1]));
    const Lanes v[4] = {texel(left, above), texel(right, above), texel(left, below), texel(right, below)};
    return blend_four(v, as_uint(x.weight), as_uint(y.weight)) | plan.always_set;
  }
}

/// Null: the texels, or where they are, are not so simple.
RunPacked base_function(const PackedPlan& plan) {
  const Plan& rules = plan.rules;
  if (!plan.in_order || rules.cube || rules.has_border) return nullptr;
  const bool is_tiled = plan.levels.tiled[0] != 0;
  if (rules.sampler.mag_nearest) return is_tiled ? run_base_level<false, true> : run_base_level<false, false>;
  return is_tiled ? run_base_level<true, true> : run_base_level<true, false>;
}

Lanes run_nothing_packed(const PackedPlan&, TexelMemory&, const PackedLookup&, LaneMask) { return Lanes{}; }

// ---- Plans

void make_levels(PackedPlan& plan) {
  const TextureState& texture = plan.rules.texture;
  const Format& format = *plan.rules.format;
  const ImageShape shape{.width = texture.width,
                         .height = texture.height,
                         .depth = 1,
                         .cpp = format.cpp,
                         .block_width = format.block_width,
                         .block_height = format.block_height,
                         .num_levels = texture.max_level + 1u};
  Level levels[kMaxLevels];
  compute_vc4_levels(shape, levels);
  for (uint32_t i = 0; i < kMaxLevels; ++i) {
    const uint32_t l = std::min(i, shape.num_levels - 1);
    const bool is_tiled = levels[l].tiling == Tiling::kT;
    const uint32_t rows = vc4_utile_height(format.cpp) * (is_tiled ? t_tiles::kTileUtiles : 1);
    plan.levels.address[i] = texture.base + static_cast<uint32_t>(levels[l].offset);
    plan.levels.width[i] = static_cast<int32_t>(std::max(1u, shape.width >> l));
    plan.levels.height[i] = static_cast<int32_t>(std::max(1u, shape.height >> l));
    plan.levels.tiled[i] = is_tiled ? ~0u : 0;
    plan.levels.pitch[i] = levels[l].stride * rows;
  }
}

/// Filters of formats whose words are no four bytes: assumed.
void limit_filters(Plan& rules) {
  if (rules.format->compressed() || rules.format->packing.number == Number::kUnorm) return;
  rules.sampler.mag_nearest = rules.sampler.min_nearest = true;
  rules.sampler.mip_nearest = true;
}

}  // namespace

void make_packed_plan(const PackedPlan::Key& key, chip::Generation generation, PackedPlan& plan) {
  plan = PackedPlan{};
  plan.key = key;
  plan.run = run_nothing_packed;
  const TextureConfig config = decode_texture_config(key.p);
  Plan& rules = plan.rules;
  rules.texture = config.texture;
  rules.sampler = config.sampler;
  if (config.texture.unsupported) return report_unsupported(config.texture.unsupported);
  rules.format = find_format(generation, config.texture.type);
  if (!rules.format) return report_unsupported_format(generation, config.texture.type);
  rules.dims = 2;
  rules.cube = config.cube;
  rules.explicit_lod = config.explicit_lod;
  rules.log2_cpp = std::countr_zero(rules.format->cpp);
  rules.log2_utile_width = std::countr_zero(vc4_utile_width(rules.format->cpp));
  rules.log2_utile_height = std::countr_zero(vc4_utile_height(rules.format->cpp));
  plan.etc_flipped = config.etc_flipped;
  make_levels(plan);
  limit_filters(rules);
  const SamplerState& sampler = rules.sampler;
  rules.has_border = sampler.wrap[0] == Wrap::kBorder || sampler.wrap[1] == Wrap::kBorder;
  const bool has_levels = sampler.max_lod > 1;
  if (has_levels && sampler.min_nearest && !sampler.mag_nearest) plan.most_magnified = 128;
  const bool one_level = rules.texture.max_level == 0 || (sampler.mip_nearest && sampler.max_lod < 128);
  rules.needs_lod = !one_level || sampler.mag_nearest != sampler.min_nearest;
  rules.magnifies_below_one = !rules.explicit_lod && !(key.written & kB);
  rules.cost = lookup_cost(rules);
  if (is_left_out(Stage::kLookups)) return;
  plan.in_order = has_bytes_in_order(*rules.format);
  plan.always_set = plan.in_order && rules.format->packing.channels[3].bits == 0 ? kAlpha : 0;
  plan.run_base = base_function(plan);
  plan.run = !rules.needs_lod && plan.run_base ? plan.run_base : run_sample;
  log_debug(Debug::kTmu, "TMU: P0 %#x P1 %#x P2 %#x P3 %#x written %#x: %s %ux%u, %d levels, at %#x%s",
            key.p[0], key.p[1], key.p[2], key.p[3], key.written, rules.format->name, rules.texture.width,
            rules.texture.height, rules.texture.max_level + 1, rules.texture.base,
            rules.cube ? ", cube" : "");
}

// The words were written one by one just before: a processor waits that reads them together.
const PackedPlan& PackedPlans::find(const PackedLookup& lookup) {
  const volatile uint32_t* const p = lookup.p.data();
  const uint32_t p0 = p[0], p1 = p[1], p2 = p[2], p3 = p[3], written = lookup.written;
  const uint32_t mixed =
      p0 / 4096 * 0x9e3779b1u + p1 * 0x85ebca6bu + (p0 ^ p2 ^ p3 ^ written << 8) * 0xc2b2ae35u;
  Slot& slot = slots_[mixed >> (32 - kSlotBits)];
  const PackedPlan::Key& key = slot.plan.key;
  const bool is_it = slot.used && key.p[0] == p0 && key.p[1] == p1 && key.p[2] == p2 && key.p[3] == p3 &&
                     key.written == written;
  if (!is_it) {
    make_packed_plan({{p0, p1, p2, p3}, written}, generation_, slot.plan);
    slot.used = true;
  }
  return slot.plan;
}

}  // namespace v3d::tmu
