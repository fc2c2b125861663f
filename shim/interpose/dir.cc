/// Folders: listing the tree needs no emulation beyond the path, except that its nodes must not look like
/// regular files.

#include <dirent.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>

#include <cstdlib>

#include "shim/interpose/interpose.h"
#include "shim/process/raw.h"
#include "shim/tree/paths.h"

static_assert(sizeof(struct dirent) == sizeof(struct dirent64));

namespace v3d::shim {
namespace {

void fix_entry(struct dirent* entry) {
  const Tree* active = tree_if_active();
  if (!active || !entry || entry->d_type != DT_REG) return;
  for (uint32_t i = 0; i < active->num_nodes; ++i) {
    const Node& node = active->nodes[i];
    if (entry->d_ino != node.tree_ino || strcmp(entry->d_name, base_name(node)) != 0) continue;
    entry->d_type = DT_CHR;
    entry->d_ino = node_ino(node);
  }
}

using Filter = int(const struct dirent*);
using Compare = int(const struct dirent**, const struct dirent**);

/// scandir's filter gets entries from libc's own readdir.
thread_local Filter* scan_filter [[gnu::tls_model("initial-exec")]] = nullptr;

int filter_fixed(const struct dirent* entry) {
  fix_entry(const_cast<struct dirent*>(entry));
  return scan_filter ? scan_filter(entry) : 1;
}

template <typename Scan>
int scan(Filter* filter, Scan next) {
  Filter* outer = scan_filter;
  scan_filter = filter;
  int count = next(filter_fixed);
  scan_filter = outer;
  return count;
}

using WalkVisit = int(const char*, const struct stat*, int);
using DeepWalkVisit = int(const char*, const struct stat*, int, struct FTW*);

/// ftw and nftw hand out paths and results of libc's own stat.
thread_local WalkVisit* walk_visit [[gnu::tls_model("initial-exec")]] = nullptr;
thread_local DeepWalkVisit* deep_walk_visit [[gnu::tls_model("initial-exec")]] = nullptr;

struct Shown {
  Path path;
  struct stat st;
  size_t cut;  ///< characters that the tree's folder took

