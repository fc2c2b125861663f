#include "gpu/qpu/graph/program_front_end.h"

#include <utility>

#include "gpu/qpu/graph/block_targets.h"
#include "gpu/qpu/graph/front_end.h"
#include "gpu/qpu/run/alu_lanes.h"

namespace v3d::qpu::graph {
namespace {

constexpr uint32_t kOne = 0x3f800000, kHalf = 0x3f000000;
/// On doubles they take long.
constexpr uint32_t kMostSpecial = 2;

/// Sums and products with a uniform as their second operand, as hosts take words of memory: of two NaNs the
/// first one is the result.
VertexGraph with_uniforms_last(const VertexGraph& of) {
  VertexGraph result = of;
  result.graph = {};
  const auto is_uniform = [&](Id id) { return of.graph[id].op == Op::kUniformWord; };
  for (Node node : of.graph.nodes()) {
    const bool commutes = node.op == Op::kFloatSum || node.op == Op::kFloatProduct;
    if (commutes && is_uniform(node.operands[0]) && !is_uniform(node.operands[1])) {
      result.numbers.push_back(of.graph[node.operands[0]].immediate);
      std::swap(node.operands[0], node.operands[1]);
    }
    result.graph.append(node);
  }
  return result;
}

}  // namespace

std::optional<BlockGraph> FrontEnd::make(const char** why) {
  execute(why);
  if (why_ != nullptr) return {};
  if (colors_ != 0) store_colors(graph_, key_.target, {color_, color_exec_}, uniforms_.count());
  BlockGraph made = {without_dead(graph_), uniforms_.count(), uniforms_.indirect(),
                     depth_configuration_, instructions_,     specials_ > kMostSpecial};
  if (const char* const seen = unknown_source(made.graph); seen != nullptr) {
    *why = seen;
    return {};
  }
  return made;
}

std::optional<BlockLookups> FrontEnd::find_lookups(const char** why) {
  execute(why);
  if (why_ != nullptr) return {};
  return BlockLookups{lookups_.found(), uniforms_.found(), {}, has_scratch_};
}

std::optional<VertexGraph> FrontEnd::make_vertices(const char** why) {
  stage_ = Stage::kVertices;
  execute_all();
  check_limits();
  *why = why_;
  if (why_ != nullptr) return {};
  return with_uniforms_last(
      {without_dead(graph_), uniforms_.count(), instructions_, rows_, uniforms_.indirect(), {}});
}

std::optional<BatchGraph> FrontEnd::make_batches(bool is_whole, const char** why) {
  execute_batch(is_whole, why);
  if (why_ != nullptr) return {};
  return BatchGraph{without_dead(graph_), uniforms_.count(), uniforms_.indirect(), instructions_};
}

std::optional<BlockLookups> FrontEnd::find_batch_lookups(const char** why) {
  execute_batch(false, why);
  if (why_ != nullptr) return {};
  return BlockLookups{lookups_.found(), uniforms_.found(), {}, false};
}

void FrontEnd::execute(const char** why) {
  test_depth();
  execute_all();
  if (key_.is_late && !depth_configuration_) refuse("no depth, which tests wait for");
  if (!scratch_.is_all_loaded()) refuse("stores that nothing loads");
  check_limits();
  *why = why_;
}

void FrontEnd::begin_batch(bool is_whole) {
  stage_ = Stage::kBatches;
  coverage_ = is_whole ? bits(~0u) : source(Op::kCovered);
  cover_samples();
  registers_[isa_.workgroup_xy] = source(Op::kPayload, 0);
  registers_[isa_.workgroup_z_index] = source(Op::kPayload, 1);
}

void FrontEnd::execute_batch(bool is_whole, const char** why) {
  begin_batch(is_whole);
  execute_all();
  check_limits();
  *why = why_;
}

void FrontEnd::check_limits() {
  if (graph_.is_full()) refuse("too many operations");
  if (uniforms_.count() > kMostUniforms || uniforms_.indirect().size() > kMostIndirect)
    refuse("many uniforms");
  if (uniforms_.found().size() > (finds_ ? BlockLookups::kMostKnown : 0))
    refuse("many uniforms that have to be known");
}

const char* FrontEnd::unknown_source(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::kThreadIndex) return "tidx";
    if (node.op == Op::kLaneIndex) return "eidx";
  }
  return nullptr;
}

