/// open and its relatives: nodes become DRM files of the daemon, paths in the device tree lead there.

#include <cstdarg>
#include <cstdio>

#include "shim/drm/files.h"
#include "shim/interpose/interpose.h"
#include "shim/process/config.h"
#include "shim/process/raw.h"
#include "shim/tree/live_text.h"
#include "shim/tree/paths.h"

namespace v3d::shim {
namespace {

using OpenAt = int(int, const char*, int, mode_t);

constexpr bool takes_mode(int flags) { return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE; }

/// "/proc/self/fd/5" and the like name what a descriptor shows. -1: no such path.
int named_descriptor(const char* path) {
  for (const char* prefix : {"/proc/self/fd/", "/dev/fd/"}) {
    if (!starts_with(path, prefix)) continue;
    int number = 0;
    const char* digit = path + strlen(prefix);
    if (!*digit) return -1;
    for (; *digit >= '0' && *digit <= '9' && number < 1 << 24; ++digit) number = number * 10 + (*digit - '0');
    return *digit ? -1 : number;
  }
  return -1;
}

/// Opening a descriptor anew makes another file of the same node.
const Node* node_behind(int fd) {
  if (fd < 0) return nullptr;
  struct stat st;
  if (raw::fstat(fd, &st) < 0) return nullptr;
  if (const Tree* active = tree_if_active()) {
    if (const Node* node = active->node_of(st)) return node;
  }
  File file;
  if (!find_file(fd, st, &file)) return nullptr;
  const Tree* nodes = tree();
  return nodes ? nodes->node_by_wire_minor(file.minor) : nullptr;
}

int open_node(const Node& node, int flags) {
  if (flags & O_DIRECTORY) return -ENOTDIR;
  if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL)) return -EEXIST;
  return open_file(node.wire_minor, flags);
}

/// What a mounted tree shows for a path that could not be opened: the kernel opens no devices there.
const Node* mounted_node(int dir, const char* path, int flags) {
  if (!config().real_tree || errno != EACCES) return nullptr;
  struct stat st;
  if (raw::fstatat(dir, path, &st, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0) < 0 || !S_ISCHR(st.st_mode))
    return nullptr;
  const Tree* nodes = tree();
  return nodes ? nodes->node_shown(st) : nullptr;
}

/// Nothing in the tree can be written: other processes read the same files.
int refuse_writing(const Rewritten& path, int flags) {
  if ((flags & O_ACCMODE) == O_RDONLY && !takes_mode(flags) && !(flags & O_TRUNC)) return 0;
  struct stat st;
  int missing = raw::fstatat(path.dir(), path.path(), &st, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0);
  if (missing < 0 && !takes_mode(flags)) return missing;
  if (missing == 0 && S_ISLNK(st.st_mode)) return -ELOOP;
  return missing == 0 && S_ISDIR(st.st_mode) ? -EISDIR : -EACCES;
}

int open_at(int dir, const char* path, int flags, mode_t mode, OpenAt* next) {
  bool list = (flags & O_DIRECTORY || (flags & O_ACCMODE) == O_RDONLY) && !(flags & O_PATH);
  Rewritten to(dir, path, list ? Purpose::kList : Purpose::kLookup);
  if (flags & O_PATH) return next(to.dir(), to.path(), flags, mode);
  if (to.ours()) {
    if (const Node* node = to.node(flags & O_NOFOLLOW)) return raw::result(open_node(*node, flags));
    if (int error = refuse_writing(to, flags)) return raw::result(error);
  } else if (to.readable() && path[0] == '/') {
    if (const Node* node = node_behind(named_descriptor(path))) return raw::result(open_node(*node, flags));
  }
  if (const int live = open_live_text(to, dir, path, flags); live != -ENOENT) return raw::result(live);
  const int fd = next(to.dir(), to.path(), flags, mode);
  const Node* node = fd < 0 ? mounted_node(dir, path, flags) : nullptr;
  return node ? raw::result(open_node(*node, flags)) : fd;
}

int next_openat(int dir, const char* path, int flags, mode_t mode) {
  using Next = int(int, const char*, int, ...);
  Next* next = V3D_NEXT(Next, "openat");
  return takes_mode(flags) ? next(dir, path, flags, mode) : next(dir, path, flags);
}

/// Of a path that is not relative to a descriptor: to libc's open, in case a library behind us wants to see
/// it.
int next_open(int, const char* path, int flags, mode_t mode) {
  using Next = int(const char*, int, ...);
  Next* next = V3D_NEXT(Next, "open");
  return takes_mode(flags) ? next(path, flags, mode) : next(path, flags);
}

mode_t mode_argument(int flags, va_list arguments) {
  return takes_mode(flags) ? va_arg(arguments, mode_t) : 0;
}

/// The open(2) flags of an fopen mode; -1 if it is none.
int stdio_flags(const char* mode) {
  int flags = mode[0] == 'r'   ? 0
              : mode[0] == 'w' ? O_CREAT | O_TRUNC
              : mode[0] == 'a' ? O_CREAT | O_APPEND
                               : -1;
  if (flags < 0) return flags;
  bool both = strchr(mode, '+');
  return flags | (both ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY) | (strchr(mode, 'e') ? O_CLOEXEC : 0);
}

