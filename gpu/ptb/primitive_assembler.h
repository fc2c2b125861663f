/// A PrimitiveAssembler tells which vertices of a draw make which primitive (cle-and-tiles.md 3.5).
#pragma once

#include <array>
#include <cstdint>

#include "gpu/draw/modes.h"

namespace v3d::ptb {

using draw::Mode;

/// A vertex on its way through assembly.
struct Element {
  uint32_t index;     ///< as fetched
  uint32_t position;  ///< in the vertices of the piece being filled
};

/// Takes the vertices of one instance in order and hands out primitives through
/// `emit(const Element* inputs, uint32_t provoking)`: all inputs of the topology, in API order, and which of
/// them is the provoking vertex.
class PrimitiveAssembler {
 public:
  PrimitiveAssembler(Mode mode, bool provoking_first) : mode_(mode), first_(provoking_first) {}

  template <typename Emit>
  void feed(Element e, const Emit& emit);

  /// Primitive restart, or the end of the instance: closes what closes late.
  template <typename Emit>
  void finish(const Emit& emit);

  /// Calls fn(Element&) for every vertex that a later primitive may use.
  template <typename Fn>
  void for_each_pending(const Fn& fn) {
    if (count_ == 0) return;
    fn(start_);
    const uint32_t kept = count_ < kHistory ? count_ : kHistory;
    for (uint32_t back = 0; back < kept; ++back) fn(history_[(count_ - 1 - back) % kHistory]);
  }

 private:
  static constexpr uint32_t kHistory = 16;

  const Element& at(uint32_t i) const { return history_[i % kHistory]; }
  /// The provoking vertex is number `first` in first mode, else number `last`.
  template <typename Emit, typename... E>
  void out(const Emit& emit, uint8_t first, uint8_t last, E... e) const {
    const Element inputs[] = {e...};
    emit(inputs, uint32_t{first_ ? first : last});
  }
  template <typename Emit>
  void strip_adjacency_triangle(uint32_t i, bool is_last, const Emit& emit) const;

  Mode mode_;
  bool first_;
  uint32_t count_ = 0;  // vertices since the start or the last restart; lists start over after each primitive
  Element start_{};     // vertex 0: fan centre, start of the loop
  std::array<Element, kHistory> history_{};
};

template <typename Emit>
void PrimitiveAssembler::feed(Element e, const Emit& emit) {
  if (count_ == 0) start_ = e;
  history_[count_ % kHistory] = e;
  const uint32_t n = ++count_;
  switch (mode_) {
    case Mode::kPoints:
      out(emit, 0, 0, e);
      count_ = 0;
      return;
    case Mode::kLines:
      if (n < 2) return;
      out(emit, 0, 1, at(0), e);
      count_ = 0;
      return;
    case Mode::kLineLoop:
    case Mode::kLineStrip:
      if (n >= 2) out(emit, 0, 1, at(n - 2), e);
      return;
    case Mode::kTriangles:
      if (n < 3) return;
      out(emit, 0, 2, at(0), at(1), e);
      count_ = 0;
      return;
    case Mode::kTriangleStrip:
      if (n < 3) return;
      if (n % 2 == 1)
        out(emit, 0, 2, at(n - 3), at(n - 2), e);
      else
        out(emit, 1, 2, at(n - 2), at(n - 3), e);  // odd ones are turned round to keep the winding
      return;
    case Mode::kTriangleFan:
      if (n >= 3) out(emit, 1, 2, start_, at(n - 2), e);
      return;
    case Mode::kLinesAdjacency:
      if (n < 4) return;
      out(emit, 1, 2, at(0), at(1), at(2), e);
      count_ = 0;
      return;
    case Mode::kLineStripAdjacency:
      if (n >= 4) out(emit, 1, 2, at(n - 4), at(n - 3), at(n - 2), e);
      return;
    case Mode::kTrianglesAdjacency:
      if (n < 6) return;
      out(emit, 0, 4, at(0), at(1), at(2), at(3), at(4), e);
      count_ = 0;
      return;
    case Mode::kTriangleStripAdjacency:
      // The vertex opposite to the far edge belongs to the next triangle: wait until there is one.
      if (n >= 8 && n % 2 == 0) strip_adjacency_triangle((n - 8) / 2, false, emit);
      return;
  }
}

template <typename Emit>
void PrimitiveAssembler::finish(const Emit& emit) {
  if (mode_ == Mode::kLineLoop && count_ >= 2) out(emit, 0, 1, at(count_ - 1), start_);
  if (mode_ == Mode::kTriangleStripAdjacency && count_ >= 6)
    strip_adjacency_triangle((count_ - 6) / 2, true, emit);
  count_ = 0;
}

/// Triangle i of a strip with adjacency: corners 2i, 2i + 2, 2i + 4 (OpenGL 4.6 table 10.1, numbers from 0).
template <typename Emit>
void PrimitiveAssembler::strip_adjacency_triangle(uint32_t i, bool is_last, const Emit& emit) const {
  const uint32_t v = 2 * i;
  const Element& before = i == 0 ? at(1) : at(v - 2);      // opposite to the edge shared with triangle i - 1
  const Element& after = is_last ? at(v + 5) : at(v + 6);  // opposite to the edge shared with triangle i + 1
  if (i % 2 == 0)
    out(emit, 0, 4, at(v), before, at(v + 2), after, at(v + 4), at(v + 3));
  else
    out(emit, 2, 4, at(v + 2), before, at(v), at(v + 3), at(v + 4), after);
}

}  // namespace v3d::ptb
