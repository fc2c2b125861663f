/// A StoredTiles notes to which images the tiles of a render job are stored, whatever is drawn in them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "tools/inspect/unit_watch.h"

namespace v3d::inspect {

class StoredTiles final : public UnitWatch {
 public:
  /// Buffer and address.
  using Image = std::pair<uint8_t, uint32_t>;

  StoredTiles();
  ~StoredTiles() override;

  TileWatch& begin_tile(size_t number, size_t worker, uint32_t column, uint32_t row) override;

  /// Of each layer that is stored, its frame. When the job is over.
  const std::map<uint32_t, tlb::Config>& frames() const { return frames_; }
  /// Of the tile of a pixel; empty: it is not stored.
  std::set<Image> images(uint32_t layer, uint32_t x, uint32_t y) const;

 private:
  class Tile;
  void begin_tiles(size_t workers) override;
  void add(const tlb::TileBuffer& tile, const tlb::LoadStore& transfer);

  WorkerTiles<Tile> tiles_;
  std::mutex mutex_;
  std::map<uint32_t, tlb::Config> frames_;
  std::map<std::array<uint32_t, 3>, std::set<Image>> images_;  ///< by layer, first column and row
};

}  // namespace v3d::inspect