using Fopen = FILE*(const char*, const char*);
using Freopen = FILE*(const char*, const char*, FILE*);

/// @param fd  or a negative errno
FILE* stream_of(int fd, const char* mode) {
  if (fd < 0) {
    errno = -fd;
    return nullptr;
  }
  FILE* stream = fdopen(fd, mode);
  if (!stream) raw::close(fd);
  return stream;
}

FILE* open_stream(const char* path, const char* mode, Fopen* next) {
  Rewritten to(path);
  int flags = stdio_flags(mode);
  if (flags < 0) return next(to.path(), mode);  // EINVAL, its business
  if (const int live = open_live_text(to, AT_FDCWD, path, flags); live != -ENOENT)
    return stream_of(live, mode);
  if (!to.ours()) {
    FILE* stream = next(to.path(), mode);
    const Node* node = stream ? nullptr : mounted_node(AT_FDCWD, path, flags);
    return node ? stream_of(open_node(*node, flags), mode) : stream;
  }
  if (const Node* node = to.node()) return stream_of(open_node(*node, flags), mode);
  if (int error = refuse_writing(to, flags)) {
    errno = -error;
    return nullptr;
  }
  return next(to.path(), mode);
}

/// What freopen opens in place of the path. -ENOENT: nothing of ours. Else a descriptor or a negative errno.
int reopened(const Rewritten& to, const char* path, int flags) {
  if (flags < 0) return -ENOENT;  // EINVAL, libc's business
  if (const Node* node = to.node()) return open_node(*node, flags);
  if (const int live = path ? open_live_text(to, AT_FDCWD, path, flags) : -ENOENT; live != -ENOENT)
    return live;
  const int refused = to.ours() ? refuse_writing(to, flags) : 0;
  return refused ? refused : -ENOENT;
}

FILE* reopen_stream(const char* path, const char* mode, FILE* stream, Freopen* next) {
  const Rewritten to(path);
  const int flags = stdio_flags(mode);
  const int fd = reopened(to, path, flags);
  if (fd == -ENOENT) return next(to.path(), mode, stream);
  if (fd < 0) {
    fclose(stream);  // as freopen does when it fails
    errno = -fd;
    return nullptr;
  }
  stream = next("/dev/null", mode, stream);
  if (stream) raw::call(SYS_dup3, fd, fileno(stream), flags & O_CLOEXEC);
  raw::close(fd);
  return stream;
}

}  // namespace

/// The functions for files of some size: those of 2 GiB and more open where `large` (O_LARGEFILE, which is 0
/// where all do) is said.
#define V3D_OPEN_FAMILY(name, suffix, large)                                                                \
  V3D_INTERPOSE(int, name, "open" suffix, (const char* path, int flags, ...)) {                             \
    va_list arguments;                                                                                      \
    va_start(arguments, flags);                                                                             \
    mode_t mode = mode_argument(flags, arguments);                                                          \
    va_end(arguments);                                                                                      \
    return open_at(AT_FDCWD, path, flags | (large), mode, next_open);                                       \
  }                                                                                                         \
  V3D_ALIAS(int, name##_internal, "__open" suffix, "open" suffix, (const char*, int, ...));                 \
  V3D_INTERPOSE(int, name##_2, "__open" suffix "_2", (const char* path, int flags)) {                       \
    return open_at(AT_FDCWD, path, flags | (large), 0, next_open);                                          \
  }                                                                                                         \
  V3D_INTERPOSE(int, name##_at, "openat" suffix, (int dir, const char* path, int flags, ...)) {             \
    va_list arguments;                                                                                      \
    va_start(arguments, flags);                                                                             \
    mode_t mode = mode_argument(flags, arguments);                                                          \
    va_end(arguments);                                                                                      \
    return open_at(dir, path, flags | (large), mode, next_openat);                                          \
  }                                                                                                         \
  V3D_INTERPOSE(int, name##_at_2, "__openat" suffix "_2", (int dir, const char* path, int flags)) {         \
    return open_at(dir, path, flags | (large), 0, next_openat);                                             \
  }                                                                                                         \
  V3D_INTERPOSE(int, name##_anew, "creat" suffix, (const char* path, mode_t mode)) {                        \
    return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC | (large), mode, next_open);                \
  }                                                                                                         \
  V3D_INTERPOSE(FILE*, name##_stream, "fopen" suffix, (const char* path, const char* mode)) {               \
    return open_stream(path, mode, V3D_NEXT(Fopen, "fopen" suffix));                                        \
  }                                                                                                         \
  V3D_ALIAS(FILE*, name##_stream_internal, "_IO_fopen" suffix, "fopen" suffix, (const char*, const char*)); \
  V3D_INTERPOSE(FILE*, name##_stream_again, "freopen" suffix,                                               \
                (const char* path, const char* mode, FILE* stream)) {                                       \
    return reopen_stream(path, mode, stream, V3D_NEXT(Freopen, "freopen" suffix));                          \
  }                                                                                                         \
  static_assert((large) >= 0)

V3D_OPEN_FAMILY(opened, "", 0);
V3D_OPEN_FAMILY(opened_64, "64", O_LARGEFILE);

}  // namespace v3d::shim
