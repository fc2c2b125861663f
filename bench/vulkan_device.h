/// The Vulkan benchmarks share this device.
#pragma once

#include "samples/vulkan/gpu.h"

namespace v3d::bench {

inline harness::Gpu& gpu() {
  static harness::Gpu instance;
  return instance;
}

}  // namespace v3d::bench
