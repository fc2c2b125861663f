#include "gpu/qpu/jit/graph/emitter.h"

#include <algorithm>
#include <cstddef>

#include "gpu/base/lanes.h"
#include "gpu/qpu/jit/graph/facts.h"
#include "gpu/qpu/jit/graph/frame.h"

namespace v3d::qpu::jit {
namespace {

/// MXCSR of threads of the host, which nobody here changes for longer than a function takes. It is not stored
/// to be found again: that waits for all sums and products before.
///
/// Denormals are zeros, as operands and as results; no exceptions. AVX2 rounds toward zero in this mode, and
/// to nearest in the host's; AVX-512 says in each instruction that does not round to nearest how it does.
constexpr uint32_t kHostMode = 0x1f80, kFlushing = kHostMode | 1 << 15 | 1 << 6,
                   kFlushingTowardZero = kFlushing | 3 << 13;

}  // namespace

GraphEmitter::GraphEmitter(const graph::Graph& graph, Width width, int units, void* buffer, size_t bytes)
    : Xbyak::CodeGenerator(bytes, buffer),
      RegisterScan(graph, units),
      wide_(width == Width::kAvx512 || width == Width::kAvx512Pairs),
      are_pairs_(width == Width::kAvx512Pairs),
      parts_(width == Width::kAvx512 || width == Width::kAvx2Halves ? 1 : 2),
      bytes_of_part_(wide_ ? kLaneBytes : kLaneBytes / 2),
      zero_is_loose_(loose_zeros(graph)) {}

void GraphEmitter::emit() {
  begin();
  walk();
  end();
  unsure_results();
  partial_gathers();
  pool();
  rewrite(frame_at_,
          kSlots + static_cast<uint64_t>(bytes_of_part_ * parts_) * static_cast<uint64_t>(num_slots_), 4);
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
  L(host_mode_);
  dd(kHostMode);
  lookup_data();
  if (uses_lane_index_) table(lane_index_, [](uint32_t lane) { return lane; });
  if (uses_lane_bits_) table(lane_bits_, [](uint32_t lane) { return 1u << lane; });
  own_data();
}

void GraphEmitter::set_mode(Mode mode) {
  if (current_mode_ == mode || !has_own_mode()) return;
  current_mode_ = mode;
  ldmxcsr(ptr[rip + (mode == Mode::kOwn ? mode_ : host_mode_)]);
}

void GraphEmitter::emit(const Node& node) {
  if (emit_words(node) || emit_parts(node) || emit_floats(node) || emit_nearest_floats(node) ||
      emit_lookups(node))
    return;
  emit_own(node);
}

}  // namespace v3d::qpu::jit
