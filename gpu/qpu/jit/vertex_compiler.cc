#include "gpu/qpu/jit/vertex_compiler.h"

#include <bit>
#include <utility>
#include <vector>

#include "gpu/qpu/graph/program_front_end.h"
#include "gpu/qpu/jit/back_ends.h"

namespace v3d::qpu::jit {
namespace {

constexpr char kWhat[] = "batches of vertices";

class FunctionOfVertices : public VertexCode {
 public:
  FunctionOfVertices(CodeMemory memory, const graph::VertexGraph& graph, std::vector<uint64_t> words)
      : memory_(std::move(memory)),
        uniforms_(graph.uniforms),
        instructions_(graph.instructions),
        rows_(graph.rows),
        numbers_(graph.numbers),
        words_(std::move(words)) {}
  VertexFn function() const override { return std::bit_cast<VertexFn>(memory_.begin()); }
  uint32_t uniforms() const override { return uniforms_; }
  const VertexRows& rows() const override { return rows_; }
  const std::vector<uint32_t>& numbers() const override { return numbers_; }
  uint32_t instructions() const override { return instructions_; }
  const std::vector<uint64_t>& words() const override { return words_; }
  size_t bytes() const override {
    return sizeof(*this) + memory_.host_bytes() + words_.size() * sizeof(uint64_t) +
           (rows_.in.size() + rows_.out.size() + numbers_.size()) * sizeof(uint32_t);
  }

 private:
  const CodeMemory memory_;
  const uint32_t uniforms_, instructions_;
  const VertexRows rows_;
  const std::vector<uint32_t> numbers_;
  const std::vector<uint64_t> words_;
};

}  // namespace

VertexFunctions::VertexFunctions(Target target, uint32_t batches_before)
    : ProgramFunctions(target, {kWhat, "vertices"}), batches_before_(batches_before) {}

std::unique_ptr<const VertexCode> VertexFunctions::compile(const Program& program, Memory memory,
                                                           bool final_section) {
  auto compiled = compile_program<graph::VertexGraph>(program, memory, final_section, graph::vertex_graph,
                                                      make_vertex_code);
  if (!compiled) return nullptr;
  return std::make_unique<FunctionOfVertices>(std::move(compiled->memory), compiled->graph,
                                              std::move(compiled->words));
}

std::string VertexFunctions::text_of(const Statistics& statistics) {
  return to_string(statistics, kWhat, "programs without");
}

}  // namespace v3d::qpu::jit
