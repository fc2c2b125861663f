#include "shim/board/board_devices.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "shim/board/dma_buffers.h"
#include "shim/board/firmware.h"
#include "shim/board/shared_memory.h"
#include "shim/process/raw.h"
#include "shim/tree/board_nodes.h"
#include "shim/tree/paths.h"

namespace v3d::shim {
namespace {

/// Of the files in memory, with the place after it.
constexpr char kName[] = "v3demu-device-";
static_assert(kNumBoardDevices <= 10, "the place is one digit");

}  // namespace

int open_board_device(uint32_t place, int flags) {
  if (place >= kNumBoardDevices) return -ENXIO;
  Text<24> name;
  name.add(kName).add(uint64_t{place});
  return static_cast<int>(
      raw::call(SYS_memfd_create, raw::word(name.c_str()), flags & O_CLOEXEC ? MFD_CLOEXEC : 0));
}

int find_board_device(int fd, const struct stat& st) {
  if (!S_ISREG(st.st_mode) || st.st_nlink != 0 || st.st_size != 0) return -1;
  Path path;
  descriptor_path(fd, &path);
  constexpr char kMemory[] = "/memfd:";
  const char* name = path.c_str() + sizeof(kMemory) - 1;
  if (!starts_with(path.c_str(), kMemory) || !starts_with(name, kName)) return -1;
  const int place = name[sizeof(kName) - 1] - '0';
  return place >= 0 && place < static_cast<int>(kNumBoardDevices) && name[sizeof(kName)] == ' ' ? place : -1;
}

bool board_ioctl(int fd, uint32_t request, uint64_t argument, int* result) {
  struct stat st;
  const int place = raw::fstat(fd, &st) < 0 ? -1 : find_board_device(fd, st);
  if (place < 0) return false;
  raw::KeepErrno keep;
  switch (kBoardDevices[place].kind) {
    case DeviceKind::kHeap:
      *result = heap_ioctl(request, argument);
      break;
    case DeviceKind::kUdmabuf:
      *result = udmabuf_ioctl(request, argument);
      break;
    case DeviceKind::kFirmware:
    case DeviceKind::kFirmwareCommands:
      *result = firmware_ioctl(request, argument, kBoardDevices[place].kind == DeviceKind::kFirmwareCommands);
      break;
    case DeviceKind::kSharedMemory:
      *result = shared_memory_ioctl(request, argument);
      break;
    case DeviceKind::kMemory:
      *result = -ENOTTY;
      break;
  }
  return true;
}

}  // namespace v3d::shim
