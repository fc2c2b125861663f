/// @file What is stored where code of a stretch of a dispatch, or of a part of a thread, is left.

#include "gpu/qpu/jit/graph/emitter.h"
#include "gpu/qpu/jit/graph/frame.h"

namespace v3d::qpu::jit {

void GraphEmitter::store_behind(const Node& node, const Xbyak::Reg64& base) {
  std::vector<Stored> values = stored_at(graph_, node, places_);
  copy_replaced(graph_, values, [&](const Stored& what) {
    const auto copy = static_cast<int16_t>(num_slots_++);
    for (int p = 0; p < parts_; ++p) {
      vmovups(scratch(0), stands_at(what.node->operands[0], p, false));
      vmovaps(slot(copy, p), scratch(0));
    }
    return copy;
  });
  for (const Stored& what : values) {
    const int offset = offset_of(what.node->immediate);
    if (what.node->op == Op::kStoreMask) {
      store_mask(what, word[base + offset]);
    } else {
      for (int p = 0; p < parts_; ++p) {
        if (what.place.unit < 0) load_stored(scratch(0), what, p);
        vmovups(ptr[base + offset + 32 * p], what.place.unit < 0 ? scratch(0) : vector(what.place.unit, p));
      }
    }
    consume(*what.node);
  }
}

void GraphEmitter::load_stored(const Vector& to, const Stored& what, int part) {
  const Id id = what.node->operands[0];
  if (what.place.unit >= 0) return vmovaps(to, vector(what.place.unit, part));
  if (what.place.slot >= 0) return vmovaps(to, slot(what.place.slot, part));
  const Xbyak::Address from = stands_at(id, part, false);
  is_word(id) || (wide_ && is_everywhere(id)) ? vpbroadcastd(to, from) : vmovups(to, from);
}

void GraphEmitter::store_mask(const Stored& what, const Xbyak::Address& to) {
  load_stored(scratch(0), what, 0);
  if (wide_) {
    vpmovd2m(k1, scratch(0));
    kmovw(edx, k1);
  } else {
    vmovmskps(edx, scratch(0));
    load_stored(scratch(0), what, 1);
    vmovmskps(eax, scratch(0));
    shl(eax, 8);
    or_(edx, eax);
  }
  mov(to, dx);
}

}  // namespace v3d::qpu::jit
