#include "shim/tree/tree.h"

#include <sys/sysmacros.h>

#include <atomic>
#include <cstdlib>

#include "ioctl/link/wire.h"
#include "shim/link/connection.h"
#include "shim/process/config.h"
#include "shim/process/raw.h"
#include "shim/tree/board_nodes.h"
#include "shim/tree/debug_files.h"
#include "shim/tree/tree_content.h"

namespace v3d::shim {
namespace {

constexpr char kFolderName[] = "/v3demu-tree-";  // followed by 16 hexadecimal digits
constexpr size_t kHashDigits = 16;

constexpr const char* kMergedBesideHost[] = {"/dev/dri", "/dev/dri/by-path", "/sys/class/drm",
                                             "/sys/class/graphics"};

/// Entry names of a folder, without . and .. ; false when it cannot be read.
template <typename Visit>
bool list_folder(int fd, Visit visit) {
  struct Entry {  // linux_dirent64
    uint64_t ino;
    int64_t next;
    uint16_t size;
    uint8_t type;
    char name[];
  };
  alignas(8) char buffer[2048];
  for (;;) {
    long got = raw::call(SYS_getdents64, fd, raw::word(buffer), sizeof(buffer));
    if (got <= 0) return got == 0;
    for (long at = 0; at < got;) {
      auto* entry = reinterpret_cast<Entry*>(buffer + at);
      if (strcmp(entry->name, ".") != 0 && strcmp(entry->name, "..") != 0) visit(entry->name);
      at += entry->size;
    }
  }
}

/// Removes a tree, or what a failed attempt left of one.
void remove_folder(int parent, const char* name, int depth = 0) {
  int fd = raw::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd >= 0) {
    // Removing entries while listing may make the listing skip others: until a pass finds none.
    bool found = true;
    for (int pass = 0; found && pass < 16; ++pass) {
      found = false;
      raw::call(SYS_lseek, fd, 0, SEEK_SET);
      list_folder(fd, [&](const char* entry) {
        found = true;
        if (raw::unlinkat(fd, entry, 0) < 0 && depth < 16) remove_folder(fd, entry, depth + 1);
      });
    }
    raw::close(fd);
  }
  raw::unlinkat(parent, name, AT_REMOVEDIR);
}

void add_node(Tree* tree, uint32_t wire_minor, uint32_t minor) {
  Node* node = &tree->nodes[tree->num_nodes++];
  const bool framebuffer = wire_minor == wire::kFramebufferMinor, render = wire_minor == 128;
  node->wire_minor = wire_minor;
  node->minor = minor;
  node->major = framebuffer ? kFramebufferMajor : kDrmMajor;
  node->mode = S_IFCHR | (render ? 0666 : 0660);
  Text<sizeof(node->name)> name;
  name.add(framebuffer ? "fb" : render ? "dri/renderD" : "dri/card").add(uint64_t{minor});
  memcpy(node->name, name.c_str(), name.size() + 1);
}

void add_board_devices(Tree* tree) {
  for (uint32_t i = 0; i < kNumBoardDevices; ++i) {
    const BoardDevice& device = kBoardDevices[i];
    if (!has_device(*board_of(tree->chip).soc, device)) continue;
    Node* node = &tree->nodes[tree->num_nodes++];
    node->wire_minor = kFirstBoardDevice + i;
    node->minor = device.minor;
    node->major = device.major;
    node->mode = S_IFCHR | device.mode;
    Text<sizeof(node->name)> name;
    name.add(device.name);
    memcpy(node->name, name.c_str(), name.size() + 1);
  }
}

/// Beside the host's own nodes ours take the first numbers that are free.
uint32_t free_framebuffer() {
  constexpr uint32_t kLast = 31;  // FB_MAX - 1
  for (uint32_t n = 0; n < kLast; ++n) {
    Text<16> path;
    path.add("/dev/fb").add(uint64_t{n});
    if (raw::access(path.c_str(), F_OK) < 0) return n;
  }
  return kLast;
}
uint32_t free_card(uint32_t first) {
  for (uint32_t n = first; n < 64; ++n) {
    Path card, render;
    card.add("/dev/dri/card").add(uint64_t{n});
    render.add("/dev/dri/renderD").add(uint64_t{128 + n});
    if (raw::access(card.c_str(), F_OK) < 0 && raw::access(render.c_str(), F_OK) < 0) return n;
  }
  return 63;
}

void own(Tree* tree, const char* folder, const char* name, bool text_prefix = false) {
  Tree::Root* root = &tree->owned[tree->num_owned++];
  root->path.clear();
  root->path.add(folder).add(name);
  root->text_prefix = text_prefix;
}

void list_owned(Tree* tree) {
  const chip::Soc& names = *board_of(tree->chip).soc;
  for (const char* root : names.platform_roots) {
    if (root) own(tree, "/sys/devices/platform/", root);
  }
  own(tree, "/sys/bus/platform/devices/", names.v3d);
  own(tree, "/sys/bus/platform/devices/", names.display);
  own(tree, "/sys/bus/platform/drivers/", names.v3d_driver);
  own(tree, "/sys/bus/platform/drivers/", chip::kDisplayDriver);
  if (const Node* framebuffer = tree->node_by_wire_minor(wire::kFramebufferMinor)) {
    const Text<16> number = device_number(*framebuffer);
    own(tree, "/dev/", framebuffer->name);
    own(tree, "/sys/class/graphics",
        config().host_dri ? (Text<16>().add('/').add(framebuffer->name)).c_str() : "");
    own(tree, "/dev/char/", number.c_str());
    own(tree, "/sys/dev/char/", number.c_str());
  }
  if (!config().no_board) {
    own(tree, "/sys/firmware/devicetree", "");
    own(tree, "/proc/device-tree", "");
    own(tree, kHeapFolder, "");
    for (const BoardDevice& device : kBoardDevices)
      if (!strchr(device.name, '/') && has_device(names, device)) own(tree, "/dev/", device.name);
  }
  if (sees_debug_files()) own(tree, kDebugFolder, "");
  if (!config().host_dri) {
    own(tree, "/dev/dri", "");
    own(tree, "/sys/class/drm", "");
    own(tree, "/dev/char/226:", "", true);
    own(tree, "/sys/dev/char/226:", "", true);
    return;
  }
  own(tree, "/dev/dri/by-path/platform-", names.v3d, true);
  own(tree, "/dev/dri/by-path/platform-", names.display, true);
  own(tree, "/sys/class/drm/version", "");
  for (uint32_t i = 0; i < tree->num_nodes; ++i) {
    if (tree->nodes[i].major != kDrmMajor) continue;
    const Text<16> number = device_number(tree->nodes[i]);
    own(tree, "/dev/", tree->nodes[i].name);
    own(tree, "/sys/class/drm/", base_name(tree->nodes[i]));
    for (uint32_t k = 0; tree->nodes[i].wire_minor == 1 && k < wire::kNumConnectors; ++k)
      if (has_connector(names, k)) own(tree, "/sys/class/drm/", connector_name(tree->nodes[i], k).c_str());
    own(tree, "/dev/char/", number.c_str());
    own(tree, "/sys/dev/char/", number.c_str());
  }
}

void plan(Tree* tree) {
  const Config& c = config();
  uint32_t running = probe_chip();
  tree->chip = running ? running : c.chip;
  uint32_t card = c.host_dri ? free_card(0) : 0;
  if (board_of(tree->chip).soc->has_one_device()) {
    if (!c.no_vc4) add_node(tree, 1, card);
  } else {
    add_node(tree, 0, card);
    if (!c.no_vc4) add_node(tree, 1, c.host_dri ? free_card(card + 1) : card + 1);
  }
  add_node(tree, 128, 128 + card);
  if (!c.no_vc4) add_node(tree, wire::kFramebufferMinor, c.host_dri ? free_framebuffer() : 0);
  if (!c.no_board) add_board_devices(tree);
  list_owned(tree);
}

/// Takes an existing tree into use. 0 or a positive errno.
int adopt_folder(const char* path, Tree* tree) {
  int fd = raw::open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -fd;
  struct stat st;
  int error = -raw::fstat(fd, &st);
  if (!error && (st.st_uid != raw::geteuid() || (st.st_mode & 077))) error = EPERM;
  for (uint32_t i = 0; i < tree->num_nodes && !error; ++i) {
    Path node;
    node.add("dev/").add(tree->nodes[i].name);
    error = -raw::fstatat(fd, node.c_str(), &st, AT_SYMLINK_NOFOLLOW);
    tree->nodes[i].tree_dev = st.st_dev;
    tree->nodes[i].tree_ino = st.st_ino;
  }
  if (!error) {
    // What the kernel calls it: /proc/self/fd and realpath show that name.
    Text<32> self;
    self.add("/proc/self/fd/").add(static_cast<uint64_t>(fd));
    long size = raw::readlinkat(AT_FDCWD, self.c_str(), tree->root.data(), tree->root.capacity() - 1);
    if (size > 0) {
      tree->root.set_size(static_cast<size_t>(size));
    } else {
      tree->root.clear();
      tree->root.add(path);
    }
  }
  raw::close(fd);
  return error;
}

/// Builds aside and renames, so that nobody ever sees half a tree. 0 or a positive errno.
int build_folder(const char* path, const Tree& tree) {
  static std::atomic<uint32_t> attempts{0};
  Path temporary;
  temporary.add(path).add('.').add(static_cast<uint64_t>(raw::getpid())).add('.');
  temporary.add(uint64_t{attempts.fetch_add(1)}).add('.').add(raw::monotonic_ns(), 16);
  if (temporary.overflowed()) return ENAMETOOLONG;
  int error = -raw::mkdirat(AT_FDCWD, temporary.c_str(), 0700);
  if (error) return error;
  int root = raw::open(temporary.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (root < 0) return -root;
  TreeSink sink(root);
  emit_tree(tree, &sink);
  raw::close(root);
  error = sink.error();
  if (!error) error = -raw::rename(temporary.c_str(), path);
  if (error) remove_folder(AT_FDCWD, temporary.c_str());
  return error == EEXIST || error == ENOTEMPTY ? 0 : error;  // somebody else was first
}

/// A tree of which a cleaner of /tmp took files away is moved out of the way.
void discard_folder(const char* path) {
  Path dead;
  dead.add(path).add(".dead.").add(static_cast<uint64_t>(raw::getpid()));
  if (!dead.overflowed() && raw::rename(path, dead.c_str()) == 0) remove_folder(AT_FDCWD, dead.c_str());
}

/// 0 or a positive errno.
int make_tree_at(const char* path, Tree* tree) {
  int error = 0;
  for (int attempt = 0; attempt < 3 && !error; ++attempt) {
    error = adopt_folder(path, tree);
    if (!error) return 0;
    if (error == EPERM) break;
    if (error == ENOENT && attempt > 0) discard_folder(path);
    error = build_folder(path, *tree);
  }
  return error ? error : EIO;
}

bool make_tree(Tree* tree) {
  plan(tree);
  TreeSink hashing;
  emit_tree(*tree, &hashing);
  Text<kHashDigits + 1> digits;
  for (int shift = 60; shift >= 0; shift -= 4) digits.add("0123456789abcdef"[hashing.hash() >> shift & 15]);
  Path path;
  const auto make_in = [&](const DaemonPlace& at) {
    path.clear();
    path.add(at.runtime_dir.c_str()).add(kFolderName).add(digits.c_str());
    const int error = make_runtime_dir(at);
    return error ? error : make_tree_at(path.c_str(), tree);
  };
  int error = make_in(place());
  if ((error == EPERM || error == EACCES || error == EROFS) && !place().runtime_dir_ours) {
    // Another user's, who gave this process what it has of the daemon there.
    DaemonPlace usual;
    read_usual_place(&usual);
    error = make_in(usual);
  }
  if (!error) return true;
  complain("cannot make the device tree ", path.c_str(),
           error == EPERM ? ": it belongs to somebody else or others may write in it"
                          : ": is the folder writable?");
  return false;
}

std::atomic<const Tree*> active{nullptr};
constexpr uid_t kNobody = ~uid_t{0};
std::atomic<uid_t> failed_for{kNobody};

}  // namespace

bool Tree::owns(const char* path) const {
  for (uint32_t i = 0; i < num_owned; ++i) {
    const Root& one = owned[i];
    if (one.text_prefix ? starts_with(path, one.path.c_str())
                        : is_beneath(path, one.path.c_str(), one.path.size())) {
      return true;
    }
  }
  return false;
}

const Node* Tree::node_of(const struct stat& st) const {
  if (!S_ISREG(st.st_mode)) return nullptr;
  for (uint32_t i = 0; i < num_nodes; ++i) {
    if (nodes[i].tree_ino == st.st_ino && nodes[i].tree_dev == st.st_dev) return &nodes[i];
  }
  return older ? older->node_of(st) : nullptr;
}

const Node* Tree::node_by_wire_minor(uint32_t wire_minor) const {
  for (uint32_t i = 0; i < num_nodes; ++i) {
    if (nodes[i].wire_minor == wire_minor) return &nodes[i];
  }
  return nullptr;
}

const Node* Tree::node_shown(const struct stat& st) const {
  if (!S_ISCHR(st.st_mode)) return nullptr;
  for (uint32_t i = 0; i < num_nodes; ++i) {
    if (nodes[i].major == major(st.st_rdev) && nodes[i].minor == minor(st.st_rdev)) return &nodes[i];
  }
  return nullptr;
}

const Tree* tree_if_active() { return active.load(std::memory_order_acquire); }

const Tree* tree() {
  const uid_t user = raw::geteuid();
  const Tree* newest = active.load(std::memory_order_acquire);
  for (const Tree* known = newest; known; known = known->older)
    if (known->user == user) return known;
  if (failed_for.load(std::memory_order_relaxed) == user) return nullptr;
  // Threads that meet here each make one in memory of their own; the first to finish wins.
  void* memory = raw::map_memory(sizeof(Tree));
  if (!memory) return nullptr;
  auto* fresh = static_cast<Tree*>(memory);
  if (!make_tree(fresh)) {
    failed_for.store(user, std::memory_order_relaxed);
    raw::unmap_memory(memory, sizeof(Tree));
    return nullptr;
  }
  fresh->user = user;
  fresh->older = newest;
  while (!active.compare_exchange_weak(newest, fresh, std::memory_order_acq_rel)) {
    if (newest && newest->user == user) {
      raw::unmap_memory(memory, sizeof(Tree));
      return newest;
    }
    fresh->older = newest;
  }
  return fresh;
}

bool is_merged(const char* path) {
  for (const char* merged : kMerged) {
    if (strcmp(path, merged) == 0) return !is_beneath(kDebugFolder, path) || sees_debug_files();
  }
  if (config().host_dri) {
    for (const char* merged : kMergedBesideHost) {
      if (strcmp(path, merged) == 0) return true;
    }
  }
  return false;
}

void refresh_overlay(const Tree& tree, const char* path) {
  Path overlay_path;
  overlay_path.add(tree.root.c_str()).add(path);
  int overlay = raw::open(overlay_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (overlay < 0) return;
  int host = raw::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  Path target;
  if (host >= 0) {
    list_folder(host, [&](const char* name) {
      target.clear();
      target.add(path).add('/').add(name);
      if (!target.overflowed() && !tree.owns(target.c_str())) raw::symlinkat(target.c_str(), overlay, name);
    });
  }
  // Links to what the host lost. Ours are relative, the host's are absolute.
  list_folder(overlay, [&](const char* name) {
    char link[8];
    if (raw::readlinkat(overlay, name, link, sizeof(link)) <= 0 || link[0] != '/') return;
    struct stat st;
    if (host < 0 || raw::fstatat(host, name, &st, AT_SYMLINK_NOFOLLOW) < 0) raw::unlinkat(overlay, name, 0);
  });
  if (host >= 0) raw::close(host);
  raw::close(overlay);
}

const char* path_in_tree(const char* real) {
  const char* found = strstr(real, kFolderName);
  if (!found) return nullptr;
  const char* digits = found + sizeof(kFolderName) - 1;
  if (strspn(digits, "0123456789abcdef") != kHashDigits) return nullptr;
  const char* rest = digits + kHashDigits;
  if (*rest == '\0') return "/";
  return *rest == '/' ? rest : nullptr;
}

namespace {

/// The permissions, which root may change.
uint32_t mode_of(const Node& node) {
  const Tree* nodes = tree_if_active();
  struct stat st;
  Path path;
  if (!nodes) return node.mode;
  path.add(nodes->root.c_str()).add("/dev/").add(node.name);
  return raw::fstatat(AT_FDCWD, path.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0
             ? (node.mode & S_IFMT) | (st.st_mode & 0777)
             : node.mode;
}

}  // namespace

void describe_node(const Node& node, struct stat* st) {
  st->st_dev = makedev(0, 6);  // devtmpfs as most kernels number it; any constant does
  st->st_ino = node_ino(node);
  st->st_mode = mode_of(node);
  st->st_nlink = 1;
  st->st_uid = raw::geteuid();
  st->st_gid = raw::getegid();
  st->st_rdev = makedev(node.major, node.minor);
  st->st_size = 0;
  st->st_blocks = 0;
  st->st_blksize = 4096;
}

void describe_node(const Node& node, struct statx* st) {
  struct stat plain = {};
  describe_node(node, &plain);
  st->stx_dev_major = major(plain.st_dev);
  st->stx_dev_minor = minor(plain.st_dev);
  st->stx_ino = plain.st_ino;
  st->stx_mode = static_cast<uint16_t>(plain.st_mode);
  st->stx_nlink = 1;
  st->stx_uid = plain.st_uid;
  st->stx_gid = plain.st_gid;
  st->stx_rdev_major = node.major;
  st->stx_rdev_minor = node.minor;
  st->stx_size = 0;
  st->stx_blocks = 0;
  st->stx_blksize = 4096;
}

}  // namespace v3d::shim
