/// The kernel finds this out about a program when its shader BO is made (vc4-abi.md 4; Linux
/// vc4_validate_shaders.c). Which words of the uniform stream are parameters of textures, and how many words
/// there are, is known from here alone.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace v3d::ioctl::vc4 {

/// Where in the uniform stream the parameters of a lookup are.
struct TextureSample {
  static constexpr uint32_t kAbsent = UINT32_MAX;
  /// In bytes. Of a direct lookup the first is its base address and the second the highest offset.
  std::array<uint32_t, 4> parameters = {kAbsent, kAbsent, kAbsent, kAbsent};
  bool direct = false;  ///< of memory by address
};

struct Program {
  uint32_t uniform_bytes = 0;  ///< of the uniform stream
  std::vector<TextureSample> samples;
  /// Bytes in the stream of the words that hold the stream's own address.
  std::vector<uint32_t> stream_addresses;
  bool threaded = false;
  /// So many words from the start were looked at. A branch may lead beyond them, where nothing is checked.
  uint32_t checked_words = 0;

  /// What a submit brings for it: an index of a BO for each sample, then the stream.
  uint32_t source_bytes() const {
    return uniform_bytes + static_cast<uint32_t>(samples.size() * sizeof(uint32_t));
  }
  /// Of this process.
  uint64_t host_bytes() const {
    return sizeof(Program) + samples.capacity() * sizeof samples[0] +
           stream_addresses.capacity() * sizeof stream_addresses[0];
  }
};

/// Programs are far smaller; what the analysis holds for each of its words is bounded by this.
inline constexpr uint32_t kMaxProgramBytes = 1 << 20;

/// @param words  the whole BO, padded with zeros
/// @return InvalidArgument, with the rule and the word, of a program that the kernel refuses
///
/// Where the kernel's own checks have holes this is stricter: only the 64 registers and r0 to r3 can hold
/// what has been clamped (the kernel indexes its table with register addresses beyond those), an immediate is
/// not taken for an operation, and the delay slots of the program's end lie inside the BO.
absl::StatusOr<Program> analyse_program(std::span<const uint64_t> words);

}  // namespace v3d::ioctl::vc4
