/// @file Files of /sys/kernel/debug/dri, as Linux writes them (drm_debugfs.c, v3d/v3d_debugfs.c).
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/server.h"
#include "ioctl/vc4/device.h"

namespace v3d::daemon {
namespace {

uint32_t field(uint32_t word, int shift, int width) { return word >> shift & ((1u << width) - 1); }
const char* yes_no(uint32_t bit) { return bit ? "yes" : "no"; }

/// Whether the kernel reports TSY and BCG (v3d_debugfs.c, v3d_v3d_debugfs_ident).
bool has_old_bits(chip::Generation generation) {
  switch (generation) {
    case chip::Generation::k21:  // has no file of v3d's
      return false;
    case chip::Generation::k42:
      return true;
    case chip::Generation::k71:
      return false;
  }
  chip::no_such_generation();
}

/// Fields of the identity registers: drm-abi.md 2.8.
std::string identity(const chip::Profile& p) {
  const bool old_bits = has_old_bits(p.generation);
  std::string text =
      absl::StrFormat("Revision:   %d.%d.%d.%d\n", field(p.hub_ident1, 0, 4), field(p.hub_ident1, 4, 4),
                      field(p.hub_ident3, 8, 8), field(p.hub_ident3, 0, 8));
  absl::StrAppendFormat(&text, "MMU:        %s\nTFU:        %s\n", yes_no(field(p.hub_ident2, 8, 1)),
                        yes_no(field(p.hub_ident1, 17, 1)));
  if (old_bits) absl::StrAppendFormat(&text, "TSY:        %s\n", yes_no(field(p.hub_ident1, 18, 1)));
  absl::StrAppendFormat(&text, "MSO:        %s\nL3C:        %s (%dkb)\n", yes_no(field(p.hub_ident1, 19, 1)),
                        yes_no(field(p.hub_ident1, 16, 1)), field(p.hub_ident2, 0, 8));
  const uint32_t slices = field(p.core_ident1, 4, 4);
  absl::StrAppendFormat(&text, "Core 0:\n  Revision:     %d.%d\n  Slices:       %d\n",
                        field(p.core_ident0, 24, 8), field(p.core_ident1, 0, 4), slices);
  absl::StrAppendFormat(&text, "  TMUs:         %d\n  QPUs:         %d\n  Semaphores:   %d\n",
                        slices * field(p.core_ident1, 12, 4), slices * field(p.core_ident1, 8, 4),
                        field(p.core_ident1, 16, 8));
  if (old_bits) absl::StrAppendFormat(&text, "  BCG int:      %d\n", field(p.core_ident2, 28, 1));
  return text;
}

/// [K] vc4_v3d.c, vc4_v3d_debugfs_ident.
std::string identity_of_vc4(const chip::Profile& p) {
  const uint32_t slices = field(p.core_ident1, 4, 4);
  return absl::StrFormat("Revision:   %d\nSlices:     %d\nTMUs:       %d\nQPUs:       %d\nSemaphores: %d\n",
                         field(p.core_ident1, 0, 4), slices, slices * field(p.core_ident1, 12, 4),
                         slices * field(p.core_ident1, 8, 4), field(p.core_ident1, 16, 8));
}

/// The kernel counts for a second.
std::string measured_clock(const chip::Profile& p) {
  return absl::StrFormat("cycles: %d (%d.0 Mhz)\n", p.clock_mhz * 1'000'000, p.clock_mhz);
}

using Files = std::vector<std::shared_ptr<ioctl::File>>;

uid_t user_of(int32_t pid) {
  struct stat st;
  return stat(absl::StrCat("/proc/", pid).c_str(), &st) == 0 ? st.st_uid : 0;
}

/// Each open file, oldest first. Its name and number came with SET_CLIENT_NAME.
std::string clients(const Files& files, bool with_names) {
  constexpr int kNameLength = 64;
  std::string text =
      absl::StrFormat("%20s %5s %3s master a %5s %10s", "command", "tgid", "dev", "uid", "magic");
  if (with_names) absl::StrAppendFormat(&text, " %*s %20s", kNameLength, "name", "id");
  text += "\n";
  for (const auto& file : files) {
    const ioctl::ClientInfo& client = *file->client();
    bool master, authenticated;
    uint32_t magic;
    {
      const std::lock_guard lock(file->device().mutex);
      master = file->is_current_master();
      authenticated = file->authenticated || file->privileged();  // root always is
      magic = file->magic;
    }
    absl::StrAppendFormat(&text, "%20s %5d %3d   %c    %c %5d %10u", client.program, client.pid,
                          file->minor(), master ? 'y' : 'n', authenticated ? 'y' : 'n', user_of(client.pid),
                          magic);
    if (with_names) {
      const std::string name = file->client_name();
      absl::StrAppendFormat(&text, " %*s %20u", kNameLength, name.empty() ? "<unset>" : name, client.id);
    }
    text += "\n";
  }
  return text;
}

/// Of what GEM_FLINK has named. Each file that knows one holds a reference.
std::string gem_names(ioctl::DrmDevice& device, const Files& files) {
  std::map<uint32_t, std::shared_ptr<ioctl::Bo>> named;
  {
    const std::lock_guard lock(device.mutex);
    for (const auto& [name, known] : device.names)
      if (auto bo = known.lock()) named[name] = std::move(bo);
  }
  std::string text = "  name     size handles refcount\n";
  for (const auto& [name, bo] : named) {
    const auto holders = std::count_if(files.begin(), files.end(), [&bo = bo](const auto& file) {
      return file->find_bo(*bo->buffer()) == bo;
    });
    absl::StrAppendFormat(&text, "%6d %8d %7d %8d\n", name, bo->size(), holders, holders);
  }
  return text;
}

/// Objects of all files: one that two files share is one for each.
std::string bo_stats(const Files& files) {
  uint64_t objects = 0, bytes = 0;
  for (const auto& file : files) {
    objects += file->memory_use().objects;
    bytes += file->memory_use().bytes;
  }
  return absl::StrFormat("allocated bos:          %d\nallocated bo size (kb): %d\n", objects, bytes >> 10);
}

}  // namespace

bool Server::debugfs_text(std::string_view name, std::string* text) {
  const bool display = name.starts_with("vc4/");
  if (!display && !name.starts_with("v3d/")) return false;
  name.remove_prefix(4);
  ioctl::DrmDevice& device = display ? kernel_.vc4() : kernel_.v3d();
  Files files = overview().files;
  std::erase_if(files, [&](const auto& file) { return &file->device() != &device; });
  const chip::Profile& profile = kernel_.gpu().profile();
  if (name == "name")
    *text = absl::StrFormat("%s dev=%s unique=%s\n", device.name, device.unique, device.unique);
  else if (name == "clients")
    *text = clients(files, kernel_.abi().set_client_name);
  else if (name == "gem_names")
    *text = gem_names(device, files);
  else if (name == "v3d_ident" && device.has_gpu())
    *text = display ? identity_of_vc4(profile) : identity(profile);
  else if (name == "measure_clock" && !display)
    *text = measured_clock(profile);
  else if (name == "bo_stats" && device.has_gpu())
    *text = display ? ioctl::vc4::device_of(kernel_).memory()->bo_stats() : bo_stats(files);
  else
    return false;
  return true;
}

}  // namespace v3d::daemon
