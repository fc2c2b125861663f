#include "gpu/qpu/jit/batch_compiler.h"

#include <bit>
#include <utility>
#include <vector>

#include "gpu/qpu/graph/alone.h"
#include "gpu/qpu/graph/program_front_end.h"
#include "gpu/qpu/graph/stretches.h"
#include "gpu/qpu/jit/back_ends.h"

namespace v3d::qpu::jit {
namespace {

constexpr char kWhat[] = "batches of dispatches";

/// A program in one piece, or in stretches.
struct BatchProgram {
  graph::BatchGraph whole;
  graph::StretchGraphs cut;  // without parts: there is `whole`
  uint32_t uniforms = 0, instructions = 0;
};

std::vector<const graph::Graph*> graphs_of(const BatchProgram& program) {
  if (program.cut.parts.empty()) return {&program.whole.graph};
  std::vector<const graph::Graph*> graphs;
  for (const graph::StretchGraphs::Part& part : program.cut.parts) graphs.push_back(&part.graph);
  return graphs;
}

std::optional<BatchProgram> batch_program(const flow::Flow& flow, const BatchKey& key, const char** why) {
  if (auto whole = graph::batch_graph(flow, key, why)) {
    const uint32_t uniforms = whole->uniforms, instructions = whole->instructions;
    return BatchProgram{*std::move(whole), {}, uniforms, instructions};
  }
  auto cut = graph::stretch_graphs(flow, key, why);
  if (!cut) return {};
  const uint32_t uniforms = cut->uniforms, instructions = cut->instructions;
  return BatchProgram{{}, *std::move(cut), uniforms, instructions};
}

std::optional<BlockLookups> find_in_program(const flow::Flow& flow, const char** why) {
  auto found = graph::find_batch_lookups(flow, why);
  return found ? std::move(found) : graph::find_stretch_lookups(flow, why);
}

class FunctionOfBatches : public FunctionOf<BatchCode> {
 public:
  explicit FunctionOfBatches(CompiledProgram<BatchProgram> compiled)
      : FunctionOf(compiled),
        indirect_(std::move(compiled.graph.whole.indirect)),
        slots_(compiled.graph.cut.slots),
        goes_alone_(!compiled.graph.cut.parts.empty() && graph::go_alone(graphs_of(compiled.graph))) {
    const std::vector<graph::StretchGraphs::Part>& parts = compiled.graph.cut.parts;
    for (size_t n = 0; n < parts.size(); ++n)
      stretches_.push_back({std::bit_cast<BatchFn>(begin() + compiled.begins[n]), parts[n].instructions,
                            static_cast<uint32_t>(parts[n].first) * uint32_t{sizeof(uint64_t)},
                            parts[n].has_turns});
  }
  BatchFn function() const override { return stretches_.empty() ? std::bit_cast<BatchFn>(begin()) : nullptr; }
  const std::vector<BatchStretch>& stretches() const override { return stretches_; }
  uint32_t slots() const override { return slots_; }
  bool goes_alone() const override { return goes_alone_; }
  const std::vector<IndirectWord>& indirect() const override { return indirect_; }
  size_t bytes() const override {
    return sizeof(*this) + bytes_of_code() + indirect_.size() * sizeof(IndirectWord) +
           stretches_.size() * sizeof(BatchStretch);
  }

 private:
  const std::vector<IndirectWord> indirect_;
  const uint32_t slots_;
  const bool goes_alone_;
  std::vector<BatchStretch> stretches_;
};

}  // namespace

BatchFunctions::BatchFunctions(Target target, uint32_t batches_before)
    : ProgramFunctions(target, {kWhat, "batches"}, kMostWordsOfBatches), batches_before_(batches_before) {}

bool BatchFunctions::knows_all(const Program& program, Memory memory, bool final_section) {
  std::vector<uint64_t> words;
  bool is_unknown = false;
  straight_flow(program, memory, final_section, words, kMostWordsOfBatches, &is_unknown);
  return !is_unknown;
}

std::unique_ptr<const BlockLookups> BatchFunctions::find_lookups(const Program& program, Memory memory,
                                                                 bool final_section) {
  return find(program, memory, final_section, find_in_program);
}

std::unique_ptr<const BatchCode> BatchFunctions::compile(const Program& program, Memory memory,
                                                         bool final_section, const BatchKey& key) {
  auto compiled = compile_program<BatchProgram>(
      program, memory, final_section,
      [&](const flow::Flow& flow, const char** why) { return batch_program(flow, key, why); },
      make_batch_code);
  if (!compiled) return nullptr;
  return std::make_unique<FunctionOfBatches>(*std::move(compiled));
}

std::string BatchFunctions::text_of(const Statistics& statistics) {
  return to_string(statistics, kWhat, "times none for a program");
}

}  // namespace v3d::qpu::jit
