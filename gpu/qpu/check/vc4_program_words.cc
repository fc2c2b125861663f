#include "gpu/qpu/check/vc4_program_words.h"

#include <algorithm>

namespace v3d::qpu::vc4 {

std::optional<uint32_t> branch_target(uint32_t index, const Instruction& i) {
  constexpr uint32_t kWithSlots = 4;
  if (i.form() != Form::kBranch || !i.relative || i.with_register) return {};
  return index + kWithSlots + static_cast<uint32_t>(static_cast<int32_t>(i.immediate) / 8);
}

std::vector<uint64_t> program_words(Memory memory, GpuAddr entry) {
  constexpr uint32_t kMost = 16384, kBehindEnd = 3;
  std::vector<uint64_t> words;
  uint32_t furthest = 0;
  for (uint32_t end = kMost; words.size() < end;) {
    const auto n = static_cast<uint32_t>(words.size());
    words.push_back(memory.load<uint64_t>(entry + 8 * n));
    const Instruction i = decode(words.back());
    if (const auto target = branch_target(n, i); target && *target < kMost)
      furthest = std::max(furthest, *target);
    if (end != kMost || n < furthest) continue;
    if (flaw(i)) return words;
    if (i.signal == Signal::kEnd || i.signal == Signal::kColorLoadEnd) end = n + kBehindEnd;
  }
  return words;
}

}  // namespace v3d::qpu::vc4
