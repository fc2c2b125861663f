#include "gpu/csd/brief.h"

#include "gpu/chip/profile.h"
#include "gpu/csd/configuration.h"
#include "gpu/mmu/address_space.h"
#include "gpu/qpu/isa/instruction.h"

namespace v3d::csd {

bool is_brief(const mmu::AddressSpace& space, const chip::Profile& profile,
              const std::array<uint32_t, 7>& cfg) {
  const Configuration configuration = decode(cfg, profile);
  if (configuration.batches > kBriefBatches) return false;
  bool last_section = configuration.single_segment, previous_was_thrsw = false;
  for (uint32_t n = 0; n < kBriefInstructions; ++n) {
    const GpuAddr address = configuration.code + n * 8;
    if (!space.is_mapped(address)) return false;
    uint64_t word;
    space.memory().read(address, &word, sizeof word);
    qpu::Instruction instruction;
    if (!qpu::decode(profile.version, word, instruction)) return true;  // it hangs there
    if (instruction.is_branch) return false;
    const bool thrsw = instruction.signals & qpu::kThrsw;
    if (thrsw && !previous_was_thrsw && last_section) return true;
    last_section |= thrsw && previous_was_thrsw;
    previous_was_thrsw = thrsw;
  }
  return false;
}

}  // namespace v3d::csd
