/// The state of the display is one value for every property of every mode object.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "ioctl/display/formats.h"
#include "ioctl/display/objects.h"
#include "ioctl/memory/bo.h"

namespace v3d::ioctl {
class File;  // an owner, known by its address alone
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
  FramebufferPtr fb;  ///< of a connector: WRITEBACK_FB_ID of this commit, which reads as 0
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

  ObjectState& of(uint32_t id) { return objects[index_of(id)]; }
  const ObjectState& of(uint32_t id) const { return objects[index_of(id)]; }
  /// @name Of kPipes
  ObjectState& crtc(uint32_t pipe) { return of(kPipes[pipe].crtc); }
  const ObjectState& crtc(uint32_t pipe) const { return of(kPipes[pipe].crtc); }
  ObjectState& primary(uint32_t pipe) { return of(kPipes[pipe].primary); }
  const ObjectState& primary(uint32_t pipe) const { return of(kPipes[pipe].primary); }
  /// Of one that has a connector.
  ObjectState& connector(uint32_t pipe) { return of(kPipes[pipe].connector); }
  const ObjectState& connector(uint32_t pipe) const { return of(kPipes[pipe].connector); }

  bool enabled(uint32_t pipe) const { return crtc(pipe).blobs[0] != nullptr; }
  bool active(uint32_t pipe) const { return crtc(pipe).get(kActive) != 0; }
  /// Of an enabled CRTC.
  drm::ModeInfo mode(uint32_t pipe) const;
  /// Its connector is on it.
  bool is_lit(uint32_t pipe) const { return kPipes[pipe].connector && connector(pipe).get(kCrtc) != 0; }
  void light(uint32_t pipe, bool on) { connector(pipe).set(kCrtc, on ? uint64_t{kPipes[pipe].crtc} : 0); }
  /// What is plugged in says so. @param monitors  bit for each socket
  void plug(uint32_t monitors) {
    for (uint32_t i = 0; i < kNumMonitors; ++i)
      connector(i).set(kEdid, monitors >> i & 1 ? uint64_t{kEdidBlobId} : 0);
  }

  void show(uint32_t plane, uint32_t crtc, FramebufferPtr fb);
  void hide(uint32_t plane) { show(plane, 0, nullptr); }
  /// Shows the whole of what src says at dst.
  struct Source {
    uint32_t x, y, w, h;  ///< 16.16
  };
  struct Destination {
    int32_t x, y;
    uint32_t w, h;
  };
  void place(uint32_t plane, const Source& src, const Destination& dst);
  /// Takes planes off that show it. On which CRTCs there were any: bit for each of kPipes.
  uint32_t forget(const Framebuffer& fb);
  void drop_fences() {
    for (ObjectState& object : objects) object.in_fence.reset();
  }
  /// Drops what is of one commit: what planes wait for, and what is to be written.
  void end_commit() {
    drop_fences();
    for (uint32_t pipe = 0; pipe < kNumPipes; ++pipe)
      if (kPipes[pipe].connector) connector(pipe).fb.reset();
  }
};

/// Whether DRM takes the mode for one. 0, EINVAL or ERANGE (drm_mode_convert_umode).
/// @param max_pixels  in either direction
int check_mode(const drm::ModeInfo& mode, uint32_t max_pixels);

/// Whether going from one to the other changes more of a CRTC than what its planes show.
bool needs_modeset(const DisplayState& from, const DisplayState& to, uint32_t pipe);

/// Which CRTCs take part when objects change, themselves or by planes or connectors that are on them before
/// or after: bit for each of kPipes.
uint32_t pipes_of(const DisplayState& from, const DisplayState& to, ObjectSet changed);

/// drm_atomic_check_only, as far as it does not concern the file: 0, EINVAL, ERANGE or ENOSPC.
/// @param changed  that the client named
/// @param events  of which CRTCs one is asked for: bit for each of kPipes
int check(const DisplayState& from, const DisplayState& to, ObjectSet changed, bool allow_modeset,
          uint32_t events);

/// Whether the rectangle is inside the framebuffer (drm_framebuffer_check_src_coords). 0 or ENOSPC.
int check_source(const Framebuffer& fb, const DisplayState::Source& src);

}  // namespace v3d::ioctl::kms
