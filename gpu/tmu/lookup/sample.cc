/// @file Filtered lookups. A policy says how one texel is read and how texels are blended; everything else is
/// shared.
#include "gpu/tmu/lookup/cube.h"
#include "gpu/tmu/lookup/sampling.h"

namespace v3d::tmu {
namespace {

/// What the coordinates address: 1, 2 or 3 dimensions, or the faces of a cube.
enum Shape { k1D = 1, k2D = 2, k3D = 3, kCube = 4 };

/// One lookup under way.
struct Call {
  Call(const Plan& p, TexelMemory& c, const TextureLookup& l, LaneMask a)
      : plan(p), texels(c), lookup(l), active(a) {}

  const Plan& plan;
  TexelMemory& texels;
  const TextureLookup& lookup;
  LaneMask active;
  Coordinates at;
  LanesI cube_layer;  ///< first layer of the lane's cube
  LanesI face;
  LanesF reference;  ///< of comparisons

  bool uses(int channel) const { return (plan.channels_used >> channel) & 1; }
};

/// Lanes whose array layer does not exist.
LanesI layer_outside(const Call& call) {
  if (!(call.lookup.written & kI)) return LanesI{};
  const LanesF layer = floor(as_float(call.lookup.i) + 0.5f);
  return ~(at_most(LanesF{}, layer) & v3d::less(layer, splat(static_cast<float>(call.plan.texture.depth))));
}

LanesI compare(Compare function, LanesF reference, LanesF texel) {
  const LanesI less = v3d::less(reference, texel), equal = v3d::equal(reference, texel),
               greater = v3d::less(texel, reference);
  return (less & passes_when(function, 0)) | (equal & passes_when(function, 1)) |
         (greater & passes_when(function, 2)) | (~(less | equal | greater) & passes_unordered(function));
}

/// Texels of any format, with border colours, depth comparison and flipped axes; blends in float.
template <bool kIsCompressed>
struct AnyTexel {
  static constexpr bool kBlocks = kIsCompressed, kFlips = true, kFiltered = false;
  using Value = Texel;

  static Value read(const Call& call, const TexelPlace& place, LaneMask mask, LanesI outside) {
    const Plan& plan = call.plan;
    Texel texel = read_texel<kBlocks>(plan, call.texels, place, mask);
    if (plan.has_border) {
      if (plan.sampler.layer_border) outside |= layer_outside(call);
      for (int c = 0; c < 4; ++c) texel.c[c] = select(outside, plan.border[c], texel.c[c]);
    }
    if (plan.compare) {
      const LanesI passed = compare(plan.sampler.compare, call.reference, as_float(texel.c[0]));
      texel.c[0] = as_uint(passed) & plan.one;
      texel.c[1] = texel.c[2] = Lanes{};
      texel.c[3] = plan.one;
    }
    return texel;
  }
  static Texel texel(const Call&, const Value& value) { return value; }

  /// Texels of weight 0 take no part, even when infinite.
  static Value linear(const Call& call, const Value& a, const Value& b, LanesI weight) {
    const LanesF w = to_float(weight) * (1.0f / 256);
    const LanesI none = equal(weight, LanesI{});
    Texel result = {};
    for (int c = 0; c < 4; ++c) {
      if (!call.uses(c)) continue;
      const LanesF af = as_float(a.c[c]), bf = as_float(b.c[c]);
      result.c[c] = as_uint(select(none, af, sum(af * (1.0f - w), bf * w)));
    }
    return result;
  }
  static Texel bilinear(const Call& call, const Value (&v)[4], LanesI ws, LanesI wt) {
    return linear(call, linear(call, v[0], v[1], ws), linear(call, v[2], v[3], ws), wt);
  }
};

/// 8-bit unorm formats of kBytes channels, without all that; exact integer blending.
template <uint32_t kBytes>
struct Unorm8Texel {
  static constexpr bool kBlocks = false, kFlips = false, kFiltered = true;
  using Value = Lanes;
  typedef uint16_t Halves __attribute__((vector_size(64)));

