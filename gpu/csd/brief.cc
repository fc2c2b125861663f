#include "gpu/csd/brief.h"

#include "gpu/chip/profile.h"
#include "gpu/csd/configuration.h"
#include "gpu/mmu/address_space.h"
#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/isa/instruction.h"

namespace v3d::csd {

bool is_brief(const mmu::AddressSpace& space, const chip::Profile& profile,
              const std::array<uint32_t, 7>& cfg) {
  const Configuration configuration = decode(cfg, profile);
  if (configuration.batches > kBriefBatches) return false;
  qpu::flow::InFlight in_flight;
  in_flight.last_section = configuration.single_segment;
  for (uint32_t n = 0; n < kBriefInstructions; ++n) {
    const GpuAddr address = configuration.code + n * 8;
    if (!space.is_mapped(address)) return false;
    uint64_t word;
    space.memory().read(address, &word, sizeof word);
    qpu::Instruction instruction;
    if (!qpu::decode(profile.version, word, instruction)) return true;  // it hangs there
    if (instruction.is_branch) return false;
    const qpu::flow::Advance after = qpu::flow::advance(in_flight, instruction, {});
    if (after.ends) return true;
    in_flight = after.in_flight;
  }
  return false;
}

}  // namespace v3d::csd
