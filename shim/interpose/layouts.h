/// Structures of libc have one of three layouts in a 32-bit program of ARM, settled when it was built: with
/// short offsets and times (stat, readdir), with long offsets (stat64, readdir64: the types that this library
/// is built with), or with long times besides (__stat64_time64), as all packages of Debian 13.
#pragma once

#include <dirent.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "shim/tree/tree.h"

namespace v3d::shim {

#if defined(__arm__)

struct ShortTime {
  int32_t tv_sec, tv_nsec;
};
struct LongTime {
  int64_t tv_sec;
  int32_t tv_nsec, pad;
};

struct ShortStat {
  uint64_t st_dev;
  uint16_t pad_before;
  uint32_t st_ino, st_mode, st_nlink, st_uid, st_gid;
  uint64_t st_rdev;
  uint16_t pad_behind;
  int32_t st_size, st_blksize, st_blocks;
  ShortTime st_atim, st_mtim, st_ctim;
  uint32_t reserved[2];
};
static_assert(sizeof(ShortStat) == 88 && offsetof(ShortStat, st_rdev) == 32 &&
              offsetof(ShortStat, st_size) == 44);

struct LongTimeStat {
  uint64_t st_dev, st_ino;
  uint32_t st_mode, st_nlink, st_uid, st_gid;
  uint64_t st_rdev;
  int64_t st_size;
  int32_t st_blksize;
  int64_t st_blocks;
  LongTime st_atim, st_mtim, st_ctim;
};
static_assert(sizeof(LongTimeStat) == 112 && offsetof(LongTimeStat, st_blocks) == 56);

struct ShortDirent {
  uint32_t d_ino;
  int32_t d_off;
  uint16_t d_reclen;
  uint8_t d_type;
  char d_name[256];
};
static_assert(offsetof(ShortDirent, d_name) == 11);

// The long offsets of this library's own types.
static_assert(sizeof(struct stat) == 104 && sizeof(struct stat) == sizeof(struct stat64));
static_assert(offsetof(struct dirent, d_name) == 19);
#else
// Everywhere else there is one layout, under both names.
static_assert(sizeof(struct stat) == sizeof(struct stat64) &&
              sizeof(struct dirent) == sizeof(struct dirent64));
#endif

/// One layout from another.
template <typename From, typename To>
void copy_stat(const From& from, To* to) {
  to->st_dev = from.st_dev;
  to->st_ino = static_cast<decltype(to->st_ino)>(from.st_ino);
  to->st_mode = from.st_mode;
  to->st_nlink = from.st_nlink;
  to->st_uid = from.st_uid;
  to->st_gid = from.st_gid;
  to->st_rdev = from.st_rdev;
  to->st_size = static_cast<decltype(to->st_size)>(from.st_size);
  to->st_blksize = from.st_blksize;
  to->st_blocks = static_cast<decltype(to->st_blocks)>(from.st_blocks);
  const auto copy_time = [](const auto& time, auto* out) {
    out->tv_sec = static_cast<decltype(out->tv_sec)>(time.tv_sec);
    out->tv_nsec = time.tv_nsec;
  };
  copy_time(from.st_atim, &to->st_atim);
  copy_time(from.st_mtim, &to->st_mtim);
  copy_time(from.st_ctim, &to->st_ctim);
}

/// @name A program's layout as the one of this library, and what a node looks like in it
/// @{
inline const struct stat& plain_of(const struct stat& st) { return st; }
inline void describe(const Node& node, struct stat* st) { describe_node(node, st); }
template <typename Stat>
struct stat plain_of(const Stat& st) {
  struct stat plain;
  copy_stat(st, &plain);
  return plain;
}
template <typename Stat>
void describe(const Node& node, Stat* st) {
  struct stat plain = plain_of(*st);
  describe_node(node, &plain);
  copy_stat(plain, st);
}
/// @}

}  // namespace v3d::shim
