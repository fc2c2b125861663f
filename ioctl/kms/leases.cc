/// @file Parts of the display that a master lends (Linux drm_lease.c, drm_mode_object.c). Objects of other
/// types than these three are everybody's.
#include <algorithm>
#include <cerrno>
#include <vector>

#include "ioctl/abi/core.h"
#include "ioctl/display/display.h"
#include "ioctl/kms/handlers.h"

namespace v3d::ioctl {
namespace {

bool can_be_lent(uint32_t type) {
  return type == drm::kObjectCrtc || type == drm::kObjectConnector || type == drm::kObjectPlane;
}

/// What of the fixed ids no mode object is: properties, blobs and the console.
bool is_other_object(Call& call, uint32_t id) {
  const kms::Display& display = call.kernel.display();
  return display.has_property(id) || !display.find_fixed_blob(id).empty() || display.find_fb(id) ||
         display.find_blob(id);
}

/// The objects of a request as what the lessee will have (fill_object_idr). Who knows no planes but overlays
/// lends the others with their CRTC. 0, EFAULT, ENOENT, EINVAL or ENOSPC (the same one twice).
int read_objects(Call& call, const drm::CreateLease& args, std::set<uint32_t>* lent) {
  std::vector<const kms::Object*> objects;
  for (uint32_t i = 0; i < args.object_count; ++i) {
    uint32_t id;
    if (!call.user.get(args.object_ids, i, &id)) return EFAULT;
    const kms::Object* object = find_held_object(call, id, drm::kObjectAny);
    if (!object) return is_other_object(call, id) ? EINVAL : ENOENT;
    if (!can_be_lent(object->type)) return EINVAL;
    if (objects.size() > kms::kNumObjects) return ENOSPC;  // some of them twice
    objects.push_back(object);
  }
  const auto has = [&](uint32_t type) {
    return std::any_of(objects.begin(), objects.end(), [&](const auto* o) { return o->type == type; });
  };
  const bool all_planes = call.file.universal_planes;
  if (args.object_count && (!has(drm::kObjectCrtc) || !has(drm::kObjectConnector))) return EINVAL;
  if (args.object_count && all_planes && !has(drm::kObjectPlane)) return EINVAL;
  for (const kms::Object* object : objects) {
    if (!lent->insert(object->id).second) return ENOSPC;
    if (object->type != drm::kObjectCrtc || all_planes) continue;
    const kms::Pipe& pipe = kms::kPipes[kms::find_pipe(object->id)];
    for (const uint32_t plane : {pipe.primary, pipe.cursor})
      if (!lent->insert(plane).second) return ENOSPC;
  }
  return 0;
}

/// drm_lease_create, under the device's mutex. 0 or EBUSY (somebody has one of them already).
int lend(const std::shared_ptr<Master>& lessor, std::set<uint32_t> objects, Master* lessee) {
  for (const uint32_t id : objects)
    if (lessor->has_lent(id)) return EBUSY;
  lessee->lessee_id = 1;
  while (lessor->lessees.contains(lessee->lessee_id)) ++lessee->lessee_id;
  lessor->lessees[lessee->lessee_id] = lessee;
  lessee->leases = std::move(objects);
  return 0;
}

/// Lessees whose last descriptor has been closed are none any more.
void see_closed_lessees(Call& call) {
  std::vector<const File*> files;
  {
    const std::lock_guard lock(call.file.device().mutex);
    for (const auto& [id, lessee] : call.file.master->lessees) files.push_back(lessee->lessee);
  }
  for (const File* file : files) call.kernel.host().finish_closes(file);
}

int put_ids(Call& call, const std::vector<uint32_t>& ids, drm::LeaseList* args) {
  for (size_t i = 0; i < std::min<size_t>(ids.size(), args->count); ++i)
    if (!call.user.put(args->ids + i * sizeof ids[0], ids[i])) return EFAULT;
  args->count = static_cast<uint32_t>(ids.size());
  return 0;
}

}  // namespace

const kms::Object* find_held_object(const Call& call, uint32_t id, uint32_t type) {
  const kms::Object* object = kms::find_object(id, type);
  if (!object || !call.kernel.display().has(id)) return nullptr;
  return can_be_lent(object->type) && !call.file.holds(id) ? nullptr : object;
}

std::vector<uint32_t> held_objects(const Call& call, uint32_t type) {
  std::vector<uint32_t> ids;
  const auto add = [&](uint32_t id) {
    if (id && find_held_object(call, id, type)) ids.push_back(id);
  };
  for (const kms::Pipe& pipe : kms::kPipes)
    for (const uint32_t id : {pipe.crtc, pipe.primary, pipe.encoder, pipe.connector}) add(id);
  for (uint32_t i = 0; i < kms::kNumOverlays; ++i) add(kms::kFirstOverlayId + i);
  for (const kms::Pipe& pipe : kms::kPipes) add(pipe.cursor);
  return ids;
}

int create_lease(Call& call, drm::CreateLease& args) {
  DrmDevice& device = call.file.device();
  if (!device.modeset) return EOPNOTSUPP;
  if (args.flags & ~(drm::kCloexec | drm::kNonblock)) return EINVAL;
  const std::shared_ptr<Master> lessor = call.file.own_master();
  if (lessor->lessor) return EINVAL;  // what is lent is not lent on
  std::set<uint32_t> objects;
  if (const int error = read_objects(call, args, &objects)) return error;
  see_closed_lessees(call);
  auto lessee = std::make_shared<Master>();
  const std::shared_ptr<File> file = call.kernel.open_lessee(call.file, lessee);
  {
    const std::lock_guard lock(device.mutex);
    if (const int error = lend(lessor, std::move(objects), lessee.get())) return error;
    lessee->lessor = lessor;
    lessee->lessee = file.get();
  }
  UniqueFd fd;
  if (const int error = call.kernel.host().give_descriptor(
          file, static_cast<int>(args.flags & drm::kNonblock), call.account, &fd)) {
    file->release();
    return error;
  }
  args.lessee_id = lessee->lessee_id;
  call.fds.give_in_argument(offsetof(drm::CreateLease, fd), std::move(fd), (args.flags & drm::kCloexec) != 0);
  return 0;
}

int list_lessees(Call& call, drm::LeaseList& args) {
  if (args.pad) return EINVAL;
  if (!call.file.device().modeset) return EOPNOTSUPP;
  see_closed_lessees(call);
  std::vector<uint32_t> ids;
  {
    const std::lock_guard lock(call.file.device().mutex);
    for (const auto& [id, lessee] : call.file.master->lessees)
      if (!lessee->leases.empty()) ids.push_back(id);
  }
  return put_ids(call, ids, &args);
}

int get_lease(Call& call, drm::LeaseList& args) {
  if (args.pad) return EINVAL;
  if (!call.file.device().modeset) return EOPNOTSUPP;
  std::vector<uint32_t> ids;
  std::unique_lock lock(call.file.device().mutex);
  if (call.file.master->lessor) {
    ids.assign(call.file.master->leases.begin(), call.file.master->leases.end());
    lock.unlock();
    return put_ids(call, ids, &args);
  }
  lock.unlock();
  // An owner has everything.
  const kms::Display& display = call.kernel.display();
  for (uint32_t id = kms::kFirstObjectId; id < kms::kFirstDynamicId; ++id)
    if ((kms::find_object(id, drm::kObjectAny) && display.has(id)) || display.has_property(id) ||
        !display.find_fixed_blob(id).empty())
      ids.push_back(id);
  for (const uint32_t id : display.dynamic_ids()) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  return put_ids(call, ids, &args);
}

int revoke_lease(Call& call, drm::RevokeLease& args) {
  DrmDevice& device = call.file.device();
  if (!device.modeset) return EOPNOTSUPP;
  const std::lock_guard lock(device.mutex);
  const Master& mine = *call.file.master;
  const auto& lessees = mine.owner()->lessees;
  const auto lessee = lessees.find(args.lessee_id);
  if (lessee == lessees.end()) return ENOENT;
  if (lessee->second->lessor.get() != &mine) return EACCES;
  lessee->second->revoke();
  return 0;
}

}  // namespace v3d::ioctl
