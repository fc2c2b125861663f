/// A Driver says whose ioctls are meant: all drivers use the numbers 0x40 to 0x9f, each in its way.
#pragma once

#include <cstdint>

#include "shim/link/known_descriptors.h"

namespace v3d::shim {

enum class Driver : uint8_t {
  kV3d,
  kVc4,
  kFence,  ///< sync_file and dma-buf
  kFramebuffer,
};

inline Driver driver_of(const File& file) {
  return file.driver == wire::FileDriver::kVc4 ? Driver::kVc4 : Driver::kV3d;
}

}  // namespace v3d::shim
