#include "gpu/qpu/jit/back_ends.h"

#include <xbyak/xbyak.h>
#include <xbyak/xbyak_util.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gpu/base/log.h"
#include "gpu/qpu/graph/graph.h"
#include "gpu/qpu/graph/interleave.h"
#include "gpu/qpu/graph/packed_bytes.h"
#include "gpu/qpu/jit/graph/batch_emitter.h"
#include "gpu/qpu/jit/graph/block_emitter.h"
#include "gpu/qpu/jit/graph/lookup_emitter.h"
#include "gpu/qpu/jit/graph/run_emitter.h"
#include "gpu/qpu/jit/graph/thread_emitter.h"
#include "gpu/qpu/jit/graph/vertex_emitter.h"

namespace v3d::qpu::jit {
namespace {

/// Room for the code of a node, and beside them. Where that is too little there is twice as much.
constexpr size_t kBytesPerNode = 64, kBytesBeside = 16384;
constexpr size_t kAlignment = 64;
constexpr int kAttempts = 6;

using Xbyak::util::Cpu;

/// Calls emit(bytes) with room for code, and with twice as much for as long as that is too small.
/// @return  false: the code cannot be made
template <typename Fn>
bool with_room(size_t bytes, Fn emit) {
  for (int attempt = 0; attempt < kAttempts; ++attempt, bytes *= 2) {
    try {
      emit(bytes);
      return true;
    } catch (const Xbyak::Error& error) {
      if (static_cast<int>(error) == Xbyak::ERR_CODE_IS_TOO_BIG) continue;
      log_error("jit: %s", error.what());
      return false;
    }
  }
  return false;
}

/// Sums that are done side by side: of AVX2 a value is two registers, and there are few.
constexpr size_t kChainsOfAvx512 = 4, kChainsOfAvx2 = 2;

Width width_of(Target target) { return target == Target::kAvx512 ? Width::kAvx512 : Width::kAvx2; }

/// Of an emitter that is made with `arguments`.
template <typename Emitter, typename... Arguments>
std::vector<uint8_t> code_of(const graph::Graph& graph, Width width, Arguments... arguments) {
  std::vector<uint8_t> result;
  with_room(graph.nodes().size() * kBytesPerNode + kBytesBeside, [&](size_t bytes) {
    size_t room = bytes + kAlignment;
    const auto buffer = std::make_unique_for_overwrite<uint8_t[]>(room);
    void* begin = buffer.get();
    std::align(kAlignment, bytes, begin, room);
    Emitter emitter(graph, width, arguments..., begin, bytes);
    emitter.emit();
    result.assign(emitter.getCode(), emitter.getCode() + emitter.getSize());
  });
  return result;
}

}  // namespace

namespace {

/// Whether functions of AVX-512 draw two blocks side by side. Lookups are chains of operations that wait for
/// each other; the host overlaps those of one block too little.
bool gains_by_pairs(const graph::Graph& graph) {
  constexpr size_t kMostNodes = 2048;
  const std::vector<graph::Node>& nodes = graph.nodes();
  return nodes.size() <= kMostNodes && std::any_of(nodes.begin(), nodes.end(), [](const graph::Node& n) {
           return n.op == graph::Op::kGather;
         });
}

}  // namespace

bool picks_lanes(Target) { return true; }

const char* operation_without_code(Target, const graph::Graph&) { return nullptr; }

std::vector<uint8_t> make_run_code(Target target, const graph::Graph& made, GpuAddr code, bool is_sure) {
  const Width width = width_of(target);
  const graph::Graph graph = width == Width::kAvx2 ? graph::by_rounding(made) : made;
  return code_of<RunEmitter>(graph, width, code, is_sure);
}

std::vector<uint8_t> make_block_code_with(Target target, const graph::Graph& graph, Pairs pairs,
                                          Gathers gathers) {
  const graph::Graph packed = graph::with_packed_bytes(graph);
  const bool avoids_gathers =
      gathers == Gathers::kWherePays ? gathers_are_slow() : gathers == Gathers::kAvoided;
  std::vector<uint8_t> code = code_of<BlockEmitter>(packed, width_of(target), avoids_gathers);
  if (code.empty() || target != Target::kAvx512) return code;
  if (pairs != Pairs::kAlways && !gains_by_pairs(packed)) return code;
  std::vector<uint8_t> both = code_of<BlockEmitter>(packed, Width::kAvx512Pairs, avoids_gathers);
  if (!both.empty()) both.insert(both.end(), code.begin(), code.end());
  return both;
}

std::vector<uint8_t> make_batch_code(Target target, const graph::Graph& graph) {
  const Width width = width_of(target);
  const size_t chains = width == Width::kAvx512 ? kChainsOfAvx512 : kChainsOfAvx2;
  return code_of<BatchEmitter>(graph::interleaved(graph, chains), width);
}

std::vector<uint8_t> make_lookup_code(Target target, const graph::Graph& graph) {
  if (target == Target::kAvx512) return code_of<LookupEmitter>(graph, Width::kAvx512);
  const std::vector<graph::Node>& nodes = graph.nodes();
  const bool picks = std::any_of(nodes.begin(), nodes.end(),
                                 [](const graph::Node& n) { return n.op == graph::Op::kPickLanes; });
  return code_of<LookupEmitter>(graph, picks ? Width::kAvx2 : Width::kAvx2Halves);
}

std::vector<uint8_t> make_thread_code(Target target, const graph::Graph& graph, uint32_t first, bool ends) {
  return code_of<ThreadEmitter>(graph, width_of(target), first, ends);
}

std::vector<uint8_t> make_vertex_code(Target target, const graph::Graph& graph) {
  return code_of<VertexEmitter>(graph, width_of(target));
}

bool can_compile(Target target) {
  if (target == Target::kNeon) return false;
  static const Cpu kCpu;  // there before main(), where benchmarks ask for it
  if (!kCpu.has(Cpu::tF16C)) return false;
  if (target == Target::kAvx2) return kCpu.has(Cpu::tAVX2);
  return kCpu.has(Cpu::tAVX512F | Cpu::tAVX512BW | Cpu::tAVX512DQ | Cpu::tAVX512VL | Cpu::tAVX512CD);
}

const char* why_no_target() { return "the processor has neither AVX-512 nor AVX2"; }

}  // namespace v3d::qpu::jit
