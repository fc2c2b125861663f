#include "shim/tree/debug_files.h"

#include "ioctl/link/wire.h"
#include "shim/process/config.h"
#include "shim/process/raw.h"
#include "shim/tree/tree_content.h"

namespace v3d::shim {
namespace {

/// Devices: with V3D's driver, the display's beside it, and the one of boards with VideoCore IV.
enum Devices : uint8_t { kOfV3d = 1, kOfDisplay = 2, kOfBoth = 4, kOfAll = kOfV3d | kOfDisplay | kOfBoth };
struct File {
  const char* name;
  uint8_t of;
};
constexpr File kFiles[] = {{"name", kOfAll},          {"clients", kOfAll},
                           {"gem_names", kOfAll},     {"v3d_ident", kOfV3d | kOfBoth},
                           {"measure_clock", kOfV3d}, {"bo_stats", kOfV3d | kOfBoth}};

Devices device_of(const Node& node, const chip::Soc& soc) {
  if (soc.has_one_device()) return kOfBoth;
  return node.wire_minor == 1 ? kOfDisplay : kOfV3d;
}

}  // namespace

bool sees_debug_files() { return raw::geteuid() == 0 && !config().host_dri; }

void emit_debug_files(const Tree& tree, TreeSink* sink) {
  const chip::Soc& soc = *board_of(tree.chip).soc;
  const char* root = kDebugFolder + 1;
  for (uint32_t i = 0; i < tree.num_nodes; ++i) {
    const Node& node = tree.nodes[i];
    if (node.major != kDrmMajor) continue;
    const Devices device = device_of(node, soc);
    Path folder, link;
    folder.add(root).add('/').add(device == kOfV3d ? soc.v3d : soc.display);
    link.add(root).add('/').add(uint64_t{node.minor});
    sink->link(link.c_str(), folder.c_str());
    const size_t base = folder.size();
    for (const File& file : kFiles) {
      if (node.wire_minor >= wire::kFirstRenderMinor || !(file.of & device)) continue;
      sink->file(folder.add('/').add(file.name).c_str(), "");
      folder.truncate(base);
    }
  }
}

bool find_debug_file(const char* path, Text<64>* command) {
  const char* folder = strstr(path, kDebugFolder);
  if (!folder || folder[sizeof(kDebugFolder) - 1] != '/') return false;
  folder += sizeof(kDebugFolder);
  const char* name = strchr(folder, '/');
  const Tree* nodes = name ? tree_if_active() : nullptr;
  if (!nodes) return false;
  const auto length = static_cast<size_t>(name - folder);
  const auto is = [&](const char* text) {
    return strlen(text) == length && strncmp(text, folder, length) == 0;
  };
  const chip::Soc& soc = *board_of(nodes->chip).soc;
  for (uint32_t i = 0; i < nodes->num_nodes; ++i) {
    const Node& node = nodes->nodes[i];
    const Devices device = device_of(node, soc);
    Text<16> number;
    number.add(uint64_t{node.minor});
    if (node.major != kDrmMajor || (!is(number.c_str()) && !is(device == kOfV3d ? soc.v3d : soc.display)))
      continue;
    for (const File& file : kFiles) {
      if (strcmp(name + 1, file.name) != 0 || !(file.of & device)) continue;
      command->clear();
      command->add("debugfs ").add(device == kOfV3d ? "v3d/" : "vc4/").add(file.name);
      return true;
    }
  }
  return false;
}

}  // namespace v3d::shim
