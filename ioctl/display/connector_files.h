/// These files are what /sys/class/drm shows of connectors (Linux drm_sysfs.c); users plug monitors in and
/// out.
#pragma once

#include <string>
#include <string_view>

namespace v3d::ioctl::kms {

class Display;

/// The contents of a file, "HDMI-A-1/status". False when there is none of that name.
bool read_connector_file(const Display& display, std::string_view name, std::string* text);

/// A line for each connector: its name, status and whether it is enabled.
std::string list_connectors(const Display& display);

/// "HDMI-A-2 on" or "off". False, and what is wrong, for anything else.
bool plug_monitor(Display& display, std::string_view words, bool has_master, std::string* error);

}  // namespace v3d::ioctl::kms
