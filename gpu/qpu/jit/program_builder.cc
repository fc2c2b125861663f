#include "gpu/qpu/jit/program_builder.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/qpu/graph/text.h"
#include "gpu/qpu/graph/thread_front_end.h"
#include "gpu/qpu/isa/isa.h"
#include "gpu/qpu/jit/back_ends.h"

namespace v3d::qpu::jit {
namespace {

using Why = CodeExit::Why;
using Kind = flow::Exit::Kind;

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

/// Where both the branch and the uniforms go on.
bool branches_to_known_places(const Branch& b) {
  const auto known = [](BranchTarget t) {
    return t == BranchTarget::kAbsolute || t == BranchTarget::kRelative;
  };
  return known(b.target) && (!b.uniforms || known(static_cast<BranchTarget>(b.uniform_target)));
}

/// Whether code leaves before a node, for the interpreter: what follows is not known.
bool leaves_before(const flow::Flow& flow, uint32_t node) {
  const flow::Node& n = flow.nodes[node];
  if (n.instruction == flow::kNowhere) return true;
  const Instruction& i = flow.instructions[n.instruction];
  if (i.is_branch && !branches_to_known_places(i.branch)) return true;
  if (!flow.is_last(node)) return false;
  const flow::Exit::Kind kind = flow.blocks[n.block].exit.kind;
  const bool branches = i.is_branch || n.in_flight.branch_in == 1;
  // Nobody relies on a branch at the end.
  return kind == flow::Exit::Kind::kGap || (kind == flow::Exit::Kind::kEnd && branches);
}

/// @param under_way  the branch of node.in_flight, or null
CodeExit exit_before(const flow::Node& node, CodeExit::Why why, const Branch* under_way) {
  CodeExit exit{why, node.index, node.in_flight};
  if (under_way == nullptr) return exit;
  const uint32_t behind = static_cast<uint32_t>(node.in_flight.branch + 1 + flow::kBranchDelay) * 8;
  exit.branch_is_relative = under_way->target == BranchTarget::kRelative;
  exit.branch_target = (exit.branch_is_relative ? behind : 0) + under_way->offset;
  exit.branch_moves_uniforms = under_way->uniforms;
  return exit;
}

CodeExit exit_at_end(const flow::Flow& flow, const flow::Node& last) {
  const flow::Advance after = flow::advance(last.in_flight, *flow.instruction(last), flow.access(last));
  return {CodeExit::Why::kEnd, last.index + 1, after.in_flight};
}

class Builder {
 public:
  Builder(Target target, const flow::Flow& flow, bool lists)
      : target_(target), flow_(flow), lists_(lists), first_parts_(flow.blocks.size()) {
    for (const flow::Node& node : flow.nodes)
      if (const Instruction* i = flow.instruction(node); i && i->is_branch)
        branches_.emplace(node.index, &i->branch);
  }

  /// @return  empty: the host refuses memory
  std::optional<CodeMemory> make() {
    for (uint32_t b = 0; b < flow_.blocks.size(); ++b) add_block(b);
    for (size_t n = 0; n < parts().size(); ++n) {
      // Until now these are blocks.
      CodePart& part = parts()[n];
      if (part.next != flow::kNowhere && !goes_on_[n]) part.next = first_parts_[part.next];
      if (part.taken != flow::kNowhere) part.taken = first_parts_[part.taken];
    }
    tables_.inputs = inputs_of(flow_);
    if (code_.empty()) code_.push_back(0);
    return CodeMemory::copy_of(code_);
  }
  CodeTables take_tables() { return std::move(tables_); }
  /// What was made.
  std::string text() const {
    return absl::StrFormat("%d instructions, %d blocks, %d bytes of host code\n", flow_.instructions.size(),
                           flow_.blocks.size(), code_.size()) +
           text_;
  }

 private:
  std::vector<CodePart>& parts() { return tables_.parts; }

  CodePart& add_part(uint32_t node, Why why) {
    const flow::Node& n = flow_.nodes[node];
    const Branch* const under_way = n.in_flight.branch_in != 0 ? branches_.at(n.in_flight.branch) : nullptr;
    CodePart& part = parts().emplace_back();
    part.before = exit_before(n, why, under_way);
    goes_on_.push_back(false);
    return part;
  }

  void add_block(uint32_t number) {
    const flow::Block& block = flow_.blocks[number];
    const uint32_t end = block.first + block.count, last = end - 1;
    const bool leaves = leaves_before(flow_, last);
    first_parts_[number] = static_cast<uint32_t>(parts().size());
    const flow::Node& first = flow_.nodes[block.first];
    tables_.entries.push_back({first.index, first.in_flight, first_parts_[number]});
    if (lists_) describe(number);
    for (uint32_t node = block.first; node < end - leaves;)
      node += add_instructions(block, {node, std::min(graph::ThreadPart::kMost, end - leaves - node)});
    if (!leaves) return;
    const Instruction* const i = flow_.instruction(flow_.nodes[last]);
    add_part(last, i && i->is_branch ? Why::kComputed : Why::kGap);
  }

