/// @file Properties and blobs, asked for and set one at a time (Linux drm_property.c, drm_mode_object.c).
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ioctl/kms/handlers.h"
#include "ioctl/kms/update.h"

namespace v3d::ioctl {
namespace {

void put_name(char (&to)[drm::kPropertyNameSize], const char* name) {
  std::memset(to, 0, sizeof to);
  std::memcpy(to, name, std::min(std::strlen(name), sizeof to - 1));
}

/// DPMS does not go by properties of the CRTC: it alone may be set, and only in the old way
/// (drm_atomic_connector_commit_dpms).
int set_dpms(Call& call, const kms::Object& connector, uint64_t value) {
  constexpr uint64_t kOn = 0, kOff = 3;
  const uint64_t mode = value == kOn ? kOn : kOff;
  kms::Commit commit;
  commit.changed = kms::bit_of(connector.id);
  commit.change = [mode, id = connector.id](kms::DisplayState& state) {
    kms::ObjectState& own = state.of(id);
    if (own.get(kms::kCrtc)) state.of(own.get_u32(kms::kCrtc)).set(kms::kActive, mode == kOn);
    own.set(kms::kDpms, mode);
  };
  return call.kernel.display().commit(std::move(commit), call.waiter);
}

int set_value(Call& call, uint32_t object_id, uint32_t type, uint32_t property, uint64_t value) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  const kms::Object* object = find_held_object(call, object_id, type);
  kms::Display& display = call.kernel.display();
  if (!object) return type == drm::kObjectAny && display.find_fb(object_id) ? EINVAL : ENOENT;
  if (!kms::has_property(display, *object, property)) return EINVAL;
  if (property == kms::kDpms)
    return kms::is_valid(display, *kms::find_property(property), value) ? set_dpms(call, *object, value)
                                                                        : EINVAL;
  const auto update = std::make_shared<kms::Update>(call, false);
  if (const int error = update->set(*object, property, value)) return error;
  kms::Commit commit;
  commit.changed = update->changed();
  commit.change = [update](kms::DisplayState& state) { update->apply(state); };
  return display.commit(std::move(commit), call.waiter);
}

}  // namespace

/// Ids and values of an object's properties, as many as fit.
bool put_properties(Call& call, const kms::Object& object, uint64_t ids, uint64_t values, uint32_t* count) {
  const kms::DisplayState state = call.kernel.display().state();
  uint32_t found = 0;
  for (const kms::Attached& attached : object.properties) {
    if (!call.kernel.display().has_property(attached.property)) continue;
    if ((kms::find_property(attached.property)->flags & drm::kPropertyAtomic) && !call.file.atomic) continue;
    const uint64_t value = state.of(object.id).get(static_cast<kms::PropertyId>(attached.property));
    if (found < *count && (!call.user.put(ids + found * sizeof(uint32_t), attached.property) ||
                           !call.user.put(values + found * sizeof(uint64_t), value)))
      return false;
    ++found;
  }
  *count = found;
  return true;
}

int get_property(Call& call, drm::GetProperty& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  const kms::Property* property = kms::find_property(args.prop_id);
  if (!property || !call.kernel.display().has_property(args.prop_id)) return ENOENT;
  put_name(args.name, property->name);
  args.flags = property->flags;

  std::vector<uint64_t> values;
  if (property->flags & (drm::kPropertyRange | drm::kPropertySignedRange))
    values = {property->min, property->max};
  if (property->flags & drm::kPropertyObject) values = {property->min};
  for (const kms::EnumValue& value : property->enums) values.push_back(value.value);
  for (size_t i = 0; i < std::min<size_t>(values.size(), args.count_values); ++i)
    if (!call.user.put(args.values + i * sizeof(uint64_t), values[i])) return EFAULT;
  args.count_values = static_cast<uint32_t>(values.size());

  if (property->flags & (drm::kPropertyEnum | drm::kPropertyBitmask)) {
    for (size_t i = 0; i < std::min<size_t>(property->enums.size(), args.count_enum_blobs); ++i) {
      drm::PropertyEnum entry;
      entry.value = property->enums[i].value;
      put_name(entry.name, property->enums[i].name);
      if (!call.user.put(args.enum_blobs + i * sizeof entry, entry)) return EFAULT;
    }
    args.count_enum_blobs = static_cast<uint32_t>(property->enums.size());
  }
  if (property->flags & drm::kPropertyBlob) args.count_enum_blobs = 0;
  return 0;
}

int get_property_blob(Call& call, drm::GetBlob& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  const kms::BlobPtr made = call.kernel.display().find_blob(args.blob_id);
  const std::span<const uint8_t> blob =
      made ? made->bytes : call.kernel.display().find_fixed_blob(args.blob_id);
  if (blob.empty()) return ENOENT;
  if (args.length == blob.size() && !call.user.write(args.data, blob.data(), blob.size())) return EFAULT;
  args.length = static_cast<uint32_t>(blob.size());
  return 0;
}

int get_object_properties(Call& call, drm::ObjectProperties& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  const kms::Object* object = find_held_object(call, args.object_id, args.object_type);
  if (!object) {
    // Properties, blobs and framebuffers are mode objects too, and can have no properties.
    const kms::Display& display = call.kernel.display();
    const bool is_other = display.has_property(args.object_id) ||
                          !display.find_fixed_blob(args.object_id).empty() ||
                          display.find_fb(args.object_id) || display.find_blob(args.object_id);
    return args.object_type == drm::kObjectAny && is_other ? EINVAL : ENOENT;
  }
  if (object->properties.empty()) return EINVAL;
  return put_properties(call, *object, args.properties, args.values, &args.count) ? 0 : EFAULT;
}

int set_property(Call& call, drm::SetConnectorProperty& args) {
  return set_value(call, args.connector_id, drm::kObjectConnector, args.prop_id, args.value);
}

int set_object_property(Call& call, drm::SetObjectProperty& args) {
  return set_value(call, args.object_id, args.object_type, args.prop_id, args.value);
}

int create_blob(Call& call, drm::CreateBlob& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  if (!args.length || args.length > INT32_MAX) return EINVAL;
  auto blob = std::make_shared<kms::Blob>();
  if (const int error = call.account.charge(Resource::kBlobs, 1, &blob->charge)) return error;
  if (const int error = call.account.charge(Resource::kBlobBytes, args.length, &blob->charged_bytes))
    return error;
  blob->bytes.resize(args.length);
  if (!call.user.read(args.data, blob->bytes.data(), args.length)) return EFAULT;
  args.blob_id = call.kernel.display().add_blob(&call.file, std::move(blob));
  return 0;
}

int destroy_blob(Call& call, drm::DestroyBlob& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  return call.kernel.display().remove_blob(call.file, args.blob_id);
}

}  // namespace v3d::ioctl
