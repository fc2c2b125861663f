/// @file What the vc4 node says of its display: one CRTC, one encoder, one HDMI connector, and planes (Linux
/// drm_mode_config.c, drm_crtc.c, drm_encoder.c, drm_connector.c, drm_plane.c).
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
constexpr uint32_t kConnected = 1;
constexpr uint32_t kSubpixelUnknown = 1;
constexpr uint32_t kCrtcs[] = {kms::kCrtcId}, kEncoders[] = {kms::kEncoderId},
                   kConnectors[] = {kms::kConnectorId};

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

}  // namespace

int get_resources(Call& call, drm::CardResources& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  args.min_width = args.min_height = 0;
  args.max_width = args.max_height = kMaxSize;
  const std::vector<uint32_t> fbs = call.kernel.display().fbs_of(call.file);
  if (!put_list<uint32_t>(call.user, args.fb_ids, &args.count_fbs, fbs) ||
      !put_list<uint32_t>(call.user, args.crtc_ids, &args.count_crtcs, kCrtcs) ||
      !put_list<uint32_t>(call.user, args.encoder_ids, &args.count_encoders, kEncoders) ||
      !put_list<uint32_t>(call.user, args.connector_ids, &args.count_connectors, kConnectors))
    return EFAULT;
  return 0;
}

int get_crtc(Call& call, drm::Crtc& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  if (args.crtc_id != kms::kCrtcId) return ENOENT;
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
  if (args.encoder_id != kms::kEncoderId) return ENOENT;
  args = {.encoder_id = kms::kEncoderId,
          .encoder_type = kEncoderTmds,
          .crtc_id = call.kernel.display().state().connector().get_u32(kms::kCrtc),
          .possible_crtcs = 1,
          .possible_clones = 1};
  return 0;
}

int get_connector(Call& call, drm::Connector& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  if (args.connector_id != kms::kConnectorId) return ENOENT;
  args.connector_type = kConnectorHdmiA;
  args.connector_type_id = 1;
  args.connection = kConnected;
  args.mm_width = kms::kMmWidth;
  args.mm_height = kms::kMmHeight;
  args.subpixel = kSubpixelUnknown;
  args.encoder_id = call.kernel.display().state().is_lit() ? uint32_t{kms::kEncoderId} : 0;
  // A count of 0 asks to probe again, and is answered with the count alone.
  if (!put_list<uint32_t>(call.user, args.encoder_ids, &args.count_encoders, kEncoders) ||
      !put_list<drm::ModeInfo>(call.user, args.modes, &args.count_modes, kms::modes()))
    return EFAULT;
  drm::ObjectProperties properties = {args.property_ids, args.property_values,  args.count_properties,
                                      kms::kConnectorId, drm::kObjectConnector, 0};
  const int error = get_object_properties(call, properties);
  args.count_properties = properties.count;
  return error;
}

int get_plane_resources(Call& call, drm::PlaneResources& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  std::vector<uint32_t> planes;
  for (uint32_t i = 0; i < kms::kNumPlanes; ++i) {
    const bool is_overlay = i > 0 && i <= kms::kNumOverlays;
    if (call.file.universal_planes || is_overlay) planes.push_back(kms::kPrimaryPlaneId + i);
  }
  return put_list<uint32_t>(call.user, args.plane_ids, &args.count_planes, planes) ? 0 : EFAULT;
}

int get_plane(Call& call, drm::GetPlane& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  const kms::Object* object = kms::find_object(args.plane_id, drm::kObjectPlane);
  if (!object) return ENOENT;
  const kms::DisplayState state = call.kernel.display().state();
  args.crtc_id = state.of(*object).get_u32(kms::kCrtc);
  args.fb_id = state.of(*object).get_u32(kms::kFb);
  args.gamma_size = 0;
  args.possible_crtcs = 1;
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
