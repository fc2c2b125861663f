/// stat, fstat, statx and statfs: nodes and DRM descriptors look like character devices, the tree like sysfs.

#include <linux/magic.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include "shim/interpose/interpose.h"
#include "shim/interpose/layouts.h"
#include "shim/interpose/open_nodes.h"
#include "shim/process/raw.h"
#include "shim/tree/live_text.h"
#include "shim/tree/paths.h"

namespace v3d::shim {
namespace {

template <typename Stat>
using Fstatat = int(int, const char*, Stat*, int);
template <typename Stat>
using Fstat = int(int, Stat*);

/// libc's answer, or the kernel's where libc exports no such function (glibc before 2.33).
template <typename Stat>
int next_fstatat(Fstatat<Stat>* next, int dir, const char* path, Stat* st, int flags) {
  if (next) return next(dir, path, st, flags);
  struct stat plain;
  const int error = raw::fstatat(dir, path, &plain, flags);
  if (error == 0) copy_stat(plain, st);
  return raw::result(error);
}
template <typename Stat>
int next_fstat(Fstat<Stat>* next, int fd, Stat* st) {
  if (next) return next(fd, st);
  struct stat plain;
  const int error = raw::fstat(fd, &plain);
  if (error == 0) copy_stat(plain, st);
  return raw::result(error);
}

template <typename Stat>
int stat_at(int dir, const char* path, Stat* st, int flags, Fstatat<Stat>* next) {
  Rewritten to(dir, path, Purpose::kLookup);
  int result = next_fstatat(next, to.dir(), to.path(), st, flags);
  if (result < 0) return result;
  bool descriptor = flags & AT_EMPTY_PATH && !(to.readable() && *path);
  if (to.ours() || descriptor) {
    if (const Node* node = find_open_node(descriptor ? dir : -1, plain_of(*st))) describe(*node, st);
  } else if (S_ISSOCK(st->st_mode)) {
    if (const Node* node = node_in_proc(dir, path, plain_of(*st))) describe(*node, st);
  }
  return result;
}

template <typename Stat>
int stat_descriptor(int fd, Stat* st, Fstat<Stat>* next) {
  int result = next_fstat(next, fd, st);
  if (result < 0) return result;
  if (const Node* node = find_open_node(fd, plain_of(*st))) describe(*node, st);
  return result;
}

/// What a file system calls itself under the virtual path of something in the tree.
int magic_of(const char* virtual_path) {
  return is_beneath(virtual_path, "/sys") ? SYSFS_MAGIC : TMPFS_MAGIC;
}

/// The file system of an open file: the tree's show those that they stand for, by statfs' f_type.
const char* tree_path_of(int fd, Path* buffer) {
  descriptor_path(fd, buffer);
  return path_in_tree(buffer->c_str());
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): types take none.

/// The functions of one layout.
#define V3D_STAT_FAMILY(name, Stat, stat_symbol, lstat_symbol, fstat_symbol, fstatat_symbol)          \
  V3D_INTERPOSE(int, name, stat_symbol, (const char* path, Stat* st)) {                               \
    return stat_at(AT_FDCWD, path, st, 0, V3D_NEXT(Fstatat<Stat>, fstatat_symbol));                   \
  }                                                                                                   \
  V3D_INTERPOSE(int, name##_of_link, lstat_symbol, (const char* path, Stat* st)) {                    \
    return stat_at(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW, V3D_NEXT(Fstatat<Stat>, fstatat_symbol)); \
  }                                                                                                   \
  V3D_INTERPOSE(int, name##_of_descriptor, fstat_symbol, (int fd, Stat* st)) {                        \
    return stat_descriptor(fd, st, V3D_NEXT(Fstat<Stat>, fstat_symbol));                              \
  }                                                                                                   \
  V3D_INTERPOSE(int, name##_at, fstatat_symbol, (int dir, const char* path, Stat* st, int flags)) {   \
    return stat_at(dir, path, st, flags, V3D_NEXT(Fstatat<Stat>, fstatat_symbol));                    \
  }                                                                                                   \
  static_assert(sizeof(Stat) != 0)

/// What they were before glibc 2.33: inline functions around these, of a layout that has a version.
#define V3D_OLD_STAT_FAMILY(name, Stat, suffix)                                                         \
  V3D_INTERPOSE(int, name, "__xstat" suffix, (int, const char* path, Stat* st)) {                       \
    return stat_at(AT_FDCWD, path, st, 0, V3D_NEXT(Fstatat<Stat>, "fstatat" suffix));                   \
  }                                                                                                     \
  V3D_INTERPOSE(int, name##_of_link, "__lxstat" suffix, (int, const char* path, Stat* st)) {            \
    return stat_at(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW, V3D_NEXT(Fstatat<Stat>, "fstatat" suffix)); \
  }                                                                                                     \
  V3D_INTERPOSE(int, name##_of_descriptor, "__fxstat" suffix, (int, int fd, Stat* st)) {                \
    return stat_descriptor(fd, st, V3D_NEXT(Fstat<Stat>, "fstat" suffix));                              \
  }                                                                                                     \
  V3D_INTERPOSE(int, name##_at, "__fxstatat" suffix,                                                    \
                (int, int dir, const char* path, Stat* st, int flags)) {                                \
    return stat_at(dir, path, st, flags, V3D_NEXT(Fstatat<Stat>, "fstatat" suffix));                    \
  }                                                                                                     \
  static_assert(sizeof(Stat) != 0)

// NOLINTEND(bugprone-macro-parentheses)

#if defined(__arm__)
V3D_STAT_FAMILY(stated, ShortStat, "stat", "lstat", "fstat", "fstatat");
V3D_STAT_FAMILY(stated_64, struct stat, "stat64", "lstat64", "fstat64", "fstatat64");
V3D_STAT_FAMILY(stated_long_time, LongTimeStat, "__stat64_time64", "__lstat64_time64", "__fstat64_time64",
                "__fstatat64_time64");
V3D_OLD_STAT_FAMILY(old_stat, ShortStat, "");
V3D_OLD_STAT_FAMILY(old_stat_64, struct stat, "64");
#else
// Also in the __xstat family (version 1).
V3D_STAT_FAMILY(stated, struct stat, "stat", "lstat", "fstat", "fstatat");
V3D_STAT_FAMILY(stated_64, struct stat, "stat64", "lstat64", "fstat64", "fstatat64");
V3D_OLD_STAT_FAMILY(old_stat, struct stat, "");
V3D_OLD_STAT_FAMILY(old_stat_64, struct stat, "64");
#endif

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

/// Of struct statfs only the type is looked at, which comes first in every layout; of struct statvfs nothing.
#define V3D_STATFS_FAMILY(name, suffix)                                                                    \
  V3D_INTERPOSE(int, name, "statfs" suffix, (const char* path, struct statfs* st)) {                       \
    using Statfs = int(const char*, struct statfs*);                                                       \
    Rewritten to(path);                                                                                    \
    int result = V3D_NEXT(Statfs, "statfs" suffix)(to.path(), st);                                         \
    if (result == 0 && to.ours()) st->f_type = magic_of(to.path() + to.tree()->root.size());               \
    return result;                                                                                         \
  }                                                                                                        \
  V3D_INTERPOSE(int, name##_of_descriptor, "fstatfs" suffix, (int fd, struct statfs* st)) {                \
    using Fstatfs = int(int, struct statfs*);                                                              \
    int result = V3D_NEXT(Fstatfs, "fstatfs" suffix)(fd, st);                                              \
    Path buffer;                                                                                           \
    if (const char* path = result == 0 ? tree_path_of(fd, &buffer) : nullptr) st->f_type = magic_of(path); \
    return result;                                                                                         \
  }                                                                                                        \
  V3D_INTERPOSE(int, name##_by_posix, "statvfs" suffix, (const char* path, struct statvfs* st)) {          \
    using Statvfs = int(const char*, struct statvfs*);                                                     \
    return V3D_NEXT(Statvfs, "statvfs" suffix)(Rewritten(path).path(), st);                                \
  }                                                                                                        \
  static_assert(offsetof(struct statfs, f_type) == 0)

V3D_STATFS_FAMILY(fs_stated, "");
V3D_STATFS_FAMILY(fs_stated_64, "64");

}  // namespace v3d::shim
