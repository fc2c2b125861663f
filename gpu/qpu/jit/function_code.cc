#include "gpu/qpu/jit/function_code.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/qpu/jit/back_ends.h"

namespace v3d::qpu::jit {

flow::Flow straight_flow(const Program& program, Memory memory, bool final_section,
                         std::vector<uint64_t>& words, size_t most_words, bool* is_unknown) {
  const auto read = [&](int32_t index) -> std::optional<uint64_t> {
    const GpuAddr address = program.entry() + static_cast<uint32_t>(index) * 8;
    const bool goes_on =
        index >= 0 && static_cast<size_t>(index) <= words.size() && words.size() < most_words;
    if (!goes_on) return {};
    if (!program.knows_page(address)) {
      if (is_unknown != nullptr) *is_unknown = true;
      return {};
    }
    if (static_cast<size_t>(index) == words.size()) words.push_back(program.word(memory, address));
    return words[static_cast<size_t>(index)];
  };
  return flow::analyse({program.generation(), final_section, program.entry(), most_words}, read);
}

FunctionCode functions_of(Target target, std::span<const graph::Graph* const> graphs,
                          absl::FunctionRef<std::vector<uint8_t>(const graph::Graph&)> make) {
  constexpr size_t kAlignment = 64;  // of what stands behind the code
  std::vector<size_t> begins;
  std::vector<uint8_t> all;
  for (const graph::Graph* graph : graphs) {
    const char* const missing = operation_without_code(target, *graph);
    if (graph->is_full() || missing) return {{}, missing};
    const std::vector<uint8_t> bytes = make(*graph);
    if (bytes.empty()) return {};
    all.resize((all.size() + kAlignment - 1) / kAlignment * kAlignment);
    begins.push_back(all.size());
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return {CodeMemory::copy_of(all), nullptr, std::move(begins)};
}

void append_missing(std::string& text, uint64_t without_code, const char* operation) {
  if (without_code != 0)
    absl::StrAppendFormat(&text, "; %d not (no code for \"%s\" on this host)", without_code, operation);
}

}  // namespace v3d::qpu::jit
