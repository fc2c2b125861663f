/// @file Which ioctls may be answered here.
#include "shim/drm/local_call.h"

#include <array>
#include <cstddef>
#include <iterator>
#include <span>

#include "ioctl/abi/core.h"
#include "ioctl/abi/request.h"
#include "ioctl/abi/v3d.h"
#include "ioctl/abi/vc4.h"
#include "shim/drm/answers.h"
#include "shim/drm/mapping.h"
#include "shim/drm/status.h"

namespace v3d::shim {
namespace {

namespace drm = ioctl::drm;
namespace request = drm::request;

template <auto kHandler, typename Result, typename Args>
constexpr auto untyped(Result (*)(LocalCall&, Args&)) {
  return [](LocalCall& call) { return kHandler(call, call.as<Args>()); };
}
template <auto kAnswer>
constexpr LocalIoctl row(uint32_t word, uint32_t shortest = 0) {
  const uint32_t size = drm::request_size(word);
  return {word, shortest ? shortest : size, size, untyped<kAnswer>(kAnswer), nullptr};
}
template <auto kAnswer, auto kRemember>
constexpr LocalIoctl remembered(uint32_t word) {
  LocalIoctl made = row<kAnswer>(word);
  made.remember = untyped<kRemember>(kRemember);
  return made;
}

/// What all drivers have.
constexpr LocalIoctl kCoreIoctls[] = {
    row<answer_version>(request::kVersion),
    remembered<answer_get_cap, remember_get_cap>(request::kGetCap),
    row<answer_syncobj_create>(request::kSyncobjCreate),
    row<answer_syncobj_destroy>(request::kSyncobjDestroy),
    row<answer_syncobj_to_fd>(request::kSyncobjHandleToFd, offsetof(drm::SyncobjHandle, point)),
    row<answer_syncobj_from_fd>(request::kSyncobjFdToHandle, offsetof(drm::SyncobjHandle, point)),
    row<answer_syncobj_wait>(request::kSyncobjWait, offsetof(drm::SyncobjWait, deadline_ns)),
    row<answer_syncobj_reset>(request::kSyncobjReset),
};
/// A driver's own are rows of a table of its own, as their numbers mean other things to others.
constexpr LocalIoctl kV3dIoctls[] = {
    row<answer_wait_bo>(request::kWaitBo),
    row<answer_mmap_bo>(request::kMmapBo),
    remembered<answer_get_param, remember_get_param>(request::kGetParam),
    remembered<answer_get_counter, remember_get_counter>(request::kPerfmonGetCounter),
};

/// Arguments of these have the layout of v3d's. The place of a BO is the daemon's to tell, as it may have
/// been purged.
constexpr LocalIoctl kVc4Ioctls[] = {
    row<answer_wait_bo>(drm::vc4::kWaitBo),
    remembered<answer_get_param, remember_get_param>(drm::vc4::kGetParam),
};
static_assert(sizeof(drm::vc4::WaitBo) == sizeof(drm::WaitBo) &&
              offsetof(drm::vc4::WaitBo, pad) == offsetof(drm::WaitBo, pad) &&
              sizeof(drm::vc4::GetParam) == sizeof(drm::GetParam) &&
              offsetof(drm::vc4::GetParam, value) == offsetof(drm::GetParam, value));

/// By number, from 1: a place in kCoreIoctls, or after these one in the driver's; 0: none.
using Places = std::array<uint8_t, 256>;
constexpr size_t kNumCore = std::size(kCoreIoctls);
constexpr Places places_with(std::span<const LocalIoctl> own) {
  Places places{};
  for (size_t i = 0; i < kNumCore; ++i)
    places[drm::request_nr(kCoreIoctls[i].request)] = static_cast<uint8_t>(i + 1);
  for (size_t i = 0; i < own.size(); ++i)
    places[drm::request_nr(own[i].request)] = static_cast<uint8_t>(kNumCore + i + 1);
  return places;
}
constexpr Places kV3dPlaces = places_with(kV3dIoctls), kVc4Places = places_with(kVc4Ioctls);

const LocalIoctl* row_of_number(Driver driver, uint32_t number) {
  const bool v3d = driver == Driver::kV3d;
  const size_t place = (v3d ? kV3dPlaces : kVc4Places)[number];
  if (place == 0) return nullptr;
  if (place <= kNumCore) return &kCoreIoctls[place - 1];
  return &(v3d ? std::span<const LocalIoctl>(kV3dIoctls) : kVc4Ioctls)[place - kNumCore - 1];
}

}  // namespace

const LocalIoctl* find_local_ioctl(Driver driver, uint32_t request) {
  const LocalIoctl* known = row_of_number(driver, drm::request_nr(request));
  if (!known) return nullptr;
  const uint32_t size = drm::request_size(request);
  const bool same = drm::request_of_size(known->request, size) == request;
  return same && (size == known->size || size == known->shortest) ? known : nullptr;
}

}  // namespace v3d::shim
