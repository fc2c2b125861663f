/// A BlockTarget is what a draw's colours become in the tile buffer, as a function for whole blocks of
/// fragments has it (block_code.h): part of its key.
#pragma once

#include <cstdint>

#include "gpu/draw/modes.h"

namespace v3d::qpu {

/// Of render target 0, which is the only one, in a frame of one sample.
struct BlockTarget {
  enum class Type : uint8_t {
    kNone,  ///< there is none: colours go nowhere
    k8,     ///< four unorm bytes in a word
    k16F,   ///< four halves in two words, or the first two in one
  };
  Type type = Type::k8;
  uint8_t words = 1;
  uint8_t kept = 0;  ///< bit c: channel c stays as it is
  /// Of halves: source and result are limited to 0 and most.
  bool is_limited = false;
  float most_color = 1, most_alpha = 1;
  bool blends = false;
  draw::BlendConfig blend{};  ///< as it is made, unless `blends`
  bool operator==(const BlockTarget&) const = default;

  /// Whether a channel that it has does not stay as it is. Of others there may be no room in the tile.
  bool changes() const {
    const uint32_t channels = type == Type::k16F ? (1u << 2 * words) - 1 : 0xf;
    return type != Type::kNone && (kept & channels) != channels;
  }
};

/// Of blending: they follow the uniforms of the program (BlockRun::uniforms), limited as colours are.
inline constexpr uint32_t kBlendConstants = 4;

}  // namespace v3d::qpu
