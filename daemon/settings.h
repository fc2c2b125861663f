/// The settings are what a daemon was started with, as programs may ask for it.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "ioctl/link/place.h"

namespace v3d::daemon {

/// By the rows of place::kSettings; all are said, also those that are as usual.
using Settings = std::array<std::string, place::kNumSettings>;

/// Those that nothing asked for.
Settings usual_settings();

/// Of the socket of such a daemon, in the folder of the user's sockets.
std::string socket_name(const Settings& settings);

/// The answer to place::kCompareCommand. @param asked  lines NAME=VALUE; what a daemon does not know by its
/// name it does not have
std::string compare_settings(const Settings& own, std::string_view asked);

}  // namespace v3d::daemon
