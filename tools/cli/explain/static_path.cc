#include "tools/cli/explain/static_path.h"

#include <algorithm>
#include <deque>

#include "gpu/perf/timing/events.h"
#include "gpu/perf/timing/parameters.h"
#include "gpu/perf/timing/replayer.h"
#include "gpu/qpu/isa/instruction.h"

namespace v3d::tools::explain {
namespace {

using qpu::Register;
using timing::Event;
using Kind = timing::Event::Kind;
using Use = qpu::flow::Event::Kind;

constexpr uint32_t kWordsOfLine = timing::kLineBytes / 4;
constexpr uint32_t kUniformLine = 1 << 20, kLookupLine = 1 << 16;  // places that are not the program's
/// Batches of each thread: so many that what the first ones bring is there for the others.
constexpr uint32_t kBatchesOfThread = 32;

bool is_lookup(const qpu::flow::Event& use) {
  return use.kind == Use::kWrite && qpu::starts_lookup(use.effect);
}

/// Makes events of nodes, as gpu/perf/record does of what threads do.
class Writer {
 public:
  Writer(const qpu::flow::Flow& flow, timing::Trace* trace) : flow_(flow), trace_(*trace) {
    trace_.batches.emplace_back();
    trace_.paths.emplace_back();
  }

  void add(uint32_t node) {
    const qpu::flow::Node& n = flow_.nodes[node];
    const qpu::Instruction& i = *flow_.instruction(n);
    const qpu::flow::Access& access = flow_.access(n);
    events().push_back(Event::issue(static_cast<uint32_t>(n.index), 1));
    add_results_of_the_one_before(i, access);
    if (i.add.op == qpu::Op::kTmuwt && !i.is_branch) events().emplace_back(Kind::kWait);
    bool tlb = false;
    for (const qpu::flow::Event& use : access.events()) {
      tlb |= use.kind == Use::kLdtlb || use.effect == qpu::Effect::kTlb;
      if (use.stream != qpu::Stream::kNone) take_uniform();
      data_ += use.kind == Use::kWrite && use.effect == qpu::Effect::kTmuData;
      if (is_lookup(use)) start_lookup(use.effect == qpu::Effect::kGeneral);
      if (use.kind == Use::kLdtmu) take_word();
    }
    if (tlb && !wrote_) events().emplace_back(Kind::kTlb);
    wrote_ |= tlb;
    const qpu::flow::Advance then = qpu::flow::advance(n.in_flight, i, access);
    if (then.ends)
      events().emplace_back(Kind::kEnd);
    else if (then.switches)
      events().emplace_back(Kind::kSwitch);
  }
  void end() {
    if (events().empty() || events().back().kind() != Kind::kEnd) events().emplace_back(Kind::kEnd);
  }

 private:
  std::vector<Event>& events() { return trace_.paths[0]; }
  std::vector<uint32_t>& lines() { return trace_.batches[0].lines; }

  void add_results_of_the_one_before(const qpu::Instruction& i, const qpu::flow::Access& access) {
    const auto reads = [&](Register r) { return r != qpu::kNoRegister && access.reads.registers.has(r); };
    if (reads(sfu_)) events().emplace_back(Kind::kSfu);
    if (reads(rep_)) events().emplace_back(Kind::kRep);
    sfu_ = rep_ = qpu::kNoRegister;
    if (i.is_branch) return;
    if ((qpu::info(i.add.op).traits & qpu::kSfu) && !i.add.magic) sfu_ = i.add.waddr;
    for (const qpu::AluHalf* half : {&i.mul, &i.add}) {
      if (!half->magic || !qpu::info(half->op).has_destination) continue;
      const qpu::WaddrInfo& to = qpu::waddr_info(flow_.setting.generation, half->waddr);
      if (to.effect == qpu::Effect::kLane0) rep_ = to.reg;
    }
  }
  void take_uniform() {
    if (uniforms_++ % kWordsOfLine != 0) return;
    events().emplace_back(Kind::kUniforms);
    lines().push_back(kUniformLine + uniforms_ / kWordsOfLine);
  }
  /// How many words come back, ldtmu tells.
  void start_lookup(bool is_general) {
    timing::Shape shape;
    shape.access = is_general && data_ != 0 ? timing::Shape::Access::kStore : timing::Shape::Access::kLoad;
    shape.inputs = static_cast<uint8_t>(std::min(data_ + 1, 16));
    shape.quads = shape.quad_words = 4;
    shape.texels = is_general ? 0 : 4;
    shape.one_line = true;
    shape.num_lines = 1;
    shape.lines = {0};
    data_ = 0;
    outstanding_.push_back(trace_.shapes.size());
    events().emplace_back(Kind::kLookup, static_cast<uint32_t>(trace_.shapes.size()));
    lines().push_back(kLookupLine + static_cast<uint32_t>(trace_.shapes.size()));
    trace_.shapes.push_back(shape);
  }
  /// Of the oldest lookup; the last one that is outstanding has all words that are still taken.
  void take_word() {
    events().emplace_back(Kind::kRead);
    if (outstanding_.empty()) return;
    timing::Shape& shape = trace_.shapes[outstanding_.front()];
    shape.access = timing::Shape::Access::kLoad;
    shape.results = static_cast<uint8_t>(std::min(shape.results + 1, 4));
    shape.quad_words = static_cast<uint16_t>(4 * shape.results);
    if (outstanding_.size() > 1) outstanding_.pop_front();
  }

  const qpu::flow::Flow& flow_;
  timing::Trace& trace_;
  std::deque<size_t> outstanding_;  // shapes
  Register sfu_ = qpu::kNoRegister, rep_ = qpu::kNoRegister;
  uint32_t uniforms_ = 0;
  int data_ = 0;
  bool wrote_ = false;
};

}  // namespace

std::vector<uint32_t> static_path(const qpu::flow::Flow& flow) {
  std::vector<uint32_t> path;
  std::vector<bool> seen(flow.blocks.size());
  qpu::flow::Cursor cursor(flow);
  while (cursor.node() != qpu::flow::kNowhere) {
    const qpu::flow::Node& node = flow.nodes[cursor.node()];
    const qpu::Instruction* const i = flow.instruction(node);
    const bool begins = flow.blocks[node.block].first == cursor.node();
    if (i == nullptr || node.index < 0 || (begins && seen[node.block])) break;
    if (begins) seen[node.block] = true;
    path.push_back(cursor.node());
    cursor.advance(i->is_branch && i->branch.cond == qpu::BranchCond::kAlways);
  }
  return path;
}

timing::Prediction predict_path(const qpu::flow::Flow& flow, std::span<const uint32_t> path,
                                const chip::Profile& profile, uint32_t threads_per_qpu) {
  timing::Dispatch dispatch;
  dispatch.trace.programs.push_back({.stage = "compute", .code = 0, .threads_per_qpu = threads_per_qpu});
  Writer writer(flow, &dispatch.trace);
  for (const uint32_t node : path) writer.add(node);
  writer.end();
  const size_t batches =
      size_t{kBatchesOfThread} * static_cast<size_t>(profile.qpu_count()) * threads_per_qpu;
  const timing::Batch batch = dispatch.trace.batches[0];
  dispatch.trace.batches.resize(batches, batch);
  dispatch.batches = batches;
  dispatch.instructions = batches * path.size();
  // As many side by side as there is room for, which supergroups of one batch would not be.
  dispatch.batches_per_supergroup = static_cast<uint32_t>(profile.qpu_count());
  return timing::replay(dispatch, profile, timing::parameters_of(profile));
}

}  // namespace v3d::tools::explain
