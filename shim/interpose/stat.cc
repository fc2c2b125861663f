/// stat, fstat, statx and statfs: nodes and DRM descriptors look like character devices, the tree like sysfs.

#include <linux/magic.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include "shim/interpose/interpose.h"
#include "shim/interpose/open_nodes.h"
#include "shim/process/raw.h"
#include "shim/tree/live_text.h"
#include "shim/tree/paths.h"

// On x86-64 struct stat and stat64, statfs and statfs64 are the same, also in the __xstat family (version 1).
static_assert(sizeof(struct stat) == sizeof(struct stat64) &&
              sizeof(struct statfs) == sizeof(struct statfs64));

namespace v3d::shim {
namespace {

using Fstatat = int(int, const char*, struct stat*, int);

int next_fstatat(int dir, const char* path, struct stat* st, int flags) {
  // Not exported before glibc 2.33.
  Fstatat* next = V3D_NEXT(Fstatat, "fstatat");
  return next ? next(dir, path, st, flags) : raw::result(raw::fstatat(dir, path, st, flags));
}

int stat_at(int dir, const char* path, struct stat* st, int flags) {
  Rewritten to(dir, path, Purpose::kLookup);
  int result = next_fstatat(to.dir(), to.path(), st, flags);
  if (result < 0) return result;
  bool descriptor = flags & AT_EMPTY_PATH && !(to.readable() && *path);
  if (to.ours() || descriptor) {
    if (const Node* node = find_open_node(descriptor ? dir : -1, *st)) describe_node(*node, st);
  } else if (S_ISSOCK(st->st_mode)) {
    if (const Node* node = node_in_proc(dir, path, *st)) describe_node(*node, st);
  }
  return result;
}

int stat_descriptor(int fd, struct stat* st) {
  using Fstat = int(int, struct stat*);
  Fstat* next = V3D_NEXT(Fstat, "fstat");
  int result = next ? next(fd, st) : raw::result(raw::fstat(fd, st));
  if (result < 0) return result;
  if (const Node* node = find_open_node(fd, *st)) describe_node(*node, st);
  return result;
}

/// What a file system calls itself under the virtual path of something in the tree.
long magic_of(const char* virtual_path) {
  return is_beneath(virtual_path, "/sys") ? SYSFS_MAGIC : TMPFS_MAGIC;
}

/// The file system of an open file: the tree's show those that they stand for, by statfs' f_type.
const char* tree_path_of(int fd, Path* buffer) {
  descriptor_path(fd, buffer);
  return path_in_tree(buffer->c_str());
}

}  // namespace

V3D_INTERPOSE(int, stated, "stat", (const char* path, struct stat* st)) {
  return stat_at(AT_FDCWD, path, st, 0);
}
V3D_ALIAS(int, stated_64, "stat64", "stat", (const char*, struct stat*));

V3D_INTERPOSE(int, lstated, "lstat", (const char* path, struct stat* st)) {
  return stat_at(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}
V3D_ALIAS(int, lstated_64, "lstat64", "lstat", (const char*, struct stat*));

V3D_INTERPOSE(int, fstated, "fstat", (int fd, struct stat* st)) { return stat_descriptor(fd, st); }
V3D_ALIAS(int, fstated_64, "fstat64", "fstat", (int, struct stat*));

V3D_INTERPOSE(int, stated_at, "fstatat", (int dir, const char* path, struct stat* st, int flags)) {
  return stat_at(dir, path, st, flags);
}
V3D_ALIAS(int, stated_at_64, "fstatat64", "fstatat", (int, const char*, struct stat*, int));

// What stat and the others were before glibc 2.33: inline functions around these.

V3D_INTERPOSE(int, old_stat, "__xstat", (int, const char* path, struct stat* st)) {
  return stat_at(AT_FDCWD, path, st, 0);
}
V3D_ALIAS(int, old_stat_64, "__xstat64", "__xstat", (int, const char*, struct stat*));

V3D_INTERPOSE(int, old_lstat, "__lxstat", (int, const char* path, struct stat* st)) {
  return stat_at(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}
V3D_ALIAS(int, old_lstat_64, "__lxstat64", "__lxstat", (int, const char*, struct stat*));

V3D_INTERPOSE(int, old_fstat, "__fxstat", (int, int fd, struct stat* st)) { return stat_descriptor(fd, st); }
V3D_ALIAS(int, old_fstat_64, "__fxstat64", "__fxstat", (int, int, struct stat*));

V3D_INTERPOSE(int, old_fstatat, "__fxstatat", (int, int dir, const char* path, struct stat* st, int flags)) {
  return stat_at(dir, path, st, flags);
}
V3D_ALIAS(int, old_fstatat_64, "__fxstatat64", "__fxstatat", (int, int, const char*, struct stat*, int));

V3D_INTERPOSE(int, statxed, "statx",
              (int dir, const char* path, int flags, unsigned mask, struct statx* st)) {
  using Statx = int(int, const char*, int, unsigned, struct statx*);
  Rewritten to(dir, path, Purpose::kLookup);
  int result = V3D_NEXT(Statx, "statx")(to.dir(), to.path(), flags, mask, st);
  if (result < 0) return result;
  bool descriptor = flags & AT_EMPTY_PATH && !(to.readable() && *path);
  struct stat plain;
  if ((to.ours() || descriptor) && raw::fstatat(to.dir(), to.path() ? to.path() : "", &plain,
                                                flags & (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)) == 0) {
    if (const Node* node = find_open_node(descriptor ? dir : -1, plain)) describe_node(*node, st);
  } else if (S_ISSOCK(st->stx_mode) && raw::fstatat(dir, path, &plain, flags & AT_SYMLINK_NOFOLLOW) == 0) {
    if (const Node* node = node_in_proc(dir, path, plain)) describe_node(*node, st);
  }
  return result;
}

V3D_INTERPOSE(int, fs_stated, "statfs", (const char* path, struct statfs* st)) {
  using Statfs = int(const char*, struct statfs*);
  Rewritten to(path);
  int result = V3D_NEXT(Statfs, "statfs")(to.path(), st);
  if (result == 0 && to.ours()) st->f_type = magic_of(to.path() + to.tree()->root.size());
  return result;
}
V3D_ALIAS(int, fs_stated_64, "statfs64", "statfs", (const char*, struct statfs*));

V3D_INTERPOSE(int, fs_fstated, "fstatfs", (int fd, struct statfs* st)) {
  using Fstatfs = int(int, struct statfs*);
  int result = V3D_NEXT(Fstatfs, "fstatfs")(fd, st);
  Path buffer;
  if (const char* path = result == 0 ? tree_path_of(fd, &buffer) : nullptr) st->f_type = magic_of(path);
  return result;
}
V3D_ALIAS(int, fs_fstated_64, "fstatfs64", "fstatfs", (int, struct statfs*));

V3D_INTERPOSE(int, vfs_stated, "statvfs", (const char* path, struct statvfs* st)) {
  using Statvfs = int(const char*, struct statvfs*);
  return V3D_NEXT(Statvfs, "statvfs")(Rewritten(path).path(), st);
}
V3D_ALIAS(int, vfs_stated_64, "statvfs64", "statvfs", (const char*, struct statvfs*));

}  // namespace v3d::shim
