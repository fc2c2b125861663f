/// A TilePictures makes pictures of what the tile buffer holds when tiles have drawn and are about to be
/// stored.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "tools/inspect/unit_watch.h"

namespace v3d::inspect {

struct BufferPicture {
  uint32_t width = 0, height = 0;
  uint32_t layers = 0;  ///< of the job
  tlb::Config config;   ///< of the frame
  /// Row 0 is the first one of the frame, which of OpenGL is the lowest. Colours as rgba8, depth and stencil
  /// as they are stored; empty: there are no such tiles.
  std::vector<uint32_t> pixels;
};

class TilePictures final : public UnitWatch {
 public:
  /// @param buffer  0..7: colours, else kDepthBuffer or kStencilBuffer
  TilePictures(uint32_t layer, uint8_t buffer, uint32_t sample);
  ~TilePictures() override;

  TileWatch& begin_tile(size_t number, size_t worker, uint32_t column, uint32_t row) override;
  /// When the job is over. Frames above kMostPixels have no pixels.
  BufferPicture take();

  static constexpr uint64_t kMostPixels = uint64_t{1} << 26;

 private:
  class Tile;
  void begin_tiles(size_t workers) override;
  void copy(tlb::TileBuffer& tile);

  const uint32_t wanted_layer_;
  const uint8_t buffer_;
  const uint32_t sample_;
  WorkerTiles<Tile> tiles_;
  std::mutex mutex_;  // of picture_ until it has its size
  BufferPicture picture_;
};

/// Words of the tile buffer as rgba8: values are limited to 0 and 1, integers to 0 and 255.
uint32_t rgba8_of(const tlb::RenderTarget& target, const std::array<uint32_t, 4>& words);
/// Those that a target has.
struct Channels {
  std::array<double, 4> values;
  uint32_t count = 0;
  const double* begin() const { return values.data(); }
  const double* end() const { return values.data() + count; }
};
/// The same as numbers.
Channels channels_of(const tlb::RenderTarget& target, const std::array<uint32_t, 4>& words);

}  // namespace v3d::inspect
