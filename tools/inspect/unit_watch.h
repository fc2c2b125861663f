/// A UnitWatch follows the tiles of a render job, and numbers its layers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/base/work_watch.h"
#include "gpu/tlb/tile_buffer.h"

namespace v3d::inspect {

/// A layer is what one group of tiles stores: the tiles of one image, or of one layer of an image. Groups
/// that store nothing, as Mesa begins its frames with, are none.
class UnitWatch : public WorkWatch {
 public:
  void packet() override {}
  void begin_vertices(uint32_t, uint32_t, uint32_t) override {}
  void fetch(const Lanes&, LaneMask, uint32_t) override {}
  void binned(uint64_t, uint64_t) override {}
  void lists_written(uint64_t) override {}
  void begin_frame(uint32_t) override {}
  void transferred(uint64_t, uint64_t) override {}
  void add_tiles(const std::vector<uint32_t>& /*entries*/, size_t workers) override {
    if (stores_.exchange(false)) ++layer_;
    begin_tiles(workers);
  }

  /// The tile of a worker is about to be stored. Any worker.
  void stored() { stores_ = true; }
  /// That the tiles belong to which are under way, from 0.
  uint32_t layer() const { return layer_; }
  /// Of those that have stored something.
  uint32_t layers() const { return layer_ + (stores_ ? 1 : 0); }

 protected:
  /// Tiles follow, on so many workers.
  virtual void begin_tiles(size_t workers) = 0;

 private:
  std::atomic<bool> stores_{false};
  uint32_t layer_ = 0;
};

/// A tile that nobody follows.
class UnwatchedTile : public TileWatch {
 public:
  qpu::ThreadWatch* threads() override { return nullptr; }
  void moved(bool, bool, uint64_t) override {}
  void list(const std::vector<draw::ListEntry>&, const draw::BinResult&) override {}
  void begin_draw(uint32_t, const perf::Counts&) override {}
  void end_draw(const perf::Counts&) override {}
};

/// The tile of a worker that finds out when its UnitWatch has another layer.
class LayerTile : public UnwatchedTile {
 public:
  /// @param watch  outlives the object
  explicit LayerTile(UnitWatch& watch) : watch_(watch) {}

  /// The worker has another tile.
  void begin() { is_stored_ = false; }

 protected:
  /// Of a command that is about to be carried out: it is the first one that stores a buffer, so that the tile
  /// holds all that was drawn.
  bool stores_first(const cle::TileCommand& command);

 private:
  UnitWatch& watch_;
  bool is_stored_ = false;
};

/// A tile for each worker.
template <typename Tile>
class WorkerTiles {
 public:
  template <typename Watch>
  void make(size_t workers, Watch& watch) {
    while (tiles_.size() < workers) tiles_.push_back(std::make_unique<Tile>(watch));
  }
  /// That of a worker, at another place.
  Tile& begin(size_t worker) {
    tiles_[worker]->begin();
    return *tiles_[worker];
  }

 private:
  std::vector<std::unique_ptr<Tile>> tiles_;
};

/// Number of the buffers that are no colours, as in tlb::LoadStore.
inline constexpr uint8_t kNoBuffer = 8, kDepthBuffer = 9, kStencilBuffer = 10;

}  // namespace v3d::inspect
