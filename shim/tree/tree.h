/// Clients see this device tree: /dev/dri and the parts of /sys by which libdrm, libudev and Mesa find a
/// Raspberry Pi's GPU, as real files in a folder beside the daemon's socket (drm-abi.md 1.2). Real files
/// serve DIR*, FILE*, inotify and descriptors passed to other processes without further emulation.
///
/// Folders that the host has too (/dev, /sys/class, ...) exist in the tree as overlays: our entries, and
/// symbolic links with absolute targets to the host's.
#pragma once

#include <sys/stat.h>

#include <cstdint>

#include "shim/process/text.h"

namespace v3d::shim {

/// Linux' DRM major, and that of framebuffers.
inline constexpr unsigned kDrmMajor = 226, kFramebufferMajor = 29;

/// Node::wire_minor of what the daemon has no node for: this and its place in kBoardDevices.
inline constexpr uint32_t kFirstBoardDevice = 1u << 16;

/// A device node. In the tree it is an empty regular file, known by its device and inode.
struct Node {
  uint32_t wire_minor;  ///< how the daemon calls it: 0, 1 or 128, or wire::kFramebufferMinor, or of a board's
  uint32_t minor;       ///< how clients see it; differs only beside host nodes (V3DEMU_HOST_DRI)
  uint32_t major;
  char name[24];  ///< below /dev: dri/card0, dri/renderD128, fb0, dma_heap/system
  uint32_t mode;  ///< S_IFCHR and permissions
  dev_t tree_dev;
  ino_t tree_ino;
};

struct Tree {
  Text<512> root;  ///< canonical, without trailing slash; <root>/dev/dri/card0
  uint32_t chip;   ///< 71 or 42
  uint32_t num_nodes;
  Node nodes[12];
  struct Root {
    Text<72> path;
    bool text_prefix;  ///< every path that begins so, not only what lies beneath
  };
  uid_t user;         ///< who may enter its folder
  const Tree* older;  ///< of another user, who this process was before
  uint32_t num_owned;
  Root owned[40];  ///< paths that exist in the tree only; the host's of the same name are hidden

  bool owns(const char* path) const;
  const Node* node_of(const struct stat& st) const;
  const Node* node_by_wire_minor(uint32_t wire_minor) const;
  /// The node that the result of a stat describes as describe_node() does: a mounted tree's (config.h).
  const Node* node_shown(const struct stat& st) const;
};

/// The tree of this process, for the user that it is now; made on first use. nullptr when it cannot be made
/// (one message says why).
const Tree* tree();
/// The same if somebody used it already.
const Tree* tree_if_active();

/// Folders that are shown merged with the host's, outer ones first (and some of kMergedBesideHost).
inline constexpr const char* kMerged[] = {"/dev",
                                          "/dev/char",
                                          "/sys/class",
                                          "/sys/dev/char",
                                          "/sys/bus/platform/devices",
                                          "/sys/bus/platform/drivers",
                                          "/sys/devices/platform",
                                          "/sys/firmware",
                                          "/sys/kernel/debug"};
bool is_merged(const char* path);
/// Brings the overlay of a merged folder up to date with the host's.
void refresh_overlay(const Tree& tree, const char* path);

/// `real` without the folder of a tree in front, or nullptr if it does not lie in one.
const char* path_in_tree(const char* real);

/// What stat and statx tell about a node. The same in every process.
void describe_node(const Node& node, struct stat* st);
void describe_node(const Node& node, struct statx* st);

/// The inode number that stat reports for a node.
inline ino_t node_ino(const Node& node) {
  return (node.major == kDrmMajor ? 0x226000u : node.major << 12) + node.minor;
}
/// As links are named by it, "226:128".
inline Text<16> device_number(const Node& node) {
  Text<16> number;
  number.add(uint64_t{node.major}).add(':').add(uint64_t{node.minor});
  return number;
}
inline bool is_board_device(const Node& node) { return node.wire_minor >= kFirstBoardDevice; }
/// Its name alone.
inline const char* base_name(const Node& node) {
  const char* slash = strrchr(node.name, '/');
  return slash ? slash + 1 : node.name;
}

}  // namespace v3d::shim
