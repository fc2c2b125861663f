#include "tools/cli/explain/mending.h"

#include <algorithm>
#include <vector>

#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/isa/instruction.h"

namespace v3d::tools::explain {
namespace {

constexpr int kMostNops = 4;

/// The distance of a relative branch in words, as if `count` were put in before word `at`.
uint32_t moved(uint32_t offset, size_t index, size_t at, int count) {
  const int64_t target =
      static_cast<int64_t>(index) + 1 + qpu::flow::kBranchDelay + static_cast<int32_t>(offset) / 8;
  const auto shift = [&](int64_t place) { return place >= static_cast<int64_t>(at) ? count : 0; };
  // Who jumps to the place runs what is put in front of it, too.
  const int64_t by = shift(target - 1) - shift(static_cast<int64_t>(index));
  return offset + static_cast<uint32_t>(by * 8);
}

std::vector<uint64_t> with_nops(chip::Generation generation, std::span<const uint64_t> words, size_t at,
                                int count) {
  const uint64_t nop = qpu::encode(generation, qpu::Instruction()).value_or(0);
  std::vector<uint64_t> result(words.begin(), words.end());
  for (size_t n = 0; n < result.size(); ++n) {
    qpu::Instruction i;
    if (!qpu::decode(generation, result[n], i) || !i.is_branch ||
        i.branch.target != qpu::BranchTarget::kRelative)
      continue;
    i.branch.offset = moved(i.branch.offset, n, at, count);
    result[n] = qpu::encode(generation, i).value_or(result[n]);
  }
  result.insert(result.begin() + static_cast<ptrdiff_t>(at), static_cast<size_t>(count), nop);
  return result;
}

}  // namespace

int nops_that_mend(chip::Generation generation, bool four_threads, std::span<const uint64_t> words,
                   const qpu::HazardReport& report) {
  const auto count_of = [&](std::span<const uint64_t> program) {
    const auto reports = qpu::check_program(generation, four_threads, program);
    return std::pair(reports.size(),
                     std::count_if(reports.begin(), reports.end(), [&](const qpu::HazardReport& one) {
                       return one.hazard == report.hazard;
                     }));
  };
  const auto before = count_of(words);
  for (int count = 1; count <= kMostNops; ++count) {
    const auto after = count_of(with_nops(generation, words, report.index, count));
    if (after.second < before.second && after.first < before.first) return count;
  }
  return 0;
}

}  // namespace v3d::tools::explain
