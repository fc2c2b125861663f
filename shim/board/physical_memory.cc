#include "shim/board/physical_memory.h"

#include <atomic>

#include "shim/board/board_devices.h"
#include "shim/board/firmware_calls.h"
#include "shim/process/config.h"
#include "shim/process/raw.h"
#include "shim/tree/board_nodes.h"
#include "shim/tree/tree.h"
#include "shim/tree/tree_content.h"

namespace v3d::shim {
namespace {

constexpr uint64_t kPeripheralBytes = 16u << 20, kV3d = 0xc00000;

void tell_once(std::atomic<bool>* told, uint64_t address, const char* why) {
  if (told->exchange(true)) return;
  complain("/dev/mem: 0x", Text<20>().add(address, 16).c_str(), why);
}

/// Peripherals that there are not can be mapped, and not be accessed.
int find_peripherals(uint64_t offset, PhysicalMemory* out) {
  if (out->bytes == 0) return -EINVAL;
  if (offset + out->bytes > kPeripheralBytes) return -EPERM;
  out->has_v3d = offset <= kV3d && kV3d < offset + out->bytes;
  out->v3d = kV3d - offset;
  static std::atomic<bool> told{false};
  if (!out->has_v3d)
    tell_once(&told, offset, " of the peripherals: not implemented, nor are others beside the V3D");
  return 0;
}

int find_given_memory(uint64_t at, size_t length, PhysicalMemory* out) {
  uint32_t place;
  if (at + length > uint64_t{1} << 32) return -EPERM;
  const int error = call_firmware(wire::FirmwareCall::kMapMemory, static_cast<uint32_t>(at),
                                  static_cast<uint32_t>(length), 0, &place, &out->fd);
  static std::atomic<bool> told{false};
  if (error == -EPERM) tell_once(&told, at, " is not in memory that the firmware gave to this process");
  out->place = place;
  return error;
}

}  // namespace

bool is_physical_memory(int fd) {
  struct stat st;
  const int place = config().no_board || raw::fstat(fd, &st) < 0 ? -1 : find_board_device(fd, st);
  return place >= 0 && kBoardDevices[place].kind == DeviceKind::kMemory && tree();
}

int find_physical_memory(size_t length, off_t offset, PhysicalMemory* out) {
  const uint64_t peripherals = board_of(tree()->chip).soc->peripherals;
  uint64_t at = static_cast<uint64_t>(offset);
  const uint64_t bytes = length;
  if (offset < 0 || at % raw::kPage || bytes > uint64_t{1} << 32) return -EINVAL;
  out->bytes = raw::whole_pages(bytes);
  if (at >= peripherals && at < peripherals + kPeripheralBytes)
    return find_peripherals(at - peripherals, out);
  // On BCM2835 memory is there a second time, past the caches (GPU_FFT, gpu_fft_base.c).
  if (at > peripherals && at < 2 * peripherals) at -= peripherals;
  return find_given_memory(at, length, out);
}

}  // namespace v3d::shim
