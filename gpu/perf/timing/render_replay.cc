/// @file Render jobs: tile after tile. Vertices of the next tiles are shaded beside the fragments of this
/// one; its fragments wait until the tile before it is stored.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gpu/perf/timing/job_replay.h"
#include "gpu/perf/timing/qpu_array.h"
#include "gpu/perf/timing/replayer.h"
#include "gpu/perf/timing/tile_work.h"
#include "gpu/perf/timing/vertex_feed.h"

namespace v3d::timing {
namespace {

/// Of tiles; the last one stands for all that come after it.
constexpr size_t kMaxSpans = 8192;

class RenderReplay : JobReplay {
 public:
  RenderReplay(const RenderJob& job, const chip::Profile& profile, const Parameters& parameters);
  Prediction run();

 private:
  using Segment = RenderJob::Segment;
  using Tile = RenderJob::Tile;

  bool over() const { return tile_ == tiles_.size(); }
  /// What is drawn next; nothing at the end of a tile.
  const Segment* segment() const {
    return over() || segment_ == tiles_[tile_]->segments.size() ? nullptr
                                                                : &tiles_[tile_]->segments[segment_];
  }
  void add_tile(const Tile& tile);
  Prediction whole(Prediction result) const;
  void advance(uint64_t clock);
  bool step(uint64_t clock);
  bool pass_segment(const Segment& s);
  bool start_batch(const Segment& s, uint64_t clock);
  void begin_tile();
  void end_tile();
  void add_span(const Tile& tile, uint64_t begin, uint64_t end);
  size_t needed() const;
  uint64_t front_end_cost(const Segment& s) const {
    return s.primitives * p_.fep_primitive + s.quads * p_.fep_quad / 4;
  }

  /// Of tiles that draw, but the first.
  struct Drawn {
    uint64_t clocks = 0, load_store = 0, dram_busy = 0;
  };

