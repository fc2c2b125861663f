/// An update has the values that a client wants properties to have.
#pragma once

#include "ioctl/core/call.h"
#include "ioctl/display/display.h"

namespace v3d::ioctl::kms {

/// What an atomic request is going to change. Of a property that it names twice the last value counts.
class Update {
 public:
  /// @param async  as of a flip that does not wait: only what primary planes show may change
  Update(Call& call, bool async) : call_(call), async_(async) {}

  /// 0, ENOENT (the object has no such property), EINVAL, or EFAULT (OUT_FENCE_PTR).
  /// @param object  that has properties
  int set(const Object& object, uint32_t property, uint64_t value);

  ObjectSet changed() const { return changed_; }
  /// Which CRTCs take part: bit for each of kPipes.
  uint32_t pipes(const DisplayState& before) const;
  void apply(DisplayState& state) const;
  /// OUT_FENCE_PTR of the CRTC; 0: none.
  uint64_t out_fence(uint32_t pipe) const { return out_fences_[pipe]; }
  /// WRITEBACK_OUT_FENCE_PTR of the connector; 0: none, or WRITEBACK_FB_ID is not set with it, which has it
  /// ignored (prepare_signaling).
  uint64_t write_fence(uint32_t pipe) const { return writes_to(pipe) ? write_fences_[pipe] : 0; }
  /// Whether a fence is asked for when nothing has been written.
  bool has_fence_of_nothing() const;

 private:
  struct Values {
    uint64_t set = 0;  // bit for each property
    std::array<uint64_t, kNumProperties> values{};
    FramebufferPtr fb;
    FencePtr in_fence;
    std::array<BlobPtr, 2> blobs;
  };
  int set_value(const Object& object, PropertyId property, uint64_t value);
  int set_in_fence(Values& values, int32_t fd);
  int set_blob(Values& values, PropertyId property, uint64_t id);

  bool writes_to(uint32_t pipe) const;
  int set_fence_pointer(uint64_t* to, uint64_t address);

  Call& call_;
  const bool async_;
  ObjectSet changed_ = 0;
  std::array<uint64_t, kNumPipes> out_fences_{}, write_fences_{};
  std::array<Values, kNumObjects> objects_;
};

/// Whether a property takes the value (drm_property_change_valid_get).
bool is_valid(Display& display, const Property& property, uint64_t value);

/// Whether the object has the property.
bool has_property(const Display& display, const Object& object, uint32_t property);

}  // namespace v3d::ioctl::kms
