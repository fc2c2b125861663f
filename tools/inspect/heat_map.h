/// A HeatMap counts for each pixel of a layer of a render job what was done there.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "gpu/draw/bin_result.h"
#include "gpu/tlb/tile_buffer.h"
#include "tools/inspect/unit_watch.h"

namespace v3d::inspect {

enum class Heat : uint8_t {
  kFragments,   ///< that primitives have there: overdraw
  kShaded,      ///< for which programs ran
  kQuads,       ///< the same, with the pixels that ran for their quads alone
  kRemoved,     ///< fragments that tests before the program removed
  kSamples,     ///< that some primitive covers, of 4 in multisampled frames
  kPrimitives,  ///< no count: another number for each primitive that was shaded there last; 0: none
  kLists,       ///< entries of the list of the pixel's tile
};
std::optional<Heat> find_heat(std::string_view name);

struct HeatPicture {
  uint32_t layers = 0;
  tlb::Config config;
  std::vector<uint32_t>
      pixels;  ///< rows as BufferPicture has them; empty: there are no such tiles, or too many
};

class HeatMap final : public UnitWatch {
 public:
  /// @param bin  of the job; may be null
  HeatMap(Heat heat, uint32_t layer, const draw::BinResult* bin);
  ~HeatMap() override;

  TileWatch& begin_tile(size_t number, size_t worker, uint32_t column, uint32_t row) override;
  /// When the job is over.
  HeatPicture take();

 private:
  class Tile;
  void begin_tiles(size_t workers) override;
  /// The pixels, once the frame has a size; null: there are none. Any worker.
  uint32_t* pixels_of(const tlb::Config& config);
  void fill_lists();

  const Heat heat_;
  const uint32_t wanted_layer_;
  const draw::BinResult* const bin_;
  WorkerTiles<Tile> tiles_;
  std::mutex mutex_;  // of picture_ until it has its size; then each pixel is the worker's that has its tile
  HeatPicture picture_;
};

}  // namespace v3d::inspect
