/// Input: flags, CFG0..CFG6, memory from its first byte: the program and what it reads.
#include "gpu/csd/dispatch.h"
#include "tests/fuzz/fuzz_job.h"
#include "tests/fuzz/input.h"

namespace v3d::fuzz {

void csd(Bytes bytes) {
  static JobMemory memory;
  Input input(bytes);
  const auto flags = input.take<uint8_t>();
  auto cfg = input.take<std::array<uint32_t, 7>>();
  // Most programs lie in memory: the fuzzer need not find their address.
  if (flags & 2) cfg[5] = JobMemory::kBase | (cfg[5] & 7);
  if (flags & 2) cfg[6] = JobMemory::kBase;
  memory.reset(input.rest());
  FuzzJob job(memory, flags & 1 ? chip::Generation::k42 : chip::Generation::k71);
  v3d::csd::dispatch(job.job(), cfg, flags & 4, flags & 8 ? &memory.space() : nullptr);
}

}  // namespace v3d::fuzz
