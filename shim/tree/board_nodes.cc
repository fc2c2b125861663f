#include "shim/tree/board_nodes.h"

#include <cstring>

#include "shim/process/text.h"

namespace v3d::shim {

bool has_device(const chip::Soc& soc, const BoardDevice& device) {
  return (device.kind != DeviceKind::kMemory && device.kind != DeviceKind::kSharedMemory) ||
         soc.peripherals != 0;
}

bool is_board_device_path(const char* path) {
  if (is_beneath(path, kHeapFolder)) return true;
  constexpr char kFolder[] = "/dev/";
  if (!starts_with(path, kFolder)) return false;
  for (const BoardDevice& device : kBoardDevices)
    if (strcmp(path + sizeof(kFolder) - 1, device.name) == 0) return true;
  return false;
}

}  // namespace v3d::shim
