#include "gpu/qpu/jit/run_compiler.h"

#include <bit>
#include <chrono>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/base/host_time.h"
#include "gpu/base/work_meter.h"
#include "gpu/qpu/graph/text.h"
#include "gpu/qpu/graph/vc4_front_end.h"
#include "gpu/qpu/jit/back_ends.h"
#include "gpu/qpu/run/vc4_stretch.h"

namespace v3d::qpu::jit {
namespace {

/// Of an instruction, in the units of a WorkMeter.
constexpr uint32_t kCompileCost = 1000;

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

/// @param missing  set to the name of an operation that has no code
std::optional<CodeMemory> memory_of(Target target, const graph::Graph& graph, GpuAddr address, bool is_sure,
                                    const char** missing) {
  *missing = operation_without_code(target, graph);
  if (graph.is_full() || *missing) return {};
  const std::vector<uint8_t> code = make_run_code(target, graph, address, is_sure);
  if (code.empty()) return {};
  return CodeMemory::copy_of(code);
}

}  // namespace

struct GraphCompiler::Counters {
  mutable std::mutex mutex;
  Statistics statistics;  // without `executed`
};

GraphCompiler::GraphCompiler(Target target, uint32_t runs_before)
    : target_(target), runs_before_(runs_before), counters_(std::make_unique<Counters>()) {}
GraphCompiler::~GraphCompiler() = default;

std::unique_ptr<const vc4::RunCode> GraphCompiler::compile(const vc4::Stretch& stretch, bool is_sure) {
  const host_time::Scope host(host_time::Block::kCompiling);
  const auto begin = std::chrono::steady_clock::now();
  const auto steps = static_cast<uint32_t>(stretch.steps.size());
  g_longest_compiled.note(steps * kCompileCost);
  const graph::Graph graph = graph::graph_of(stretch);
  if (lister_)
    lister_(absl::StrFormat("graph of %d instructions at 0x%08x:\n%s", steps, stretch.address,
                            graph::to_text(graph)));
  const char* missing;
  std::optional<CodeMemory> memory = memory_of(target_, graph, stretch.address, is_sure, &missing);
  {
    const std::lock_guard lock(counters_->mutex);
    Statistics& s = counters_->statistics;
    s.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!memory) {
      ++(missing ? s.without_code : s.refused);
      if (!s.operation) s.operation = missing;
      return nullptr;
    }
    ++s.runs;
    s.instructions += steps;
    s.code_bytes += memory->size();
  }
  if (listener_)
    listener_(*memory, absl::StrFormat("QPU run at 0x%08x, %d instructions", stretch.address, steps));
  const bool never_unsure = is_sure || target_ != Target::kAvx512;
  return std::make_unique<GraphCode>(stretch, never_unsure, *std::move(memory));
}

GraphCompiler::Statistics GraphCompiler::statistics() const {
  Statistics s;
  {
    const std::lock_guard lock(counters_->mutex);
    s = counters_->statistics;
  }
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
  if (s.without_code != 0)
    absl::StrAppendFormat(&text, "; %d not (no code for \"%s\" on this host)", s.without_code, s.operation);
  return text;
}

}  // namespace v3d::qpu::jit
