/// The texture formatting unit: tiling conversions and mip generation (texture.md 10).
#pragma once

#include <array>
#include <cstdint>

#include "gpu/base/job.h"

namespace v3d::tfu {

/// Register values in the layout of the chip of job.profile.
struct Registers {
  uint32_t icfg, iia, iis, ica, iua, ioa, ios, ioc;
  std::array<uint32_t, 4> coef;
};

/// Runs one conversion. Unsupported formats: job.error names them.
void run(const Job& job, const Registers& registers);

}  // namespace v3d::tfu
