/// This tmu::Unit for tests of the QPU records the lookups and returns what the test says. It takes the place
/// of the real one because the linker finds it first.
#pragma once

#include <vector>

#include "gpu/tmu/lookup/unit.h"

namespace v3d::qpu {

struct FakeTmu {
  std::vector<tmu::TextureLookup> textures;
  std::vector<tmu::GeneralLookup> generals;
  int words = 1;                 ///< that each lookup returns
  uint32_t next_value = 0x1000;  ///< word n of the test has next_value + n + lane in its lanes
  std::vector<Lanes> order;      ///< the returned words
};

/// Recorder of the calling thread's tests.
FakeTmu& fake_tmu();

}  // namespace v3d::qpu
