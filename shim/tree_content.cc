#include "shim/tree_content.h"

namespace v3d::shim {
namespace {

// Names and paths: drm-abi.md 1.2.
constexpr ChipNames kChips[] = {
    {71,
     "1002000000.v3d",
     "axi/1002000000.v3d",
     "/axi/v3d@2000000",
     "brcm,2712-v3d",  //
     "axi:gpu",
     "axi/axi:gpu",
     "/axi/gpu",
     "brcm,bcm2712-vc6",
     {"axi", nullptr}},
    {42,
     "fec00000.v3d",
     "v3dbus/fec00000.v3d",
     "/v3dbus/v3d@7ec04000",
     "brcm,2711-v3d",  //
     "gpu",
     "gpu",
     "/gpu",
     "brcm,bcm2711-vc5",
     {"v3dbus", "gpu"}},
};

constexpr char kPlatform[] = "sys/devices/platform/";

/// The job statistics of an idle GPU ([K] v3d_sysfs.c, gpu_stats_show).
constexpr char kGpuStats[] =
    "queue\ttimestamp\tjobs\truntime\n"
    "bin\t0\t0\t0\nrender\t0\t0\t0\ntfu\t0\t0\t0\ncsd\t0\t0\t0\ncache_clean\t0\t0\t0\ncpu\t0\t0\t0\n";

using Content = Text<512>;

void emit_platform_device(TreeSink* sink, const char* name, const char* folder, const char* driver,
                          const char* of_name, const char* of_path, const char* compatible) {
  Path device;
  device.add(kPlatform).add(folder);
  size_t base = device.size();
  Content uevent;
  uevent.add("DRIVER=").add(driver).add("\nOF_NAME=").add(of_name).add("\nOF_FULLNAME=").add(of_path);
  uevent.add("\nOF_COMPATIBLE_0=").add(compatible).add("\nOF_COMPATIBLE_N=1\nMODALIAS=of:N").add(of_name);
  uevent.add("T(null)C").add(compatible).add("\n");
  sink->file(device.add("/uevent").c_str(), uevent.c_str());
  device.truncate(base);
  sink->link(device.add("/subsystem").c_str(), "sys/bus/platform");
  device.truncate(base);
  Path bus;
  bus.add("sys/bus/platform/devices/").add(name);
  sink->link(bus.c_str(), device.c_str());
}

void emit_node(TreeSink* sink, const Node& node, const char* device_folder) {
  Path path, from;
  path.add("dev/dri/").add(node.name);
  sink->file(path.c_str(), "", node.mode & 0777);

  Text<32> number;
  number.add(uint64_t{kDrmMajor}).add(':').add(uint64_t{node.minor});
  from.add("dev/char/").add(number.c_str());
  sink->link(from.c_str(), path.c_str());

  Path folder;
  folder.add(kPlatform).add(device_folder).add("/drm/").add(node.name);
  size_t base = folder.size();
  Content content;
  content.add("MAJOR=").add(uint64_t{kDrmMajor}).add("\nMINOR=").add(uint64_t{node.minor});
  content.add("\nDEVNAME=dri/").add(node.name).add("\nDEVTYPE=drm_minor\n");
  sink->file(folder.add("/uevent").c_str(), content.c_str());
  folder.truncate(base);
  content.clear();
  content.add(number.c_str()).add('\n');
  sink->file(folder.add("/dev").c_str(), content.c_str());
  folder.truncate(base);
  sink->link(folder.add("/subsystem").c_str(), "sys/class/drm");
  folder.truncate(base);
  Path device;
  device.add(kPlatform).add(device_folder);
  sink->link(folder.add("/device").c_str(), device.c_str());
  folder.truncate(base);

  from.clear();
  sink->link(from.add("sys/class/drm/").add(node.name).c_str(), folder.c_str());
  from.clear();
  sink->link(from.add("sys/dev/char/").add(number.c_str()).c_str(), folder.c_str());
}

void emit_by_path(TreeSink* sink, const char* device, const char* kind, const Node& node) {
  Path from, to;
  from.add("dev/dri/by-path/platform-").add(device).add(kind);
  to.add("dev/dri/").add(node.name);
  sink->link(from.c_str(), to.c_str());
}

/// The one connector of the display device, for desktop tools that look here instead of asking KMS.
void emit_connector(TreeSink* sink, const Node& node, const char* device_folder) {
  Text<32> name = connector_name(node);
  Path folder, card, entry;
  card.add(kPlatform).add(device_folder).add("/drm/").add(node.name);
  folder.add(card.c_str()).add('/').add(name.c_str());
  size_t base = folder.size();
  constexpr const char* kFiles[][2] = {{"/status", "connected\n"}, {"/enabled", "enabled\n"},
                                       {"/dpms", "On\n"},          {"/edid", ""},
                                       {"/modes", "1920x1080\n"},  {"/uevent", "DEVTYPE=drm_connector\n"}};
  for (auto& [file, content] : kFiles) {
    sink->file(folder.add(file).c_str(), content);
    folder.truncate(base);
  }
  sink->link(folder.add("/subsystem").c_str(), "sys/class/drm");
  folder.truncate(base);
  sink->link(folder.add("/device").c_str(), card.c_str());
  folder.truncate(base);
  entry.add("sys/class/drm/").add(name.c_str());
  sink->link(entry.c_str(), folder.c_str());
}

}  // namespace

Text<32> connector_name(const Node& display) {
  Text<32> name;
  name.add(display.name).add("-HDMI-A-1");
  return name;
}

const ChipNames& chip_names(uint32_t chip) {
  for (const ChipNames& names : kChips) {
    if (names.chip == chip) return names;
  }
  return kChips[0];
}

void emit_tree(const Tree& tree, TreeSink* sink) {
  const ChipNames& names = chip_names(tree.chip);
  sink->file("sys/class/drm/version", "drm 1.1.0 20060810\n");
  emit_platform_device(sink, names.v3d, names.v3d_folder, "v3d", "v3d", names.v3d_of_path,
                       names.v3d_compatible);
  Path stats;
  sink->file(stats.add(kPlatform).add(names.v3d_folder).add("/gpu_stats").c_str(), kGpuStats);
  for (uint32_t i = 0; i < tree.num_nodes; ++i) {
    const Node& node = tree.nodes[i];
    bool display = node.wire_minor == 1;
    bool render = node.wire_minor >= 128;
    const char* folder = display ? names.display_folder : names.v3d_folder;
    if (display) {
      emit_platform_device(sink, names.display, folder, "vc4-drm", "gpu", names.display_of_path,
                           names.display_compatible);
      emit_connector(sink, node, folder);
    }
    emit_node(sink, node, folder);
    emit_by_path(sink, display ? names.display : names.v3d, render ? "-render" : "-card", node);
  }
}

}  // namespace v3d::shim
