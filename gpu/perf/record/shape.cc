#include "gpu/perf/record/shape.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "gpu/base/quads.h"
#include "gpu/base/vector.h"
#include "gpu/tmu/lookup/atomic.h"
#include "gpu/tmu/lookup/general.h"

namespace v3d::timing {
namespace {

constexpr uint32_t kOpPrefetch = 0;  // without data (texture.md 7.2)

Shape::Access access_of(const tmu::GeneralLookup& lookup, uint32_t op) {
  if (op == tmu::kRegular) return lookup.num_data == 0 ? Shape::Access::kLoad : Shape::Access::kStore;
  if (tmu::is_atomic(op, lookup.num_data > 0)) return Shape::Access::kAtomic;
  return op == kOpPrefetch ? Shape::Access::kLoad : Shape::Access::kNothing;
}

/// Relative to the first.
void keep_lines(const std::vector<uint32_t>& lines, Shape* shape) {
  shape->num_lines = static_cast<uint16_t>(lines.size());
  shape->one_line = lines.size() == 1;
  for (const uint32_t line : lines) shape->lines.push_back(static_cast<int32_t>(line - lines.front()));
}

/// @return  whether it was not there
template <typename List>
bool add_line(List* lines, uint32_t line) {
  if (!lines->empty() && lines->back() == line) return false;
  if (std::find(lines->begin(), lines->end(), line) != lines->end()) return false;
  lines->push_back(line);
  return true;
}

/// The first and the last line of each quad, in all of its lanes; the first is beyond the last where none is
/// live.
class QuadSpans {
 public:
  void add(const Lanes& address, LaneMask lanes, uint32_t bytes) {
    const LanesI live = expand(lanes);
    first_ = min(first_, select(live, address / kLineBytes, splat(~0u)));
    last_ = max(last_, select(live, (address + (bytes - 1)) / kLineBytes, Lanes{}));
  }
  void spread() {
    first_ = min(first_, of_row(first_));
    first_ = min(first_, of_column(first_));
    last_ = max(last_, of_row(last_));
    last_ = max(last_, of_column(last_));
  }
  uint32_t first(int quad) const { return first_[4 * quad]; }
  uint32_t last(int quad) const { return last_[4 * quad]; }

 private:
  Lanes first_ = splat(~0u), last_ = {};
};

/// The lines of a quad, of which the lookup gets those that are new there.
class QuadLines {
 public:
  explicit QuadLines(std::vector<uint32_t>* lookup) : lookup_(*lookup) {}

  /// @param first, last  of all lines to come
  void begin(uint32_t first, uint32_t last) {
    lines_.clear();
    first_ = first;
    is_near_ = last - first < 64;
    near_ = 0;
  }
  void add(uint32_t address, uint32_t bytes) {
    const uint32_t first = address / kLineBytes, last = (address + bytes - 1) / kLineBytes;
    add_line(first);
    if (last != first) add_line(last);
  }
  void add_line(uint32_t line) {
    if (is_new(line)) timing::add_line(&lookup_, line);
  }
  size_t size() const { return is_near_ ? static_cast<size_t>(std::popcount(near_)) : lines_.size(); }

 private:
  bool is_new(uint32_t line) {
    if (!is_near_) return timing::add_line(&lines_, line);
    const uint64_t bit = uint64_t{1} << (line - first_);
    return (std::exchange(near_, near_ | bit) & bit) == 0;
  }