  Shown(const char* real, const struct stat* real_st) : st(*real_st) {
    const char* inside = path_in_tree(real);
    cut = inside ? static_cast<size_t>(inside - real) : 0;
    path.add(inside ? inside : real);
    const Tree* active = tree_if_active();
    if (const Node* node = active ? active->node_of(st) : nullptr) describe_node(*node, &st);
  }
};

int visit_shown(const char* path, const struct stat* st, int kind) {
  Shown shown(path, st);
  return walk_visit(shown.path.c_str(), &shown.st, kind);
}

int visit_shown_deep(const char* path, const struct stat* st, int kind, struct FTW* place) {
  Shown shown(path, st);
  struct FTW moved = *place;
  moved.base -= static_cast<int>(shown.cut);
  return deep_walk_visit(shown.path.c_str(), &shown.st, kind, &moved);
}

// For glob's GLOB_ALTDIRFUNC: our own functions, found by their symbols.
extern "C" {
DIR* own_opendir(const char*) __asm__("opendir");
struct dirent* own_readdir(DIR*) __asm__("readdir");
int own_stat(const char*, struct stat*) __asm__("stat");
int own_lstat(const char*, struct stat*) __asm__("lstat");
}

}  // namespace

V3D_INTERPOSE(DIR*, directory_opened, "opendir", (const char* path)) {
  using OpenDirectory = DIR*(const char*);
  return V3D_NEXT(OpenDirectory, "opendir")(Rewritten(path, Purpose::kList).path());
}

V3D_INTERPOSE(struct dirent*, directory_read, "readdir", (DIR * folder)) {
  using ReadDirectory = struct dirent*(DIR*);
  struct dirent* entry = V3D_NEXT(ReadDirectory, "readdir")(folder);
  fix_entry(entry);
  return entry;
}
V3D_ALIAS(struct dirent*, directory_read_64, "readdir64", "readdir", (DIR*));

V3D_INTERPOSE(int, directory_read_into, "readdir_r",
              (DIR * folder, struct dirent* entry, struct dirent** result)) {
  using ReadDirectory = int(DIR*, struct dirent*, struct dirent**);
  int error = V3D_NEXT(ReadDirectory, "readdir_r")(folder, entry, result);
  if (!error) fix_entry(*result);
  return error;
}
V3D_ALIAS(int, directory_read_into_64, "readdir64_r", "readdir_r", (DIR*, struct dirent*, struct dirent**));

V3D_INTERPOSE(int, directory_scanned, "scandir",
              (const char* path, struct dirent*** list, Filter* filter, Compare* compare)) {
  using Scan = int(const char*, struct dirent***, Filter*, Compare*);
  Rewritten to(path, Purpose::kList);
  return scan(filter, [&](Filter* own) { return V3D_NEXT(Scan, "scandir")(to.path(), list, own, compare); });
}
V3D_ALIAS(int, directory_scanned_64, "scandir64", "scandir",
          (const char*, struct dirent***, Filter*, Compare*));

V3D_INTERPOSE(int, directory_scanned_at, "scandirat",
              (int dir, const char* path, struct dirent*** list, Filter* filter, Compare* compare)) {
  using Scan = int(int, const char*, struct dirent***, Filter*, Compare*);
  Rewritten to(dir, path, Purpose::kList);
  return scan(filter, [&](Filter* own) {
    return V3D_NEXT(Scan, "scandirat")(to.dir(), to.path(), list, own, compare);
  });
}
V3D_ALIAS(int, directory_scanned_at_64, "scandirat64", "scandirat",
          (int, const char*, struct dirent***, Filter*, Compare*));

V3D_INTERPOSE(int, walked, "ftw", (const char* path, WalkVisit* visit, int depth)) {
  using Walk = int(const char*, WalkVisit*, int);
  Walk* next = V3D_NEXT(Walk, "ftw");
  Rewritten to(path, Purpose::kList);
  if (!to.ours()) return next(to.path(), visit, depth);
  WalkVisit* outer = walk_visit;
  walk_visit = visit;
  int result = next(to.path(), visit_shown, depth);
  walk_visit = outer;
  return result;
}
V3D_ALIAS(int, walked_64, "ftw64", "ftw", (const char*, WalkVisit*, int));

V3D_INTERPOSE(int, walked_deep, "nftw", (const char* path, DeepWalkVisit* visit, int depth, int flags)) {
  using Walk = int(const char*, DeepWalkVisit*, int, int);
  Walk* next = V3D_NEXT(Walk, "nftw");
  Rewritten to(path, Purpose::kList);
  if (!to.ours()) return next(to.path(), visit, depth, flags);
  DeepWalkVisit* outer = deep_walk_visit;
  deep_walk_visit = visit;
  int result = next(to.path(), visit_shown_deep, depth, flags);
  deep_walk_visit = outer;
  return result;
}
V3D_ALIAS(int, walked_deep_64, "nftw64", "nftw", (const char*, DeepWalkVisit*, int, int));

/// fts keeps its own state and shows the tree's real paths; they work wherever a path is taken.
V3D_INTERPOSE(FTS*, tree_walk_opened, "fts_open",
              (char* const* paths, int options, int (*compare)(const FTSENT**, const FTSENT**))) {
  using Open = FTS*(char* const*, int, int (*)(const FTSENT**, const FTSENT**));
  Open* next = V3D_NEXT(Open, "fts_open");
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
V3D_ALIAS(FTS*, tree_walk_opened_64, "fts64_open", "fts_open",
          (char* const*, int, int (*)(const FTSENT**, const FTSENT**)));

V3D_INTERPOSE(int, globbed, "glob",
              (const char* pattern, int flags, int (*failed)(const char*, int), glob_t* out)) {
  using Glob = int(const char*, int, int (*)(const char*, int), glob_t*);
  Glob* next = V3D_NEXT(Glob, "glob");
  if (flags & GLOB_ALTDIRFUNC || !(starts_with(pattern, "/dev/") || starts_with(pattern, "/sys/"))) {
    return next(pattern, flags, failed, out);
  }
  out->gl_opendir = [](const char* path) -> void* { return own_opendir(path); };
  out->gl_readdir = [](void* folder) { return own_readdir(static_cast<DIR*>(folder)); };
  out->gl_closedir = [](void* folder) { closedir(static_cast<DIR*>(folder)); };
  out->gl_stat = own_stat;
  out->gl_lstat = own_lstat;
  return next(pattern, flags | GLOB_ALTDIRFUNC, failed, out);
}
V3D_ALIAS(int, globbed_64, "glob64", "glob", (const char*, int, int (*)(const char*, int), glob_t*));

}  // namespace v3d::shim
