#include "ioctl/display/connector_files.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ioctl/display/display.h"

namespace v3d::ioctl::kms {
namespace {

/// Which of wire::kConnectors, and of kPipes; wire::kNumConnectors: the board has none of that name.
uint32_t by_name(const Display& display, std::string_view name) {
  const auto* found =
      std::find_if(std::begin(wire::kConnectors), std::end(wire::kConnectors),
                   [&](const wire::Connector& c) { return c.name == name && display.has(c.id); });
  return static_cast<uint32_t>(found - std::begin(wire::kConnectors));
}

bool has_monitor(const Display& display, uint32_t i) { return display.monitors() >> i & 1; }

std::string status(const Display& display, uint32_t i) {
  if (i >= kNumMonitors) return absl::StrCat(wire::kConnectors[i].status, "\n");
  return has_monitor(display, i) ? "connected\n" : "disconnected\n";
}

std::string enabled(const Display& display, uint32_t i) {
  return display.state().is_lit(i) ? "enabled\n" : "disabled\n";
}

std::string dpms(const Display& display, uint32_t i) {
  for (const EnumValue& mode : find_property(kDpms)->enums)
    if (mode.value == display.state().connector(i).get(kDpms)) return absl::StrCat(mode.name, "\n");
  return "";
}

std::string mode_names(const Display& display, uint32_t i) {
  std::string names;
  if (has_monitor(display, i))
    for (const drm::ModeInfo& mode : modes()) absl::StrAppend(&names, mode.name, "\n");
  return names;
}

std::string edid(const Display& display, uint32_t i) {
  if (i >= kNumMonitors) return "";
  const auto bytes = display.find_fixed_blob(static_cast<uint32_t>(display.state().connector(i).get(kEdid)));
  return std::string(bytes.begin(), bytes.end());
}

constexpr struct {
  std::string_view name;
  std::string (*read)(const Display&, uint32_t);
} kFiles[] = {
    {"status", status}, {"enabled", enabled}, {"dpms", dpms}, {"modes", mode_names}, {"edid", edid}};

}  // namespace

bool read_connector_file(const Display& display, std::string_view name, std::string* text) {
  const size_t slash = name.find('/');
  const uint32_t connector = by_name(display, name.substr(0, slash));
  if (slash == name.npos || connector == wire::kNumConnectors) return false;
  for (const auto& file : kFiles) {
    if (file.name != name.substr(slash + 1)) continue;
    *text = file.read(display, connector);
    return true;
  }
  return false;
}

std::string list_connectors(const Display& display) {
  std::string list;
  for (uint32_t i = 0; i < kNumMonitors; ++i) {
    if (!display.has(wire::kConnectors[i].id)) continue;
    const std::string words = status(display, i) + enabled(display, i);
    absl::StrAppend(&list, wire::kConnectors[i].name, " ",
                    absl::StrJoin(absl::StrSplit(words, '\n', absl::SkipEmpty()), " "), "\n");
  }
  return list;
}

bool plug_monitor(Display& display, std::string_view words, bool has_master, std::string* error) {
  const size_t space = words.find(' ');
  const std::string_view name = words.substr(0, space),
                         state = space == words.npos ? std::string_view() : words.substr(space + 1);
  const uint32_t connector = by_name(display, name);
  if (connector >= kNumMonitors) {
    *error = "there is no connector " + std::string(name) + "; there are:\n" + list_connectors(display);
    return false;
  }
  if (state != "on" && state != "off") {
    *error = "a monitor is plugged in with \"on\" and out with \"off\"\n";
    return false;
  }
  display.plug(connector, state == "on", has_master);
  return true;
}

}  // namespace v3d::ioctl::kms
