/// @file What the vc4 node says of its display: CRTCs, connectors with an encoder each, and planes
/// (Linux drm_mode_config.c, drm_crtc.c, drm_encoder.c, drm_connector.c, drm_plane.c).
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ioctl/display/display.h"
#include "ioctl/kms/handlers.h"

namespace v3d::ioctl {
namespace {

constexpr uint32_t kEncoderTmds = 2, kEncoderVirtual = 5;
constexpr uint32_t kConnectorHdmiA = 11, kConnectorWriteback = 18;
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

/// Bits of the CRTCs that the caller has, by their numbers among these (drm_lease_filter_crtcs).
/// @param pipes  bit for each of kPipes
uint32_t numbered(const Call& call, uint32_t pipes) {
  uint32_t mask = 0, number = 0;
  for (const uint32_t crtc : held_objects(call, drm::kObjectCrtc))
    mask |= (pipes >> kms::find_pipe(crtc) & 1) << number++;
  return mask;
}

/// 0 for one that the caller does not have.
uint32_t held_crtc(const Call& call, uint32_t crtc) { return crtc && call.file.holds(crtc) ? crtc : 0; }

/// Its number among encoders.
uint32_t encoder_number(const Call& call, uint32_t id) {
  const std::vector<uint32_t> encoders = held_objects(call, drm::kObjectEncoder);
  return static_cast<uint32_t>(std::find(encoders.begin(), encoders.end(), id) - encoders.begin());
}

/// As a client sees them that does not know writeback connectors.
std::vector<uint32_t> shown_connectors(const Call& call) {
  std::vector<uint32_t> ids = held_objects(call, drm::kObjectConnector);
  if (!call.file.writeback_connectors)
    std::erase_if(ids,
                  [](uint32_t id) { return kms::kPipes[kms::find_pipe(id)].output == kms::Output::kMemory; });
  return ids;
}

}  // namespace

int get_resources(Call& call, drm::CardResources& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  args.min_width = args.min_height = 0;
  args.max_width = args.max_height = max_pixels(call);
  const std::vector<uint32_t> fbs = call.kernel.display().fbs_of(call.file);
  if (!put_list<uint32_t>(call.user, args.fb_ids, &args.count_fbs, fbs) ||
      !put_list<uint32_t>(call.user, args.crtc_ids, &args.count_crtcs,
                          held_objects(call, drm::kObjectCrtc)) ||
      !put_list<uint32_t>(call.user, args.encoder_ids, &args.count_encoders,
                          held_objects(call, drm::kObjectEncoder)) ||
      !put_list<uint32_t>(call.user, args.connector_ids, &args.count_connectors, shown_connectors(call)))
    return EFAULT;
  return 0;
}

int get_crtc(Call& call, drm::Crtc& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  if (!find_held_object(call, args.crtc_id, drm::kObjectCrtc)) return ENOENT;
  const kms::DisplayState state = call.kernel.display().state();
  const uint32_t pipe = kms::find_pipe(args.crtc_id);
  const kms::ObjectState& primary = state.primary(pipe);
  args.gamma_size = kms::Display::kGammaSize;
  args.fb_id = primary.get_u32(kms::kFb);
  args.x = primary.get_u32(kms::kSrcX) >> 16;
  args.y = primary.get_u32(kms::kSrcY) >> 16;
  args.mode_valid = state.enabled(pipe);
  if (state.enabled(pipe)) args.mode = state.mode(pipe);
  return 0;
}

int get_encoder(Call& call, drm::Encoder& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  if (!find_held_object(call, args.encoder_id, drm::kObjectEncoder)) return ENOENT;
  const uint32_t pipe = kms::find_pipe(args.encoder_id);
  const uint32_t crtc = call.kernel.display().state().connector(pipe).get_u32(kms::kCrtc);
  args = {.encoder_id = args.encoder_id,
          .encoder_type = kms::kPipes[pipe].output == kms::Output::kMemory ? kEncoderVirtual : kEncoderTmds,
          .crtc_id = held_crtc(call, crtc),
          .possible_crtcs = numbered(call, 1u << pipe),
          .possible_clones = 1u << encoder_number(call, args.encoder_id)};
  return 0;
}

namespace {

/// What is behind a connector. A transposer takes any mode (vc4_txp_connector_mode_valid); a board lists all
/// of VESA's up to 60 Hz.
struct Sink {
  uint32_t type, number, connection, mm_width, mm_height;
  std::span<const drm::ModeInfo> modes;
};
Sink find_sink(const kms::Display& display, uint32_t pipe) {
  const bool is_socket = kms::kPipes[pipe].output == kms::Output::kMonitor;
  if (!is_socket) return {kConnectorWriteback, pipe - kms::kNumMonitors + 1, kConnected, 0, 0, kms::modes()};
  const bool monitor = display.monitors() >> pipe & 1;
  if (!monitor) return {kConnectorHdmiA, pipe + 1, kDisconnected, 0, 0, {}};
  return {kConnectorHdmiA, pipe + 1, kConnected, kms::kMmWidth, kms::kMmHeight, kms::modes()};
}

}  // namespace

int get_connector(Call& call, drm::Connector& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  if (!find_held_object(call, args.connector_id, drm::kObjectConnector)) return ENOENT;
  const uint32_t pipe = kms::find_pipe(args.connector_id), encoder = kms::kPipes[pipe].encoder;
  const Sink sink = find_sink(call.kernel.display(), pipe);
  args.connector_type = sink.type;
  args.connector_type_id = sink.number;
  args.connection = sink.connection;
  args.mm_width = sink.mm_width;
  args.mm_height = sink.mm_height;
  args.subpixel = kSubpixelUnknown;
  args.encoder_id = call.kernel.display().state().is_lit(pipe) ? encoder : 0;
  // A count of 0 asks to probe again, and is answered with the count alone.
  if (!put_list<uint32_t>(call.user, args.encoder_ids, &args.count_encoders, {&encoder, 1}) ||
      !put_list<drm::ModeInfo>(call.user, args.modes, &args.count_modes, sink.modes))
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
  for (const uint32_t id : held_objects(call, drm::kObjectPlane))
    if (call.file.universal_planes || kms::find_pipe(id) == kms::kNumPipes)  // else overlays alone
      planes.push_back(id);
  return put_list<uint32_t>(call.user, args.plane_ids, &args.count_planes, planes) ? 0 : EFAULT;
}

int get_plane(Call& call, drm::GetPlane& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  const kms::Object* object = find_held_object(call, args.plane_id, drm::kObjectPlane);
  if (!object) return ENOENT;
  const kms::DisplayState state = call.kernel.display().state();
  args.crtc_id = held_crtc(call, state.of(object->id).get_u32(kms::kCrtc));
  args.fb_id = state.of(object->id).get_u32(kms::kFb);
  args.gamma_size = 0;
  args.possible_crtcs = numbered(call, kms::pipes_of_plane(object->id));
  std::vector<uint32_t> formats;
  for (const kms::Format* format : call.kernel.display().formats()) formats.push_back(format->fourcc);
  // All or none.
  if (args.count_formats >= formats.size() &&
      !call.user.write(args.formats, formats.data(), formats.size() * sizeof formats[0]))
    return EFAULT;
  args.count_formats = static_cast<uint32_t>(formats.size());
  return 0;
}

}  // namespace v3d::ioctl
