#include "shim/drm/known_bos.h"

#include <atomic>

namespace v3d::shim {
namespace {

struct BoSlot {
  std::atomic<bool> busy;
  KnownBo bo;
};
constexpr uint32_t kPlaces = 256;
BoSlot places[kPlaces];

/// Nobody else has the place as long as this exists and is true.
class Hold {
 public:
  explicit Hold(BoSlot& place)
      : place_(place), holds_(!place.busy.exchange(true, std::memory_order_acquire)) {}
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() {
    if (holds_) place_.busy.store(false, std::memory_order_release);
  }
  explicit operator bool() const { return holds_; }

 private:
  BoSlot& place_;
  const bool holds_;
};

}  // namespace

void remember_bo(const KnownBo& bo) {
  BoSlot& place = places[bo.handle % kPlaces];
  if (const Hold hold(place); hold) place.bo = bo;
}

bool find_bo(uint64_t token, uint32_t handle, uint32_t changes, uint32_t epoch, KnownBo* bo) {
  BoSlot& place = places[handle % kPlaces];
  const Hold hold(place);
  if (!hold) return false;
  *bo = place.bo;
  return bo->token == token && bo->handle == handle && bo->changes == changes && bo->epoch == epoch;
}

}  // namespace v3d::shim
