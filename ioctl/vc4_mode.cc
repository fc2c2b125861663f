/// @file What the vc4 node says of its display: one CRTC, one encoder, one HDMI connector with one mode, and
/// a primary and a cursor plane. That is what drivers and compositors probe before they use the node
/// (drm-abi.md 7.6; Linux drm_connector.c, drm_property.c, drm_mode_object.c, drm_plane.c).
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ioctl/handlers.h"
#include "ioctl/vc4_properties.h"

namespace v3d::ioctl {
namespace {

constexpr uint32_t kMaxSize = 7680;  // vc4_drv.c, vc5
constexpr uint32_t kEncoderTmds = 2;
constexpr uint32_t kConnectorHdmiA = 11;
constexpr uint32_t kConnected = 1;
constexpr uint32_t kSubpixelUnknown = 1;
constexpr uint32_t kGammaSize = 256;

/// Fills an array of the caller up to its length and says how many there are.
template <typename T>
bool put_list(UserMemory& user, uint64_t array, uint32_t* count, std::initializer_list<T> values) {
  uint64_t i = 0;
  for (const T& value : values) {
    if (i < *count && !user.put(array + i * sizeof(T), value)) return false;
    ++i;
  }
  *count = static_cast<uint32_t>(i);
  return true;
}

/// Ids and values of an object's properties, as many as fit.
bool put_properties(Call& call, uint32_t object, uint64_t ids, uint64_t values, uint32_t* count) {
  uint32_t found = 0;
  for (const vc4::Attached& attached : vc4::find_object(object, drm::kObjectAny)->properties) {
    if ((vc4::find_property(attached.property)->flags & drm::kPropertyAtomic) && !call.file.atomic) continue;
    if (found < *count && (!call.user.put(ids + found * sizeof(uint32_t), attached.property) ||
                           !call.user.put(values + found * sizeof(uint64_t), attached.value)))
      return false;
    ++found;
  }
  *count = found;
  return true;
}

void put_name(char (&to)[drm::kPropertyNameSize], const char* name) {
  std::memset(to, 0, sizeof to);
  std::memcpy(to, name, std::min(std::strlen(name), sizeof to - 1));
}

}  // namespace

int get_resources(Call& call, drm::CardResources& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  args.count_fbs = 0;
  args.min_width = args.min_height = 0;
  args.max_width = args.max_height = kMaxSize;
  if (!put_list<uint32_t>(call.user, args.crtc_ids, &args.count_crtcs, {vc4::kCrtcId}) ||
      !put_list<uint32_t>(call.user, args.encoder_ids, &args.count_encoders, {vc4::kEncoderId}) ||
      !put_list<uint32_t>(call.user, args.connector_ids, &args.count_connectors, {vc4::kConnectorId}))
    return EFAULT;
  return 0;
}

int get_crtc(Call& call, drm::Crtc& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  if (args.crtc_id != vc4::kCrtcId) return ENOENT;
  // Nothing is scanned out.
  args.gamma_size = kGammaSize;
  args.fb_id = args.x = args.y = args.mode_valid = 0;
  return 0;
}

int get_encoder(Call& call, drm::Encoder& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  if (args.encoder_id != vc4::kEncoderId) return ENOENT;
  args = {.encoder_id = vc4::kEncoderId,
          .encoder_type = kEncoderTmds,
          .crtc_id = 0,
          .possible_crtcs = 1,
          .possible_clones = 1};
  return 0;
}

int get_connector(Call& call, drm::Connector& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  if (args.connector_id != vc4::kConnectorId) return ENOENT;
  args.connector_type = kConnectorHdmiA;
  args.connector_type_id = 1;
  args.connection = kConnected;
  args.mm_width = vc4::kMmWidth;
  args.mm_height = vc4::kMmHeight;
  args.subpixel = kSubpixelUnknown;
  args.encoder_id = 0;
  // A count of 0 asks to probe again, and is answered with the count alone.
  if (!put_list<uint32_t>(call.user, args.encoder_ids, &args.count_encoders, {vc4::kEncoderId}) ||
      !put_list<drm::ModeInfo>(call.user, args.modes, &args.count_modes, {vc4::kMode}) ||
      !put_properties(call, vc4::kConnectorId, args.property_ids, args.property_values,
                      &args.count_properties))
    return EFAULT;
  return 0;
}

int get_property(Call& call, drm::GetProperty& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  const vc4::Property* property = vc4::find_property(args.prop_id);
  if (!property) return ENOENT;
  put_name(args.name, property->name);
  args.flags = property->flags;

  std::vector<uint64_t> values;
  if (property->flags & (drm::kPropertyRange | drm::kPropertySignedRange))
    values = {property->min, property->max};
  if (property->flags & drm::kPropertyObject) values = {property->min};
  for (const vc4::EnumValue& value : property->enums) values.push_back(value.value);
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
  const std::span<const uint8_t> blob = vc4::find_blob(args.blob_id);
  if (blob.empty()) return ENOENT;
  if (args.length == blob.size() && !call.user.write(args.data, blob.data(), blob.size())) return EFAULT;
  args.length = static_cast<uint32_t>(blob.size());
  return 0;
}

int get_plane_resources(Call& call, drm::PlaneResources& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  // Without the capability only overlays are shown, of which there are none.
  if (!call.file.universal_planes) {
    args.count_planes = 0;
    return 0;
  }
  return put_list<uint32_t>(call.user, args.plane_ids, &args.count_planes,
                            {vc4::kPrimaryPlaneId, vc4::kCursorPlaneId})
             ? 0
             : EFAULT;
}

int get_plane(Call& call, drm::GetPlane& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  if (!vc4::find_object(args.plane_id, drm::kObjectPlane)) return ENOENT;
  args.crtc_id = args.fb_id = args.gamma_size = 0;
  args.possible_crtcs = 1;
  const auto formats = vc4::formats();
  // All or none.
  if (args.count_formats >= formats.size() &&
      !call.user.write(args.formats, formats.data(), formats.size_bytes()))
    return EFAULT;
  args.count_formats = static_cast<uint32_t>(formats.size());
  return 0;
}

int get_object_properties(Call& call, drm::ObjectProperties& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  const vc4::Object* object = vc4::find_object(args.object_id, args.object_type);
  if (!object) {
    // Properties and blobs are mode objects too, and can have no properties.
    const bool other = args.object_type == drm::kObjectAny &&
                       (vc4::find_property(args.object_id) || !vc4::find_blob(args.object_id).empty());
    return other ? EINVAL : ENOENT;
  }
  if (object->properties.empty()) return EINVAL;
  return put_properties(call, object->id, args.properties, args.values, &args.count) ? 0 : EFAULT;
}

}  // namespace v3d::ioctl
