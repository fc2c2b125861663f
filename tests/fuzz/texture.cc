/// Input: flags, the lookup's parameters, then memory: texture state, sampler state, texels.
#include "gpu/tmu/image/texture_state.h"
#include "gpu/tmu/lookup/unit.h"
#include "tests/fuzz/fuzz_job.h"
#include "tests/fuzz/input.h"

namespace v3d::fuzz {

void texture(Bytes bytes) {
  static JobMemory memory;
  Input input(bytes);
  const auto flags = input.take<uint8_t>();
  const chip::Generation generation = flags & 1 ? chip::Generation::k42 : chip::Generation::k71;
  tmu::TextureLookup lookup;
  lookup.launcher = static_cast<tmu::Launcher>(flags >> 1 & 3);
  lookup.written = input.take<uint8_t>() & 63;
  lookup.num_data = input.take<uint8_t>() % 5;
  lookup.p0 = input.take<uint32_t>();
  lookup.p1 = input.take<uint32_t>();
  lookup.p2 = input.take<uint32_t>();
  if (flags & 8) {  // states where memory is
    lookup.p0 = JobMemory::kBase | (lookup.p0 & 15);
    lookup.p1 = (JobMemory::kBase + 64) | (lookup.p1 & 15);
  }
  lookup.exec = input.take<LaneMask>();
  lookup.live = input.take<LaneMask>();
  for (Lanes* row : {&lookup.s, &lookup.t, &lookup.r, &lookup.i, &lookup.b, &lookup.dref, &lookup.off})
    *row = flags & 16 ? splat(input.take<uint32_t>()) + kLaneIndex : input.take<Lanes>();
  for (Lanes& row : lookup.data) row = splat(input.take<uint32_t>());
  tmu::GeneralLookup general;
  general.config = input.take<uint8_t>();
  general.num_data = lookup.num_data;
  general.exec = lookup.exec;
  general.live = lookup.live;
  general.address = flags & 32 ? JobMemory::kBase + (lookup.s & 0xfffffu) : lookup.s;
  std::copy(std::begin(lookup.data), std::end(lookup.data), std::begin(general.data));

  memory.reset(input.rest());
  tmu::Unit unit(memory.memory(), generation);
  Lanes out[4];
  for (const int words : {unit.texture(lookup, out), unit.general(general, out), unit.texture(lookup, out)})
    if (words < 0 || words > 4) std::abort();
}

}  // namespace v3d::fuzz
