/// The board has device nodes beside the GPU's (board-environment.md 6): dma-buf heaps, udmabuf, the
/// firmware's mailbox, and memory. Their paths and numbers are here; what they do is in shim/board.
#pragma once

#include <cstdint>

#include "gpu/chip/board.h"

namespace v3d::shim {

enum class DeviceKind : uint8_t {
  kHeap,      ///< shim/board/dma_buffers.h. Heaps differ in where the memory lies, which here is one place
  kUdmabuf,   ///< dma_buffers.h
  kFirmware,  ///< firmware.h
  kFirmwareCommands,  ///< firmware.h
  // Of boards with VideoCore IV alone, for programs on QPUs:
  kMemory,        ///< physical_memory.h. Of other boards the host's stays
  kSharedMemory,  ///< shared_memory.h
};

struct BoardDevice {
  const char* name;  ///< below /dev
  DeviceKind kind;
  uint32_t major, minor;
  uint32_t mode = 0660;
};

inline constexpr char kHeapFolder[] = "/dev/dma_heap";
/// Linux hands these numbers out as drivers come; these are some that hosts hardly get to.
inline constexpr uint32_t kHeapMajor = 384, kMiscMajor = 10, kFirstMiscMinor = 4000;
/// Names: raspberrypi-sys-mods' rules, the kernel's heaps, and Raspberry Pi's vcio.
inline constexpr BoardDevice kBoardDevices[] = {
    {"dma_heap/system", DeviceKind::kHeap, kHeapMajor, 0},
    {"dma_heap/linux,cma", DeviceKind::kHeap, kHeapMajor, 1},
    {"dma_heap/vidbuf_cached", DeviceKind::kHeap, kHeapMajor, 2},
    {"udmabuf", DeviceKind::kUdmabuf, kMiscMajor, kFirstMiscMinor},
    {"vcio", DeviceKind::kFirmware, kMiscMajor, kFirstMiscMinor + 1},
    {"vcio_gencmd", DeviceKind::kFirmwareCommands, kMiscMajor, kFirstMiscMinor + 2},
    {"mem", DeviceKind::kMemory, 1, 1, 0640},
    {"vcsm-cma", DeviceKind::kSharedMemory, kMiscMajor, kFirstMiscMinor + 3, 0666},
};
inline constexpr uint32_t kNumBoardDevices = sizeof(kBoardDevices) / sizeof(*kBoardDevices);

/// Whether a board has it.
bool has_device(const chip::Soc& soc, const BoardDevice& device);

/// Whether a path is that of such a node, or of their folder. `path` is virtual, absolute and normalised.
bool is_board_device_path(const char* path);

}  // namespace v3d::shim
