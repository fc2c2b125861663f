/// @file Render jobs: tile after tile. Vertices of the next tiles are shaded beside the fragments of this
/// one; its fragments wait until the tile before it is stored.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gpu/perf/timing/job_replay.h"
#include "gpu/perf/timing/qpu_array.h"
#include "gpu/perf/timing/replayer.h"
#include "gpu/perf/timing/vertex_feed.h"

namespace v3d::timing {
namespace {

/// Of tiles; the last one stands for all that come behind it.
constexpr size_t kMaxSpans = 8192;

class RenderReplay : JobReplay {
 public:
  RenderReplay(const RenderJob& job, const chip::Profile& profile, const Parameters& parameters);
  Prediction run();

 private:
  using Segment = RenderJob::Segment;
  using Tile = RenderJob::Tile;

  bool over() const { return tile_ == job_.tiles.size(); }
  /// What is drawn next; nothing at the end of a tile.
  const Segment* segment() const {
    return over() || segment_ == job_.tiles[tile_].segments.size() ? nullptr
                                                                   : &job_.tiles[tile_].segments[segment_];
  }
  void advance(uint64_t clock);
  bool step(uint64_t clock);
  bool pass_segment(const Segment& s);
  bool start_batch(const Segment& s, uint64_t clock);
  void begin_tile();
  void end_tile();
  size_t needed() const;
  uint64_t front_end_cost(const Segment& s) const {
    return s.primitives * p_.fep_primitive + s.quads * p_.fep_quad / 4;
  }

  const RenderJob& job_;
  QpuArray qpus_;
  VertexFeed vertices_;
  size_t tile_ = 0, segment_ = 0, batch_ = 0;  // next ones; batch_ of the segment
  size_t used_ = 0;                            // vertices of all segments before this one
  bool in_tile_ = false;
  uint32_t live_ = 0;               // fragments of the tile that run
  uint64_t free_ = 0;               // the tile buffer, for the next tile
  uint64_t began_ = 0, ended_ = 0;  // the tile; its last fragment
  uint64_t front_end_ = 0, next_launch_ = 0, last_ = 0;
};

RenderReplay::RenderReplay(const RenderJob& job, const chip::Profile& profile, const Parameters& parameters)
    : JobReplay(JobKind::kRender, profile, parameters),
      job_(job),
      qpus_(job.trace, profile, p_, memory_, &result_),
      vertices_(p_, memory_, qpus_, &result_.units.fetch) {
  for (const DrawRecord& draw : job.draws)
    result_.draws.push_back({.vertices = draw.vertices, .primitives = draw.primitives});
  for (const Tile& tile : job.tiles)
    for (const Segment& s : tile.segments) {
      for (const uint32_t batch : s.vertex_batches) vertices_.add(job.trace.batches[batch]);
      Prediction::DrawTime& draw = result_.draws[s.draw];
      draw.vertex_batches += s.vertex_batches.size();
      draw.fragment_batches += s.num_batches;
      draw.quads += s.quads;
    }
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
  return finish(std::max({last_, free_, front_end_}));
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
  const Tile& tile = job_.tiles[tile_];
  if (tile.list_bytes != 0) memory_.read_list(tile.list_bytes, free_);
  began_ = free_;
  if (tile.loaded != 0) {
    began_ = memory_.load_tile(tile.loaded, free_);
    result_.units.load_store += began_ - free_;
  }
  ended_ = began_;
  in_tile_ = true;
}

void RenderReplay::end_tile() {
  const Tile& tile = job_.tiles[tile_];
  const bool drawn = !tile.segments.empty();
  uint64_t end = drawn ? std::max({ended_, front_end_, qpus_.tlb_free()}) : ended_;
  const uint64_t begin = free_;
  if (tile.stored + tile.stored_depth != 0) {
    const uint64_t stored = memory_.store_tile(tile.stored, tile.stored_depth, end);
    result_.units.load_store += stored - end;
    end = stored;
  }
  free_ = end + p_.tile_start;
  if (result_.spans.size() < kMaxSpans)
    result_.spans.push_back({"tiles", absl::StrCat("tile ", tile.column, ",", tile.row), begin, end});
  else
    result_.spans.back() = {"tiles", absl::StrCat("tiles from number ", kMaxSpans - 1, " on"),
                            result_.spans.back().begin, end};
  ++tile_;
  segment_ = batch_ = 0;
  in_tile_ = false;
}

}  // namespace

Prediction replay(const RenderJob& job, const chip::Profile& profile, const Parameters& parameters) {
  return RenderReplay(job, profile, parameters).run();
}

}  // namespace v3d::timing