  static Value read(const Call& call, const TexelPlace& place, LaneMask mask, LanesI) {
    if (call.texels.footprint) call.texels.footprint->add(place.address, mask, kBytes);
    return kBytes == 4 ? gather(call.texels.memory, place.address, mask)
                       : gather_small(call.texels.memory, place.address, mask, kBytes);
  }
  static Texel texel(const Call& call, const Value& value) {
    Texel result = {};
    for (int c = 0; c < static_cast<int>(kBytes); ++c)
      if (call.uses(c)) result.c[c] = as_uint(unorm8(to_float(as_int((value >> (8 * c)) & 0xffu))));
    if (kBytes < 4) result.c[3] = call.plan.one;
    return result;
  }

  /// 256 a + (b - a) weight for two 8-bit channels in the halves of each lane; fits in 16 bits.
  static Lanes blend(Lanes a, Lanes b, Lanes weights) {
    const auto ha = reinterpret_cast<Halves>(a), hb = reinterpret_cast<Halves>(b);
    return reinterpret_cast<Lanes>((ha << 8) + (hb - ha) * reinterpret_cast<Halves>(weights));
  }
  static Texel bilinear(const Call& call, const Value (&v)[4], LanesI ws, LanesI wt) {
    const Lanes weights = as_uint(ws | ws << 16);
    const LanesF vertical = to_float(wt) * (1.0f / 256);
    Texel result = {};
    for (int odd = 0; odd < (kBytes > 1 ? 2 : 1); ++odd) {
      Lanes part[4];
      for (int k = 0; k < 4; ++k) part[k] = (odd ? v[k] >> 8 : v[k]) & 0x00ff00ffu;
      const Lanes top = blend(part[0], part[1], weights), bottom = blend(part[2], part[3], weights);
      for (int c = odd; c < static_cast<int>(kBytes); c += 2) {
        if (!call.uses(c)) continue;
        const LanesF t = to_float(as_int(c < 2 ? top & 0xffffu : top >> 16));
        const LanesF b = to_float(as_int(c < 2 ? bottom & 0xffffu : bottom >> 16));
        result.c[c] = as_uint((t + (b - t) * vertical) * (1.0f / (255 * 256)));
      }
    }
    if (kBytes < 4) result.c[3] = call.plan.one;
    return result;
  }
};

template <class Policy>
Lanes stored_x(const Plan& plan, const LevelLanes& level, LanesI i) {
  if constexpr (Policy::kFlips)
    if (plan.texture.flip_x) return flipped(i, level.width);
  return as_uint(i);
}
template <class Policy>
Column column_of(const Plan& plan, const LevelLanes& level, LanesI i) {
  return column<Policy::kBlocks>(plan, level, stored_x<Policy>(plan, level, i));
}
template <class Policy>
Row row_of(const Plan& plan, const LevelLanes& level, LanesI j) {
  if constexpr (Policy::kFlips)
    if (plan.texture.flip_y) return row<Policy::kBlocks>(plan, level, flipped(j, level.height));
  return row<Policy::kBlocks>(plan, level, as_uint(j));
}

Lanes layer_base(const Call& call, const LevelLanes& level) { return level.address + call.at.layer; }

/// The texel at the coordinates, or with `back` 128 the first of the footprint of a linear filter.
template <class Policy, Shape kShape, int back = 0>
[[gnu::always_inline]] inline Texel sample_nearest(const Call& call, const LevelLanes& level) {
  const Plan& plan = call.plan;
  LanesI outside = {};
  const LanesI x = nearest_index(plan, call.at, 0, level.width, outside, back);
  TexelPlace at{layer_base(call, level), Lanes{}};
  if constexpr (kShape == k1D) {
    at = place_1d<Policy::kBlocks>(plan, at.address, stored_x<Policy>(plan, level, x));
  } else {
    const LanesI y = nearest_index(plan, call.at, 1, level.height, outside, back);
    if constexpr (kShape == k3D)
      at.address += as_uint(nearest_index(plan, call.at, 2, level.depth, outside, back)) * level.slice_size;
    at = place(at.address, column_of<Policy>(plan, level, x), row_of<Policy>(plan, level, y));
  }
  return Policy::texel(call, Policy::read(call, at, call.active, outside));
}

template <class Policy>
Texel sample_cube_edge(const Call& call, const LevelLanes& level);

template <class Policy, Shape kShape>
[[gnu::always_inline]] inline Texel sample_linear(const Call& call, const LevelLanes& level) {
  const Plan& plan = call.plan;
  if constexpr (!Policy::kFiltered)
    if (plan.first_texel) return sample_nearest<Policy, kShape, 128>(call, level);
  const Tap x = linear_tap(plan, call.at, 0, level.width);
  const Lanes base = layer_base(call, level);
  if constexpr (kShape == k1D) {
    typename Policy::Value v[2];
    for (int k = 0; k < 2; ++k)
      v[k] =
          Policy::read(call, place_1d<Policy::kBlocks>(plan, base, stored_x<Policy>(plan, level, x.index[k])),
                       call.active, x.outside[k]);
    return Policy::linear(call, v[0], v[1], x.weight);
  } else {
    const Tap y = linear_tap(plan, call.at, 1, level.height);
    const Column columns[2] = {column_of<Policy>(plan, level, x.index[0]),
                               column_of<Policy>(plan, level, x.index[1])};
    const Row rows[2] = {row_of<Policy>(plan, level, y.index[0]), row_of<Policy>(plan, level, y.index[1])};
    const auto slice = [&](Lanes address, LanesI outside, LaneMask active) {
      typename Policy::Value v[4];
      for (int k = 0; k < 4; ++k)
        v[k] = Policy::read(call, place(address, columns[k & 1], rows[k >> 1]), active,
                            outside | x.outside[k & 1] | y.outside[k >> 1]);
      return Policy::bilinear(call, v, x.weight, y.weight);
    };
    if constexpr (kShape == k3D) {
      const Tap z = linear_tap(plan, call.at, 2, level.depth);
      Texel v[2];
      for (int k = 0; k < 2; ++k)
        v[k] = slice(base + as_uint(z.index[k]) * level.slice_size, z.outside[k], call.active);
      return AnyTexel<Policy::kBlocks>::linear(call, v[0], v[1], z.weight);
    } else if constexpr (kShape == kCube) {
      const LanesI crosses = equal(x.index[0], x.index[1]) | equal(y.index[0], y.index[1]);
      const LaneMask crossing = mask_bits(crosses) & call.active;
      if (crossing == 0) return slice(base, LanesI{}, call.active);
      Call at_edges = call;
      at_edges.active = crossing;
      const Texel edge = sample_cube_edge<Policy>(at_edges, level);
      Texel texel = slice(base, LanesI{}, static_cast<LaneMask>(call.active & ~crossing));
      for (int c = 0; c < 4; ++c) texel.c[c] = select(crosses, edge.c[c], texel.c[c]);
      return texel;
    } else {
      return slice(base, LanesI{}, call.active);
    }
  }
}

/// The four texels of a footprint of a cube face, fetched across edges. @param corner  bit k: texel k does
/// not exist
struct CubeFootprint {
  Texel texel[4];
  LanesI corner[4];
  LanesI ws, wt;
};

template <class Policy>
CubeFootprint read_cube_footprint(const Call& call, const LevelLanes& level) {
  using Reader = AnyTexel<Policy::kBlocks>;
  const Plan& plan = call.plan;
  const LanesI size = min(level.width, level.height);
  const LanesI u = sub_texel(plan, call.at.at[0], size) - 128, v = sub_texel(plan, call.at.at[1], size) - 128;
  CubeFootprint footprint;
  footprint.ws = u & 255;
  footprint.wt = v & 255;
  for (int k = 0; k < 4; ++k) {
    const LanesI i = clamp((u >> 8) + (k & 1), splat_int(-1), size);
    const LanesI j = clamp((v >> 8) + (k >> 1), splat_int(-1), size);
    footprint.corner[k] = beyond_edge(i, size) & beyond_edge(j, size);
    const FaceTexel at = across_edges({call.face, i, j}, size);
    const Lanes base = level.address + as_uint(call.cube_layer + at.face) * plan.texture.array_stride;
    footprint.texel[k] = Reader::read(
        call, place(base, column_of<Policy>(plan, level, at.i), row_of<Policy>(plan, level, at.j)),
        call.active, LanesI{});
  }
  return footprint;
}

/// Seamless filtering; at a corner the missing texel is the mean of the three others.
template <class Policy>
Texel sample_cube_edge(const Call& call, const LevelLanes& level) {
  CubeFootprint f = read_cube_footprint<Policy>(call, level);
  for (int k = 0; k < 4; ++k) {
    if (!mask_bits(f.corner[k])) continue;
    for (int c = 0; c < 4; ++c) {
      const auto neighbour = [&](int n) { return as_float(f.texel[(k + n) & 3].c[c]); };
      const LanesF mean = sum(sum(neighbour(1), neighbour(2)), neighbour(3)) * (1.0f / 3);
      f.texel[k].c[c] = select(f.corner[k], as_uint(mean), f.texel[k].c[c]);
    }
  }
  return AnyTexel<Policy::kBlocks>::bilinear(call, f.texel, f.ws, f.wt);
}

template <class Policy, Shape kShape>
Texel sample_level(const Call& call, LanesI level, LaneMask nearest) {
  const LevelLanes lanes = levels_at(call.plan, level);
  const LaneMask nearest_active = nearest & call.active;
  if (nearest_active == call.active) return sample_nearest<Policy, kShape>(call, lanes);
  const Texel linear = sample_linear<Policy, kShape>(call, lanes);
  if (!nearest_active) return linear;
  Texel result = sample_nearest<Policy, kShape>(call, lanes);
  for (int c = 0; c < 4; ++c) result.c[c] = select(nearest, result.c[c], linear.c[c]);
  return result;
}

template <class Policy, Shape kShape>
Texel sample_levels(const Call& call, const LevelChoice& choice) {
  const Texel first = sample_level<Policy, kShape>(call, choice.level, choice.nearest);
  if (!(choice.blended & call.active)) return first;
  const Texel second = sample_level<Policy, kShape>(call, choice.next, choice.nearest);
  return AnyTexel<Policy::kBlocks>::linear(call, first, second, choice.weight);
}

/// The extent of the base level along an axis as the scale of derivatives.
LanesF base_size(const Plan& plan, int axis) {
  if (plan.unnormalized) return splat(1.0f);
  const LanesI* sizes[3] = {&plan.levels.width, &plan.levels.height, &plan.levels.depth};
  return splat(static_cast<float>((*sizes[axis])[plan.texture.base_level]));
}

/// Array layer: round half up, clamped; NaN is layer 0.
LanesI array_layer(const Plan& plan, const TextureLookup& lookup) {
  if (!(lookup.written & kI)) return LanesI{};
  const float last = static_cast<float>(plan.texture.depth > 0 ? plan.texture.depth - 1 : 0);
  const LanesF rounded = floor(as_float(lookup.i) + 0.5f);
  return floor_to_int(min(max(rounded, splat(0.0f)), splat(last)));
}

/// Coordinates, layer and reference of a lookup, and the derivatives if the level depends on them.
template <Shape kShape>
[[gnu::always_inline]] inline Derivatives set_up(Call& call, bool want_derivatives) {
  const Plan& plan = call.plan;
  const TextureLookup& lookup = call.lookup;
  Derivatives derivatives;
  call.at.layer = Lanes{};
  LanesF raw[3] = {as_float(lookup.s), as_float(lookup.t), as_float(lookup.r)};
  if constexpr (kShape == kCube) {
    const LanesI face = major_face(raw[0], raw[1], raw[2]);
    const FacePoint point = project(face, raw[0], raw[1], raw[2]);
    if (want_derivatives) derivatives.add_cube(raw, base_size(plan, 0));
    call.face = face;
    call.cube_layer = 6 * array_layer(plan, lookup);
    call.at.layer = as_uint(call.cube_layer + face) * plan.texture.array_stride;
    call.at.at[0] = (point.s / point.major + 1.0f) * 0.5f;
    call.at.at[1] = (point.t / point.major + 1.0f) * 0.5f;
  } else {
    if (lookup.written & kI) call.at.layer = as_uint(array_layer(plan, lookup)) * plan.texture.array_stride;
    for (int axis = 0; axis < kShape; ++axis) {
      if (want_derivatives) derivatives.add(raw[axis], base_size(plan, axis));
      call.at.at[axis] = plan.unnormalized ? raw[axis] : reduce(plan.sampler.wrap[axis], raw[axis]);
    }
  }
  if (plan.general_wrap) texel_offsets(plan, lookup, call.at.offset);
  if (plan.compare) {
    call.reference = as_float(lookup.dref);
    if (plan.format->clamps_reference()) call.reference = min(max(call.reference, splat(0.0f)), splat(1.0f));
  }
  return derivatives;
}

/// The base level with one filter in all lanes.
template <class Policy, Shape kShape, bool kNearest>
[[gnu::always_inline]] inline Texel sample_base_level(const Call& call) {
  const LevelLanes level = level_in_all_lanes(call.plan, call.plan.texture.base_level);
  return kNearest ? sample_nearest<Policy, kShape>(call, level) : sample_linear<Policy, kShape>(call, level);
}

/// Lookups that always use one filter in the base level.
template <class Policy, Shape kShape, bool kNearest>
void run_base_level(const Plan& plan, TexelMemory& texels, const TextureLookup& lookup, LaneMask active,
                    Lanes* out) {
  Call call(plan, texels, lookup, active);
  set_up<kShape>(call, false);
  finish(plan, sample_base_level<Policy, kShape, kNearest>(call).c, active, out);
}

/// Lookups whose level and filter may differ from lane to lane.
template <class Policy, Shape kShape>
void run_levels(const Plan& plan, TexelMemory& texels, const TextureLookup& lookup, LaneMask active,
                Lanes* out) {
  Call call(plan, texels, lookup, active);
  const Derivatives derivatives = set_up<kShape>(call, !plan.explicit_lod);
  if (all_magnified(plan, derivatives, active)) {
    const Texel texel = plan.sampler.mag_nearest ? sample_base_level<Policy, kShape, true>(call)
                                                 : sample_base_level<Policy, kShape, false>(call);
    return finish(plan, texel.c, active, out);
  }
  const LevelChoice choice = choose_levels(plan, unclamped_lod(plan, lookup, derivatives));
  finish(plan, sample_levels<Policy, kShape>(call, choice).c, active, out);
}

/// Anisotropic 2D filtering: N isotropic lookups along the longer side of the footprint (texture.md 4.6),
/// with either filter (dEQP-VK.texture.filtering_anisotropy.*.mag_linear_min_nearest_mipmap_* wants a
/// difference).
template <class Policy>
void run_anisotropic(const Plan& plan, TexelMemory& texels, const TextureLookup& lookup, LaneMask active,
                     Lanes* out) {
  Call call(plan, texels, lookup, active);
  const Derivatives derivatives = set_up<k2D>(call, true);
  const LanesI x_longer = at_most(derivatives.y2, derivatives.x2);
  const LanesF longer = select(x_longer, derivatives.x2, derivatives.y2);
  const LanesF shorter = select(x_longer, derivatives.y2, derivatives.x2);
  const LanesF at_least_texel = max(shorter, splat(1.0f));
  LanesI probes = splat_int(1);  // ceil(longer / shorter), limited
  for (int n = 1; n < plan.sampler.max_anisotropy; ++n)
    probes -= less(at_least_texel * static_cast<float>(n * n), longer);
  const LanesF count = to_float(probes);
  Derivatives reduced;
  reduced.x2 = longer / (count * count);
  const LevelChoice choice = choose_levels(plan, unclamped_lod(plan, lookup, reduced));

  LanesF step[2];
  for (int axis = 0; axis < 2; ++axis) {
    const LanesF v = as_float(axis ? lookup.t : lookup.s);
    step[axis] = select(x_longer, of_quad<1>(v), of_quad<2>(v)) - of_quad<0>(v);
  }
  Texel total = {};
  for (int k = 0;; ++k) {
    const LaneMask taking_part = mask_bits(less(splat_int(k), probes)) & active;
    if (!taking_part) break;
    call.active = taking_part;
    const LanesF along = (static_cast<float>(k) + 0.5f) / count - 0.5f;
    for (int axis = 0; axis < 2; ++axis) {
      const LanesF v = as_float(axis ? lookup.t : lookup.s) + step[axis] * along;
      call.at.at[axis] = plan.unnormalized ? v : reduce(plan.sampler.wrap[axis], v);
    }
    const Texel probe = sample_levels<Policy, k2D>(call, choice);
    for (int c = 0; c < 4; ++c)
      total.c[c] = select(taking_part, as_uint(sum(as_float(total.c[c]), as_float(probe.c[c]))), total.c[c]);
  }
  for (int c = 0; c < 4; ++c) total.c[c] = as_uint(as_float(total.c[c]) / count);
  finish(plan, total.c, active, out);
}

/// Gather: the four texels of the linear footprint in the base level.
template <class Policy>
void run_gather(const Plan& plan, TexelMemory& texels, const TextureLookup& lookup, LaneMask active,
                Lanes* out) {
  Call call(plan, texels, lookup, active);
  (plan.cube ? set_up<kCube>(call, false) : set_up<k2D>(call, false));
  const LevelLanes level = levels_at(plan, splat_int(plan.texture.base_level));
  const uint8_t source = plan.channel[plan.options.gather_component];
  Lanes values[4];
  const auto pick = [&](const Texel& texel) {
    return source < 4 ? texel.c[source] : source == 4 ? Lanes{} : plan.one;
  };
  if (plan.cube) {
    const CubeFootprint footprint = read_cube_footprint<Policy>(call, level);
    for (int k = 0; k < 4; ++k) values[k] = pick(footprint.texel[k]);
  } else {
    const Tap x = linear_tap(plan, call.at, 0, level.width), y = linear_tap(plan, call.at, 1, level.height);
    for (int k = 0; k < 4; ++k) {
      const LanesI i = x.index[k & 1], j = y.index[k >> 1];
      const TexelPlace at =
          place(layer_base(call, level), column_of<Policy>(plan, level, i), row_of<Policy>(plan, level, j));
      values[k] = pick(Policy::read(call, at, active, x.outside[k & 1] | y.outside[k >> 1]));
    }
  }
  finish_ordered(plan, values, active, out);
}

/// LOD query: the level that would be used and the level of detail before clamping (texture.md 4.2).
template <Shape kShape>
void run_lod_query(const Plan& plan, TexelMemory& texels, const TextureLookup& lookup, LaneMask active,
                   Lanes* out) {
  Call call(plan, texels, lookup, active);
  const Derivatives derivatives = set_up<kShape>(call, !plan.explicit_lod);
  const LanesF lod = unclamped_lod(plan, lookup, derivatives);
  const float last = static_cast<float>(plan.texture.max_level > plan.texture.base_level
                                            ? plan.texture.max_level - plan.texture.base_level
                                            : 0);
  LanesF level = max(to_float(clamped_lod(plan, lod)) * (1.0f / 256), splat(0.0f));
  if (plan.sampler.mip_nearest) level = floor(level + 0.5f);
  const Lanes values[4] = {as_uint(min(level, splat(last))), as_uint(floor(lod * 256.0f) * (1.0f / 256)),
                           Lanes{}, Lanes{}};
  finish_ordered(plan, values, active, out);
}

template <class Policy, Shape kShape>
Run filter_function(const Plan& plan) {
  if constexpr (kShape == k2D)
    if (plan.anisotropic) return run_anisotropic<Policy>;
  if (plan.needs_lod) return run_levels<Policy, kShape>;
  return plan.sampler.mag_nearest ? run_base_level<Policy, kShape, true>
                                  : run_base_level<Policy, kShape, false>;
}

template <class Policy>
Run for_any_format(const Plan& plan) {
  if (plan.options.gather) return plan.dims == 2 ? run_gather<Policy> : run_nothing;
  if (plan.cube) return filter_function<Policy, kCube>(plan);
  if (plan.dims == 3) return filter_function<Policy, k3D>(plan);
  if (plan.dims == 2) return filter_function<Policy, k2D>(plan);
  return filter_function<Policy, k1D>(plan);
}

template <uint32_t kBytes>
Run for_unorm8(const Plan& plan) {
  using Policy = Unorm8Texel<kBytes>;
  if (plan.cube) return filter_function<Policy, kCube>(plan);
  return plan.dims == 3 ? filter_function<Policy, k3D>(plan) : filter_function<Policy, k2D>(plan);
}

Run lod_query_function(const Plan& plan) {
  if (plan.cube) return run_lod_query<kCube>;
  return plan.dims == 1 ? run_lod_query<k1D> : plan.dims == 2 ? run_lod_query<k2D> : run_lod_query<k3D>;
}

}  // namespace

Run sampling_function(const Plan& plan) {
  const bool blocks = plan.format->compressed();
  if (plan.options.lod_query) return lod_query_function(plan);
  if (plan.dims >= 2 && !plan.flips && !plan.options.gather && !plan.has_border && !plan.compare) {
    const bool transfers = plan.format->decoder(plan.texture.transfer) != nullptr;
    const int bytes = transfers ? 0 : plan.format->unorm_bytes;
    if (bytes == 1) return for_unorm8<1>(plan);
    if (bytes == 2) return for_unorm8<2>(plan);
    if (bytes == 4) return for_unorm8<4>(plan);
  }
  return blocks ? for_any_format<AnyTexel<true>>(plan) : for_any_format<AnyTexel<false>>(plan);
}

}  // namespace v3d::tmu