  const RenderJob& job_;
  const chip::Profile& profile_;
  std::vector<const Tile*> tiles_;  // that are recorded
  QpuArray qpus_;
  VertexFeed vertices_;
  size_t tile_ = 0, segment_ = 0, batch_ = 0;  // next ones; batch_ of the segment
  size_t used_ = 0;                            // vertices of all segments before this one
  bool in_tile_ = false;
  uint32_t live_ = 0;               // fragments of the tile that run
  uint64_t free_ = 0;               // the tile buffer, for the next tile
  uint64_t began_ = 0, ended_ = 0;  // the tile; its last fragment
  uint64_t front_end_ = 0, next_launch_ = 0, last_ = 0;
  Drawn at_tile_, drawn_;  // at_tile_: sums at its begin
  bool any_drawn_ = false;
};

RenderReplay::RenderReplay(const RenderJob& job, const chip::Profile& profile, const Parameters& parameters)
    : JobReplay(JobKind::kRender, profile, parameters),
      job_(job),
      profile_(profile),
      qpus_(job.trace, profile, p_, memory_, &result_),
      vertices_(p_, memory_, qpus_, &result_.units) {
  for (const DrawRecord& draw : job.draws)
    result_.draws.push_back({.vertices = draw.vertices, .primitives = draw.primitives});
  for (const Tile& tile : job.tiles) add_tile(tile);
}

void RenderReplay::add_tile(const Tile& tile) {
  if (tile.recorded) tiles_.push_back(&tile);
  for (const Segment& s : tile.segments) {
    for (const uint32_t batch : s.vertex_batches) vertices_.add(job_.trace.batches[batch]);
    Prediction::DrawTime& draw = result_.draws[s.draw];
    draw.vertex_batches += s.vertex_batches.size();
    draw.fragment_batches += tile.recorded ? s.num_batches : (s.live_quads + 3) / 4;
    draw.quads += s.quads;
  }
  if (tile.segments.empty()) return;
  ++result_.whole;
  result_.recorded += tile.recorded;
}

/// Adds the tiles that were not recorded, by what they have to do beside the others that draw. The first of
/// these is no measure: it waits for what all the others find ready.
Prediction RenderReplay::whole(Prediction result) const {
  if (result.recorded == result.whole) return result;
  const TileWork work(job_, profile_, p_);
  uint64_t recorded = 0, others = 0, loaded = 0, stored = 0, lists = 0;
  bool first = true;
  for (const Tile& tile : job_.tiles) {
    loaded += tile.loaded;
    stored += tile.stored + tile.stored_depth;
    lists += tile.list_bytes;
    if (tile.segments.empty()) continue;
    if (!first) (tile.recorded ? recorded : others) += work.of(tile);
    first = false;
  }
  if (recorded == 0) return result;
  const auto grown = [&](uint64_t value, uint64_t part) { return value + scaled(part, others, recorded); };
  const uint64_t clocks = grown(result.clocks, drawn_.clocks);
  const uint64_t load_store = grown(result.units.load_store, drawn_.load_store);
  const uint64_t dram_busy = grown(result.dram_busy, drawn_.dram_busy);
  scale(&result, recorded + others, recorded);
  result.clocks = clocks;
  result.units.load_store = load_store;
  result.dram_busy = dram_busy;
  result.memory.tile_loaded = loaded;
  result.memory.tile_stored = stored;
  result.memory.list_read = lists;
  result.spans.clear();
  return result;
}

Prediction RenderReplay::run() {
  free_ = job_.packets * p_.cle_packet;
  advance(0);
  while (const auto ended = qpus_.run()) {
    last_ = std::max(last_, ended->done);
    if (VertexFeed::is_tag(ended->tag)) {
      vertices_.end(VertexFeed::number_of(ended->tag), ended->clock);
    } else {
      --live_;
      ended_ = std::max(ended_, ended->clock);
    }
    advance(ended->clock);
  }
  result_.units.tlb = qpus_.tlb_busy();
  return whole(finish(std::max({last_, free_, front_end_})));
}

/// Starts all that can start.
void RenderReplay::advance(uint64_t clock) {
  while (step(clock)) {
  }
  vertices_.launch(clock, used_, needed());
}

/// Vertices that the next fragment waits for, or that nothing but the end of the job does.
size_t RenderReplay::needed() const {
  const Segment* const s = segment();
  return s ? used_ + s->vertex_batches.size() : used_ + p_.vcd_batches;
}

/// @return  false when something has to end first
bool RenderReplay::step(uint64_t clock) {
  if (over()) return false;
  if (!in_tile_) begin_tile();
  const Segment* const s = segment();
  if (s == nullptr) {
    if (live_ != 0) return false;
    end_tile();
    return true;
  }
  return batch_ == s->num_batches ? pass_segment(*s) : start_batch(*s, clock);
}

/// Its fragments are under way; of one without any, the primitives go through the front end alone.
bool RenderReplay::pass_segment(const Segment& s) {
  if (vertices_.shaded() < used_ + s.vertex_batches.size()) return false;
  if (s.num_batches == 0) {
    front_end_ =
        std::max({front_end_, vertices_.ready(used_ + s.vertex_batches.size()), began_}) + front_end_cost(s);
    result_.units.front_end += front_end_cost(s);
  }
  used_ += s.vertex_batches.size();
  ++segment_;
  batch_ = 0;
  return true;
}

/// A batch comes from the front end when that has gone through its share of the primitives.
bool RenderReplay::start_batch(const Segment& s, uint64_t clock) {
  const uint64_t n = batch_, count = s.num_batches;
  const size_t vertices = used_ + (s.vertex_batches.size() * (n + 1) + count - 1) / count;
  const Batch& batch = job_.trace.batches[s.first_batch + n];
  if (vertices_.shaded() < vertices || !qpus_.has_room(batch)) return false;
  const uint64_t cost = front_end_cost(s) * (n + 1) / count - front_end_cost(s) * n / count;
  front_end_ = std::max({front_end_, vertices_.ready(vertices), began_}) + cost;
  result_.units.front_end += cost;
  next_launch_ = std::max({next_launch_, front_end_, clock});
  qpus_.start(batch, next_launch_, 2 * (s.first_batch + n));
  next_launch_ += p_.fragment_launch;
  ++live_;
  ++batch_;
  return true;
}

/// The list is read ahead: it takes its share of the memory, and nobody waits for it.
void RenderReplay::begin_tile() {
  const Tile& tile = *tiles_[tile_];
  if (tile.list_bytes != 0) memory_.read_list(tile.list_bytes, free_);
  at_tile_ = {free_, result_.units.load_store, memory_.dram_busy()};
  began_ = free_;
  if (tile.loaded != 0) {
    began_ = memory_.load_tile(tile.loaded, free_);
    result_.units.load_store += began_ - free_;
  }
  ended_ = began_;
  in_tile_ = true;
}

void RenderReplay::end_tile() {
  const Tile& tile = *tiles_[tile_];
  const bool drawn = !tile.segments.empty();
  uint64_t end = drawn ? std::max({ended_, front_end_, qpus_.tlb_free()}) : ended_;
  if (tile.stored + tile.stored_depth != 0) {
    const uint64_t stored = memory_.store_tile(tile.stored, tile.stored_depth, end);
    result_.units.load_store += stored - end;
    end = stored;
  }
  free_ = end + p_.tile_start;
  add_span(tile, at_tile_.clocks, end);
  if (drawn && any_drawn_) {
    drawn_.clocks += free_ - at_tile_.clocks;
    drawn_.load_store += result_.units.load_store - at_tile_.load_store;
    drawn_.dram_busy += memory_.dram_busy() - at_tile_.dram_busy;
  }
  any_drawn_ |= drawn;
  ++tile_;
  segment_ = batch_ = 0;
  in_tile_ = false;
}

void RenderReplay::add_span(const Tile& tile, uint64_t begin, uint64_t end) {
  if (result_.spans.size() < kMaxSpans)
    result_.spans.push_back({"tiles", absl::StrCat("tile ", tile.column, ",", tile.row), begin, end});
  else
    result_.spans.back() = {"tiles", absl::StrCat("tiles from number ", kMaxSpans - 1, " on"),
                            result_.spans.back().begin, end};
}

}  // namespace

Prediction replay(const RenderJob& job, const chip::Profile& profile, const Parameters& parameters) {
  return RenderReplay(job, profile, parameters).run();
}

}  // namespace v3d::timing
