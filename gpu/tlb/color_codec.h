/// A ColorCodec is an image format of loads and stores: the way between its texels and the words of a render
/// target (cle-and-tiles.md 6.1). It is internal to the TLB.
#pragma once

#include <array>
#include <span>
#include <string>

#include "gpu/tlb/tile.h"

namespace v3d::tlb {

/// What the channels of an image format are.
enum class Numeric : uint8_t {
  kUnsupported,
  kUnorm,
  kSrgb,  ///< R, G, B; alpha is unorm
  kHlg,   ///< R, G, B, of 10 bits; alpha is unorm
  kUint,
  kSint,
  kHalf,
  kSmallFloat,  ///< 10 or 11 bits without sign
  kFloat,
  kDepth32F,
  kDepth16,
  kDepth24Stencil,
  kStencil,
};

/// Channel R, G, B or A of a texel. Bits 0: the format lacks it.
struct Field {
  uint8_t bits = 0, shift = 0;  ///< from bit 0 of the texel
};

struct ImageFormat {
  const char* name;
  Numeric numeric = Numeric::kUnsupported;
  uint8_t bytes = 0;
  Field fields[4] = {};
};

/// The image format of the load and store packets, 0..63.
const ImageFormat& image_format(uint8_t number);
inline bool is_color(const ImageFormat& format) {
  return format.numeric > Numeric::kUnsupported && format.numeric < Numeric::kDepth32F;
}

/// Texels or colours of sixteen pixels, low word first; what the format or the target has no use for is
/// unspecified.
using ColorWords = std::array<Lanes, kMaxWords>;

/// Pixels between memory and render target.
class ColorCodec {
 public:
  /// The form in which channels pass from one side to the other, chosen so that equal types keep every bit.
  enum class Domain : uint8_t {
    kBits,    ///< raw channels
    kUnorm8,  ///< 0..255
    kHalf,    ///< bits of a float16
    kFloat,
  };

  ColorCodec(const ImageFormat& format, const RenderTarget& target, const LoadStore& packet);

  void load(std::span<const ColorWords> texels, ColorWords* colors) const {
    functions_.load(*this, texels, colors);
  }
  /// @param strip  number of the 8x2 blocks' two rows in the frame, modulo 2: where they are in the dither
  /// matrix
  void store(std::span<const ColorWords> colors, uint32_t strip, ColorWords* texels) const {
    functions_.store(*this, colors, strip, texels);
  }
  /// Texels depend on where they are.
  bool dithers() const { return dither_ != 0; }
  /// The texel is these words of the target, bit by bit: neither function is needed.
  bool copies() const { return copies_; }
  /// Both directions do so, but for the first and third bytes, which are exchanged.
  bool swaps_bytes() const { return functions_.store == kSwappedBytes.store; }

 private:
  /// Both directions for one type, domain and kind of numbers; bits and places of the fields are data.
  struct Functions {
    void (*load)(const ColorCodec& codec, std::span<const ColorWords> texels, ColorWords* colors);
    void (*store)(const ColorCodec& codec, std::span<const ColorWords> colors, uint32_t strip,
                  ColorWords* texels);
  };
  template <ColorType kType, Domain kDomain, Numeric kNumeric>
  struct Coder;
  template <ColorType kType>
  static Functions functions(Domain domain, Numeric numeric);
  static Functions functions(ColorType type, Domain domain, Numeric numeric);
  static const Functions kSwappedBytes;

  const ImageFormat& format_;
  const uint32_t words_;  // of the target
  Functions functions_;
  bool force_alpha_1_ = false;
  bool cuts_ = false;
  uint8_t dither_ = 0;  // as LoadStore has it, 0 where it changes nothing
  bool copies_ = false;
  // Loads reverse the channels first, stores exchange red and blue first (Mesa v3dvx_meta_common.c,
  // emit_image_load).
  bool reverse_ = false, swap_ = false;
};

/// The average of the four samples of a pixel; only types 8, 16F and 32F have one.
bool can_average(ColorType type);
void average_samples(ColorType type, uint32_t words, const Lanes samples[kMaxSamples][kMaxWords], Lanes* out);

}  // namespace v3d::tlb
