#include "gpu/csd/brief.h"

#include <algorithm>
#include <optional>
#include <utility>

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
  Ways(const mmu::AddressSpace& space, int version, GpuAddr code)
      : space_(space), version_(version), code_(code) {}

  /// @return whether each way ends within kBriefInstructions and no branch leads back
  bool all_end(const InFlight& start) {
    lead(0, start);
    for (uint32_t index = 0; index < kBriefInstructions; ++index) {
      if (places_[index].count == 0) continue;
      const std::optional<uint64_t> word = read(index);
      if (!word) return false;
      Instruction instruction;
      if (!qpu::decode(version_, *word, instruction)) continue;  // it hangs there
      for (uint32_t n = 0; n < places_[index].count; ++n)
        if (!step(index, places_[index].ways[n], instruction)) return false;
    }
    return true;
  }

 private:
  /// Of one instruction: what may be under way before it.
  struct Place {
    static constexpr uint32_t kMost = 4;
    uint32_t count;
    InFlight ways[kMost];
    uint32_t target;  // of a branch
  };

  std::optional<uint64_t> read(uint32_t index) const {
    const GpuAddr address = code_ + index * 8;
    if (!space_.is_mapped(address)) return {};
    uint64_t word;
    space_.memory().read(address, &word, sizeof word);
    return word;
  }

  bool step(uint32_t index, const InFlight& before, const Instruction& i) {
    const qpu::flow::Advance after = qpu::flow::advance(before, i, {});
    if (after.ends) return true;
    if (!i.is_branch) return go_on(index, after.in_flight);
    if (i.branch.target != qpu::BranchTarget::kRelative) return false;
    places_[index].target = index + 4 + i.branch.offset / 8;
    InFlight taken = after.in_flight;
    taken.branch_in = qpu::flow::kBranchDelay;
    taken.branch = static_cast<int32_t>(index);
    const bool always = i.branch.cond <= qpu::BranchCond::kUndefined;
    return lead(index + 1, taken) && (always || go_on(index, after.in_flight));
  }

  bool go_on(uint32_t index, InFlight f) {
    uint32_t to = index + 1;
    if (f.branch_in != 0 && --f.branch_in == 0)
      to = places_[static_cast<size_t>(std::exchange(f.branch, 0))].target;
    return to > index && lead(to, f);
  }

  /// @return false if that is too far or too much
  bool lead(uint32_t to, const InFlight& in_flight) {
    if (to >= kBriefInstructions) return false;
    Place& place = places_[to];
    const InFlight* const end = place.ways + place.count;
    if (std::find(static_cast<const InFlight*>(place.ways), end, in_flight) != end) return true;
    if (place.count == Place::kMost) return false;
    place.ways[place.count++] = in_flight;
    return true;
  }

  const mmu::AddressSpace& space_;
  const int version_;
  const GpuAddr code_;
  std::array<Place, kBriefInstructions> places_{};
};

}  // namespace

bool is_brief(const mmu::AddressSpace& space, const chip::Profile& profile,
              const std::array<uint32_t, 7>& cfg) {
  const Configuration configuration = decode(cfg, profile);
  if (configuration.batches > kBriefBatches) return false;
  InFlight start;
  start.last_section = configuration.single_segment;
  return Ways(space, profile.version, configuration.code).all_end(start);
}

}  // namespace v3d::csd
