#include "shim/tree/paths.h"

#include <atomic>

#include "gpu/chip/board.h"
#include "shim/process/config.h"
#include "shim/process/raw.h"
#include "shim/process/user_memory.h"
#include "shim/tree/board_nodes.h"
#include "shim/tree/debug_files.h"
#include "shim/tree/tree_content.h"

namespace v3d::shim {
namespace {

// Of any board: which one it is, the tree knows.

bool is_driver_of_ours(const char* name) {
  if (is_beneath(name, chip::kDisplayDriver)) return true;
  for (const chip::Board& board : chip::kBoards)
    if (is_beneath(name, board.soc->v3d_driver)) return true;
  return false;
}

bool is_platform_device_of_ours(const char* name) {
  for (const chip::Board& board : chip::kBoards) {
    for (const char* root : board.soc->platform_roots)
      if (root && starts_with(name, root)) return true;
    if (starts_with(name, board.soc->v3d) || starts_with(name, board.soc->display)) return true;
  }
  return false;
}

/// Can `path` be in any tree, or a merged folder? Decides without making a tree. `path` is virtual, absolute
/// and normalised.
bool may_be_ours(const char* path, Purpose purpose) {
  if (path[0] != '/') return false;
  if (starts_with(path, "/dev")) {
    if (is_board_device_path(path)) return !config().no_board;
    if (is_beneath(path, "/dev/dri") || starts_with(path, "/dev/char/226:")) return true;
    if (starts_with(path, "/dev/fb") || starts_with(path, "/dev/char/29:")) return true;
  } else if (starts_with(path, "/sys")) {
    if (is_beneath(path, "/sys/firmware/devicetree")) return !config().no_board;
    if (is_beneath(path, "/sys/class/drm") || starts_with(path, "/sys/dev/char/226:")) return true;
    if (is_beneath(path, kDebugFolder)) return sees_debug_files();
    if (is_beneath(path, "/sys/class/graphics") || starts_with(path, "/sys/dev/char/29:")) return true;
    constexpr char kDrivers[] = "/sys/bus/platform/drivers/";
    if (starts_with(path, kDrivers)) {
      const char* driver = path + sizeof(kDrivers) - 1;
      return is_driver_of_ours(driver);
    }
    constexpr char kDevices[] = "/sys/bus/platform/devices/", kPlatform[] = "/sys/devices/platform/";
    const char* name = starts_with(path, kDevices)    ? path + sizeof(kDevices) - 1
                       : starts_with(path, kPlatform) ? path + sizeof(kPlatform) - 1
                                                      : nullptr;
    if (name && is_platform_device_of_ours(name)) return true;
  } else {
    return is_beneath(path, "/proc/device-tree") && !config().no_board;
  }
  return is_merged(path) && (purpose == Purpose::kList || raw::access(path, F_OK) < 0);
}

/// ".." as a component. Where it leads depends on symbolic links, so such paths take the slow way; but only
/// those that name /dev or /sys, for the others can hardly lead there.
bool climbs_to_ours(const char* path) {
  return strstr(path, "..") && (strstr(path, "dev") || strstr(path, "sys"));
}

/// Where an existing folder really lies, as a virtual path. Notes whether the way there was through the tree.
[[gnu::noinline]] bool canonicalise(Path* path, bool* in_tree) {
  Path real;
  const char* open_path = path->c_str();
  if (may_be_ours(open_path, Purpose::kLookup)) {
    const Tree* tree = v3d::shim::tree();
    if (tree && tree->owns(open_path)) open_path = real.add(tree->root.c_str()).add(path->c_str()).c_str();
  }
  int fd = raw::open(open_path, O_PATH | O_CLOEXEC);
  if (fd < 0) return false;
  descriptor_path(fd, &real);
  raw::close(fd);
  if (real.c_str()[0] != '/') return false;
  *in_tree |= open_path != path->c_str();
  path->clear();
  path->add(real.c_str(), show_virtual(real.data()));
  return true;
}

/// Appends the components of `path` to `out`: no empty ones, no dots; ".." goes to the parent of where the
/// path before it really leads. false: nowhere.
bool append_components(const char* path, Path* out, bool* in_tree) {
  while (*path) {
    size_t length = strcspn(path, "/");
    if (length == 2 && path[0] == '.' && path[1] == '.') {
      if (out->size() > 1 && !canonicalise(out, in_tree)) return false;
      const char* slash = strrchr(out->c_str(), '/');
      out->truncate(slash ? static_cast<size_t>(slash - out->c_str()) : 0);
    } else if (length && !(length == 1 && path[0] == '.')) {
      if (out->size() == 1) out->clear();  // the root
      out->add('/').add(path, length);
    }
    path += length;
    if (*path) ++path;
  }
  if (out->size() == 0) out->add('/');
  return !out->overflowed();
}

/// The cwd was in /dev, /sys, / or a tree at some time. Once true it stays so: a relative path then costs one
/// getcwd more. Changing the folder only ever sets it, since a vfork child does that in its parent's memory.
enum : int { kUnknown, kElsewhere, kMayMatter };
std::atomic<int> working_directory{kUnknown};

bool matters(const char* folder) {
  return strcmp(folder, "/") == 0 || starts_with(folder, "/dev") || starts_with(folder, "/sys") ||
         path_in_tree(folder);
}

bool get_working_directory(Path* out) {
  long size = raw::call(SYS_getcwd, raw::word(out->data()), Path::capacity());
  if (size <= 1) return false;
  out->set_size(static_cast<size_t>(size) - 1);
  return true;
}

/// The folder to which a relative path counts, as a virtual path, if the path can lead to the tree from
/// there.
bool base_folder(int dir, const char* path, Path* out, bool* in_tree) {
  bool climbs = climbs_to_ours(path);
  if (dir == AT_FDCWD) {
    if (working_directory.load(std::memory_order_relaxed) == kUnknown) {
      note_working_directory();
      int unknown = kUnknown;
      working_directory.compare_exchange_strong(unknown, kElsewhere, std::memory_order_relaxed);
    }
    if (working_directory.load(std::memory_order_relaxed) != kMayMatter && !climbs) return false;
    if (!get_working_directory(out)) return false;
  } else {
    descriptor_path(dir, out);
  }
  if (out->c_str()[0] != '/' || !(climbs || matters(out->c_str()))) return false;
  *in_tree = path_in_tree(out->c_str());
  out->set_size(show_virtual(out->data()));
  return true;
}

}  // namespace

size_t read_descriptor_path(int fd, char* text, size_t capacity) {
  Text<32> link;
  link.add("/proc/self/fd/").add(static_cast<uint64_t>(static_cast<unsigned>(fd)));
  const long size = fd < 0 ? -1 : raw::readlinkat(AT_FDCWD, link.c_str(), text, capacity);
  return size > 0 && static_cast<size_t>(size) < capacity ? static_cast<size_t>(size) : 0;
}

void note_working_directory() {
  if (working_directory.load(std::memory_order_relaxed) == kMayMatter) return;
  Path folder;
  if (get_working_directory(&folder) && matters(folder.c_str())) {
    working_directory.store(kMayMatter, std::memory_order_relaxed);
  }
}

size_t show_virtual(char* path) {
  const char* inside = path_in_tree(path);
  size_t size = strlen(inside ? inside : path);
  if (inside) memmove(path, inside, size + 1);
  return size;
}

Rewritten::Rewritten(int dir, const char* path, Purpose purpose)
    : dir_(dir), path_(path), readable_(path && is_readable_path(path)) {
  if (!readable_ || !*path) return;
  if (config().real_tree) {
    // Nothing can be mounted in /proc where the host has no such entry.
    constexpr char kEntry[] = "/proc/device-tree";
    if (!is_beneath(path, kEntry) || config().no_board) return;
    buffer_.add("/sys/firmware/devicetree/base").add(path + sizeof(kEntry) - 1);
    if (!buffer_.overflowed()) path_ = buffer_.c_str();
    return;
  }
  if (path[0] == '/') {
    // Nearly all calls end here.
    const char* name = path + strspn(path, "/");
    if (strncmp(name, "dev", 3) != 0 && strncmp(name, "sys", 3) != 0 &&
        strncmp(name, "proc/device-tree", 16) != 0 && !path_in_tree(path) && !climbs_to_ours(path)) {
      return;
    }
  }
  resolve(purpose);
}

void Rewritten::resolve(Purpose purpose) {
  Path full;
  bool in_tree = false;  // reached through the tree's folder, by name or by descriptor
  const char* rest = path_;
  if (path_[0] == '/') {
    if (const char* inside = path_in_tree(path_)) {
      in_tree = true;
      rest = inside;
    }
  } else if (!base_folder(dir_, path_, &full, &in_tree)) {
    return;
  }
  if (!append_components(rest, &full, &in_tree)) return;
  const Tree* tree = may_be_ours(full.c_str(), purpose) ? v3d::shim::tree() : nullptr;
  bool merged = tree && is_merged(full.c_str());
  if (merged || (tree && tree->owns(full.c_str()))) {
    if (merged && purpose == Purpose::kList) refresh_overlay(*tree, full.c_str());
    buffer_.add(tree->root.c_str());
  } else if (in_tree) {
    tree = nullptr;  // back to the host, and not through the links of an overlay
  } else {
    return;
  }
  buffer_.add(full.c_str());
  if (path_[strlen(path_) - 1] == '/' && full.size() > 1) buffer_.add('/');
  if (buffer_.overflowed()) return;
  tree_ = tree;
  dir_ = AT_FDCWD;
  path_ = buffer_.c_str();
}

const Node* Rewritten::node(bool no_follow) const {
  if (!tree_) return nullptr;
  struct stat st;
  if (raw::fstatat(dir_, path_, &st, no_follow ? AT_SYMLINK_NOFOLLOW : 0) < 0) return nullptr;
  return tree_->node_of(st);
}

}  // namespace v3d::shim
