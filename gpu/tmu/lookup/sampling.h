/// These functions are parts of a filtered lookup: coordinates, level of detail, wrapping (texture.md 4, 13).
#pragma once

#include "gpu/base/vector.h"
#include "gpu/tmu/lookup/addressing.h"
#include "gpu/tmu/lookup/plan.h"

namespace v3d::tmu {

/// Texel offsets of P2 and TMUOFF.
inline void texel_offsets(const Plan& plan, const TextureLookup& lookup, LanesI* offset) {
  const int bits = plan.options.wide_offsets ? 8 : 4;
  for (int axis = 0; axis < 3; ++axis)
    offset[axis] = lookup.written & kOff ? (as_int(lookup.off << (32 - bits * (axis + 1))) >> (32 - bits)) +
                                               plan.options.sample[axis]
                                         : splat_int(plan.options.offset[axis]);
}

/// Coordinates of a lookup, prepared for any level.
struct Coordinates {
  LanesF at[3];  ///< normalized unless plan.unnormalized; repeated ones reduced to one period
  LanesI offset[3];
  Lanes layer;  ///< byte offset of the array layer or cube face
};

/// Reduces a coordinate to the first period of its wrap mode, where it has one.
inline LanesF reduce(Wrap wrap, LanesF v) {
  if (wrap == Wrap::kRepeat) return max(v - floor(v), splat(0.0f));
  if (wrap == Wrap::kMirror) return max(v - 2.0f * floor(v * 0.5f), splat(0.0f));
  return v;
}

/// Sub-texel position in 1/256 texel, truncated; NaN becomes a value far outside.
inline LanesI sub_texel(const Plan& plan, LanesF at, LanesI size) {
  const LanesF u = plan.unnormalized ? at : at * to_float(size);
  return floor_to_int(min(max(u, splat(-32768.0f)), splat(32767.0f)) * 256.0f);
}

/// i modulo n for |i| below 2^17.
inline LanesI modulo(LanesI i, LanesI n) { return i - floor_to_int(to_float(i) / to_float(n)) * n; }

/// i modulo n for i from -n to 2 n - 1.
inline LanesI into_range(const LanesI& i, const LanesI& n) {
  return i + (n & less(i, LanesI{})) - (n & at_most(n, i));
}

/// Texel index inside the image. @param outside  set where the border colour applies
inline LanesI wrap_index(const Plan& plan, Wrap mode, LanesI i, LanesI n, LanesI& outside) {
  const LanesI last = n - 1;
  switch (mode) {
    case Wrap::kRepeat:
      if (plan.general_wrap) return modulo(i, n);
      return into_range(i, n);
    case Wrap::kMirror: {
      LanesI m = i;
      if (plan.general_wrap)
        m = modulo(i, 2 * n);
      else
        m = into_range(i, 2 * n);
      return min(m, 2 * n - 1 - m);
    }
    case Wrap::kBorder:
      outside |= less(i, LanesI{}) | less(last, i);
      return clamp(i, LanesI{}, last);
    case Wrap::kMirrorOnce:
      return min(max(i, -1 - i), last);
    case Wrap::kClamp:
      break;
  }
  return clamp(i, LanesI{}, last);
}

/// Two neighbouring texels of one axis and the weight of the second, 0..255.
struct Tap {
  LanesI index[2];
  LanesI outside[2];
  LanesI weight;
};

inline Tap linear_tap(const Plan& plan, const Coordinates& c, int axis, LanesI size) {
  const LanesI u = sub_texel(plan, c.at[axis], size) - 128;
  LanesI i = u >> 8;
  if (plan.general_wrap) i += c.offset[axis];
  Tap tap = {};
  tap.weight = u & 255;
  const Wrap mode = plan.sampler.wrap[axis];
  tap.index[0] = wrap_index(plan, mode, i, size, tap.outside[0]);
  tap.index[1] = wrap_index(plan, mode, i + 1, size, tap.outside[1]);
  return tap;
}

/// @param back  how far before the coordinate to look, in 1/256 texel
inline LanesI nearest_index(const Plan& plan, const Coordinates& c, int axis, LanesI size, LanesI& outside,
                            int back) {
  LanesI i = (sub_texel(plan, c.at[axis], size) - back) >> 8;
  if (plan.general_wrap) i += c.offset[axis];
  return wrap_index(plan, plan.sampler.wrap[axis], i, size, outside);
}

/// Lane `k` of its quad, in every lane of the quad.
template <int k>
LanesF of_quad(LanesF v) {
  const LanesI from = {k,     k,     k,     k,     k + 4,  k + 4,  k + 4,  k + 4,
                       k + 8, k + 8, k + 8, k + 8, k + 12, k + 12, k + 12, k + 12};
  return permute(v, from);
}

/// Squared lengths of the footprint's sides in texels: per quad, x and y differences.
struct Derivatives {
  LanesF x2 = {}, y2 = {};
  void add(LanesF v, LanesF scale) {
    const LanesF origin = of_quad<0>(v);
    const LanesF dx = (of_quad<1>(v) - origin) * scale, dy = (of_quad<2>(v) - origin) * scale;
    x2 += dx * dx;
    y2 += dy * dy;
  }
  /// @param most  what a difference of v counts for at most
  void add(LanesF v, LanesF scale, float most) {
    const LanesF origin = of_quad<0>(v);
    const LanesF dx = min(abs(of_quad<1>(v) - origin), splat(most)) * scale,
                 dy = min(abs(of_quad<2>(v) - origin), splat(most)) * scale;
    x2 += dx * dx;
    y2 += dy * dy;
  }
  /// Of a cube, whose points (x, y, z) lie on the faces of a cube of 2: the distances along the three axes
  /// added up. Drivers divide by the major component (Mesa nir_normalize_cubemap_coords.c). Whatever projects
  /// the quad on one face gives a wrong level where some of its pixels lie beyond the edge: boards pass
  /// dEQP-VK.pipeline.monolithic.image.*.view_type.cube.*.size.13x13 and piglit's tex-miplevel-selection cube
  /// and cubemap npot, each of which tells another projection.
  void add_cube(const LanesF (&point)[3], LanesF size) {
    LanesF dx = {}, dy = {};
    for (const LanesF& v : point) {
      dx += abs(of_quad<1>(v) - of_quad<0>(v));
      dy += abs(of_quad<2>(v) - of_quad<0>(v));
    }
    const LanesF scale = 0.5f * size;
    x2 = dx * dx * scale * scale;
    y2 = dy * dy * scale * scale;
  }
};

/// log2 of a length given squared; 0 and NaN give -16 (CTS: below -14 for zero derivatives).
inline LanesF log2_of_square(LanesF squared) {
  return log2(min(max(squared, splat(0x1p-32f)), splat(0x1p+60f))) * 0.5f;
}

/// Do these lanes magnify whatever the sampler adds? Then the logarithm need not be known.
inline bool all_magnified(const Plan& plan, const Derivatives& derivatives, LaneMask active) {
  if (!plan.magnifies_below_one) return false;
  return (mask_bits(less(splat(1.0f), max(derivatives.x2, derivatives.y2))) & active) == 0;
}

/// Level of detail before the sampler's limits: explicit or from derivatives, plus biases.
inline LanesF unclamped_lod(const Plan& plan, const TextureLookup& lookup, const Derivatives& derivatives) {
  LanesF lod = {};
  if (!plan.explicit_lod) lod = log2_of_square(max(derivatives.x2, derivatives.y2));
  if (lookup.written & kB) lod += as_float(lookup.b);
  return lod + static_cast<float>(plan.sampler.bias) * (1.0f / 256);
}

/// What the level of detail decides, per lane.
struct LevelChoice {
  LanesI level, next;  ///< next: to blend with
  LanesI weight;       ///< of next, 0..255
  LaneMask nearest;    ///< lanes whose filter inside a level is nearest
  LaneMask blended;    ///< lanes with weight > 0
};

/// Clamped level of detail in 1/256, relative to the base level.
inline LanesI clamped_lod(const Plan& plan, LanesF lod) {
  const LanesI fixed = floor_to_int(min(max(lod, splat(-64.0f)), splat(64.0f)) * 256.0f);
  return min(max(fixed, splat_int(plan.sampler.min_lod)), splat_int(plan.sampler.max_lod));
}

/// @param most_magnified  the level of detail, in 1/256, up to which lanes magnify
inline LevelChoice choose_levels(const Plan& plan, LanesF lod, int32_t most_magnified = 0) {
  const SamplerState& sampler = plan.sampler;
  LevelChoice choice = {};
  const LanesI lambda = clamped_lod(plan, lod);
  const LanesI magnifies = at_most(lambda, splat_int(most_magnified));
  const LaneMask magnified = mask_bits(magnifies);
  choice.nearest =
      static_cast<LaneMask>((sampler.mag_nearest ? magnified : 0) | (sampler.min_nearest ? ~magnified : 0));
  const LanesI positive = max(lambda, LanesI{}) & ~magnifies;
  const LanesI base = splat_int(plan.texture.base_level);
  const LanesI last = max(base, splat_int(plan.texture.max_level));
  if (sampler.mip_nearest) {
    choice.level = choice.next = min(base + ((positive + 128) >> 8), last);
    return choice;
  }
  choice.level = min(base + (positive >> 8), last);
  choice.next = min(choice.level + 1, last);
  choice.weight = less(choice.level, last) & positive & 255;
  choice.blended = nonzero(as_uint(choice.weight));
  return choice;
}

}  // namespace v3d::tmu
