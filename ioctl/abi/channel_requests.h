/// The preload library and the daemon agree here on the ioctls that need no socket, as they come often
/// (docs/short_paths.md).
#pragma once

#include <cstdint>

#include "ioctl/abi/core.h"
#include "ioctl/abi/request.h"
#include "ioctl/abi/v3d.h"

namespace v3d::ioctl::drm {

/// Whether v3d's ioctl of this number hands jobs to the GPU.
constexpr bool is_submit(uint32_t number) {
  return number == request_nr(request::kSubmitCl) || number == request_nr(request::kSubmitTfu) ||
         number == request_nr(request::kSubmitCsd);
}

/// Whether an ioctl goes through a channel: those do that Mesa makes often and that never wait, and v3d's
/// waits for BOs, which are declined if they would.
/// @param of_v3d  the file is v3d's: other drivers use the same numbers for other ioctls
constexpr bool goes_through_channel(bool of_v3d, uint32_t number) {
  constexpr uint32_t kOfAllDrivers[] = {request::kGemClose, request::kSyncobjCreate, request::kSyncobjDestroy,
                                        request::kSyncobjReset, request::kSyncobjSignal};
  constexpr uint32_t kOfV3d[] = {request::kWaitBo, request::kCreateBo, request::kMmapBo,
                                 request::kGetBoOffset};
  for (const uint32_t known : kOfAllDrivers)
    if (request_nr(known) == number) return true;
  if (!of_v3d) return false;
  for (const uint32_t known : kOfV3d)
    if (request_nr(known) == number) return true;
  return is_submit(number);
}

}  // namespace v3d::ioctl::drm
