#include "tests/inspect/stored_tiles.h"

#include "gpu/cle/render_list.h"

namespace v3d::inspect {

class StoredTiles::Tile final : public LayerTile {
 public:
  explicit Tile(StoredTiles& tiles) : LayerTile(tiles), tiles_(tiles) {}

  void before(const cle::TileCommand& command, tlb::TileBuffer& tile) override {
    stores_first(command);
    if (command.kind == cle::TileCommand::Kind::kStore && command.transfer.buffer != kNoBuffer)
      tiles_.add(tile, command.transfer);
  }

 private:
  StoredTiles& tiles_;
};

StoredTiles::StoredTiles() = default;
StoredTiles::~StoredTiles() = default;

void StoredTiles::begin_tiles(size_t workers) { tiles_.make(workers, *this); }

TileWatch& StoredTiles::begin_tile(size_t /*number*/, size_t worker, uint32_t /*column*/, uint32_t /*row*/) {
  return tiles_.begin(worker);
}

void StoredTiles::add(const tlb::TileBuffer& tile, const tlb::LoadStore& transfer) {
  const std::lock_guard lock(mutex_);
  frames_.try_emplace(layer(), tile.config());
  const tlb::TileBuffer::Place place = tile.place();
  images_[{layer(), place.x, place.y}].emplace(transfer.buffer, transfer.address);
}

std::set<StoredTiles::Image> StoredTiles::images(uint32_t layer, uint32_t x, uint32_t y) const {
  const auto frame = frames_.find(layer);
  if (frame == frames_.end()) return {};
  const uint32_t width = frame->second.tile_width, height = frame->second.tile_height;
  const auto found = images_.find({layer, x / width * width, y / height * height});
  return found == images_.end() ? std::set<Image>() : found->second;
}

}  // namespace v3d::inspect
