#include "gpu/qpu/jit/function_code.h"

#include "absl/strings/str_format.h"
#include "gpu/qpu/jit/back_ends.h"

namespace v3d::qpu::jit {

FunctionCode function_of(Target target, const graph::Graph& graph,
                         absl::FunctionRef<std::vector<uint8_t>()> make) {
  const char* const missing = operation_without_code(target, graph);
  if (graph.is_full() || missing) return {{}, missing};
  const std::vector<uint8_t> bytes = make();
  if (bytes.empty()) return {};
  return {CodeMemory::copy_of(bytes)};
}

void append_missing(std::string& text, uint64_t without_code, const char* operation) {
  if (without_code != 0)
    absl::StrAppendFormat(&text, "; %d not (no code for \"%s\" on this host)", without_code, operation);
}

}  // namespace v3d::qpu::jit
