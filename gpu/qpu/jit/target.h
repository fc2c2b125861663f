/// What code is made for.
#pragma once

#include <cstdint>

namespace v3d::qpu::jit {

/// The best one first.
enum class Target : uint8_t { kAvx512, kAvx2 };
inline constexpr int kNumTargets = 2;

}  // namespace v3d::qpu::jit
