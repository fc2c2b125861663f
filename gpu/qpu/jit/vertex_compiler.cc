#include "gpu/qpu/jit/vertex_compiler.h"

#include <bit>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/base/host_time.h"
#include "gpu/base/work_meter.h"
#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/graph/program_front_end.h"
#include "gpu/qpu/graph/text.h"
#include "gpu/qpu/jit/back_ends.h"
#include "gpu/qpu/jit/function_code.h"
#include "gpu/qpu/run/program.h"

namespace v3d::qpu::jit {
namespace {

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

struct VertexFunctions::Counters : FunctionCounters<Statistics> {};

VertexFunctions::VertexFunctions(Target target, uint32_t batches_before)
    : target_(target), batches_before_(batches_before), counters_(std::make_unique<Counters>()) {}
VertexFunctions::~VertexFunctions() = default;

std::unique_ptr<const VertexCode> VertexFunctions::compile(const Program& program, Memory memory,
                                                           bool final_section) {
  const host_time::Scope host(host_time::Block::kCompiling);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<uint64_t> words;
  const flow::Flow flow = straight_flow(program, memory, final_section, words);
  g_longest_compiled.note(static_cast<uint32_t>(words.size()) * kGraphCompileCost);
  const char* why = nullptr;
  const std::optional<graph::VertexGraph> graph = graph::vertex_graph(flow, &why);
  FunctionCode code =
      graph ? function_of(target_, graph->graph, [&] { return make_vertex_code(target_, graph->graph); })
            : FunctionCode{};
  if (lister_)
    lister_(
        absl::StrFormat("batches of vertices of the program at 0x%08x: %s", program.entry(),
                        graph ? graph::to_text(graph->graph) : absl::StrFormat("not compiled (%s)\n", why)));
  counters_->count(code, graph ? graph->instructions : 0, begin, &Statistics::functions, &Statistics::others);
  if (!code.memory) return nullptr;
  if (listener_)
    listener_(*code.memory, absl::StrFormat("vertices of QPU program at 0x%08x, %d instructions",
                                            program.entry(), graph->instructions));
  return std::make_unique<FunctionOfVertices>(*std::move(code.memory), *graph, std::move(words));
}

VertexFunctions::Statistics VertexFunctions::statistics() const { return counters_->get(); }

std::string to_string(const VertexFunctions::Statistics& s) {
  std::string text = absl::StrFormat(
      "%d functions for batches of vertices: %d instructions, %d KiB, %.1f ms; %d programs without",
      s.functions, s.instructions, s.code_bytes >> 10, s.seconds * 1e3, s.others);
  append_missing(text, s.without_code, s.operation);
  return text;
}

}  // namespace v3d::qpu::jit
