/// Device nodes of the board beside the GPU's (board-environment.md 6): dma-buf heaps. A descriptor of one is
/// an empty file in memory, known by its name, so that it may be duplicated, inherited and passed on.
#pragma once

#include <cstdint>

namespace v3d::shim {

inline constexpr char kHeapFolder[] = "/dev/dma_heap";
/// Of raspberrypi-sys-mods' rules and the kernel's heaps. They differ in where the memory lies, which here is
/// one place.
inline constexpr const char* kHeaps[] = {"system", "linux,cma", "vidbuf_cached"};

/// Opens the node at a path of the tree. @param path  virtual, absolute; @param flags  of open(2)
/// @return a descriptor or a negative errno; -ENXIO: no such node
int open_board_device(const char* path, int flags);

/// @return true when the request is one of a heap and `fd` is one; *result is then 0 or a negative errno
bool heap_ioctl(int fd, uint32_t request, uint64_t argument, int* result);

}  // namespace v3d::shim
