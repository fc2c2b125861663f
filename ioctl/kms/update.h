/// Values that a client wants properties to have.
#pragma once

#include "ioctl/call.h"
#include "ioctl/kms/display.h"

namespace v3d::ioctl::kms {

/// What an atomic request is going to change. Of a property that it names twice the last value counts.
class Update {
 public:
  /// @param async  as of a flip that does not wait: only what primary planes show may change
  Update(Call& call, bool async) : call_(call), async_(async) {}

  /// 0, ENOENT (the object has no such property), EINVAL, or EFAULT (OUT_FENCE_PTR).
  /// @param object  that has properties
  int set(const Object& object, uint32_t property, uint64_t value);

  /// Whether the display is ready to be asked to change: bit for each object, by index_of().
  uint32_t changed() const { return changed_; }
  /// Whether the CRTC takes part, itself or by planes or the connector that are on it before or behind.
  bool touches_crtc(const DisplayState& before) const;
  void apply(DisplayState& state) const;
  /// OUT_FENCE_PTR; 0: none.
  uint64_t out_fence() const { return out_fence_; }

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

  Call& call_;
  const bool async_;
  uint32_t changed_ = 0;
  uint64_t out_fence_ = 0;
  std::array<Values, kNumObjects> objects_;
};

/// Whether a property takes the value (drm_property_change_valid_get).
bool is_valid(Display& display, const Property& property, uint64_t value);

/// 0 or ENOENT: whether the object has the property.
bool has_property(const Object& object, uint32_t property);

}  // namespace v3d::ioctl::kms
