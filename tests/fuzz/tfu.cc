/// Input: flags, registers, memory.
#include "gpu/tfu/tfu.h"

#include "tests/fuzz/fuzz_job.h"
#include "tests/fuzz/input.h"

namespace v3d::fuzz {

void tfu(Bytes bytes) {
  static JobMemory memory;
  Input input(bytes);
  const auto flags = input.take<uint8_t>();
  auto registers = input.take<v3d::tfu::Registers>();
  if (flags & 2) {  // images where memory is, of a size that fits
    registers.iia = JobMemory::kBase + (registers.iia & 0xfffff);
    registers.ioa = (JobMemory::kBase + 0x40000) | (registers.ioa & 0x7f);
    registers.ios &= 0x00ff00ff;
  }
  memory.reset(input.rest());
  FuzzJob job(memory, flags & 1 ? chip::Generation::k42 : chip::Generation::k71);
  v3d::tfu::run(job.job(), registers);
}

}  // namespace v3d::fuzz
