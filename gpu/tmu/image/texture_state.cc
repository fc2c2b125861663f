#include "gpu/tmu/image/texture_state.h"

#include <algorithm>

#include "gpu/chip/generation.h"

namespace v3d::tmu {
namespace {

/// A state record; bits are numbered through its words.
class Record {
 public:
  Record(Memory memory, GpuAddr address, size_t bytes) { memory.read(address, words_, bytes); }
  uint32_t bits(int first, int count) const {
    const int word = first / 32, shift = first % 32;
    const uint64_t pair = words_[word] | uint64_t{word < 5 ? words_[word + 1] : 0} << 32;
    return static_cast<uint32_t>(pair >> shift) & ((1u << count) - 1);
  }
  bool bit(int index) const { return bits(index, 1) != 0; }

 private:
  uint32_t words_[6] = {};
};

constexpr size_t kShortTextureState = 16, kExtendedTextureState = 24;
}  // namespace

TextureState decode_texture_state(Memory memory, GpuAddr address, chip::Generation generation) {
  Record record(memory, address, kShortTextureState);
  const bool extended = record.bit(107);
  if (extended) record = Record(memory, address, kExtendedTextureState);

  TextureState state = {};
  state.base = record.bits(6, 26) << 6;
  switch (generation) {
    case chip::Generation::k21:  // texture_config.h reads what it has instead
      state.unsupported = "a texture descriptor on V3D 2.1, which has none";
      break;
    case chip::Generation::k71: {
      state.reverse = record.bit(5);
      const uint32_t transfer = record.bits(2, 3);
      if (transfer < kTransfers)
        state.transfer = static_cast<Transfer>(transfer);
      else
        state.unsupported = "transfer function 6 or 7";
      state.rb_swap = record.bit(32);
      state.array_stride = record.bits(33, 24) << 6;
      break;
    }
    case chip::Generation::k42:
      state.reverse_standard_border = record.bit(5);
      if (record.bit(4)) state.unsupported = "AHDR of a texture (of unknown meaning)";
      state.swap_st = record.bit(2);
      state.transfer = record.bit(3) ? Transfer::kSrgb : Transfer::kNone;
      state.array_stride = record.bits(32, 26) << 6;
  }
  state.flip_y = record.bit(1);
  state.flip_x = record.bit(0);
  state.width = record.bits(58, 14);
  state.height = record.bits(72, 14);
  state.depth = record.bits(86, 14);
  state.type = TextureType{record.bits(100, 7)};
  for (int i = 0; i < 4; ++i) {
    const uint32_t source = record.bits(108 + 3 * i, 3);
    state.swizzle[i] =
        source <= TextureState::kA ? static_cast<TextureState::Swizzle>(source) : TextureState::kZero;
  }
  state.max_level = static_cast<uint8_t>(record.bits(120, 4));
  state.base_level = static_cast<uint8_t>(record.bits(124, 4));
  if (extended) {
    state.level_0_ub_pad = static_cast<uint8_t>(record.bits(128, 4));
    state.level_0_xor = record.bit(132) && !record.bit(135);
    state.level_0_strictly_uif = record.bit(134);
  }
  return state;
}

SamplerState decode_sampler_state(Memory memory, GpuAddr address) {
  const Record record(memory, address, 8);
  SamplerState state = {};
  state.mag_nearest = record.bit(0);
  state.min_nearest = record.bit(1);
  state.mip_nearest = record.bit(2);
  state.max_anisotropy = record.bit(3) ? static_cast<uint8_t>(2u << record.bits(61, 2)) : 1;
  state.compare = static_cast<Compare>(record.bits(4, 3));
  state.transfer_disable = record.bit(7);
  state.layer_border = record.bit(57);
  state.min_lod = static_cast<int32_t>(record.bits(8, 12));
  state.max_lod = static_cast<int32_t>(record.bits(20, 12));
  state.bias = static_cast<int16_t>(record.bits(32, 16));
  for (int i = 0; i < 3; ++i) {
    const uint32_t wrap = record.bits(48 + 3 * i, 3);
    state.wrap[i] = wrap <= 4 ? static_cast<Wrap>(wrap) : Wrap::kClamp;
  }
  state.border_mode = static_cast<uint8_t>(record.bits(58, 3));
  // Records without a colour may be packed at 24 bytes with only 8 of them written: read no more than these.
  if (state.border_mode == 7) memory.read(address + 8, state.border_words, sizeof state.border_words);
  return state;
}

SamplerState default_sampler_state() {
  SamplerState state = {};
  state.mag_nearest = state.min_nearest = state.mip_nearest = true;
  state.max_anisotropy = 1;
  state.wrap[0] = state.wrap[1] = state.wrap[2] = Wrap::kClamp;
  return state;
}

}  // namespace v3d::tmu
