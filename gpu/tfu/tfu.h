/// The texture formatting unit converts tilings and generates mip levels (texture.md 10).
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "gpu/base/job_context.h"
#include "gpu/chip/generation.h"

namespace v3d::tfu {

/// Register values in the layout of the chip of job.profile.
struct Registers {
  uint32_t icfg = 0, iia = 0, iis = 0, ica = 0, iua = 0, ioa = 0, ios = 0, ioc = 0;
  std::array<uint32_t, 4> coef{};
};

/// What the conversion reads and writes, in one sentence without its end. Of what this model lacks, too.
std::string description(const Registers& registers, chip::Generation generation);

/// Runs one conversion. Unsupported formats: job.error names them.
void run(const JobContext& job, const Registers& registers);

}  // namespace v3d::tfu
