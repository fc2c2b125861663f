/// The table of ioctls leads from request words to handlers.
#pragma once

#include <cstdint>
#include <vector>

#include "ioctl/core/call.h"

namespace v3d::ioctl {

/// What drm_ioctl does (drm-abi.md 2.1): finds the handler by number, checks permissions, zero-extends or
/// cuts the argument.
/// @param arg  the caller's bytes, as many as the request word says; replaced by the bytes to be copied out,
/// which happens on errors too
/// @return 0 or a positive errno
int drm_ioctl(Call& call, uint32_t request, std::vector<uint8_t>* arg);

/// An ioctl on a descriptor that is no node: sync_file, dma-buf or /dev/fb0. ENOTTY when it is none of them.
/// @param account  of the process that calls
/// @param waiter  its thread, which DMA_BUF_IOCTL_SYNC may have to sleep
/// @param fd  the descriptor itself
int fd_ioctl(Kernel& kernel, Account& account, const std::shared_ptr<Waiter>& waiter, int fd,
             UserMemory& user, UserFds& fds, uint32_t request, std::vector<uint8_t>* arg);

/// mmap of a node: the memfd to map, and from where. 0, EINVAL or EACCES.
/// @param prot,flags  of mmap(2)
int mmap_file(Call& call, uint64_t offset, uint64_t length, int prot, int flags, Buffer::Backing* backing);

/// Name of an ioctl for messages: "V3D_SUBMIT_CL", or "0x.." when there is none.
std::string request_name(const File& file, uint32_t request);

}  // namespace v3d::ioctl
