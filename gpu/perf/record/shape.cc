#include "gpu/perf/record/shape.h"

#include <algorithm>

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

}  // namespace

void add_lines(std::vector<uint32_t>* lines, uint32_t address, uint32_t bytes) {
  for (const uint32_t at : {address, address + bytes - 1}) {
    const uint32_t line = at / kLineBytes;
    if (std::find(lines->begin(), lines->end(), line) == lines->end()) lines->push_back(line);
  }
}

Shape shape_of(const tmu::GeneralLookup& lookup, int results, std::vector<uint32_t>* lines) {
  const uint32_t op = (lookup.config >> 3) & 15;
  const tmu::GeneralType type = tmu::kGeneralTypes[lookup.config & 7];
  const uint32_t bytes = type.bytes * uint32_t{type.words};
  Shape shape;
  shape.access = access_of(lookup, op);
  shape.results = static_cast<uint8_t>(results);
  shape.inputs = static_cast<uint8_t>(1 + lookup.num_data);
  lines->clear();
  if (shape.access == Shape::Access::kNothing) return shape;

  const LaneMask active = tmu::general_lanes(lookup);
  std::vector<uint32_t> of_quad;
  for (int quad = 0; quad < kLanes / 4; ++quad) {
    of_quad.clear();
    for (int lane = 4 * quad; lane < 4 * quad + 4; ++lane) {
      if (!(active >> lane & 1)) continue;
      const uint32_t address = lookup.address[lane] & ~(uint32_t{type.bytes} - 1);
      add_lines(&of_quad, address, bytes);
      add_lines(lines, address, bytes);
    }
    if (of_quad.empty()) continue;
    shape.quads = static_cast<uint16_t>(shape.quads + of_quad.size());
    shape.quad_words = static_cast<uint16_t>(shape.quad_words + std::max<size_t>(type.words, of_quad.size()));
  }
  keep_lines(*lines, &shape);
  return shape;
}

Shape shape_of(const tmu::TextureLookup& lookup, const tmu::Footprint& footprint, int results,
               std::vector<uint32_t>* lines) {
  Shape shape;
  shape.access = footprint.stores() ? Shape::Access::kStore : Shape::Access::kLoad;
  shape.results = static_cast<uint8_t>(results);
  shape.inputs = static_cast<uint8_t>(1 + __builtin_popcount(lookup.written) + lookup.num_data);
  lines->clear();
  std::vector<uint32_t> of_quad;
  for (int quad = 0; quad < kLanes / 4; ++quad) {
    of_quad.clear();
    uint32_t texels[4] = {};
    for (const tmu::Footprint::Texels& part : footprint.parts())
      for (int lane = 4 * quad; lane < 4 * quad + 4; ++lane) {
        if (!(part.lanes >> lane & 1)) continue;
        texels[lane % 4] += std::max(part.bytes / 4u, 1u);
        add_lines(&of_quad, part.address[lane], part.bytes);
        add_lines(lines, part.address[lane], part.bytes);
      }
    if (of_quad.empty()) continue;
    shape.quads = static_cast<uint16_t>(shape.quads + of_quad.size());
    shape.quad_words = static_cast<uint16_t>(shape.quad_words + of_quad.size());
    shape.texels = static_cast<uint16_t>(shape.texels + (*std::max_element(texels, texels + 4) + 3) / 4);
  }
  if (lines->empty()) shape.access = Shape::Access::kNothing;
  keep_lines(*lines, &shape);
  return shape;
}

}  // namespace v3d::timing
