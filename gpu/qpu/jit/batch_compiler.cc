#include "gpu/qpu/jit/batch_compiler.h"

#include <bit>
#include <utility>
#include <vector>

#include "gpu/qpu/graph/program_front_end.h"
#include "gpu/qpu/jit/back_ends.h"

namespace v3d::qpu::jit {
namespace {

constexpr char kWhat[] = "batches of dispatches";

class FunctionOfBatches : public FunctionOf<BatchCode> {
 public:
  explicit FunctionOfBatches(CompiledProgram<graph::BatchGraph> compiled)
      : FunctionOf(compiled), indirect_(std::move(compiled.graph.indirect)) {}
  BatchFn function() const override { return std::bit_cast<BatchFn>(begin()); }
  const std::vector<IndirectWord>& indirect() const override { return indirect_; }
  size_t bytes() const override {
    return sizeof(*this) + bytes_of_code() + indirect_.size() * sizeof(IndirectWord);
  }

 private:
  const std::vector<IndirectWord> indirect_;
};

}  // namespace

BatchFunctions::BatchFunctions(Target target, uint32_t batches_before)
    : ProgramFunctions(target, {kWhat, "batches"}), batches_before_(batches_before) {}

std::unique_ptr<const BlockLookups> BatchFunctions::find_lookups(const Program& program, Memory memory,
                                                                 bool final_section) {
  return find(program, memory, final_section, graph::find_batch_lookups);
}

std::unique_ptr<const BatchCode> BatchFunctions::compile(const Program& program, Memory memory,
                                                         bool final_section, const BatchKey& key) {
  auto compiled = compile_program<graph::BatchGraph>(
      program, memory, final_section,
      [&](const flow::Flow& flow, const char** why) { return graph::batch_graph(flow, key, why); },
      make_batch_code);
  if (!compiled) return nullptr;
  return std::make_unique<FunctionOfBatches>(*std::move(compiled));
}

std::string BatchFunctions::text_of(const Statistics& statistics) {
  return to_string(statistics, kWhat, "times none for a program");
}

}  // namespace v3d::qpu::jit
