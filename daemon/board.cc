#include "daemon/board.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace v3d::daemon {
namespace {

template <typename Rows>
std::string names(const Rows& rows, std::string_view default_name) {
  return absl::StrJoin(rows, ", ", [&](std::string* text, const auto& row) {
    absl::StrAppend(text, row.name, row.name == default_name ? " (default)" : "");
  });
}

/// In one line: the preload library shows the first line of what a daemon says that does not start.
std::string described_devices() {
  return absl::StrJoin(chip::profiles(), ", ", [](std::string* text, const chip::Profile& profile) {
    absl::StrAppend(text, profile.name, " (", profile.description, ")");
  });
}

}  // namespace

absl::StatusOr<Board> find_board(std::string_view device, std::string_view kernel) {
  Board board;
  if (!device.empty()) board.profile = chip::find_profile(device);
  if (!board.profile)
    return absl::InvalidArgumentError(
        absl::StrFormat("no device \"%s\"; there are %s", device, described_devices()));
  if (!kernel.empty()) board.abi = ioctl::find_abi(kernel);
  if (!board.abi)
    return absl::InvalidArgumentError(
        absl::StrFormat("no kernel \"%s\"; there are %s", kernel, kernel_names()));
  return board;
}

std::string device_names() { return names(chip::profiles(), chip::default_profile().name); }
std::string kernel_names() { return names(ioctl::all_abis(), ioctl::default_abi().name); }

}  // namespace v3d::daemon
