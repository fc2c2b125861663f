/// @file What the vc4 node says of its display: one CRTC, HDMI connectors with an encoder each, and planes
/// (Linux drm_mode_config.c, drm_crtc.c, drm_encoder.c, drm_connector.c, drm_plane.c).
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ioctl/handlers.h"
#include "ioctl/kms/display.h"

namespace v3d::ioctl {
namespace {

constexpr uint32_t kMaxSize = 7680;  // vc4_drv.c, vc5
constexpr uint32_t kEncoderTmds = 2;
constexpr uint32_t kConnectorHdmiA = 11;
constexpr uint32_t kConnected = 1, kDisconnected = 2;
constexpr uint32_t kSubpixelUnknown = 1;
/// Fills an array of the caller up to its length and says how many there are.
template <typename T>
bool put_list(UserMemory& user, uint64_t array, uint32_t* count, std::span<const T> values) {
  uint64_t i = 0;
  for (const T& value : values) {
    if (i < *count && !user.put(array + i * sizeof(T), value)) return false;
    ++i;
  }
  *count = static_cast<uint32_t>(i);
  return true;
}

/// Ids of what the caller may know of a type.
std::vector<uint32_t> held(const Call& call, uint32_t type) {
  std::vector<uint32_t> ids;
  for (const kms::Object& object : kms::objects())
    if (find_held_object(call, object.id, type)) ids.push_back(object.id);
  return ids;
}

}  // namespace

int get_resources(Call& call, drm::CardResources& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  args.min_width = args.min_height = 0;
  args.max_width = args.max_height = kMaxSize;
  const std::vector<uint32_t> fbs = call.kernel.display().fbs_of(call.file);
  if (!put_list<uint32_t>(call.user, args.fb_ids, &args.count_fbs, fbs) ||
      !put_list<uint32_t>(call.user, args.crtc_ids, &args.count_crtcs, held(call, drm::kObjectCrtc)) ||
      !put_list<uint32_t>(call.user, args.encoder_ids, &args.count_encoders,
                          held(call, drm::kObjectEncoder)) ||
      !put_list<uint32_t>(call.user, args.connector_ids, &args.count_connectors,
                          held(call, drm::kObjectConnector)))
    return EFAULT;
  return 0;
}

int get_crtc(Call& call, drm::Crtc& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  if (!find_held_object(call, args.crtc_id, drm::kObjectCrtc)) return ENOENT;
  const kms::DisplayState state = call.kernel.display().state();
  const kms::ObjectState& primary = state.primary();
  args.gamma_size = kms::Display::kGammaSize;
  args.fb_id = primary.get_u32(kms::kFb);
  args.x = primary.get_u32(kms::kSrcX) >> 16;
  args.y = primary.get_u32(kms::kSrcY) >> 16;
  args.mode_valid = state.enabled();
  if (state.enabled()) args.mode = state.mode();
  return 0;
}

int get_encoder(Call& call, drm::Encoder& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  if (!kms::find_object(args.encoder_id, drm::kObjectEncoder)) return ENOENT;
  const uint32_t i = kms::find_connector(args.encoder_id);
  const bool has_crtc = call.file.holds(kms::kCrtcId);
  args = {.encoder_id = args.encoder_id,
          .encoder_type = kEncoderTmds,
          .crtc_id = has_crtc ? call.kernel.display().state().connector(i).get_u32(kms::kCrtc) : 0,
          .possible_crtcs = has_crtc,
          .possible_clones = 1u << i};
  return 0;
}

int get_connector(Call& call, drm::Connector& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  if (!find_held_object(call, args.connector_id, drm::kObjectConnector)) return ENOENT;
  const uint32_t i = kms::find_connector(args.connector_id);
  const bool monitor = call.kernel.display().monitors() >> i & 1;
  args.connector_type = kConnectorHdmiA;
  args.connector_type_id = i + 1;
  args.connection = monitor ? kConnected : kDisconnected;
  args.mm_width = monitor ? kms::kMmWidth : 0;
  args.mm_height = monitor ? kms::kMmHeight : 0;
  args.subpixel = kSubpixelUnknown;
  const uint32_t encoder = kms::encoder_id(i);
  args.encoder_id = call.kernel.display().state().is_lit(i) ? encoder : 0;
  // A count of 0 asks to probe again, and is answered with the count alone.
  const auto modes = monitor ? kms::modes() : std::span<const drm::ModeInfo>();
  if (!put_list<uint32_t>(call.user, args.encoder_ids, &args.count_encoders, {&encoder, 1}) ||
      !put_list<drm::ModeInfo>(call.user, args.modes, &args.count_modes, modes))
    return EFAULT;
  drm::ObjectProperties properties = {args.property_ids, args.property_values,  args.count_properties,
                                      args.connector_id, drm::kObjectConnector, 0};
  const int error = get_object_properties(call, properties);
  args.count_properties = properties.count;
  return error;
}

int get_plane_resources(Call& call, drm::PlaneResources& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  std::vector<uint32_t> planes;
  for (const uint32_t id : held(call, drm::kObjectPlane))
    if (call.file.universal_planes || (id != kms::kPrimaryPlaneId && id != kms::kCursorPlaneId))
      planes.push_back(id);
  return put_list<uint32_t>(call.user, args.plane_ids, &args.count_planes, planes) ? 0 : EFAULT;
}

int get_plane(Call& call, drm::GetPlane& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  const kms::Object* object = find_held_object(call, args.plane_id, drm::kObjectPlane);
  if (!object) return ENOENT;
  const kms::DisplayState state = call.kernel.display().state();
  const bool has_crtc = call.file.holds(kms::kCrtcId);
  args.crtc_id = has_crtc ? state.of(*object).get_u32(kms::kCrtc) : 0;
  args.fb_id = state.of(*object).get_u32(kms::kFb);
  args.gamma_size = 0;
  args.possible_crtcs = has_crtc;
  std::vector<uint32_t> formats;
  for (const kms::Format& format : kms::formats()) formats.push_back(format.fourcc);
  // All or none.
  if (args.count_formats >= formats.size() &&
      !call.user.write(args.formats, formats.data(), formats.size() * sizeof formats[0]))
    return EFAULT;
  args.count_formats = static_cast<uint32_t>(formats.size());
  return 0;
}

}  // namespace v3d::ioctl
