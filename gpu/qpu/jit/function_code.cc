#include "gpu/qpu/jit/function_code.h"

#include "absl/strings/str_format.h"
#include "gpu/qpu/jit/back_ends.h"

namespace v3d::qpu::jit {

namespace {

/// Longer programs have no function.
constexpr size_t kMostWords = 320;

}  // namespace

flow::Flow straight_flow(const Program& program, Memory memory, bool final_section,
                         std::vector<uint64_t>& words) {
  const auto read = [&](int32_t index) -> std::optional<uint64_t> {
    const GpuAddr address = program.entry() + static_cast<uint32_t>(index) * 8;
    const bool goes_on =
        index >= 0 && static_cast<size_t>(index) <= words.size() && words.size() < kMostWords;
    if (!goes_on || !program.knows_page(address)) return {};
    if (static_cast<size_t>(index) == words.size()) words.push_back(program.word(memory, address));
    return words[static_cast<size_t>(index)];
  };
  return flow::analyse({program.generation(), final_section, program.entry(), kMostWords}, read);
}

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
