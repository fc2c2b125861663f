#include "tools/inspect/heat_map.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "gpu/cle/render_list.h"
#include "gpu/pse/fragment_watch.h"
#include "tools/inspect/tile_pictures.h"

namespace v3d::inspect {
namespace {

constexpr std::string_view kNames[] = {"fragments", "shaded",     "quads", "removed",
                                       "samples",   "primitives", "lists"};

}  // namespace

std::optional<Heat> find_heat(std::string_view name) {
  const auto* const found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<Heat>(found - std::begin(kNames));
}

class HeatMap::Tile final : public LayerTile, private pse::FragmentWatch {
 public:
  explicit Tile(HeatMap& map) : LayerTile(map), map_(map) {}

  void want(bool is_wanted) { is_wanted_ = is_wanted; }
  pse::FragmentWatch* fragments() override {
    return is_wanted_ && map_.heat_ != Heat::kLists ? this : nullptr;
  }
  void begin_draw(uint32_t draw, const perf::Counts&) override { draw_ = draw; }
  void before(const cle::TileCommand& command, tlb::TileBuffer& tile) override {
    if (is_wanted_) map_.pixels_of(tile.config());  // also of frames in which nothing is drawn
    stores_first(command);
  }

 private:
  /// Calls see(lane, pixel) for the lanes that have coverage, or for all.
  template <typename See>
  void for_pixels(const pse::WatchedBatch& batch, bool all, const See& see) const {
    const tlb::Config& config = batch.tile.config();
    uint32_t* const pixels = map_.pixels_of(config);
    for (int lane = 0; pixels != nullptr && lane < 4 * batch.num_quads; ++lane) {
      const uint32_t x = batch.batch.x[lane], y = batch.batch.y[lane];
      if (x < map_.picture_.config.width && y < map_.picture_.config.height &&
          (all || batch.batch.coverage[lane] != 0))
        see(lane, pixels[size_t{y} * map_.picture_.config.width + x]);
    }
  }
  void arrive(const pse::WatchedBatch& batch) override {
    for (int lane = 0; lane < kLanes; ++lane) arrived_[lane] = batch.batch.coverage[lane];
    if (map_.heat_ == Heat::kFragments) for_pixels(batch, false, [](int, uint32_t& pixel) { ++pixel; });
    if (map_.heat_ == Heat::kSamples)
      for_pixels(batch, false, [&](int lane, uint32_t& pixel) { pixel |= batch.batch.coverage[lane]; });
  }
  void tested(const pse::WatchedBatch& batch) override {
    if (map_.heat_ != Heat::kRemoved) return;
    for_pixels(batch, true, [&](int lane, uint32_t& pixel) {
      pixel += arrived_[lane] != 0 && batch.batch.coverage[lane] == 0;
    });
  }
  void start(const pse::WatchedBatch& batch, int sample) override {
    if (sample > 0 && map_.heat_ != Heat::kPrimitives) return;  // a pixel counts once
    if (map_.heat_ == Heat::kShaded) for_pixels(batch, false, [](int, uint32_t& pixel) { ++pixel; });
    if (map_.heat_ == Heat::kQuads) for_pixels(batch, true, [](int, uint32_t& pixel) { ++pixel; });
    if (map_.heat_ != Heat::kPrimitives) return;
    for_pixels(batch, false, [&](int lane, uint32_t& pixel) {
      const auto primitive =
          static_cast<uint32_t>(batch.of[static_cast<size_t>(lane / 4)] - batch.draw.primitives.data());
      pixel = (draw_ << 20 ^ primitive) + 1;
    });
  }
  void before(const pse::TileAccess&) override {}
  void after(const pse::TileAccess&) override {}
  void end(const Lanes&) override {}

  HeatMap& map_;
  bool is_wanted_ = false;
  uint32_t draw_ = 0;
  std::array<uint32_t, kLanes> arrived_{};
};

HeatMap::HeatMap(Heat heat, uint32_t layer, const draw::BinResult* bin)
    : heat_(heat), wanted_layer_(layer), bin_(bin) {}
HeatMap::~HeatMap() = default;

void HeatMap::begin_tiles(size_t workers) { tiles_.make(workers, *this); }

TileWatch& HeatMap::begin_tile(size_t /*number*/, size_t worker, uint32_t /*column*/, uint32_t /*row*/) {
  Tile& tile = tiles_.begin(worker);
  tile.want(layer() == wanted_layer_);
  return tile;
}

uint32_t* HeatMap::pixels_of(const tlb::Config& config) {
  const std::lock_guard lock(mutex_);
  if (picture_.config.width == 0) {
    picture_.config = config;
    const uint64_t pixels = uint64_t{config.width} * config.height;
    if (pixels <= TilePictures::kMostPixels) picture_.pixels.resize(pixels);
  }
  return picture_.pixels.empty() ? nullptr : picture_.pixels.data();
}

void HeatMap::fill_lists() {
  if (bin_ == nullptr || picture_.pixels.empty()) return;
  const size_t first = std::min(size_t{wanted_layer_} * bin_->tiles_x * bin_->tiles_y, bin_->tiles.size());
  for (uint32_t y = 0; y < picture_.config.height; ++y)
    for (uint32_t x = 0; x < picture_.config.width; ++x) {
      const uint32_t column = x / bin_->tile_width, row = y / bin_->tile_height;
      const size_t tile = first + size_t{row} * bin_->tiles_x + column;
      if (column < bin_->tiles_x && row < bin_->tiles_y && tile < bin_->tiles.size())
        picture_.pixels[size_t{y} * picture_.config.width + x] =
            static_cast<uint32_t>(bin_->tiles[tile].size());
    }
}

HeatPicture HeatMap::take() {
  picture_.layers = layers();
  if (heat_ == Heat::kLists) fill_lists();
  if (heat_ == Heat::kSamples)
    for (uint32_t& pixel : picture_.pixels) pixel = static_cast<uint32_t>(std::popcount(pixel));
  return std::move(picture_);
}

}  // namespace v3d::inspect
