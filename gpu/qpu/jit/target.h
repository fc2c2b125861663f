/// What code is made for.
#pragma once

#include <array>
#include <cstdint>

namespace v3d::qpu::jit {

/// The best one first, of those of one host.
enum class Target : uint8_t { kAvx512, kAvx2, kNeon };
inline constexpr std::array kAllTargets = {Target::kAvx512, Target::kAvx2, Target::kNeon};
inline constexpr size_t kNumTargets = kAllTargets.size();

}  // namespace v3d::qpu::jit
