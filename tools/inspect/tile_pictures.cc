#include "tools/inspect/tile_pictures.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "gpu/base/float16.h"
#include "gpu/cle/render_list.h"

namespace v3d::inspect {

using tlb::ColorType;

class TilePictures::Tile final : public LayerTile {
 public:
  explicit Tile(TilePictures& pictures) : LayerTile(pictures), pictures_(pictures) {}

  void before(const cle::TileCommand& command, tlb::TileBuffer& tile) override {
    if (stores_first(command) && pictures_.layer() == pictures_.wanted_layer_) pictures_.copy(tile);
  }

 private:
  TilePictures& pictures_;
};

TilePictures::TilePictures(uint32_t layer, uint8_t buffer, uint32_t sample)
    : wanted_layer_(layer), buffer_(buffer), sample_(sample) {}
TilePictures::~TilePictures() = default;

void TilePictures::begin_tiles(size_t workers) { tiles_.make(workers, *this); }

TileWatch& TilePictures::begin_tile(size_t /*number*/, size_t worker, uint32_t /*column*/, uint32_t /*row*/) {
  return tiles_.begin(worker);
}

void TilePictures::copy(tlb::TileBuffer& tile) {
  const tlb::Config& config = tile.config();
  {
    const std::lock_guard lock(mutex_);
    if (picture_.width == 0) {
      picture_.width = config.width;
      picture_.height = config.height;
      picture_.config = config;
      const bool exists = buffer_ > kNoBuffer || config.targets[buffer_].used;
      const uint64_t pixels = uint64_t{config.width} * config.height;
      if (exists && pixels <= kMostPixels) picture_.pixels.resize(pixels);
    }
  }
  if (picture_.pixels.empty()) return;
  const tlb::TileBuffer::Place place = tile.place();
  // Lists may change the frame on their way.
  const uint32_t right = std::min(place.x + place.width, picture_.width),
                 bottom = std::min(place.y + place.height, picture_.height);
  for (uint32_t y = place.y; y < bottom; ++y)
    for (uint32_t x = place.x; x < right; ++x) {
      const tlb::TileBuffer::Sample held = tile.sample(x, y, sample_);
      picture_.pixels[size_t{y} * picture_.width + x] =
          buffer_ == kDepthBuffer     ? held.depth
          : buffer_ == kStencilBuffer ? held.stencil
                                      : rgba8_of(config.targets[buffer_], held.colors[buffer_]);
    }
}

BufferPicture TilePictures::take() {
  picture_.layers = layers();
  return std::move(picture_);
}

Channels channels_of(const tlb::RenderTarget& target, const std::array<uint32_t, 4>& words) {
  const uint32_t room = 1u << target.bpp;
  Channels channels;
  const auto take = [&](uint32_t bits, const auto& value) {
    const uint32_t per_word = 32 / bits;
    for (uint32_t c = 0; c < 4 && c / per_word < std::min(room, 4u); ++c) {
      const uint32_t raw = words[c / per_word] >> (c % per_word * bits);
      channels.values[channels.count++] = value(raw);
    }
  };
  switch (target.type) {
    case ColorType::k8:
      take(8, [](uint32_t raw) { return (raw & 0xff) / 255.0; });
      break;
    case ColorType::k8I:
      take(8, [](uint32_t raw) { return static_cast<double>(static_cast<int8_t>(raw)); });
      break;
    case ColorType::k8Ui:
      take(8, [](uint32_t raw) { return static_cast<double>(raw & 0xff); });
      break;
    case ColorType::k16I:
      take(16, [](uint32_t raw) { return static_cast<double>(static_cast<int16_t>(raw)); });
      break;
    case ColorType::k16Ui:
      take(16, [](uint32_t raw) { return static_cast<double>(raw & 0xffff); });
      break;
    case ColorType::k16F:
      take(16, [](uint32_t raw) { return double{half_to_float(static_cast<uint16_t>(raw))}; });
      break;
    case ColorType::k32I:
      take(32, [](uint32_t raw) { return static_cast<double>(static_cast<int32_t>(raw)); });
      break;
    case ColorType::k32Ui:
      take(32, [](uint32_t raw) { return static_cast<double>(raw); });
      break;
    case ColorType::k32F:
      take(32, [](uint32_t raw) { return double{std::bit_cast<float>(raw)}; });
      break;
  }
  return channels;
}

uint32_t rgba8_of(const tlb::RenderTarget& target, const std::array<uint32_t, 4>& words) {
  if (target.type == ColorType::k8) return words[0];
  const bool is_float = target.type == ColorType::k16F || target.type == ColorType::k32F;
  const Channels channels = channels_of(target, words);
  uint32_t rgba = channels.count < 4 ? 0xff000000 : 0;
  for (uint32_t c = 0; c < channels.count; ++c) {
    const double value = is_float ? channels.values[c] * 255 : channels.values[c];
    const double limited = value > 0 ? std::min(value, 255.0) : 0;  // NaN is 0
    rgba |= static_cast<uint32_t>(std::lround(limited)) << (8 * c);
  }
  return rgba;
}

}  // namespace v3d::inspect
