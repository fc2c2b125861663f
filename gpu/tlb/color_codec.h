/// Image formats of loads and stores, and the way between their texels and the words of a render target
/// (cle-and-tiles.md 6.1). Internal to the TLB.
#pragma once

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

/// Sixteen pixels between memory and render target. Texels and colours are kMaxWords long, low word first;
/// what the format or the target has no use for is unspecified.
class ColorCodec {
 public:
  ColorCodec(const ImageFormat& format, const RenderTarget& target, const LoadStore& packet);

  void load(const Lanes* texel, Lanes* words) const;
  /// @param strip  number of the 8x2 block's two rows in the frame, modulo 2: where it is in the dither
  /// matrix
  void store(const Lanes* words, uint32_t strip, Lanes* texel) const;
  /// Texels depend on where they are.
  bool dithers() const { return dither_ != 0; }
  /// The texel is these words of the target, bit by bit: neither function is needed.
  bool copies() const { return copies_; }

 private:
  /// The form in which channels pass from one side to the other, chosen so that equal types keep every bit.
  enum class Domain : uint8_t {
    kBits,    ///< raw channels
    kUnorm8,  ///< 0..255
    kHalf,    ///< bits of a float16
    kFloat,
  };
  Lanes decode(int channel, const Lanes* texel) const;
  Lanes encode(int channel, Lanes value, uint32_t strip) const;
  Lanes one() const;

  const ImageFormat& format_;
  const RenderTarget& target_;
  Domain domain_;
  bool force_alpha_1_ = false;
  uint8_t dither_ = 0;          // as LoadStore has it, 0 where it changes nothing
  bool swapped_bytes_ = false;  // rgba8 of every kind with R/B swap alone
  bool copies_ = false;
  uint8_t load_order_[4], store_order_[4];  // source channel of each channel
};

/// The average of the four samples of a pixel; only types 8, 16F and 32F have one.
bool can_average(ColorType type);
void average_samples(ColorType type, uint32_t words, const Lanes samples[kMaxSamples][kMaxWords], Lanes* out);

}  // namespace v3d::tlb
