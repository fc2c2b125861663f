/// A submit brings the parameters of a lookup in the uniform stream (vc4-abi.md 3.6; Linux vc4_validate.c,
/// reloc_tex).
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "ioctl/vc4/job_bo.h"

namespace v3d::ioctl::vc4 {

/// The word that takes the place of the sample's first parameter. InvalidArgument where the kernel refuses.
///
/// Where the kernel's bound is too small this is stricter: levels are also counted as the chip lays them out,
/// by halving the next powers of two, and the strides of a cube do not wrap.
/// @param uniforms  the stream, of Program::uniform_bytes
absl::StatusOr<uint32_t> relocate_texture(const TextureSample& sample, std::span<const uint8_t> uniforms,
                                          const JobBo& bo);

}  // namespace v3d::ioctl::vc4
