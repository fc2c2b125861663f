#include "shim/tree/debug_files.h"

#include "ioctl/link/wire.h"
#include "shim/process/config.h"
#include "shim/process/raw.h"
#include "shim/tree/tree_content.h"

namespace v3d::shim {
namespace {

struct File {
  const char* name;
  bool of_display_too;
};
constexpr File kFiles[] = {{"name", true},       {"clients", true},        {"gem_names", true},
                           {"v3d_ident", false}, {"measure_clock", false}, {"bo_stats", false}};

}  // namespace

bool sees_debug_files() { return raw::geteuid() == 0 && !config().host_dri; }

void emit_debug_files(const Tree& tree, TreeSink* sink) {
  const chip::Soc& soc = *board_of(tree.chip).soc;
  const char* root = kDebugFolder + 1;
  for (uint32_t i = 0; i < tree.num_nodes; ++i) {
    const Node& node = tree.nodes[i];
    if (node.major != kDrmMajor) continue;
    const bool display = node.wire_minor == 1;
    Path folder, link;
    folder.add(root).add('/').add(display ? soc.display : soc.v3d);
    link.add(root).add('/').add(uint64_t{node.minor});
    sink->link(link.c_str(), folder.c_str());
    const size_t base = folder.size();
    for (const File& file : kFiles) {
      if (node.wire_minor >= wire::kFirstRenderMinor || (display && !file.of_display_too)) continue;
      sink->file(folder.add('/').add(file.name).c_str(), "");
      folder.truncate(base);
    }
  }
}

bool find_debug_file(const char* path, Text<64>* command) {
  const char* device = strstr(path, kDebugFolder);
  if (!device || device[sizeof(kDebugFolder) - 1] != '/') return false;
  device += sizeof(kDebugFolder);
  const char* name = strchr(device, '/');
  const Tree* nodes = name ? tree_if_active() : nullptr;
  if (!nodes) return false;
  const auto length = static_cast<size_t>(name - device);
  const auto is = [&](const char* text) {
    return strlen(text) == length && strncmp(text, device, length) == 0;
  };
  const chip::Soc& soc = *board_of(nodes->chip).soc;
  for (uint32_t i = 0; i < nodes->num_nodes; ++i) {
    const Node& node = nodes->nodes[i];
    const bool display = node.wire_minor == 1;
    Text<16> number;
    number.add(uint64_t{node.minor});
    if (node.major != kDrmMajor || (!is(number.c_str()) && !is(display ? soc.display : soc.v3d))) continue;
    for (const File& file : kFiles) {
      if (strcmp(name + 1, file.name) != 0 || (display && !file.of_display_too)) continue;
      command->clear();
      command->add("debugfs ").add(display ? "vc4/" : "v3d/").add(file.name);
      return true;
    }
  }
  return false;
}

}  // namespace v3d::shim
