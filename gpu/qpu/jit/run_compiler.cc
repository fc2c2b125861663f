#include "gpu/qpu/jit/run_compiler.h"

#include <bit>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/base/host_time.h"
#include "gpu/base/work_meter.h"
#include "gpu/qpu/graph/text.h"
#include "gpu/qpu/graph/vc4_front_end.h"
#include "gpu/qpu/jit/back_ends.h"
#include "gpu/qpu/jit/function_code.h"
#include "gpu/qpu/run/vc4_stretch.h"

namespace v3d::qpu::jit {
namespace {

class GraphCode : public vc4::RunCode {
 public:
  GraphCode(const vc4::Stretch& stretch, bool never_unsure, CodeMemory memory)
      : RunCode(stretch, never_unsure), memory_(std::move(memory)) {
    function = std::bit_cast<vc4::RunFn>(memory_.begin());
  }
  size_t bytes() const override { return sizeof(*this) + memory_.host_bytes(); }

 private:
  const CodeMemory memory_;
};

}  // namespace

struct GraphCompiler::Counters : FunctionCounters<Statistics> {};  // without `executed`

GraphCompiler::GraphCompiler(Target target, uint32_t runs_before)
    : target_(target), runs_before_(runs_before), counters_(std::make_unique<Counters>()) {}
GraphCompiler::~GraphCompiler() = default;

std::unique_ptr<const vc4::RunCode> GraphCompiler::compile(const vc4::Stretch& stretch, bool is_sure) {
  const host_time::Scope host(host_time::Block::kCompiling);
  const auto begin = std::chrono::steady_clock::now();
  const auto steps = static_cast<uint32_t>(stretch.steps.size());
  g_longest_compiled.note(steps * kGraphCompileCost);
  const graph::Graph graph = graph::graph_of(stretch);
  if (lister_)
    lister_(absl::StrFormat("graph of %d instructions at 0x%08x:\n%s", steps, stretch.address,
                            graph::to_text(graph)));
  const graph::Graph* const graphs[] = {&graph};
  FunctionCode code = functions_of(target_, graphs, [&](const graph::Graph& of) {
    return make_run_code(target_, of, stretch.address, is_sure);
  });
  counters_->count(code, steps, begin, &Statistics::runs, &Statistics::refused);
  if (!code.memory) return nullptr;
  if (listener_)
    listener_(*code.memory, absl::StrFormat("QPU run at 0x%08x, %d instructions", stretch.address, steps));
  const bool never_unsure = is_sure || target_ != Target::kAvx512;
  return std::make_unique<GraphCode>(stretch, never_unsure, *std::move(code.memory));
}

GraphCompiler::Statistics GraphCompiler::statistics() const {
  Statistics s = counters_->get();
  s.executed = executions.total();
  return s;
}

std::string to_string(const GraphCompiler::Statistics& s) {
  std::string text = absl::StrFormat(
      "%d runs of VideoCore IV's instructions compiled: %d instructions, %d KiB, %.1f ms; %d instructions "
      "executed "
      "compiled, %d interpreted",
      s.runs, s.instructions, s.code_bytes >> 10, s.seconds * 1e3, s.executed.compiled,
      s.executed.interpreted);
  if (s.refused != 0) absl::StrAppendFormat(&text, "; %d not (no code memory, or too large)", s.refused);
  append_missing(text, s.without_code, s.operation);
  return text;
}

}  // namespace v3d::qpu::jit
