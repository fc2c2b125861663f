#include "gpu/qpu/jit/vertex_compiler.h"

#include <bit>
#include <utility>
#include <vector>

#include "gpu/qpu/graph/program_front_end.h"
#include "gpu/qpu/jit/back_ends.h"

namespace v3d::qpu::jit {
namespace {

constexpr char kWhat[] = "batches of vertices";

class FunctionOfVertices : public FunctionOf<VertexCode> {
 public:
  explicit FunctionOfVertices(CompiledProgram<graph::VertexGraph> compiled)
      : FunctionOf(compiled),
        rows_(std::move(compiled.graph.rows)),
        indirect_(std::move(compiled.graph.indirect)),
        numbers_(std::move(compiled.graph.numbers)) {}
  VertexFn function() const override { return std::bit_cast<VertexFn>(begin()); }
  const VertexRows& rows() const override { return rows_; }
  const std::vector<IndirectWord>& indirect() const override { return indirect_; }
  const std::vector<uint32_t>& numbers() const override { return numbers_; }
  size_t bytes() const override {
    return sizeof(*this) + bytes_of_code() + indirect_.size() * sizeof(IndirectWord) +
           (rows_.in.size() + rows_.out.size() + numbers_.size()) * sizeof(uint32_t);
  }

 private:
  const VertexRows rows_;
  const std::vector<IndirectWord> indirect_;
  const std::vector<uint32_t> numbers_;
};

}  // namespace

VertexFunctions::VertexFunctions(Target target, uint32_t batches_before)
    : ProgramFunctions(target, {kWhat, "vertices"}), batches_before_(batches_before) {}

std::unique_ptr<const VertexCode> VertexFunctions::compile(const Program& program, Memory memory,
                                                           bool final_section) {
  auto compiled = compile_program<graph::VertexGraph>(program, memory, final_section, graph::vertex_graph,
                                                      make_vertex_code);
  if (!compiled) return nullptr;
  return std::make_unique<FunctionOfVertices>(*std::move(compiled));
}

std::string VertexFunctions::text_of(const Statistics& statistics) {
  return to_string(statistics, kWhat, "programs without");
}

}  // namespace v3d::qpu::jit
