#include "gpu/qpu/jit/back_ends.h"

#include <xbyak/xbyak.h>
#include <xbyak/xbyak_util.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "gpu/base/log.h"
#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/graph/graph.h"
#include "gpu/qpu/graph/interleave.h"
#include "gpu/qpu/graph/packed_bytes.h"
#include "gpu/qpu/jit/avx2/emitter.h"
#include "gpu/qpu/jit/avx512/emitter.h"
#include "gpu/qpu/jit/code/listing.h"
#include "gpu/qpu/jit/code/program_code.h"
#include "gpu/qpu/jit/code/program_emitter.h"
#include "gpu/qpu/jit/graph/batch_emitter.h"
#include "gpu/qpu/jit/graph/block_emitter.h"
#include "gpu/qpu/jit/graph/lookup_emitter.h"
#include "gpu/qpu/jit/graph/run_emitter.h"
#include "gpu/qpu/jit/graph/vertex_emitter.h"

namespace v3d::qpu::jit {
namespace {

/// Room for the code of a node, and of a program beside them. A program that needs more gets twice as much.
constexpr size_t kBytesPerNode = 256, kBytesBeside = 16384;
constexpr size_t kBytesPerGraphNode = 64;
constexpr size_t kAlignment = 64;
constexpr int kAttempts = 6;

using Xbyak::util::Cpu;

template <typename Emitter>
std::unique_ptr<ProgramEmitter> make_emitter(const flow::Flow& flow, void* buffer, size_t bytes) {
  return std::make_unique<Emitter>(flow, buffer, bytes);
}

struct BackEnd {
  Cpu::Type features;
  decltype(&make_emitter<avx2::Emitter>) make_emitter;
};
/// There before main(), where benchmarks ask for it.
const BackEnd& back_end(Target target) {
  static const BackEnd kBackEnds[] = {
      {Cpu::tAVX512F | Cpu::tAVX512BW | Cpu::tAVX512DQ | Cpu::tAVX512VL | Cpu::tAVX512CD | Cpu::tF16C,
       make_emitter<avx512::Emitter>},
      {Cpu::tAVX2 | Cpu::tF16C, make_emitter<avx2::Emitter>},
  };
  return kBackEnds[static_cast<size_t>(target)];
}

std::vector<CodePlace> places_of(const flow::Flow& flow, const std::vector<CodeMark>& marks) {
  std::vector<CodePlace> places;
  places.reserve(marks.size());
  for (const CodeMark& mark : marks)
    places.push_back({static_cast<uint32_t>(mark.offset),
                      mark.node == flow::kNowhere ? CodePlace::kNone : flow.nodes[mark.node].index});
  return places;
}

HostProgram::Inputs inputs_of(const flow::Flow& flow) {
  const auto has = [&](std::initializer_list<Op> ops) {
    return !flow.complete ||
           std::any_of(flow.instructions.begin(), flow.instructions.end(), [&](const Instruction& i) {
             return !i.is_branch && std::any_of(ops.begin(), ops.end(),
                                                [&](Op op) { return i.add.op == op || i.mul.op == op; });
           });
  };
  return {flow.blocks[flow.entry].live.registers, has({Op::kXcd, Op::kYcd}), has({Op::kFxcd, Op::kFycd}),
          has({Op::kSampid}), has({Op::kRevf})};
}

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
  with_room(graph.nodes().size() * kBytesPerGraphNode + kBytesBeside, [&](size_t bytes) {
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

std::shared_ptr<const ProgramCode> make_code(Target target, const flow::Flow& flow, CodeContent content,
                                             const JitCompiler::Lister& list, LeaveCounts& leaves,
                                             LookupCompiler& lookups) {
  std::unique_ptr<uint8_t[]> buffer;
  std::unique_ptr<ProgramEmitter> emitter;
  CodeTables tables;
  const bool made = with_room(flow.nodes.size() * kBytesPerNode + kBytesBeside, [&](size_t bytes) {
    buffer = std::make_unique_for_overwrite<uint8_t[]>(bytes);
    tables = {};
    emitter = back_end(target).make_emitter(flow, buffer.get(), bytes);
    emitter->emit(tables);
  });
  if (!made) return nullptr;
  const std::span<const uint8_t> code(emitter->getCode(), emitter->getSize());
  if (list) list(listing(flow, tables, code));
  tables.places = places_of(flow, std::exchange(tables.marks, {}));
  tables.inputs = inputs_of(flow);
  std::optional<CodeMemory> memory = CodeMemory::copy_of(code);
  if (!memory) return nullptr;
  return std::make_shared<ProgramCode>(std::move(content), *std::move(memory), std::move(tables),
                                       flow.complete, leaves, &lookups);
}

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
                                          LaneLoads loads) {
  const graph::Graph packed = graph::with_packed_bytes(graph);
  const bool loads_lanes = loads == LaneLoads::kWherePays ? gathers_are_slow() : loads == LaneLoads::kAlways;
  std::vector<uint8_t> code = code_of<BlockEmitter>(packed, width_of(target), loads_lanes);
  if (code.empty() || target != Target::kAvx512) return code;
  if (pairs != Pairs::kAlways && !gains_by_pairs(packed)) return code;
  std::vector<uint8_t> both = code_of<BlockEmitter>(packed, Width::kAvx512Pairs, loads_lanes);
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

std::vector<uint8_t> make_vertex_code(Target target, const graph::Graph& graph) {
  return code_of<VertexEmitter>(graph, width_of(target));
}

bool can_compile(Target target) {
  if (target == Target::kNeon) return false;
  static const Cpu kCpu;
  return kCpu.has(back_end(target).features);
}

bool compiles_programs(Target target) { return can_compile(target); }

const char* why_no_target() { return "the processor has neither AVX-512 nor AVX2"; }

}  // namespace v3d::qpu::jit
