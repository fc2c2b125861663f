/// A Board is what a daemon stands in for: a chip, and the Linux that drives it.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "gpu/chip/profile.h"
#include "ioctl/abi/versions.h"

namespace v3d::daemon {

struct Board {
  const chip::Profile* profile = &chip::default_profile();
  const ioctl::Abi* abi = &ioctl::default_abi();
};

/// By name; empty ones are the defaults. InvalidArgument, with those that there are, for an unknown one.
absl::StatusOr<Board> find_board(std::string_view device, std::string_view kernel);

/// For help texts: the names, the default first and called so.
std::string device_names();
std::string kernel_names();

}  // namespace v3d::daemon