  /// Of those, as many as a graph has room for. One that has none is the interpreter's.
  /// @return  how many
  uint32_t add_instructions(const flow::Block& block, graph::ThreadPart of) {
    const auto graph_of = [&](uint32_t* fits) {
      of.ends = of.first + of.count == block.first + block.count && block.exit.kind == Kind::kEnd;
      return graph::thread_graph(flow_, of, fits);
    };
    uint32_t fits = of.count;
    std::optional<graph::ThreadGraph> graph = graph_of(&fits);
    if (!graph) {
      of.count = std::max(fits, 1u);
      if (fits != 0) graph = graph_of(&fits);
    }
    const auto number = static_cast<uint32_t>(parts().size());
    CodePart& part = add_part(of.first, Why::kGap);
    if (!graph || !add_code(part, of, graph->graph)) return of.count;
    part.instructions = of.count;
    part.uniforms = graph->uniforms;
    part.varyings = graph->varyings;
    const uint32_t last = of.first + of.count - 1;
    if (last + 1 == block.first + block.count) {
      end_block(part, block, last, graph->moves_by);
    } else {
      part.next = number + 1;
      goes_on_[number] = true;
    }
    return of.count;
  }

  /// The part is the last one of its block.
  void end_block(CodePart& part, const flow::Block& block, uint32_t last, std::optional<uint32_t> moves_by) {
    const flow::Exit& exit = block.exit;
    part.ends = exit.kind == Kind::kEnd;
    if (part.ends) {
      part.after = exit_at_end(flow_, flow_.nodes[last]);
      return;
    }
    part.next = exit.next;
    part.switches = exit.switches;
    part.may_wait = exit.may_wait;
    const flow::InFlight& in_flight = flow_.nodes[last].in_flight;
    part.lands = in_flight.branch_in == 1 && branches_.at(in_flight.branch)->uniforms;
    if (exit.kind != Kind::kBranch) return;
    const Branch& b = flow_.instruction(flow_.nodes[last])->branch;
    part.branches = true;
    part.taken = exit.taken;
    part.moves_by = moves_by;
    part.moves_relative = static_cast<BranchTarget>(b.uniform_target) == BranchTarget::kRelative;
    part.sets_link = b.set_link;
  }

  bool add_code(CodePart& part, const graph::ThreadPart& of, const graph::Graph& graph) {
    constexpr size_t kAlignment = 64;  // of what stands behind the code
    if (lists_) text_ += graph::to_text(graph);
    if (const char* const missing = operation_without_code(target_, graph); missing != nullptr) {
      if (lists_) absl::StrAppendFormat(&text_, "  interpreted: no code for \"%s\" on this host\n", missing);
      return false;
    }
    const auto first = static_cast<uint32_t>(flow_.nodes[of.first].index) * uint32_t{sizeof(uint64_t)};
    const std::vector<uint8_t> bytes = make_thread_code(target_, graph, first, of.ends);
    if (bytes.empty()) return false;
    code_.resize((code_.size() + kAlignment - 1) / kAlignment * kAlignment);
    part.begin = code_.size();
    code_.insert(code_.end(), bytes.begin(), bytes.end());
    return true;
  }

  void describe(uint32_t number) {
    const flow::Block& block = flow_.blocks[number];
    absl::StrAppendFormat(&text_, "  block %d: %d instructions from %d", number, block.count,
                          flow_.nodes[block.first].index);
    if (block.loops != 0) absl::StrAppendFormat(&text_, ", in %d loops", block.loops);
    if (block.resumes) text_ += ", after a thread switch";
    text_ += '\n';
    for (uint32_t n = block.first; n < block.first + block.count; ++n) {
      const Instruction* const i = flow_.instruction(flow_.nodes[n]);
      absl::StrAppendFormat(&text_, "    %4d  %s\n", flow_.nodes[n].index,
                            i ? disassemble(flow_.setting.generation, *i) : "not known");
    }
  }

  const Target target_;
  const flow::Flow& flow_;
  const bool lists_;
  std::map<int32_t, const Branch*> branches_;  // by index
  std::vector<bool> goes_on_;                  // a part: in its block
  std::vector<uint32_t> first_parts_;          // by block
  std::vector<uint8_t> code_;
  CodeTables tables_;
  std::string text_;
};

}  // namespace

std::shared_ptr<const ProgramCode> build_program(Target target, const flow::Flow& flow, CodeContent content,
                                                 const JitCompiler::Lister& list, LeaveCounts& leaves,
                                                 LookupCompiler& lookups) {
  Builder builder(target, flow, static_cast<bool>(list));
  std::optional<CodeMemory> memory = builder.make();
  if (list) list(builder.text());
  if (!memory) return nullptr;
  return std::make_shared<ProgramCode>(std::move(content), *std::move(memory), builder.take_tables(),
                                       flow.complete, leaves, &lookups);
}

}  // namespace v3d::qpu::jit
