#include "gpu/ptb/triangle_sorter.h"

#include <cstring>

#include "gpu/base/doubles.h"
#include "gpu/base/vector.h"
#include "gpu/ptb/clipper.h"

namespace v3d::ptb {

namespace {

template <typename T>
T lane(const RawVector<Lanes>& of, uint32_t v) {
  T word;
  std::memcpy(&word, reinterpret_cast<const char*>(of.data()) + size_t{v} * sizeof(word), sizeof(word));
  return word;
}

/// Position v of the vertices, for 16 of them.
Lanes gather(const RawVector<Lanes>& of, Lanes v) {
  return look_up(reinterpret_cast<const uint32_t*>(of.data()), v);
}

struct Corner {
  LanesI x, y;
};

/// Twice the signed areas, as binner and set-up know them, rounded: signs are right and 0 is 0, since sides
/// are shorter than 2^24 and products exact as doubles.
LanesF areas(const Corner& a, const Corner& b, const Corner& c) {
  return v3d::narrow(widen(b.x - a.x) * widen(c.y - a.y) - widen(c.x - a.x) * widen(b.y - a.y));
}

void narrow(LanesI v, std::array<uint16_t, kLanes>* to) {
  typedef uint16_t Short __attribute__((vector_size(32)));
  const Short words = __builtin_convertvector(v, Short);
  std::memcpy(to->data(), &words, sizeof(words));
}

}  // namespace

void ScreenVertices::resize(uint32_t groups) {
  x.resize(groups);
  y.resize(groups);
  codes.resize(groups);
}
ScreenPoint ScreenVertices::point(uint32_t v) const { return {lane<int32_t>(x, v), lane<int32_t>(y, v)}; }
uint16_t ScreenVertices::code(uint32_t v) const { return static_cast<uint16_t>(lane<uint32_t>(codes, v)); }

TriangleSorter::TriangleSorter(const draw::DrawState& state, const TileLists& lists)
    : cfg_(state.cfg), lists_(lists) {}

void TriangleSorter::sort(const draw::Primitive* triangles, const ScreenVertices& vertices,
                          Sorted* out) const {
  uint32_t index[3][kLanes];
  for (int i = 0; i < kLanes; ++i)
    for (int k = 0; k < 3; ++k) index[k][i] = triangles[i].vertex[k];
  Corner corner[3];
  Lanes any = {}, all = splat(uint32_t{kOutPlanes});
  for (int k = 0; k < 3; ++k) {
    Lanes v;
    std::memcpy(&v, index[k], sizeof(v));
    corner[k] = {as_int(gather(vertices.x, v)), as_int(gather(vertices.y, v))};
    const Lanes codes = gather(vertices.codes, v);
    any |= codes;
    all &= codes;
  }
  const auto [a, b, c] = corner;
  const LaneMask rejected = nonzero((any & uint32_t{kOutInvalid}) | all);
  const auto inside = static_cast<LaneMask>(~nonzero(any));
  out->plain = static_cast<LaneMask>(~rejected & ~inside);

  const LanesF area = areas(a, b, c);
  const LaneMask back = negative(less(LanesF{}, cfg_.clockwise ? area : -area));
  const LaneMask empty = negative(v3d::equal(area, LanesF{}));
  const auto shown = static_cast<LaneMask>((cfg_.draw_back ? back : 0) | (cfg_.draw_front ? ~back : 0));
  out->reversed = static_cast<LaneMask>(inside & ~empty & ~shown);
  const auto left = static_cast<LaneMask>(inside & ~empty & shown);

  const TileLists::Boxes boxes = {min(min(a.x, b.x), c.x), min(min(a.y, b.y), c.y), max(max(a.x, b.x), c.x),
                                  max(max(a.y, b.y), c.y)};
  TileLists::TileRanges range;
  const LaneMask touching = lists_.tiles_of(boxes, &range);
  const LaneMask thin = negative(v3d::equal(range.x0, range.x1) | v3d::equal(range.y0, range.y1));
  out->outside = static_cast<LaneMask>(rejected | (left & ~touching));
  out->drawn = static_cast<LaneMask>(left & touching & thin);
  out->plain |= static_cast<LaneMask>(left & touching & ~thin);
  out->back_facing = static_cast<LaneMask>(back & out->drawn);
  narrow(range.x0, &out->x0);
  narrow(range.y0, &out->y0);
  narrow(range.x1, &out->x1);
  narrow(range.y1, &out->y1);
}

}  // namespace v3d::ptb
