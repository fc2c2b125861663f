/// @file What the vc4 node says of its display: one CRTC, one encoder, one HDMI connector with one mode. That
/// is what drivers and compositors probe before they use dumb buffers of the node (drm-abi.md 7.6).
#include <cerrno>

#include "ioctl/handlers.h"

namespace v3d::ioctl {
namespace {

/// Ids of mode objects share one number space.
enum ObjectId : uint32_t { kCrtcId = 32, kEncoderId = 33, kConnectorId = 34 };

constexpr uint32_t kMaxSize = 7680;  // vc4_drv.c, vc5
constexpr uint32_t kEncoderTmds = 2;
constexpr uint32_t kConnectorHdmiA = 11;
constexpr uint32_t kConnected = 1;
constexpr uint32_t kSubpixelUnknown = 1;
constexpr uint32_t kGammaSize = 256;

/// CEA-861 format 16.
constexpr drm::ModeInfo kMode = {.clock = 148500,
                                 .hdisplay = 1920,
                                 .hsync_start = 2008,
                                 .hsync_end = 2052,
                                 .htotal = 2200,
                                 .hskew = 0,
                                 .vdisplay = 1080,
                                 .vsync_start = 1084,
                                 .vsync_end = 1089,
                                 .vtotal = 1125,
                                 .vscan = 0,
                                 .vrefresh = 60,
                                 .flags = 5,    // PHSYNC, PVSYNC
                                 .type = 0x48,  // DRIVER, PREFERRED
                                 .name = "1920x1080"};

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

}  // namespace

int get_resources(Call& call, drm::CardResources& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  args.count_fbs = 0;
  args.min_width = args.min_height = 0;
  args.max_width = args.max_height = kMaxSize;
  if (!put_list<uint32_t>(call.user, args.crtc_ids, &args.count_crtcs, {kCrtcId}) ||
      !put_list<uint32_t>(call.user, args.encoder_ids, &args.count_encoders, {kEncoderId}) ||
      !put_list<uint32_t>(call.user, args.connector_ids, &args.count_connectors, {kConnectorId}))
    return EFAULT;
  return 0;
}

int get_crtc(Call& call, drm::Crtc& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  if (args.crtc_id != kCrtcId) return ENOENT;
  // Nothing is scanned out.
  args.gamma_size = kGammaSize;
  args.fb_id = args.x = args.y = args.mode_valid = 0;
  return 0;
}

int get_encoder(Call& call, drm::Encoder& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  if (args.encoder_id != kEncoderId) return ENOENT;
  args = {.encoder_id = kEncoderId,
          .encoder_type = kEncoderTmds,
          .crtc_id = 0,
          .possible_crtcs = 1,
          .possible_clones = 1};
  return 0;
}

int get_connector(Call& call, drm::Connector& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  if (args.connector_id != kConnectorId) return ENOENT;
  args.connector_type = kConnectorHdmiA;
  args.connector_type_id = 1;
  args.connection = kConnected;
  args.mm_width = 510;
  args.mm_height = 287;
  args.subpixel = kSubpixelUnknown;
  args.encoder_id = 0;
  args.count_properties = 0;
  // A count of 0 asks to probe again, and is answered with the count alone.
  if (!put_list<uint32_t>(call.user, args.encoder_ids, &args.count_encoders, {kEncoderId}) ||
      !put_list<drm::ModeInfo>(call.user, args.modes, &args.count_modes, {kMode}))
    return EFAULT;
  return 0;
}

}  // namespace v3d::ioctl
