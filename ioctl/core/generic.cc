/// @file Ioctls that every DRM device has (Linux drm_ioctl.c, drm_auth.c).
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ioctl/core/handlers.h"

namespace v3d::ioctl {
namespace {

/// Copies as much as fits, without NUL, and returns the full length.
bool copy_field(UserMemory& user, uint64_t buffer, uint64_t* length, const char* value) {
  const uint64_t full = std::strlen(value), part = std::min(full, *length);
  *length = full;
  return part == 0 || buffer == 0 || user.write(buffer, value, part);
}

/// Who may take or drop mastership. A former master has the right only in the process that opened the node;
/// descriptors handed to others are rare enough not to ask.
bool may_change_master(const File& file) { return file.was_master || file.privileged(); }

/// What GET_CAP answers on each node.
struct Capability {
  uint64_t id;
  int v3d, vc4;
};
constexpr int kUnknown = -1;
constexpr Capability kCapabilities[] = {
    {drm::kCapTimestampMonotonic, 1, 1},
    {drm::kCapPrime, 3, 3},
    {drm::kCapSyncobj, 0, 0},  // by whether it runs jobs
    {drm::kCapSyncobjTimeline, 0, 0},
    {drm::kCapDumbBuffer, kUnknown, 1},
    {drm::kCapVblankHighCrtc, kUnknown, 1},
    {drm::kCapAsyncPageFlip, kUnknown, 1},
    {drm::kCapAddfb2Modifiers, kUnknown, 1},
    {drm::kCapCrtcInVblankEvent, kUnknown, 1},
    {drm::kCapAtomicAsyncPageFlip, kUnknown, 1},
    {drm::kCapDumbPreferredDepth, kUnknown, 24},
    {drm::kCapCursorWidth, kUnknown, 64},
    {drm::kCapCursorHeight, kUnknown, 64},
    {drm::kCapDumbPreferShadow, kUnknown, 0},
    {drm::kCapPageFlipTarget, kUnknown, 0},
};

}  // namespace

int version(Call& call, drm::Version& args) {
  const DrmDevice& device = call.file.device();
  args.major = device.major;
  args.minor = device.minor;
  args.patchlevel = device.patchlevel;
  // Drivers without a date have "0" (drm_ioctl.c, drm_version).
  const char* const date = device.modeset ? call.kernel.abi().vc4_date : "0";
  if (!copy_field(call.user, args.name, &args.name_len, device.name) ||
      !copy_field(call.user, args.date, &args.date_len, date) ||
      !copy_field(call.user, args.desc, &args.desc_len, device.description))
    return EFAULT;
  return 0;
}

int get_unique(Call& call, drm::Unique& args) {
  DrmDevice& device = call.file.device();
  const std::lock_guard lock(device.mutex);
  const char* unique = call.file.master->unique_set ? device.unique : "";
  const uint64_t length = std::strlen(unique);
  if (args.unique_len >= length && length && !call.user.write(args.unique, unique, length)) return EFAULT;
  args.unique_len = length;
  return 0;
}

int get_magic(Call& call, drm::Auth& args) {
  DrmDevice& device = call.file.device();
  const std::lock_guard lock(device.mutex);
  Master& master = *call.file.master;
  if (call.file.magic == 0) {
    call.file.magic = master.next_magic++;
    master.magics[call.file.magic] = &call.file;
  }
  args.magic = call.file.magic;
  return 0;
}

int auth_magic(Call& call, drm::Auth& args) {
  DrmDevice& device = call.file.device();
  const std::lock_guard lock(device.mutex);
  auto& magics = call.file.master->magics;  // of those that share the master, and of nobody else
  const auto it = magics.find(args.magic);
  if (it == magics.end()) return EINVAL;
  it->second->authenticated = true;
  magics.erase(it);  // good for one use
  return 0;
}

int get_client(Call& call, drm::Client& args) {
  if (args.idx != 0) return EINVAL;
  DrmDevice& device = call.file.device();
  const std::lock_guard lock(device.mutex);
  args.auth = call.file.authenticated;
  args.pid = static_cast<uint64_t>(call.account.process().pid);  // who asks, not who has opened it
  args.uid = 65534;                                              // overflowuid
  args.magic = args.iocs = 0;
  return 0;
}

int get_stats(Call&, drm::Stats& args) {
  args = {};
  return 0;
}

int set_version(Call& call, drm::SetVersion& args) {
  constexpr int32_t kMajor = 1, kMinor = 4;  // DRM_IF_MAJOR, DRM_IF_MINOR
  DrmDevice& device = call.file.device();
  const std::lock_guard lock(device.mutex);
  int error = 0;
  if (args.di_major != -1) {
    if (args.di_major != kMajor || args.di_minor < 0 || args.di_minor > kMinor)
      error = EINVAL;
    else if (args.di_minor >= 1)
      call.file.master->unique_set = true;
  }
  if (!error && args.dd_major != -1 &&
      (args.dd_major != device.major || args.dd_minor < 0 || args.dd_minor > device.minor))
    error = EINVAL;
  args = {kMajor, kMinor, device.major, device.minor};
  return error;
}

int get_cap(Call& call, drm::GetCap& args) {
  const bool modeset = call.file.device().modeset;
  args.value = 0;
  for (const Capability& row : kCapabilities) {
    int value = modeset ? row.vc4 : row.v3d;
    if (row.id == drm::kCapSyncobj) value = call.file.device().has_gpu();
    if (row.id == drm::kCapAtomicAsyncPageFlip && !call.kernel.abi().atomic_async_flips) value = kUnknown;
    if (row.id != args.capability || value == kUnknown) continue;
    args.value = static_cast<uint64_t>(value);
    return 0;
  }
  return modeset ? EINVAL : EOPNOTSUPP;
}

int set_client_cap(Call& call, drm::SetClientCap& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  DrmDevice& device = call.file.device();
  const std::lock_guard lock(device.mutex);
  switch (args.capability) {
    case drm::kClientCapStereo3d:
    case drm::kClientCapAspectRatio:
      return args.value > 1 ? EINVAL : 0;
    case drm::kClientCapUniversalPlanes:
      if (args.value > 1) return EINVAL;
      call.file.universal_planes = args.value != 0;
      return 0;
    case drm::kClientCapAtomic:
      // The X server's modesetting driver is known to use it wrongly.
      if (call.file.client()->program.starts_with('X') && args.value == 1) return EOPNOTSUPP;
      if (args.value > 2) return EINVAL;
      call.file.atomic = call.file.universal_planes = args.value != 0;
      return 0;
    case drm::kClientCapWritebackConnectors:
      if (!call.file.atomic || args.value > 1) return EINVAL;
      call.file.writeback_connectors = args.value != 0;
      return 0;
    case drm::kClientCapCursorPlaneHotspot:
      return call.kernel.abi().cursor_plane_hotspot ? EOPNOTSUPP : EINVAL;
    case drm::kClientCapPlaneColorPipeline:
      if (!call.kernel.abi().plane_color_pipeline || !call.file.atomic || args.value > 1) return EINVAL;
      return EOPNOTSUPP;  // no plane has one
  }
  return EINVAL;
}

int set_client_name(Call& call, drm::SetClientName& args) {
  if (args.name_len > drm::kMaxClientName) return EINVAL;
  std::string name(args.name_len, 0);
  if (!name.empty() && !call.user.read(args.name, name.data(), name.size())) return EFAULT;
  // Nothing that would upset a line of text.
  if (!std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 0x7f; })) return EINVAL;
  call.file.set_client_name(std::move(name));
  return 0;
}

int set_master(Call& call, drm::None&) {
  DrmDevice& device = call.file.device();
  if (const File* holder = device.holder_now()) call.kernel.host().finish_closes(holder);
  const std::lock_guard lock(device.mutex);
  if (!may_change_master(call.file)) return EACCES;
  if (call.file.is_current_master()) return 0;
  if (device.master) return EBUSY;
  if (call.file.is_master && call.file.master->lessor) return EINVAL;
  call.file.become_master();
  return 0;
}

int drop_master(Call& call, drm::None&) {
  DrmDevice& device = call.file.device();
  const std::lock_guard lock(device.mutex);
  if (!may_change_master(call.file)) return EACCES;
  if (!call.file.is_current_master() || call.file.master->lessor) return EINVAL;
  device.master.reset();
  device.holder = nullptr;
  return 0;
}

}  // namespace v3d::ioctl
