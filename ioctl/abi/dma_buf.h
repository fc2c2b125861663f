/// These are the arguments of the ioctls of sync_file and dma-buf descriptors in the kernel's layout (Linux
/// 7.3, include/uapi/linux/sync_file.h, dma-buf.h). The whole request word selects.
#pragma once

#include <cstdint>

#include "ioctl/abi/request.h"

namespace v3d::ioctl::drm {

struct SyncMerge {
  char name[32];
  int32_t fd2, fence;
  uint32_t flags, pad;
};
static_assert(sizeof(SyncMerge) == 48);
struct SyncFenceInfo {
  char obj_name[32], driver_name[32];
  int32_t status;
  uint32_t flags;
  uint64_t timestamp_ns;
};
static_assert(sizeof(SyncFenceInfo) == 80);
struct SyncFileInfo {
  char name[32];
  int32_t status;
  uint32_t flags, num_fences, pad;
  uint64_t fence_info;
};
static_assert(sizeof(SyncFileInfo) == 56);
struct SyncSetDeadline {
  uint64_t deadline_ns, pad;
};

struct DmaBufSync {
  uint64_t flags;
};
struct DmaBufSyncFile {
  uint32_t flags;
  int32_t fd;
};
enum DmaBufSyncFlags : uint32_t {
  kDmaBufRead = 1,
  kDmaBufWrite = 2,
  kDmaBufRw = 3,
  kDmaBufEnd = 4,
};

namespace request {
inline constexpr uint32_t kSyncMerge = make_request<SyncMerge>(kDirectionIn | kDirectionOut, '>', 3);
inline constexpr uint32_t kSyncFileInfo = make_request<SyncFileInfo>(kDirectionIn | kDirectionOut, '>', 4);
inline constexpr uint32_t kSyncSetDeadline = make_request<SyncSetDeadline>(kDirectionIn, '>', 5);
inline constexpr uint32_t kDmaBufSync = make_request<DmaBufSync>(kDirectionIn, 'b', 0);
inline constexpr uint32_t kDmaBufSetNameA = make_request<uint32_t>(kDirectionIn, 'b', 1);
inline constexpr uint32_t kDmaBufSetNameB = make_request<uint64_t>(kDirectionIn, 'b', 1);
inline constexpr uint32_t kDmaBufExportSyncFile =
    make_request<DmaBufSyncFile>(kDirectionIn | kDirectionOut, 'b', 2);
inline constexpr uint32_t kDmaBufImportSyncFile = make_request<DmaBufSyncFile>(kDirectionIn, 'b', 3);
}  // namespace request

}  // namespace v3d::ioctl::drm
