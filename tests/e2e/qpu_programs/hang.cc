// A dispatch that never ends, from C++ with the kernel's interface alone, which resets the GPU.
// Usage: hang NODE. Exit code 0 when the program goes on behind it.

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "tests/e2e/qpu_programs/device.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s NODE\n", argv[0]);
    return 2;
  }
  const Device device(argv[1]);
  const Bo program = device.make_bo(4096);
  const uint64_t nop = device.version() >= 71 ? 0x38003186bb03f000 : 0x3c003186bb800000;
  const uint64_t code[] = {0x02ffffe0ff001000, nop, nop, nop};  // b -32
  std::memcpy(program.words, code, sizeof(code));

  SubmitCsd submit = {};
  submit.cfg[0] = submit.cfg[1] = submit.cfg[2] = 1 << 16;
  submit.cfg[3] = 16 | 1 << 8;
  submit.cfg[4] = device.batches(1);
  submit.cfg[5] = program.address;
  submit.cfg[6] = program.address + 2048;
  device.submit(submit, {program.handle});
  device.wait(program);
  std::printf("hang: over\n");
  return 0;
}