  std::vector<uint32_t>& lookup_;
  uint32_t first_ = 0;
  bool is_near_ = true;
  uint64_t near_ = 0;                        // bit n: line first_ + n
  absl::InlinedVector<uint32_t, 32> lines_;  // unless they are near
};

/// Adds the lines of a lookup, quad after quad, and those of each quad to the shape.
/// @param parts  what its lanes access: {address, lanes, bytes}
/// @param words  that a lane moves at least
template <typename Parts>
void add_quads(const Parts& parts, uint32_t words, Shape* shape, std::vector<uint32_t>* lines) {
  QuadSpans spans;
  for (const auto& part : parts) spans.add(part.address, part.lanes, part.bytes);
  spans.spread();
  QuadLines of_quad(lines);
  for (int quad = 0; quad < kLanes / 4; ++quad) {
    if (spans.first(quad) > spans.last(quad)) continue;
    of_quad.begin(spans.first(quad), spans.last(quad));
    if (spans.first(quad) == spans.last(quad)) {
      of_quad.add_line(spans.first(quad));
    } else {
      for (const auto& part : parts)
        for (int lane = 4 * quad; lane < 4 * quad + 4; ++lane)
          if (part.lanes >> lane & 1) of_quad.add(part.address[lane], part.bytes);
    }
    shape->quads = static_cast<uint16_t>(shape->quads + of_quad.size());
    shape->quad_words = static_cast<uint16_t>(shape->quad_words + std::max<size_t>(words, of_quad.size()));
  }
}

/// Shape::texels of what a lookup took.
uint16_t texels_of(const tmu::Footprint& footprint) {
  Lanes texels{};
  for (const tmu::Footprint::Texels& part : footprint.parts())
    texels += select(expand(part.lanes), splat(std::max(part.bytes / 4, 1u)), Lanes{});
  uint32_t sum = 0;
  for (int lane = 0; lane < kLanes; lane += 4)
    sum += (std::max({texels[lane], texels[lane + 1], texels[lane + 2], texels[lane + 3]}) + 3) / 4;
  return static_cast<uint16_t>(sum);
}

}  // namespace

void add_lines(std::vector<uint32_t>* lines, uint32_t address, uint32_t bytes) {
  add_line(lines, address / kLineBytes);
  add_line(lines, (address + bytes - 1) / kLineBytes);
}

void set_shape(const tmu::GeneralLookup& lookup, int results, Shape* shape, std::vector<uint32_t>* lines) {
  const uint32_t op = (lookup.config >> 3) & 15;
  const tmu::GeneralType type = tmu::kGeneralTypes[lookup.config & 7];
  const uint32_t bytes = type.bytes * uint32_t{type.words};
  shape->clear();
  shape->access = access_of(lookup, op);
  shape->results = static_cast<uint8_t>(results);
  shape->inputs = static_cast<uint8_t>(1 + lookup.num_data);
  lines->clear();
  if (shape->access == Shape::Access::kNothing) return;

  const tmu::Footprint::Texels accessed[] = {{.address = lookup.address & ~(uint32_t{type.bytes} - 1),
                                              .lanes = tmu::general_lanes(lookup),
                                              .bytes = bytes}};
  add_quads(accessed, type.words, shape, lines);
  keep_lines(*lines, shape);
}

void set_shape(const tmu::TextureLookup& lookup, const tmu::Footprint& footprint, int results, Shape* shape,
               std::vector<uint32_t>* lines) {
  shape->clear();
  shape->access = footprint.stores() ? Shape::Access::kStore : Shape::Access::kLoad;
  shape->results = static_cast<uint8_t>(results);
  shape->inputs = static_cast<uint8_t>(1 + __builtin_popcount(lookup.written) + lookup.num_data);
  lines->clear();
  add_quads(footprint.parts(), 0, shape, lines);
  shape->texels = texels_of(footprint);
  if (lines->empty()) shape->access = Shape::Access::kNothing;
  keep_lines(*lines, shape);
}

uint32_t num_quads(LaneMask lanes) { return static_cast<uint32_t>(std::popcount(quads_with_any(lanes))); }

namespace {

/// A line that the lane before has, too, is looked up once (vc4-timing.md 2.3).
void add_in_order(uint32_t address, std::vector<uint32_t>* lines) {
  const uint32_t line = address / kLineBytes;
  if (lines->empty() || lines->back() != line) lines->push_back(line);
}

void begin_vc4(uint8_t unit, int inputs, Shape* shape, std::vector<uint32_t>* lines) {
  shape->clear();
  shape->unit = unit;
  shape->results = 1;
  shape->inputs = static_cast<uint8_t>(inputs);
  lines->clear();
}

}  // namespace

void set_direct_shape(uint8_t unit, const Lanes& addresses, Shape* shape, std::vector<uint32_t>* lines) {
  begin_vc4(unit, 1, shape, lines);
  for (int lane = 0; lane < kLanes; ++lane) add_in_order(addresses[lane], lines);
  shape->quads = shape->quad_words = kLanes;
  keep_lines(*lines, shape);
}

void set_packed_shape(uint8_t unit, int inputs, const tmu::Footprint& footprint, Shape* shape,
                      std::vector<uint32_t>* lines) {
  begin_vc4(unit, inputs, shape, lines);
  LaneMask live = 0;
  for (int lane = 0; lane < kLanes; ++lane)
    for (const tmu::Footprint::Texels& part : footprint.parts())
      if (part.lanes >> lane & 1) add_in_order(part.address[lane], lines);
  for (const tmu::Footprint::Texels& part : footprint.parts()) live |= part.lanes;
  shape->quads = static_cast<uint16_t>(num_quads(live));
  shape->texels = texels_of(footprint);
  if (lines->empty()) shape->access = Shape::Access::kNothing;
  keep_lines(*lines, shape);
}

}  // namespace v3d::timing
