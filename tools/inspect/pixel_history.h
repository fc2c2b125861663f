/// A PixelHistory is all that happens to one pixel of a render job, in order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/draw/bin_result.h"
#include "gpu/pse/fragment_watch.h"
#include "gpu/qpu/run/observer.h"
#include "tools/inspect/unit_watch.h"

namespace v3d::inspect {

using Sample = tlb::TileBuffer::Sample;

struct PixelEvent {
  enum class Kind : uint8_t { kBegin, kLoad, kClear, kStore, kFragment } kind = Kind::kFragment;
  Sample before, after;  ///< of the sample that is followed

  // Of loads and stores:
  tlb::LoadStore transfer{};

  // Of fragments:
  uint32_t draw = 0;       ///< number in the BinResult
  uint32_t primitive = 0;  ///< in the draw
  bool back_facing = false;
  uint32_t coverage = 0;  ///< samples of the pixel that the primitive has
  float depth = 0;        ///< of the sample
  bool tests_early = false;
  uint32_t passed_early = 0;  ///< samples that passed, if it tests early
  /// Of what the program did with the tile buffer.
  struct Access {
    bool is_depth = false;
    uint8_t target = 0;
    /// What the words are: channels, or pairs of them, as the target has them, or rgba8; floats or 24 bits
    /// of depth.
    enum class Form : uint8_t { kWhole, kHalves, kFixed } form = Form::kWhole;
    std::vector<uint32_t> words;  ///< of the pixel
    uint32_t passed = 0;          ///< late tests: samples that passed
    Sample before, after;
  };
  /// A run of its program: several where it runs for each sample.
  struct Run {
    uint64_t thread = 0;  ///< number of the QPU thread among those of the tile
    int lane = 0, sample = -1;
    uint32_t alive = 0;  ///< samples that the program left in its sample mask
    std::vector<Access> accesses;
  };
  std::vector<Run> runs;
};

class PixelHistory final : public UnitWatch, private pse::FragmentWatch {
 public:
  /// @param bin  of the job; may be null. @param x, y  in the frame
  /// @param threads  who watches the fragment programs of the tile; may be null
  PixelHistory(const draw::BinResult* bin, uint32_t layer, uint32_t x, uint32_t y, uint32_t sample,
               qpu::ThreadWatch* threads = nullptr);
  ~PixelHistory() override;

  TileWatch& begin_tile(size_t number, size_t worker, uint32_t column, uint32_t row) override;

  /// When the job is over: each fragment begins with what the event before it has left.
  std::vector<PixelEvent> take();
  const std::vector<PixelEvent>& events() const { return events_; }
  /// There was more than kMostFragments, kMostCommands or kMostAccesses: what came behind is not in it.
  bool is_cut() const { return is_cut_; }
  /// Of the frame, once it has come.
  const tlb::Config& config() const { return config_; }

  static constexpr size_t kMostFragments = 2048;
  /// Of tiles: loads, clears, stores, and where they begin.
  static constexpr size_t kMostCommands = 2048;
  static constexpr size_t kMostAccesses = 8192;

 private:
  class Tile;
  void begin_tiles(size_t workers) override;
  void before_command(const cle::TileCommand& command, tlb::TileBuffer& tile);
  void after_command(const cle::TileCommand& command, tlb::TileBuffer& tile);
  /// Null: there are too many.
  PixelEvent* add(PixelEvent::Kind kind, tlb::TileBuffer& tile);
  bool has_pixel(const tlb::TileBuffer& tile) const;
  Sample look(tlb::TileBuffer& tile) const { return tile.sample(x_, y_, sample_); }

  void arrive(const pse::WatchedBatch& batch) override;
  void tested(const pse::WatchedBatch& batch) override;
  void start(const pse::WatchedBatch& batch, int sample) override;
  void before(const pse::TileAccess& access) override;
  void after(const pse::TileAccess& access) override;
  void end(const Lanes& alive) override;

  /// Lanes of the batch that are the pixel.
  template <typename Take>
  void for_lanes(const pse::WatchedBatch& batch, const Take& take) const;

  const draw::BinResult* const bin_;
  const uint32_t wanted_layer_, x_, y_, sample_;
  qpu::ThreadWatch* const threads_;
  WorkerTiles<Tile> tiles_;
  tlb::Config config_;
  std::vector<PixelEvent> events_;
  bool has_begun_ = false, is_cut_ = false;
  uint32_t draw_ = 0;  // that is being drawn
  uint64_t threads_run_ = 0;
  size_t fragments_ = 0, commands_ = 0, accesses_ = 0;
  bool is_kept_ = false;  // the command or access that is under way
  /// Fragments on their way, with their lanes in the batch.
  struct Place {
    size_t event;
    int lane;
  };
  std::vector<Place> arrived_, running_;
  tlb::TileBuffer* tile_ = nullptr;
  const tlb::FragmentBatch* lanes_ = nullptr;
};

}  // namespace v3d::inspect
