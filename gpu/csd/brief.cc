#include "gpu/csd/brief.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "gpu/chip/profile.h"
#include "gpu/csd/configuration.h"
#include "gpu/mmu/address_space.h"
#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/isa/instruction.h"

namespace v3d::csd {
namespace {

using qpu::Instruction;
using qpu::flow::InFlight;

/// Follows all ways through a program at once, from one instruction to the next.
class Ways {
 public:
  /// @param words  of the program as far as it can be read
  Ways(std::span<const uint64_t> words, chip::Generation generation)
      : words_(words), generation_(generation) {}

  /// @param looked_at  so many words decide
  /// @return whether each way ends within kBriefInstructions and no branch leads back
  bool all_end(const InFlight& start, size_t* looked_at) {
    lead(0, start);
    for (uint32_t index = 0; index < kBriefInstructions; ++index) {
      if (arrivals_[index].count == 0) continue;
      *looked_at = index + 1;
      if (index >= words_.size()) return false;
      Instruction instruction;
      if (!qpu::decode(generation_, words_[index], instruction)) continue;  // it hangs there
      for (uint32_t n = 0; n < arrivals_[index].count; ++n)
        if (!step(index, arrivals_[index].ways[n], instruction)) return false;
    }
    return true;
  }

 private:
  /// Of one instruction: what may be under way before it.
  struct Arrivals {
    static constexpr uint32_t kMost = 4;
    uint32_t count;
    InFlight ways[kMost];
    uint32_t target;  // of a branch
  };

  bool step(uint32_t index, const InFlight& before, const Instruction& i) {
    const qpu::flow::Advance after = qpu::flow::advance(before, i, {});
    if (after.ends) return true;
    if (!i.is_branch) return go_on(index, after.in_flight);
    if (i.branch.target != qpu::BranchTarget::kRelative) return false;
    arrivals_[index].target = index + 4 + i.branch.offset / 8;
    InFlight taken = after.in_flight;
    taken.branch_in = qpu::flow::kBranchDelay;
    taken.branch = static_cast<int32_t>(index);
    const bool always = i.branch.cond <= qpu::BranchCond::kUndefined;
    return lead(index + 1, taken) && (always || go_on(index, after.in_flight));
  }

  bool go_on(uint32_t index, InFlight f) {
    uint32_t to = index + 1;
    if (f.branch_in != 0 && --f.branch_in == 0)
      to = arrivals_[static_cast<size_t>(std::exchange(f.branch, 0))].target;
    return to > index && lead(to, f);
  }

  /// @return false if that is too far or too much
  bool lead(uint32_t to, const InFlight& in_flight) {
    if (to >= kBriefInstructions) return false;
    Arrivals& at = arrivals_[to];
    const InFlight* const end = at.ways + at.count;
    if (std::find(static_cast<const InFlight*>(at.ways), end, in_flight) != end) return true;
    if (at.count == Arrivals::kMost) return false;
    at.ways[at.count++] = in_flight;
    return true;
  }

  const std::span<const uint64_t> words_;
  const chip::Generation generation_;
  std::array<Arrivals, kBriefInstructions> arrivals_{};
};

using Words = std::array<uint64_t, kBriefInstructions>;

/// As much of a program as is mapped.
std::span<const uint64_t> read_program(const mmu::AddressSpace& space, GpuAddr code, Words* words) {
  uint64_t end = code;
  while (end < code + sizeof *words && end >> 32 == 0 && space.is_mapped(static_cast<GpuAddr>(end)))
    end += mmu::kPageSize - end % mmu::kPageSize;
  const uint64_t bytes = std::min<uint64_t>(end - code, sizeof *words);
  space.memory().read(code, words->data(), bytes);
  return std::span(*words).first(bytes / sizeof(uint64_t));
}

/// What was found of a program. The words that decided are all that matters, wherever they stand.
struct Verdict {
  std::optional<chip::Generation> generation;
  InFlight start;
  std::vector<uint64_t> words;
  bool brief = false;
};

/// Clients dispatch few programs often.
constexpr size_t kVerdicts = 8;
thread_local std::array<Verdict, kVerdicts> t_verdicts;

}  // namespace

bool is_brief(const mmu::AddressSpace& space, const chip::Profile& profile,
              const std::array<uint32_t, 7>& cfg) {
  const Configuration configuration = decode(cfg, profile);
  if (configuration.batches > kBriefBatches) return false;
  InFlight start;
  start.last_section = configuration.single_segment;
  Words buffer;
  const std::span<const uint64_t> words = read_program(space, configuration.code, &buffer);
  Verdict& known = t_verdicts[configuration.code / mmu::kPageSize % kVerdicts];
  if (known.generation == profile.generation && known.start == start && known.words.size() <= words.size() &&
      std::ranges::equal(known.words, words.first(known.words.size())))
    return known.brief;
  size_t looked_at = 0;
  const bool brief = Ways(words, profile.generation).all_end(start, &looked_at);
  if (looked_at <= words.size())
    known = {
        profile.generation, start, {words.begin(), words.begin() + static_cast<ptrdiff_t>(looked_at)}, brief};
  return brief;
}

}  // namespace v3d::csd
