#include "shim/board/physical_memory.h"

#include <sys/mman.h>

#include <atomic>

#include "shim/board/board_devices.h"
#include "shim/board/firmware_calls.h"
#include "shim/board/register_window.h"
#include "shim/process/config.h"
#include "shim/process/raw.h"
#include "shim/tree/board_nodes.h"
#include "shim/tree/tree.h"
#include "shim/tree/tree_content.h"

namespace v3d::shim {
namespace {

constexpr uint64_t kPage = 4096, kPeripheralBytes = 16u << 20, kV3d = 0xc00000;

bool is_memory_device(int fd) {
  if (config().no_board || !tree_if_active()) return false;
  struct stat st;
  const int place = raw::fstat(fd, &st) < 0 ? -1 : find_board_device(fd, st);
  return place >= 0 && kBoardDevices[place].kind == DeviceKind::kMemory;
}

void tell_once(std::atomic<bool>* told, uint64_t address, const char* why) {
  if (told->exchange(true)) return;
  complain("/dev/mem: 0x", Text<20>().add(address, 16).c_str(), why);
}

/// Peripherals that there are not can be mapped, and not be accessed.
long map_peripherals(void* address, size_t length, int prot, int flags, uint64_t offset) {
  const uint64_t bytes = (length + kPage - 1) / kPage * kPage;
  if (bytes == 0 || offset + bytes > kPeripheralBytes) return length ? -EPERM : -EINVAL;
  const long at = raw::map(
      address, static_cast<size_t>(bytes), PROT_NONE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)), -1, 0);
  if (raw::is_error(at) || kV3d < offset || kV3d >= offset + bytes) {
    static std::atomic<bool> told{false};
    if (!raw::is_error(at))
      tell_once(&told, offset, " of the peripherals: not implemented, nor are others beside the V3D");
    return at;
  }
  const int error = open_register_window(raw::pointer(static_cast<uintptr_t>(at) + kV3d - offset), prot);
  if (error == 0) return at;
  raw::call(SYS_munmap, at, static_cast<long>(bytes));
  return error;
}

long map_given_memory(void* address, size_t length, int prot, int flags, uint64_t offset) {
  uint32_t place;
  int fd;
  if (offset + length > uint64_t{1} << 32) return -EPERM;
  const int error = call_firmware(wire::FirmwareCall::kMapMemory, static_cast<uint32_t>(offset),
                                  static_cast<uint32_t>(length), 0, &place, &fd);
  if (error == -EPERM) {
    static std::atomic<bool> told{false};
    tell_once(&told, offset, " is not in memory that the firmware gave to this process");
  }
  if (error) return error;
  const long at = raw::map(address, length, prot, flags, fd, place);
  raw::close(fd);
  return at;
}

}  // namespace

bool map_physical_memory(int fd, void* address, size_t length, int prot, int flags, off_t offset,
                         long* result) {
  if (!is_memory_device(fd)) return false;
  raw::KeepErrno keep;
  const uint64_t peripherals = board_of(tree()->chip).soc->peripherals;
  uint64_t at = static_cast<uint64_t>(offset);
  if (offset < 0 || at % kPage) {
    *result = -EINVAL;
  } else if (at >= peripherals && at < peripherals + kPeripheralBytes) {
    *result = map_peripherals(address, length, prot, flags, at - peripherals);
  } else {
    // On BCM2835 memory is there a second time, past the caches (GPU_FFT, gpu_fft_base.c).
    if (at > peripherals && at < 2 * peripherals) at -= peripherals;
    *result = map_given_memory(address, length, prot, flags, at);
  }
  return true;
}

}  // namespace v3d::shim
