/// These functions decode the records of texture shader state and sampler state (texture.md 3).
#pragma once

#include <cstdint>

#include "gpu/base/compare.h"
#include "gpu/base/memory.h"
#include "gpu/chip/generation.h"
#include "gpu/tmu/texel/format.h"

namespace v3d::tmu {

struct TextureState {
  enum Swizzle : uint8_t { kZero, kOne, kR, kG, kB, kA };  ///< 6 and 7 are read as kZero

  GpuAddr base;           ///< level 0 of layer 0
  uint32_t array_stride;  ///< bytes between layers
  uint32_t width, height, depth;
  TextureType type;
  Swizzle swizzle[4];
  uint8_t base_level, max_level;
  uint8_t level_0_ub_pad;
  bool level_0_xor, level_0_strictly_uif;
  Transfer transfer;
  bool reverse, rb_swap;         ///< 7.1
  bool reverse_standard_border;  ///< 4.2
  bool flip_x, flip_y;           ///< as if the texels of every level were stored in the opposite order
  bool swap_st;                  ///< 4.2: S and T of the request change places
  const char* unsupported;       ///< name of a feature that is asked for and not modelled, or null
};

TextureState decode_texture_state(Memory memory, GpuAddr address, chip::Generation generation);

enum class Wrap : uint8_t { kRepeat, kClamp, kMirror, kBorder, kMirrorOnce };

struct SamplerState {
  bool mag_nearest, min_nearest, mip_nearest;
  uint8_t max_anisotropy;  ///< 1: off; else 2, 4, 8, 16
  Compare compare;
  int32_t min_lod, max_lod;  ///< 1/256
  int32_t bias;              ///< 1/256
  Wrap wrap[3];              ///< S, T, R
  bool transfer_disable;     ///< "sRGB disable"; assumed of every transfer function
  bool layer_border;         ///< "wrap I border": layers that do not exist have the border colour
  uint8_t border_mode;       ///< 0..2 standard colours, 7 words
  uint32_t border_words[4];  ///< with border_mode 7 only, else 0
};

SamplerState decode_sampler_state(Memory memory, GpuAddr address);
/// What lookups without a sampler use: nearest, clamped.
SamplerState default_sampler_state();

}  // namespace v3d::tmu
