#include "shim/tree/tree_content.h"

#include "ioctl/link/wire.h"
#include "shim/process/config.h"
#include "shim/tree/board_nodes.h"
#include "shim/tree/debug_files.h"

namespace v3d::shim {
namespace {

constexpr char kDeviceTree[] = "sys/firmware/devicetree/base/";

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
  Path driver_folder, driver_device;
  driver_folder.add("sys/bus/platform/drivers/").add(driver);
  driver_device.add(driver_folder.c_str()).add('/').add(name);
  sink->link(driver_device.c_str(), device.c_str());
  sink->link(device.add("/driver").c_str(), driver_folder.c_str());
  device.truncate(base);
  if (!config().no_board) {
    Path node;
    node.add(kDeviceTree).add(of_path + 1);
    sink->link(device.add("/of_node").c_str(), node.c_str());
    device.truncate(base);
  }
  Path bus;
  bus.add("sys/bus/platform/devices/").add(name);
  sink->link(bus.c_str(), device.c_str());
}

void emit_node(TreeSink* sink, const Node& node, const char* device_folder) {
  Path path, from;
  path.add("dev/").add(node.name);
  sink->file(path.c_str(), "", node.mode & 0777);

  const Text<16> number = device_number(node);
  from.add("dev/char/").add(number.c_str());
  sink->link(from.c_str(), path.c_str());

  Path folder;
  folder.add(kPlatform).add(device_folder).add("/drm/").add(base_name(node));
  size_t base = folder.size();
  Content content;
  content.add("MAJOR=").add(uint64_t{kDrmMajor}).add("\nMINOR=").add(uint64_t{node.minor});
  content.add("\nDEVNAME=").add(node.name).add("\nDEVTYPE=drm_minor\n");
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
  sink->link(from.add("sys/class/drm/").add(base_name(node)).c_str(), folder.c_str());
  from.clear();
  sink->link(from.add("sys/dev/char/").add(number.c_str()).c_str(), folder.c_str());
}

void emit_by_path(TreeSink* sink, const char* device, const char* kind, const Node& node) {
  Path from, to;
  from.add("dev/dri/by-path/platform-").add(device).add(kind);
  to.add("dev/").add(node.name);
  sink->link(from.c_str(), to.c_str());
}

/// A connector of the display device, for desktop tools that look here instead of asking KMS: as it is at
/// rest, where the daemon cannot be asked (connector_files.h).
void emit_connector(TreeSink* sink, const Node& node, const char* device_folder, uint32_t i) {
  const wire::Connector& connector = wire::kConnectors[i];
  Text<32> name = connector_name(node, i);
  Path folder, card, entry;
  card.add(kPlatform).add(device_folder).add("/drm/").add(base_name(node));
  folder.add(card.c_str()).add('/').add(name.c_str());
  size_t base = folder.size();
  Text<16> id, status;
  id.add(uint64_t{connector.id}).add('\n');
  status.add(connector.status).add('\n');
  const bool lit = strcmp(connector.status, "connected") == 0;
  const char* const files[][2] = {{"/status", status.c_str()},
                                  {"/enabled", lit ? "enabled\n" : "disabled\n"},
                                  {"/dpms", "On\n"},
                                  {"/edid", ""},
                                  {"/modes", ""},
                                  {"/connector_id", id.c_str()},
                                  {"/uevent", "DEVTYPE=drm_connector\n"}};
  for (auto& [file, content] : files) {
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

/// The framebuffer and what programs read of it: the console's size never changes.
void emit_framebuffer(TreeSink* sink, const Node& node, const char* device_folder) {
  Path path, folder, device;
  path.add("dev/").add(node.name);
  sink->file(path.c_str(), "", node.mode & 0777);
  const Text<16> number = device_number(node);
  Path link;
  sink->link(link.add("dev/char/").add(number.c_str()).c_str(), path.c_str());
  device.add(kPlatform).add(device_folder);
  folder.add(device.c_str()).add("/graphics/").add(node.name);
  size_t base = folder.size();
  Text<64> uevent, line;
  uevent.add("MAJOR=").add(uint64_t{node.major}).add("\nMINOR=").add(uint64_t{node.minor});
  uevent.add("\nDEVNAME=").add(node.name).add('\n');
  line.add(number.c_str()).add('\n');
  const char* const files[][2] = {{"/uevent", uevent.c_str()},
                                  {"/dev", line.c_str()},
                                  {"/name", "vc4drmfb\n"},
                                  {"/bits_per_pixel", "16\n"},
                                  {"/virtual_size", "1920,1080\n"},
                                  {"/stride", "3840\n"},
                                  {"/modes", "U:1920x1080p-0\n"},
                                  {"/mode", ""},
                                  {"/pan", "0,0\n"},
                                  {"/rotate", "0\n"},
                                  {"/state", "0\n"}};
  for (auto& [file, content] : files) {
    sink->file(folder.add(file).c_str(), content);
    folder.truncate(base);
  }
  sink->link(folder.add("/subsystem").c_str(), "sys/class/graphics");
  folder.truncate(base);
  sink->link(folder.add("/device").c_str(), device.c_str());
  folder.truncate(base);
  link.clear();
  sink->link(link.add("sys/class/graphics/").add(node.name).c_str(), folder.c_str());
  link.clear();
  sink->link(link.add("sys/dev/char/").add(number.c_str()).c_str(), folder.c_str());
}

/// Properties of strings end with a zero, each.
void emit_property(TreeSink* sink, const char* path, const char* text) {
  Path property;
  property.add(kDeviceTree).add(path);
  sink->bytes(property.c_str(), text, strlen(text) + 1);
}

/// Numbers are big-endian.
void emit_cells(TreeSink* sink, const char* path, const uint32_t* cells, size_t count) {
  uint8_t bytes[32];
  for (size_t i = 0; i < count * 4; ++i) bytes[i] = static_cast<uint8_t>(cells[i / 4] >> (24 - 8 * (i % 4)));
  Path property;
  property.add(kDeviceTree).add(path);
  sink->bytes(property.c_str(), reinterpret_cast<const char*>(bytes), count * 4);
}

/// By which libbcm_host knows where the ARM sees the peripherals, and how the GPU sees memory
/// (board-environment.md 6.2).
void emit_addresses(TreeSink* sink, const chip::Board& board) {
  const uint32_t peripherals = board.soc->peripherals;
  if (!peripherals) return;
  constexpr uint32_t kBus = 0x7e000000, kBytes = 0x01000000, kLocal = 0x40000000, kLocalBytes = 0x40000;
  const bool cached = &*board.soc == &chip::kBcm2835;  // the ARM's accesses go through the GPU's cache
  const uint32_t ranges[] = {kBus, peripherals, kBytes, kLocal, kLocal, kLocalBytes};
  emit_cells(sink, "soc/ranges", ranges, cached ? 3 : 6);
  const uint32_t top = board.memory_mib() << 20;
  const uint32_t memory[] = {top - (board.firmware_mib() << 20), top, cached ? 0x40000000u : 0xc0000000u};
  emit_cells(sink, "axi/vc_mem/reg", memory, 3);
}

/// What public programs read of the flattened device tree.
void emit_device_tree(TreeSink* sink, const chip::Board& board) {
  emit_property(sink, "model", board.model);
  emit_property(sink, "serial-number", serial_of(board).c_str());
  Content compatible;
  compatible.add(board.compatible).add("", 1).add(board.soc->compatible).add("", 1);
  Path path;
  path.add(kDeviceTree).add("compatible");
  sink->bytes(path.c_str(), compatible.c_str(), compatible.size());

  uint8_t revision[4];  // big-endian
  for (int i = 0; i < 4; ++i) revision[i] = static_cast<uint8_t>(board.revision >> (24 - 8 * i));
  path.clear();
  sink->bytes(path.add(kDeviceTree).add("system/linux,revision").c_str(),
              reinterpret_cast<const char*>(revision), sizeof(revision));

  path.clear();
  path.add(board.soc->v3d_of_path + 1);
  const size_t node = path.size();
  emit_property(sink, path.add("/status").c_str(), "okay");
  path.truncate(node);
  emit_property(sink, path.add("/compatible").c_str(), board.soc->v3d_compatible);
  path.clear();
  path.add(board.soc->display_of_path + 1);
  emit_property(sink, path.add("/compatible").c_str(), board.soc->display_compatible);
  emit_addresses(sink, board);
  sink->link("proc/device-tree", "sys/firmware/devicetree/base");
}

}  // namespace

const chip::Board& board_of(uint32_t chip) {
  const chip::Board* found = nullptr;
  for (const chip::Board& board : chip::kBoards) {
    if (version_number(board.soc->generation) == static_cast<int>(chip) &&
        (!found || strcmp(config().device.c_str(), board.name) == 0))
      found = &board;
  }
  return found ? *found : chip::kBoards[0];
}

Text<20> serial_of(const chip::Board& board) {
  Text<20> serial;
  for (int shift = 60; shift >= 0; shift -= 4) serial.add(board.serial >> shift & 15, 16);
  return serial;
}

Text<256> processor_lines(const chip::Board& board) {
  Text<256> lines;
  lines.add("Revision\t: ").add(uint64_t{board.revision}, 16).add("\nSerial\t\t: ");
  lines.add(serial_of(board).c_str()).add("\nModel\t\t: ").add(board.model).add('\n');
  return lines;
}

Text<32> connector_name(const Node& display, uint32_t i) {
  Text<32> name;
  name.add(base_name(display)).add('-').add(wire::kConnectors[i].name);
  return name;
}

bool has_connector(const chip::Soc& soc, uint32_t i) {
  const chip::DisplayUnit& unit = *soc.display_unit;
  return i < wire::kNumSockets ? i < unit.sockets : i - wire::kNumSockets < unit.writers;
}

void emit_tree(const Tree& tree, TreeSink* sink) {
  const chip::Soc& names = *board_of(tree.chip).soc;
  if (!config().no_board) emit_device_tree(sink, board_of(tree.chip));
  if (sees_debug_files()) emit_debug_files(tree, sink);
  sink->file("sys/class/drm/version", "drm 1.1.0 20060810\n");
  emit_platform_device(sink, names.v3d, names.v3d_folder, names.v3d_driver, "v3d", names.v3d_of_path,
                       names.v3d_compatible);
  const bool one_device = names.has_one_device();
  if (!one_device) {
    Path stats;
    sink->file(stats.add(kPlatform).add(names.v3d_folder).add("/gpu_stats").c_str(), kGpuStats);
  }
  if (one_device || tree.node_by_wire_minor(1))
    emit_platform_device(sink, names.display, names.display_folder, chip::kDisplayDriver, "gpu",
                         names.display_of_path, names.display_compatible);
  for (uint32_t i = 0; i < tree.num_nodes; ++i) {
    const Node& node = tree.nodes[i];
    if (node.wire_minor == wire::kFramebufferMinor) {
      emit_framebuffer(sink, node, names.display_folder);
      continue;
    }
    if (is_board_device(node)) {
      Path path;
      sink->file(path.add("dev/").add(node.name).c_str(), "", node.mode & 0777);
      continue;
    }
    const bool of_display = node.wire_minor == 1 || one_device;
    const char* folder = of_display ? names.display_folder : names.v3d_folder;
    for (uint32_t k = 0; node.wire_minor == 1 && k < wire::kNumConnectors; ++k)
      if (has_connector(names, k)) emit_connector(sink, node, folder, k);
    emit_node(sink, node, folder);
    emit_by_path(sink, of_display ? names.display : names.v3d,
                 node.wire_minor >= wire::kFirstRenderMinor ? "-render" : "-card", node);
  }
}

}  // namespace v3d::shim
