/// What the display is set to: one value for every property of every mode object.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "ioctl/bo.h"
#include "ioctl/kms/formats.h"
#include "ioctl/kms/objects.h"

namespace v3d::ioctl {
class File;
}

namespace v3d::ioctl::kms {

/// Memory that planes can show. Immutable, but for whose it is.
struct Framebuffer {
  struct Part {
    std::shared_ptr<Bo> bo;
    uint32_t pitch = 0, offset = 0;
  };
  uint32_t id = 0;
  uint32_t width = 0, height = 0;  ///< pixels
  const Format* format = nullptr;
  uint64_t modifier = kLinear;
  uint32_t flags = 0;  ///< of ADDFB2
  std::array<Part, 3> parts;
  Charge charge;  ///< until its file gives it up
};
using FramebufferPtr = std::shared_ptr<const Framebuffer>;

/// A property's value that is no number. Immutable, but for whose it is.
struct Blob {
  uint32_t id = 0;
  std::vector<uint8_t> bytes;
  Charge charge, charged_bytes;  ///< until its file gives it up
};
using BlobPtr = std::shared_ptr<const Blob>;

/// One object's values, and what those of FB_ID, IN_FENCE_FD and of its only blob stand for.
struct ObjectState {
  std::array<uint64_t, kNumProperties> values{};
  FramebufferPtr fb;
  FencePtr in_fence;
  std::array<BlobPtr, 2> blobs;  ///< MODE_ID and HDR_OUTPUT_METADATA; CTM

  uint64_t get(PropertyId id) const { return values[id - kFirstPropertyId]; }
  int32_t get_signed(PropertyId id) const { return static_cast<int32_t>(get(id)); }
  uint32_t get_u32(PropertyId id) const { return static_cast<uint32_t>(get(id)); }
  void set(PropertyId id, uint64_t value) { values[id - kFirstPropertyId] = value; }
  void set_fb(FramebufferPtr to) {
    fb = std::move(to);
    set(kFb, fb ? fb->id : 0);
  }
  void set_blob(PropertyId id, BlobPtr to) {
    set(id, to ? to->id : 0);
    blobs[id == kCtm] = std::move(to);
  }
};

struct DisplayState {
  std::array<ObjectState, kNumObjects> objects;

  DisplayState();  ///< as of a node that nobody has used

  ObjectState& of(const Object& object) { return objects[index_of(object)]; }
  const ObjectState& of(const Object& object) const { return objects[index_of(object)]; }
  ObjectState& crtc() { return objects[0]; }
  const ObjectState& crtc() const { return objects[0]; }
  ObjectState& connector(uint32_t i) { return objects[connector_id(i) - kCrtcId]; }
  const ObjectState& connector(uint32_t i) const { return objects[connector_id(i) - kCrtcId]; }
  /// From bottom to top as long as no zpos is set.
  ObjectState& plane(uint32_t i) { return objects[kFirstPlane + i]; }
  const ObjectState& plane(uint32_t i) const { return objects[kFirstPlane + i]; }
  ObjectState& primary() { return plane(0); }
  const ObjectState& primary() const { return plane(0); }

  bool enabled() const { return crtc().blobs[0] != nullptr; }
  bool active() const { return crtc().get(kActive) != 0; }
  /// Of an enabled CRTC.
  drm::ModeInfo mode() const;
  bool is_lit(uint32_t i) const { return connector(i).get(kCrtc) != 0; }
  bool is_lit() const { return is_lit(0) || is_lit(1); }
  /// That connector, and none beside it. @param i  kNumConnectors: none at all
  void light(uint32_t i) {
    for (uint32_t k = 0; k < kNumConnectors; ++k) connector(k).set(kCrtc, k == i ? uint64_t{kCrtcId} : 0);
  }
  /// What is plugged in says so. @param monitors  bit for each connector
  void plug(uint32_t monitors) {
    for (uint32_t i = 0; i < kNumConnectors; ++i)
      connector(i).set(kEdid, monitors >> i & 1 ? uint64_t{kEdidBlobId} : 0);
  }

  void show(uint32_t plane, FramebufferPtr fb);
  void hide(uint32_t plane) { show(plane, nullptr); }
  /// Shows the whole of what src says at dst.
  struct Source {
    uint32_t x, y, w, h;  ///< 16.16
  };
  struct Destination {
    int32_t x, y;
    uint32_t w, h;
  };
  void place(uint32_t plane, const Source& src, const Destination& dst);
  /// Takes planes off that show it. Whether there were any.
  bool forget(const Framebuffer& fb);
  /// What planes wait for is of one commit.
  void drop_fences() {
    for (ObjectState& object : objects) object.in_fence.reset();
  }
};

/// Whether DRM takes the mode for one, and this display can show it. 0 or EINVAL (drm_mode_convert_umode).
int check_mode(const drm::ModeInfo& mode);

/// Whether going from one to the other changes more than what planes show.
bool needs_modeset(const DisplayState& from, const DisplayState& to);

/// drm_atomic_check_only, as far as it does not concern the file: 0, EINVAL, ERANGE or ENOSPC.
/// @param changed  bit for each object that the client named
/// @param event  one is asked for
int check(const DisplayState& from, const DisplayState& to, uint32_t changed, bool allow_modeset, bool event);

/// Whether the rectangle is inside the framebuffer (drm_framebuffer_check_src_coords). 0 or ENOSPC.
int check_source(const Framebuffer& fb, const DisplayState::Source& src);

}  // namespace v3d::ioctl::kms
