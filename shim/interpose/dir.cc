/// Folders: listing the tree needs no emulation beyond the path, except that its nodes must not look like
/// regular files.

#include <dirent.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>

#include <cstdlib>

#include "shim/interpose/interpose.h"
#include "shim/interpose/layouts.h"
#include "shim/process/raw.h"
#include "shim/tree/paths.h"

namespace v3d::shim {
namespace {

template <typename Dirent>
void fix_entry(Dirent* entry) {
  const Tree* active = tree_if_active();
  if (!active || !entry || entry->d_type != DT_REG) return;
  for (uint32_t i = 0; i < active->num_nodes; ++i) {
    const Node& node = active->nodes[i];
    if (entry->d_ino != node.tree_ino || strcmp(entry->d_name, base_name(node)) != 0) continue;
    entry->d_type = DT_CHR;
    entry->d_ino = static_cast<decltype(entry->d_ino)>(node_ino(node));
  }
}

template <typename Dirent>
using Filter = int(const Dirent*);
template <typename Dirent>
using Compare = int(const Dirent**, const Dirent**);

/// scandir's filter gets entries from libc's own readdir.
template <typename Dirent>
thread_local Filter<Dirent>* scan_filter [[gnu::tls_model("initial-exec")]] = nullptr;

template <typename Dirent>
int filter_fixed(const Dirent* entry) {
  fix_entry(const_cast<Dirent*>(entry));
  return scan_filter<Dirent> ? scan_filter<Dirent>(entry) : 1;
}

template <typename Dirent, typename Scan>
int scan(Filter<Dirent>* filter, Scan next) {
  Filter<Dirent>* outer = scan_filter<Dirent>;
  scan_filter<Dirent> = filter;
  int count = next(filter_fixed<Dirent>);
  scan_filter<Dirent> = outer;
  return count;
}

template <typename Stat>
using WalkVisit = int(const char*, const Stat*, int);
template <typename Stat>
using DeepWalkVisit = int(const char*, const Stat*, int, struct FTW*);

/// ftw and nftw hand out paths and results of libc's own stat.
template <typename Stat>
thread_local WalkVisit<Stat>* walk_visit [[gnu::tls_model("initial-exec")]] = nullptr;
template <typename Stat>
thread_local DeepWalkVisit<Stat>* deep_walk_visit [[gnu::tls_model("initial-exec")]] = nullptr;

template <typename Stat>
struct Shown {
  Path path;
  Stat st;
  size_t cut;  ///< characters that the tree's folder took

