/// A Board is what a daemon stands in for: a chip, and the Linux that drives it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "gpu/chip/profile.h"
#include "ioctl/abi/versions.h"

namespace v3d::daemon {

struct Board {
  const chip::Profile* profile = &chip::default_profile();
  const ioctl::Abi* abi = &ioctl::default_abi();
  /// That buffers are made of; 0: all that the host has.
  uint32_t buffer_mib = static_cast<uint32_t>(profile->buffer_memory_mib);
};

/// What somebody asks for; empty: the usual.
struct BoardNames {
  std::string_view device = {}, kernel = {};
  std::string_view buffer_mib = {};  ///< a number
};
/// InvalidArgument, with what there is, for an unknown one, and for those that do not go together.
absl::StatusOr<Board> find_board(const BoardNames& names);

/// For help texts: the names, the default first and called so.
std::string device_names();
std::string kernel_names();

}  // namespace v3d::daemon
