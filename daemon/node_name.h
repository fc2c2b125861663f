/// node_name() says under which name in /dev/dri a program has opened a node.
#pragma once

#include <string>

#include "ioctl/core/file.h"

namespace v3d::daemon {

inline std::string node_name(const ioctl::File& file) {
  if (file.is_render()) return "renderD128";
  // The only card of a board whose display and GPU are one device.
  const bool is_alone = file.device().driver == ioctl::DrmDevice::Driver::kVc4;
  return "card" + std::to_string(is_alone ? 0 : file.minor());
}

}  // namespace v3d::daemon