  Shown(const char* real, const Stat* real_st) : st(*real_st) {
    const char* inside = path_in_tree(real);
    cut = inside ? static_cast<size_t>(inside - real) : 0;
    path.add(inside ? inside : real);
    const Tree* active = tree_if_active();
    if (const Node* node = active ? active->node_of(plain_of(st)) : nullptr) describe(*node, &st);
  }
};

template <typename Stat>
int visit_shown(const char* path, const Stat* st, int kind) {
  Shown<Stat> shown(path, st);
  return walk_visit<Stat>(shown.path.c_str(), &shown.st, kind);
}

template <typename Stat>
int visit_shown_deep(const char* path, const Stat* st, int kind, struct FTW* place) {
  Shown<Stat> shown(path, st);
  struct FTW moved = *place;
  moved.base -= static_cast<int>(shown.cut);
  return deep_walk_visit<Stat>(shown.path.c_str(), &shown.st, kind, &moved);
}

template <typename Stat>
using Walk = int(const char*, WalkVisit<Stat>*, int);
template <typename Stat>
using DeepWalk = int(const char*, DeepWalkVisit<Stat>*, int, int);

template <typename Stat>
int walk(const char* path, WalkVisit<Stat>* visit, int depth, Walk<Stat>* next) {
  Rewritten to(path, Purpose::kList);
  if (!to.ours()) return next(to.path(), visit, depth);
  WalkVisit<Stat>* outer = walk_visit<Stat>;
  walk_visit<Stat> = visit;
  int result = next(to.path(), visit_shown<Stat>, depth);
  walk_visit<Stat> = outer;
  return result;
}

template <typename Stat>
int walk_deep(const char* path, DeepWalkVisit<Stat>* visit, int depth, int flags, DeepWalk<Stat>* next) {
  Rewritten to(path, Purpose::kList);
  if (!to.ours()) return next(to.path(), visit, depth, flags);
  DeepWalkVisit<Stat>* outer = deep_walk_visit<Stat>;
  deep_walk_visit<Stat> = visit;
  int result = next(to.path(), visit_shown_deep<Stat>, depth, flags);
  deep_walk_visit<Stat> = outer;
  return result;
}

using CompareFiles = int(const FTSENT**, const FTSENT**);
using OpenWalk = FTS*(char* const*, int, CompareFiles*);

/// fts keeps its own state and shows the tree's real paths; they work wherever a path is taken.
FTS* open_walk(char* const* paths, int options, CompareFiles* compare, OpenWalk* next) {
  size_t count = 0;
  bool any = false;
  for (; paths[count]; ++count) any |= Rewritten(paths[count], Purpose::kList).ours();
  if (!any) return next(paths, options, compare);
  // fts_open copies the strings.
  auto** replaced = static_cast<char**>(calloc(count + 1, sizeof(char*)));
  if (!replaced) return nullptr;
  bool complete = true;
  for (size_t i = 0; i < count; ++i) {
    replaced[i] = strdup(Rewritten(paths[i], Purpose::kList).path());
    complete &= replaced[i] != nullptr;
  }
  FTS* walk = complete ? next(replaced, options, compare) : nullptr;
  for (size_t i = 0; i < count; ++i) free(replaced[i]);
  free(replaced);
  return walk;
}

/// For glob's GLOB_ALTDIRFUNC: our own functions of one layout, found by their symbols.
struct FolderFunctions {
  void* (*read)(void*);
  void (*stat)();
  void (*link_stat)();
};
extern "C" DIR* own_opendir(const char*) __asm__("opendir");

using GlobFailed = int(const char*, int);
using Glob = int(const char*, int, GlobFailed*, glob_t*);

int find_names(const char* pattern, int flags, GlobFailed* failed, glob_t* out, Glob* next,
               const FolderFunctions& own) {
  if (flags & GLOB_ALTDIRFUNC || !(starts_with(pattern, "/dev/") || starts_with(pattern, "/sys/"))) {
    return next(pattern, flags, failed, out);
  }
  out->gl_opendir = [](const char* path) -> void* { return own_opendir(path); };
  out->gl_readdir = reinterpret_cast<decltype(out->gl_readdir)>(own.read);
  out->gl_closedir = [](void* folder) { closedir(static_cast<DIR*>(folder)); };
  out->gl_stat = reinterpret_cast<decltype(out->gl_stat)>(own.stat);
  out->gl_lstat = reinterpret_cast<decltype(out->gl_lstat)>(own.link_stat);
  return next(pattern, flags | GLOB_ALTDIRFUNC, failed, out);
}

}  // namespace

V3D_INTERPOSE(DIR*, directory_opened, "opendir", (const char* path)) {
  using OpenDirectory = DIR*(const char*);
  return V3D_NEXT(OpenDirectory, "opendir")(Rewritten(path, Purpose::kList).path());
}

// NOLINTBEGIN(bugprone-macro-parentheses): types take none.

/// The functions of one layout of struct dirent.
#define V3D_FOLDER_FAMILY(name, Dirent, read_symbol, read_into_symbol, scan_symbol, scan_at_symbol)          \
  V3D_INTERPOSE(Dirent*, name##_read, read_symbol, (DIR * folder)) {                                         \
    using ReadDirectory = Dirent*(DIR*);                                                                     \
    Dirent* entry = V3D_NEXT(ReadDirectory, read_symbol)(folder);                                            \
    fix_entry(entry);                                                                                        \
    return entry;                                                                                            \
  }                                                                                                          \
  V3D_INTERPOSE(int, name##_read_into, read_into_symbol, (DIR * folder, Dirent * entry, Dirent * *result)) { \
    using ReadDirectory = int(DIR*, Dirent*, Dirent**);                                                      \
    int error = V3D_NEXT(ReadDirectory, read_into_symbol)(folder, entry, result);                            \
    if (!error) fix_entry(*result);                                                                          \
    return error;                                                                                            \
  }                                                                                                          \
  V3D_INTERPOSE(int, name##_scanned, scan_symbol,                                                            \
                (const char* path, Dirent*** list, Filter<Dirent>* filter, Compare<Dirent>* compare)) {      \
    using Scan = int(const char*, Dirent***, Filter<Dirent>*, Compare<Dirent>*);                             \
    Rewritten to(path, Purpose::kList);                                                                      \
    return scan<Dirent>(filter, [&](Filter<Dirent>* own) {                                                   \
      return V3D_NEXT(Scan, scan_symbol)(to.path(), list, own, compare);                                     \
    });                                                                                                      \
  }                                                                                                          \
  V3D_INTERPOSE(                                                                                             \
      int, name##_scanned_at, scan_at_symbol,                                                                \
      (int dir, const char* path, Dirent*** list, Filter<Dirent>* filter, Compare<Dirent>* compare)) {       \
    using Scan = int(int, const char*, Dirent***, Filter<Dirent>*, Compare<Dirent>*);                        \
    Rewritten to(dir, path, Purpose::kList);                                                                 \
    return scan<Dirent>(filter, [&](Filter<Dirent>* own) {                                                   \
      return V3D_NEXT(Scan, scan_at_symbol)(to.dir(), to.path(), list, own, compare);                        \
    });                                                                                                      \
  }                                                                                                          \
  static_assert(sizeof(Dirent) != 0)

/// The functions of one layout of struct stat.
#define V3D_WALK_FAMILY(name, Stat, walk_symbol, walk_deep_symbol, open_symbol)                    \
  V3D_INTERPOSE(int, name, walk_symbol, (const char* path, WalkVisit<Stat>* visit, int depth)) {   \
    return walk<Stat>(path, visit, depth, V3D_NEXT(Walk<Stat>, walk_symbol));                      \
  }                                                                                                \
  V3D_INTERPOSE(int, name##_deep, walk_deep_symbol,                                                \
                (const char* path, DeepWalkVisit<Stat>* visit, int depth, int flags)) {            \
    return walk_deep<Stat>(path, visit, depth, flags, V3D_NEXT(DeepWalk<Stat>, walk_deep_symbol)); \
  }                                                                                                \
  V3D_INTERPOSE(FTS*, name##_opened, open_symbol,                                                  \
                (char* const* paths, int options, CompareFiles* compare)) {                        \
    return open_walk(paths, options, compare, V3D_NEXT(OpenWalk, open_symbol));                    \
  }                                                                                                \
  static_assert(sizeof(Stat) != 0)

#define V3D_GLOB(name, symbol, read_symbol, stat_symbol, lstat_symbol)                                  \
  extern "C" {                                                                                          \
  void* name##_own_read(void*) __asm__(read_symbol);                                                    \
  void name##_own_stat() __asm__(stat_symbol);                                                          \
  void name##_own_lstat() __asm__(lstat_symbol);                                                        \
  }                                                                                                     \
  V3D_INTERPOSE(int, name, symbol, (const char* pattern, int flags, GlobFailed* failed, glob_t* out)) { \
    return find_names(pattern, flags, failed, out, V3D_NEXT(Glob, symbol),                              \
                      {name##_own_read, name##_own_stat, name##_own_lstat});                            \
  }                                                                                                     \
  static_assert(sizeof(glob_t) != 0)

// NOLINTEND(bugprone-macro-parentheses)

#if defined(__arm__)
V3D_FOLDER_FAMILY(folder, ShortDirent, "readdir", "readdir_r", "scandir", "scandirat");
V3D_WALK_FAMILY(walked, ShortStat, "ftw", "nftw", "fts_open");
V3D_WALK_FAMILY(walked_long_time, LongTimeStat, "__ftw64_time64", "__nftw64_time64", "__fts64_open_time64");
V3D_GLOB(globbed_long_time, "__glob64_time64", "readdir64", "__stat64_time64", "__lstat64_time64");
#else
V3D_FOLDER_FAMILY(folder, struct dirent, "readdir", "readdir_r", "scandir", "scandirat");
V3D_WALK_FAMILY(walked, struct stat, "ftw", "nftw", "fts_open");
#endif
V3D_FOLDER_FAMILY(folder_64, struct dirent, "readdir64", "readdir64_r", "scandir64", "scandirat64");
V3D_WALK_FAMILY(walked_64, struct stat, "ftw64", "nftw64", "fts64_open");
V3D_GLOB(globbed, "glob", "readdir", "stat", "lstat");
V3D_GLOB(globbed_64, "glob64", "readdir64", "stat64", "lstat64");

}  // namespace v3d::shim
