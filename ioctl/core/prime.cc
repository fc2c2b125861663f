/// @file Buffers as descriptors (Linux drm_prime.c). A dma-buf is the buffer's memfd.
#include <fcntl.h>

#include <cerrno>

#include "ioctl/core/handlers.h"

namespace v3d::ioctl {

int make_shareable(Call& call, Bo& bo) {
  while (bo.buffer()->in_slab()) {
    // The kernel need not wait; here no job may write to what is copied.
    if (const int error = wait_for_all(bo.reservation().fences(true), call.waiter, INT64_MAX)) return error;
    const std::lock_guard lock(call.file.submit_mutex);
    if (!bo.reservation().fences(true).empty()) continue;
    MovedMemory moved;
    if (const int error = bo.leave_slab(call.account, &moved)) return error;
    if (const auto& status = call.file.status()) status->say_bos_changed();
    if (moved.memfd) call.fds.replace_mappings(std::move(moved));
  }
  return 0;
}

int prime_handle_to_fd(Call& call, drm::PrimeHandle& args) {
  if (args.flags & ~(drm::kCloexec | drm::kRdwr)) return EINVAL;
  const std::shared_ptr<Bo> bo = call.file.find_bo(args.handle);
  if (!bo) return ENOENT;
  if (DriverState* const state = bo->buffer()->driver().find())
    if (const int error = state->export_it()) return error;
  if (const int error = make_shareable(call, *bo)) return error;
  UniqueFd fd(fcntl(bo->buffer()->backing().file->memfd.get(), F_DUPFD_CLOEXEC, 0));
  if (!fd) return EMFILE;
  call.fds.give_in_argument(offsetof(drm::PrimeHandle, fd), std::move(fd), (args.flags & drm::kCloexec) != 0);
  return 0;
}

int prime_fd_to_handle(Call& call, drm::PrimeHandle& args) {
  const int fd = call.fds.find(args.fd);
  if (fd == UserFds::kForeign) return EINVAL;
  if (fd < 0) return EBADF;
  UniqueFd own(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!own) return EMFILE;
  std::shared_ptr<Buffer> buffer;
  if (const int error = call.kernel.buffers().import(std::move(own), &call.account, &buffer)) return error;
  uint32_t handle = 0;
  if (const int error = call.file.import_buffer(call.account, buffer, &handle)) return error;
  args.handle = handle;
  return 0;
}

}  // namespace v3d::ioctl
