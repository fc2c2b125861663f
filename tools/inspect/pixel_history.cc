#include "tools/inspect/pixel_history.h"

#include <algorithm>
#include <utility>

#include "gpu/cle/render_list.h"

namespace v3d::inspect {

using Command = cle::TileCommand::Kind;

/// Jobs whose pixels are followed have one worker.
class PixelHistory::Tile final : public LayerTile {
 public:
  explicit Tile(PixelHistory& history) : LayerTile(history), history_(history) {}

  void want(bool is_wanted) { is_wanted_ = is_wanted; }
  qpu::ThreadWatch* threads() override { return is_wanted_ ? history_.threads_ : nullptr; }
  pse::FragmentWatch* fragments() override { return is_wanted_ ? &history_ : nullptr; }
  void begin_draw(uint32_t draw, const perf::Counts&) override { history_.draw_ = draw; }
  void before(const cle::TileCommand& command, tlb::TileBuffer& tile) override {
    stores_first(command);
    if (is_wanted_) history_.before_command(command, tile);
  }
  void after(const cle::TileCommand& command, tlb::TileBuffer& tile) override {
    if (is_wanted_) history_.after_command(command, tile);
  }

 private:
  PixelHistory& history_;
  bool is_wanted_ = false;
};

PixelHistory::PixelHistory(const draw::BinResult* bin, uint32_t layer, uint32_t x, uint32_t y,
                           uint32_t sample, qpu::ThreadWatch* threads)
    : bin_(bin), wanted_layer_(layer), x_(x), y_(y), sample_(sample), threads_(threads) {}
PixelHistory::~PixelHistory() = default;

void PixelHistory::begin_tiles(size_t workers) { tiles_.make(workers, *this); }

TileWatch& PixelHistory::begin_tile(size_t /*number*/, size_t worker, uint32_t column, uint32_t row) {
  // Where nothing was binned no fragment comes, and has_pixel() finds the tile.
  const bool in_tile = bin_ == nullptr || (column == x_ / bin_->tile_width && row == y_ / bin_->tile_height);
  has_begun_ = false;
  Tile& tile = tiles_.begin(worker);
  tile.want(in_tile && layer() == wanted_layer_);
  return tile;
}

bool PixelHistory::has_pixel(const tlb::TileBuffer& tile) const {
  const tlb::TileBuffer::Place place = tile.place();
  return x_ - place.x < place.width && y_ - place.y < place.height;
}

PixelEvent* PixelHistory::add(PixelEvent::Kind kind, tlb::TileBuffer& tile) {
  is_kept_ = commands_ < kMostCommands;
  is_cut_ = is_cut_ || !is_kept_;
  if (!is_kept_) return nullptr;
  ++commands_;
  PixelEvent& event = events_.emplace_back();
  event.kind = kind;
  event.before = look(tile);
  return &event;
}

void PixelHistory::before_command(const cle::TileCommand& command, tlb::TileBuffer& tile) {
  if (!has_pixel(tile)) return;
  config_ = tile.config();
  if (!has_begun_) {
    has_begun_ = true;
    // Mesa's frames begin with tiles that do nothing.
    if (!events_.empty() && events_.back().kind == PixelEvent::Kind::kBegin) {
      events_.pop_back();
      --commands_;
    }
    if (PixelEvent* const event = add(PixelEvent::Kind::kBegin, tile)) event->after = look(tile);
  }
  if (command.kind == Command::kDrawList) return;
  if (command.kind != Command::kClear && command.transfer.buffer == kNoBuffer) return;
  const auto kind = command.kind == Command::kLoad    ? PixelEvent::Kind::kLoad
                    : command.kind == Command::kStore ? PixelEvent::Kind::kStore
                                                      : PixelEvent::Kind::kClear;
  if (PixelEvent* const event = add(kind, tile)) event->transfer = command.transfer;
}

void PixelHistory::after_command(const cle::TileCommand& command, tlb::TileBuffer& tile) {
  if (!has_pixel(tile) || command.kind == Command::kDrawList || !is_kept_) return;
  if (command.kind != Command::kClear && command.transfer.buffer == kNoBuffer) return;
  events_.back().after = look(tile);
}

template <typename Take>
void PixelHistory::for_lanes(const pse::WatchedBatch& batch, const Take& take) const {
  for (int lane = 0; lane < 4 * batch.num_quads; ++lane)
    if (batch.batch.x[lane] == x_ && batch.batch.y[lane] == y_) take(lane);
}

void PixelHistory::arrive(const pse::WatchedBatch& batch) {
  arrived_.clear();
  for_lanes(batch, [&](int lane) {
    const uint32_t coverage = batch.batch.coverage[lane];
    if (coverage == 0) return;
    if (fragments_ == kMostFragments) {
      is_cut_ = true;
      return;
    }
    ++fragments_;
    PixelEvent event;
    event.draw = draw_;
    event.primitive =
        static_cast<uint32_t>(batch.of[static_cast<size_t>(lane / 4)] - batch.draw.primitives.data());
    event.back_facing = (batch.batch.back_facing >> lane) & 1;
    event.coverage = coverage;
    const bool has_samples = batch.tile.config().multisample;
    event.depth = batch.batch.z[has_samples ? sample_ : 0][lane];
    event.before = event.after = look(batch.tile);
    arrived_.push_back({events_.size(), lane});
    events_.push_back(std::move(event));
  });
}

void PixelHistory::tested(const pse::WatchedBatch& batch) {
  for (const Place place : arrived_) {
    PixelEvent& event = events_[place.event];
    event.tests_early = true;
    event.passed_early = batch.batch.coverage[place.lane];
    event.after = look(batch.tile);
  }
}

void PixelHistory::start(const pse::WatchedBatch& batch, int sample) {
  running_.clear();
  tile_ = &batch.tile;
  lanes_ = &batch.batch;
  const uint64_t thread = threads_run_++;
  for_lanes(batch, [&](int lane) {
    const uint32_t coverage = batch.batch.coverage[lane];
    if (coverage == 0) return;
    const auto primitive =
        static_cast<uint32_t>(batch.of[static_cast<size_t>(lane / 4)] - batch.draw.primitives.data());
    // Of fragments of one primitive, which lines and clipped polygons may have, the first that has not run.
    const auto found = std::find_if(events_.begin(), events_.end(), [&](const PixelEvent& event) {
      const uint32_t left = event.tests_early ? event.passed_early : event.coverage;
      const bool ran = std::any_of(event.runs.begin(), event.runs.end(), [&](const PixelEvent::Run& run) {
        return run.sample < 0 || run.sample == sample;
      });
      return event.kind == PixelEvent::Kind::kFragment && event.draw == draw_ &&
             event.primitive == primitive && (left & coverage) != 0 && !ran;
    });
    if (found == events_.end()) return;  // of one that has no event
    // Programs of others may have run since the tests of this one.
    if (found->tests_early && found->runs.empty())
      found->before.colors = found->after.colors = look(batch.tile).colors;
    found->runs.push_back(
        {.thread = thread, .lane = lane, .sample = sample, .alive = coverage, .accesses = {}});
    running_.push_back({static_cast<size_t>(found - events_.begin()), lane});
  });
}

void PixelHistory::before(const pse::TileAccess& access) {
  is_kept_ = accesses_ + running_.size() <= kMostAccesses;
  is_cut_ = is_cut_ || !is_kept_;
  if (!is_kept_) return;
  accesses_ += running_.size();
  for (const Place place : running_) {
    if (!((access.exec >> place.lane) & 1)) continue;
    PixelEvent::Access done;
    done.is_depth = access.kind == pse::TileAccess::Kind::kDepth;
    done.target = access.spec.render_target;
    done.form = access.spec.kind == qpu::TlbSpec::Kind::kColorF16  ? PixelEvent::Access::Form::kHalves
                : access.spec.kind == qpu::TlbSpec::Kind::kUnknown ? PixelEvent::Access::Form::kFixed
                                                                   : PixelEvent::Access::Form::kWhole;
    const uint32_t words = std::max<uint32_t>(access.spec.words, 1);
    const uint32_t first = access.spec.per_sample ? sample_ * words : 0;
    for (uint32_t n = 0; n < words; ++n) done.words.push_back(access.words[first + n][place.lane]);
    done.before = look(*tile_);
    events_[place.event].runs.back().accesses.push_back(std::move(done));
  }
}

void PixelHistory::after(const pse::TileAccess& access) {
  for (const Place place : running_) {
    if (!is_kept_) break;
    if (!((access.exec >> place.lane) & 1)) continue;
    PixelEvent& event = events_[place.event];
    PixelEvent::Access& done = event.runs.back().accesses.back();
    done.after = look(*tile_);
    // Others may have been tested since.
    if (event.tests_early)
      event.after.colors = done.after.colors;
    else
      event.after = done.after;
    done.passed = (access.left != nullptr ? *access.left : lanes_->coverage)[place.lane];
  }
}

void PixelHistory::end(const Lanes& alive) {
  for (const Place place : running_) events_[place.event].runs.back().alive = alive[place.lane];
  running_.clear();
}

/// Fragments are looked at when they arrive. Those before them may not have run then, and those that share no
/// sample run together.
std::vector<PixelEvent> PixelHistory::take() {
  for (size_t n = 1; n < events_.size(); ++n) {
    PixelEvent& event = events_[n];
    if (event.kind != PixelEvent::Kind::kFragment) continue;
    const Sample& left = events_[n - 1].after;
    if (((event.coverage >> sample_) & 1) == 0)
      event.before = event.after = left;
    else if (event.runs.empty())
      event.before.colors = event.after.colors = left.colors;
  }
  return std::move(events_);
}

}  // namespace v3d::inspect
