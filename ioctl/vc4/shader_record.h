/// The shader records of a submit are checked with the uniforms of their programs (vc4-abi.md 3.3).
#pragma once

#include <cstdint>
#include <set>
#include <span>

#include "absl/status/status.h"
#include "ioctl/vc4/job_bo.h"

namespace v3d::ioctl::vc4 {

/// What a packet GL_SHADER_STATE says of its record, and the draws after it.
struct ShaderState {
  uint32_t bits = 0;       ///< 2:0 number of attributes, 0 being 8; 3: with further bits of strides
  uint32_t max_index = 0;  ///< the highest of all draws that use it

  uint32_t num_attributes() const { return bits & 7 ? bits & 7 : 8; }
  bool extended() const { return bits & 8; }
  uint32_t record_bytes() const {
    return extended() ? 100 + num_attributes() * 4 : 36 + num_attributes() * 8;
  }
  /// With what keeps the next one at a multiple of 16.
  uint32_t placed_bytes() const { return (record_bytes() + 15) & ~15u; }
};
inline constexpr uint32_t kShaderStateBits = 15;

/// What is left of the client's records or uniforms, and of the place for their copies. A copy is never
/// larger than its source.
struct CopyCursor {
  std::span<const uint8_t> source;
  std::span<uint8_t> copy;
  uint32_t address = 0;  ///< GPU virtual, of `copy`

  std::span<const uint8_t> take(size_t bytes) {
    const auto taken = source.first(bytes);
    source = source.subspan(bytes);
    return taken;
  }
  std::span<uint8_t> place(size_t bytes) {
    const auto placed = copy.first(bytes);
    copy = copy.subspan(bytes);
    address += static_cast<uint32_t>(bytes);
    return placed;
  }
};

/// Copies one record and the uniforms of its three programs.
/// @param reads  BOs that binning reads are added
absl::Status relocate_shader_record(const ShaderState& state, JobBos bos, CopyCursor* records,
                                    CopyCursor* uniforms, std::set<uint32_t>* reads);

}  // namespace v3d::ioctl::vc4
