/// These functions move across all lanes, from registers of both parts to one part.
#pragma once

#include <cstdint>

#include "gpu/qpu/jit/avx2/emitter.h"

namespace v3d::qpu::jit::avx2 {

/// Lane i is lane (i + turn) & 15: those of one part, turned, and then those of the other.
/// @param part_of  Ymm(Emitter&, int part)
template <typename PartOf>
void rotate_lanes(Emitter& e, const Xbyak::Ymm& to, uint32_t turn, const PartOf& part_of) {
  const int nearer = e.part() ^ static_cast<int>(turn >> 3 & 1);
  turn &= 7;
  const Xbyak::Ymm first = part_of(e, nearer);
  if (turn == 0) return e.vmovaps(to, first);
  std::array<uint32_t, 16> order;
  for (uint32_t i = 0; i < 16; ++i) order[i] = (i + turn) & 7;
  const Xbyak::Ymm lanes = e.scratch(), second = e.scratch();
  e.vmovaps(lanes, e.constants(order));
  e.vpermd(second, lanes, part_of(e, nearer ^ 1));
  e.vpermd(to, lanes, first);
  e.vpblendd(to, to, second, static_cast<uint8_t>(0xff00 >> turn));
}

/// Lane i is lane index[i] & 15. Changes the index.
template <typename PartOf>
void permute_lanes(Emitter& e, const Xbyak::Ymm& to, const Xbyak::Ymm& index, const PartOf& part_of) {
  const Xbyak::Ymm upper = e.scratch();
  e.vpermd(to, index, part_of(e, 0));
  e.vpermd(upper, index, part_of(e, 1));
  e.vpslld(index, index, 28);
  e.vblendvps(to, to, upper, index);
}

}  // namespace v3d::qpu::jit::avx2
