#include "gpu/qpu/jit/graph/emitter.h"

#include <algorithm>
#include <cstddef>

#include "gpu/base/lanes.h"
#include "gpu/qpu/jit/graph/frame.h"

namespace v3d::qpu::jit {
namespace {

using graph::kNoNode;

/// Denormals are zeros, as operands and as results; no exceptions. AVX2 rounds toward zero in this mode, and
/// to nearest in the host's; AVX-512 says in each instruction that does not round to nearest how it does.
constexpr uint32_t kFlushing = 0x1f80 | 1 << 15 | 1 << 6, kFlushingTowardZero = kFlushing | 3 << 13;

bool is_home(graph::Op op) {
  using graph::Op;
  switch (op) {
    case Op::kConst:
    case Op::kLoad:
    case Op::kVarying:
    case Op::kLaneIndex:
    case Op::kVaryingC:
    case Op::kUniformWord:
      return true;
    default:
      return false;
  }
}

}  // namespace

GraphEmitter::GraphEmitter(const graph::Graph& graph, Width width, int units, void* buffer, size_t bytes)
    : Xbyak::CodeGenerator(bytes, buffer),
      graph_(graph),
      wide_(width == Width::kAvx512),
      parts_(wide_ ? 1 : 2),
      uses_(graph),
      places_(graph.nodes().size()),
      num_units_(units) {
  held_.fill(kNoNode);
  for (size_t n = 0; n < places_.size(); ++n) {
    const Op op = graph[static_cast<Id>(n)].op;
    places_[n].home = is_home(op);
    rounds_ = rounds_ || graph::has(op, graph::kTowardZero) || graph::has(op, graph::kToNearest);
  }
  find_loose_zeros();
}

void GraphEmitter::emit() {
  begin();
  for (const Node& node : graph_.nodes()) {
    locked_ = 0;
    emit(node);
  }
  end();
  unsure_results();
  pool();
  rewrite(frame_at_, kSlots + uint64_t{kLaneBytes} * static_cast<uint64_t>(num_slots_), 4);
}

void GraphEmitter::pool() {
  align(kLaneBytes);
  for (auto& [bits, label] : constants_) {
    L(label);
    for (int n = 0; n < (wide_ ? 1 : 8); ++n) dd(bits);
  }
  for (auto& [bits, label] : doubles_) {
    L(label);
    for (int n = 0; n < (wide_ ? 1 : 4); ++n) dq(bits);
  }
  L(mode_);
  dd(wide_ ? kFlushing : kFlushingTowardZero);
  if (uses_lane_index_) table(lane_index_, [](uint32_t lane) { return lane; });
  if (uses_lane_bits_) table(lane_bits_, [](uint32_t lane) { return 1u << lane; });
  own_data();
}

void GraphEmitter::set_mode(Mode mode) {
  if (current_mode_ == mode || !has_own_mode()) return;
  current_mode_ = mode;
  ldmxcsr(mode == Mode::kOwn ? ptr[rip + mode_] : ptr[rsp + kHostMode]);
}

void GraphEmitter::emit(const Node& node) {
  if (emit_words(node) || emit_parts(node) || emit_floats(node) || emit_nearest_floats(node)) return;
  emit_own(node);
}

}  // namespace v3d::qpu::jit
