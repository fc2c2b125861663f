/// The entry of libFuzzer for the target V3DEMU_FUZZ_TARGET.
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  v3d::fuzz::V3DEMU_FUZZ_TARGET({data, size});
  return 0;
}
