/// @file ioctls of sync_file, dma-buf and framebuffer descriptors (Linux drivers/dma-buf: sync_file.c,
/// dma-buf.c).
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_format.h"
#include "ioctl/abi/dma_buf.h"
#include "ioctl/ioctl_table.h"

namespace v3d::ioctl {
namespace {

struct FdCall {
  Kernel& kernel;
  UserMemory& user;
  UserFds& fds;
  Account& account;
  const std::shared_ptr<Waiter>& waiter;
};

template <size_t kSize>
void copy_name(char (&to)[kSize], std::string_view from) {
  const size_t length = std::min(from.size(), kSize - 1);
  std::memcpy(to, from.data(), length);
  std::memset(to + length, 0, kSize - length);
}

/// Fence::merge, whose parts count as watched as long as the merged fence lives. Null when there are too
/// many.
FencePtr merge(FdCall& call, const FencePtr& a, const FencePtr& b) {
  FencePtr merged = Fence::merge(a, b);
  const size_t parts = merged->num_parts();
  if (parts <= 1 || merged == a || merged == b) return merged;
  Charge watches;
  if (call.account.charge(Resource::kWatches, parts, &watches) != 0) return nullptr;
  merged->keep(std::move(watches));
  return merged;
}

int sync_merge(FdCall& call, const SyncFile& file, drm::SyncMerge& args) {
  if (args.flags || args.pad) return EINVAL;
  const int fd2 = call.fds.find(args.fd2);
  const auto other = fd2 < 0 ? nullptr : call.kernel.find_sync_file(fd2);
  if (!other) return ENOENT;
  args.name[sizeof args.name - 1] = 0;
  FencePtr fence = merge(call, file.fence, other->fence);
  if (!fence) return ENOMEM;
  UniqueFd merged = call.kernel.export_sync_file(call.account, {std::move(fence), args.name});
  if (!merged) return EMFILE;
  call.fds.give_in_argument(offsetof(drm::SyncMerge, fence), std::move(merged), true);
  return 0;
}

int sync_file_info(FdCall& call, const SyncFile& file, drm::SyncFileInfo& args) {
  if (args.flags || args.pad) return EINVAL;
  const std::vector<FencePtr> parts = file.fence->parts();
  if (args.num_fences == 0) {
    args.status = file.fence->status();
  } else {
    if (args.num_fences < parts.size()) return EINVAL;
    args.status = 1;
    for (size_t i = 0; i < parts.size(); ++i) {
      drm::SyncFenceInfo info = {};
      copy_name(info.obj_name, parts[i]->timeline_name());
      copy_name(info.driver_name, parts[i]->driver_name());
      info.status = parts[i]->status();
      info.timestamp_ns = static_cast<uint64_t>(parts[i]->timestamp_ns());
      if (args.status > 0) args.status = info.status;
      if (!call.user.put(args.fence_info + i * sizeof info, info)) return EFAULT;
    }
  }
  copy_name(args.name, !file.name.empty() ? file.name
                                          : absl::StrFormat("%s-%s%d-%d", file.fence->driver_name(),
                                                            file.fence->timeline_name(),
                                                            file.fence->context(), file.fence->seqno()));
  args.num_fences = static_cast<uint32_t>(parts.size());
  return 0;
}

int dma_buf_sync(FdCall& call, Buffer& buffer, const drm::DmaBufSync& args) {
  if (args.flags & ~uint64_t{drm::kDmaBufRw | drm::kDmaBufEnd}) return EINVAL;
  if (!(args.flags & drm::kDmaBufRw)) return EINVAL;
  // Memory is coherent: ending access needs nothing, and beginning it only that the GPU has ended its own.
  if (args.flags & drm::kDmaBufEnd) return 0;
  return wait_for_all(buffer.reservation().fences((args.flags & drm::kDmaBufWrite) != 0), call.waiter,
                      INT64_MAX);
}

int dma_buf_export_sync_file(FdCall& call, Buffer& buffer, drm::DmaBufSyncFile& args) {
  if ((args.flags & ~drm::kDmaBufRw) || !(args.flags & drm::kDmaBufRw)) return EINVAL;
  // A writer waits for readers too.
  FencePtr all;
  for (FencePtr& fence : buffer.reservation().fences((args.flags & drm::kDmaBufWrite) != 0))
    if (all = all ? merge(call, all, fence) : std::move(fence); !all) return ENOMEM;
  UniqueFd fd = call.kernel.export_sync_file(call.account, {all ? all : Fence::stub(), ""});
  if (!fd) return EMFILE;
  call.fds.give_in_argument(offsetof(drm::DmaBufSyncFile, fd), std::move(fd), true);
  return 0;
}

int dma_buf_import_sync_file(FdCall& call, Buffer& buffer, drm::DmaBufSyncFile& args) {
  if ((args.flags & ~drm::kDmaBufRw) || !(args.flags & drm::kDmaBufRw)) return EINVAL;
  const int fd = call.fds.find(args.fd);
  const auto file = fd < 0 ? nullptr : call.kernel.find_sync_file(fd);
  if (!file) return EINVAL;
  // They stay in the reservation until they have signalled and it is looked at again.
  const std::vector<FencePtr> parts = file->fence->parts();
  const auto paid = std::make_shared<Charge>();
  if (const int error = call.account.charge(Resource::kWatches, parts.size(), paid.get())) return error;
  buffer.reservation().add_all(parts, (args.flags & drm::kDmaBufWrite) != 0, paid);
  return 0;
}

int sync_file_ioctl(FdCall& call, const SyncFile& file, uint32_t request, void* arg) {
  switch (request) {
    case drm::request::kSyncMerge:
      return sync_merge(call, file, *static_cast<drm::SyncMerge*>(arg));
    case drm::request::kSyncFileInfo:
      return sync_file_info(call, file, *static_cast<drm::SyncFileInfo*>(arg));
    case drm::request::kSyncSetDeadline:
      return static_cast<drm::SyncSetDeadline*>(arg)->pad ? EINVAL : 0;
  }
  return ENOTTY;
}

int dma_buf_ioctl(FdCall& call, Buffer& buffer, uint32_t request, void* arg) {
  switch (request) {
    case drm::request::kDmaBufSync:
      return dma_buf_sync(call, buffer, *static_cast<drm::DmaBufSync*>(arg));
    case drm::request::kDmaBufSetNameA:
    case drm::request::kDmaBufSetNameB:
      return 0;  // names show up in debugfs only
    case drm::request::kDmaBufExportSyncFile:
      return dma_buf_export_sync_file(call, buffer, *static_cast<drm::DmaBufSyncFile*>(arg));
    case drm::request::kDmaBufImportSyncFile:
      return dma_buf_import_sync_file(call, buffer, *static_cast<drm::DmaBufSyncFile*>(arg));
  }
  return ENOTTY;
}

}  // namespace

int fd_ioctl(Kernel& kernel, Account& account, const std::shared_ptr<Waiter>& waiter, int fd,
             UserMemory& user, UserFds& fds, uint32_t request, std::vector<uint8_t>* arg) {
  FdCall call{kernel, user, fds, account, waiter};
  alignas(8) uint8_t data[kms::Fbdev::kMaxArgument] = {};
  static_assert(sizeof data >= sizeof(drm::SyncFileInfo));
  std::copy_n(arg->begin(), std::min(arg->size(), sizeof data), data);
  const int error = out_of_memory_is_enomem([&] {
    if (const auto file = kernel.find_sync_file(fd)) return sync_file_ioctl(call, *file, request, data);
    const uint32_t type = drm::request_type(request);
    if (type != 'b' && type != 'F') return ENOTTY;
    std::shared_ptr<Buffer> buffer;
    UniqueFd own(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!own || kernel.buffers().import(std::move(own), nullptr, &buffer) != 0) return ENOTTY;
    if (type == 'b') return dma_buf_ioctl(call, *buffer, request, data);
    kms::Fbdev& fbdev = kernel.fbdev();
    if (!fbdev.is_memory(*buffer)) return ENOTTY;
    return fbdev.ioctl({user, waiter, kernel.has_display_master()}, request, data);
  });
  // Unlike drm_ioctl these write nothing when they fail.
  arg->resize(!error && (request & drm::kDirectionOut) ? drm::request_size(request) : 0);
  std::copy_n(data, std::min(arg->size(), sizeof data), arg->begin());
  return error;
}

}  // namespace v3d::ioctl
