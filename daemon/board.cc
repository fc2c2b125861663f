#include "daemon/board.h"

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gpu/chip/board.h"

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

/// Of rpi0 to rpi3: no less than the driver's own 16 MiB for tile lists and as much for buffers, no more than
/// the firmware leaves (vc4-abi.md 6.5).
absl::Status set_memory(std::string_view mebibytes, Board* board) {
  constexpr uint32_t kLeast = 32;
  const char* const name = board->profile->name;
  if (board->buffer_mib == 0)
    return absl::InvalidArgumentError(
        absl::StrFormat("the device %s has no memory of its own for buffers; rpi0 to rpi3 have", name));
  const chip::Board& own = *chip::find_board(name);
  const uint32_t most = own.memory_mib() - own.firmware_mib();
  uint32_t asked;
  if (!absl::SimpleAtoi(std::string(mebibytes), &asked) || asked < kLeast || asked > most)
    return absl::InvalidArgumentError(
        absl::StrFormat("no memory of \"%s\" MiB for buffers; the device %s has from %d to %d", mebibytes,
                        name, kLeast, most));
  board->buffer_mib = asked;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Board> find_board(const BoardNames& names) {
  Board board;
  if (!names.device.empty()) board.profile = chip::find_profile(names.device);
  if (!board.profile)
    return absl::InvalidArgumentError(
        absl::StrFormat("no device \"%s\"; there are %s", names.device, described_devices()));
  if (!names.kernel.empty()) board.abi = ioctl::find_abi(names.kernel);
  if (!board.abi)
    return absl::InvalidArgumentError(
        absl::StrFormat("no kernel \"%s\"; there are %s", names.kernel, kernel_names()));
  if (!board.abi->has_v3d && !chip::has_driver_vc4(board.profile->generation))
    return absl::InvalidArgumentError(
        absl::StrFormat("the kernel %s is there for devices with the driver vc4 (rpi0 to rpi3), not for %s",
                        board.abi->name, board.profile->name));
  board.buffer_mib = static_cast<uint32_t>(board.profile->buffer_memory_mib);
  if (!names.buffer_mib.empty())
    if (const absl::Status status = set_memory(names.buffer_mib, &board); !status.ok()) return status;
  return board;
}

std::string device_names() { return names(chip::profiles(), chip::default_profile().name); }
std::string kernel_names() { return names(ioctl::all_abis(), ioctl::default_abi().name); }

}  // namespace v3d::daemon