Value FrontEnd::stored_depth(Value z) {
  using Depth = BlockKey::Depth;
  const Value zero = bits(0);
  if (key_.depth == Depth::k32F) return min_floats(max_floats(z, zero), bits(kOne));
  const bool wide = key_.depth == Depth::k24;
  const Value scaled = float_product(z, bits(wide ? 0x4b800000u : 0x47800000u)),  // 2^24, 2^16
      most = bits(wide ? 0x4b7fffffu : 0x477fff00u);
  return truncated(min_floats(max_floats(scaled, zero), most));
}

void FrontEnd::test_depth() {
  coverage_ = source(Op::kCovered);
  Value may_pass = coverage_;
  if (key_.depth != BlockKey::Depth::kNone) {
    depth_ = stored_depth(source(Op::kPlane, kPlaneZ));
    stored_ = source(Op::kLoadTile, kTileDepth);
    passes_ = compared(key_.test, depth_, stored_, key_.depth == BlockKey::Depth::k32F);
    may_pass = coverage_ & passes_;
  }
  if (!key_.is_late) pass(may_pass);
  effect(Op::kShade, may_pass);
  if (!key_.is_late) effect(Op::kPassed, may_pass);
  cover_samples();
}

void FrontEnd::cover_samples() {
  msf_ = coverage_ & 1u;
  sets_samples_ = false;
  lookups_.set_live(coverage_, false);
}

void FrontEnd::pass(Value passed) {
  coverage_ = passed;
  if (key_.depth != BlockKey::Depth::kNone && key_.writes_depth)
    effect(Op::kStoreTile, choose(passed, depth_, stored_), kTileDepth);
}

void FrontEnd::test_late(Value exec) {
  if (depth_configuration_.has_value() || color_words_ % kColorWords != 0)
    return refuse("several writes with a configuration");
  if (!graph_.is_constant(exec.id, ~0u)) return refuse("a conditional write of depth");
  depth_configuration_ = uniforms_.take();
  if (!key_.is_late) return;
  pass(key_.depth != BlockKey::Depth::kNone ? alive() & passes_ : alive());
  effect(Op::kPassed, coverage_);
  cover_samples();
}

Value FrontEnd::payload(Register r) {
  if (stage_ != Stage::kFragments) {
    refuse("a register without a value");
    return bits(0);
  }
  if (r == isa_.fragment_w || r == isa_.fragment_centroid_w)
    return float_quotient(bits(kOne), source(Op::kPlane, kPlaneR));
  if (r == isa_.fragment_z) return source(Op::kPlane, kPlaneZ);
  refuse("a register without a value");
  return bits(0);
}

Value FrontEnd::state_of_pixels(QpuOp op) {
  switch (op) {
    case QpuOp::kTidx:
      return source(Op::kThreadIndex);
    case QpuOp::kEidx:
      return source(Op::kLaneIndex);
    case QpuOp::kXcd:
      return source(Op::kPixel, 0);
    case QpuOp::kYcd:
      return source(Op::kPixel, 1);
    case QpuOp::kFxcd:
      return float_sum(nearest_float(source(Op::kPixel, 0)), bits(kHalf));
    case QpuOp::kFycd:
      return float_sum(nearest_float(source(Op::kPixel, 1)), bits(kHalf));
    case QpuOp::kMsf:
      return msf_;
    case QpuOp::kRevf:
      return source(Op::kBackFacing) & 1u;
    default:
      return {};
  }
}

void FrontEnd::write_tile(Value v, Value exec) {
  if (colors_ != 0) return refuse("several colours");
  if (key_.is_late && !depth_configuration_) return refuse("colours before depth");
  color_exec_ = color_words_ == 0 ? exec : color_exec_ & exec;
  color_[color_words_++] = v;
  if (color_words_ != kColorWords) return;
  ++colors_;
  color_exec_ = alive() & color_exec_;
}

std::optional<BlockGraph> block_graph(const flow::Flow& flow, const BlockKey& key, const char** why,
                                      const Host& host) {
  return FrontEnd(flow, key, false, host).make(why);
}

std::optional<BlockLookups> find_lookups(const flow::Flow& flow, const char** why) {
  return FrontEnd(flow, {}, true).find_lookups(why);
}

std::optional<BatchGraph> batch_graph(const flow::Flow& flow, const BatchKey& key, const char** why) {
  const BlockKey taken = {.lookups = key.lookups, .known = key.known};
  return FrontEnd(flow, taken, false).make_batches(key.is_whole, why);
}

std::optional<BlockLookups> find_batch_lookups(const flow::Flow& flow, const char** why) {
  return FrontEnd(flow, {}, true).find_batch_lookups(why);
}

std::optional<VertexGraph> vertex_graph(const flow::Flow& flow, const char** why) {
  return FrontEnd(flow, {}, false).make_vertices(why);
}

}  // namespace v3d::qpu::graph
