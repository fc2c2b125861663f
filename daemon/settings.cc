#include "daemon/settings.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace v3d::daemon {
namespace {

using place::kNumSettings;
using place::kSettings;

std::string shown(const std::string& value) { return value.empty() ? "none" : value; }

}  // namespace

Settings usual_settings() {
  Settings settings;
  for (size_t i = 0; i < kNumSettings; ++i) settings[i] = kSettings[i].usual;
  return settings;
}

std::string socket_name(const Settings& settings) {
  const char* values[kNumSettings];
  std::transform(settings.begin(), settings.end(), values, [](const auto& value) { return value.c_str(); });
  std::string name;
  place::add_socket_name(values, [&name](const char* text, size_t size) { name.append(text, size); });
  return name;
}

std::string compare_settings(const Settings& own, std::string_view asked) {
  std::vector<std::string> differences;
  bool refused = false;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(std::string(asked), '\n', absl::SkipEmpty()))) {
    const std::string name = line.substr(0, line.find('='));
    const std::string wanted = line.substr(std::min(name.size() + 1, line.size()));
    const auto* known = std::find_if(std::begin(kSettings), std::end(kSettings),
                                     [&](const place::Setting& setting) { return name == setting.name; });
    const std::string value = known == std::end(kSettings) ? "" : own[static_cast<size_t>(known - kSettings)];
    if (value == wanted) continue;
    differences.push_back(absl::StrFormat("%s %s, not %s", name, shown(value), shown(wanted)));
    refused |= known == std::end(kSettings) || known->other == place::OtherValue::kRefused;
  }
  if (differences.empty()) return "";
  return absl::StrCat(refused ? place::kRefusedAnswer : place::kToldAnswer, " (pid ", getpid(), ") has ",
                      absl::StrJoin(differences, ", and "), ": end it (kill ", getpid(),
                      ") or name another V3DEMU_SOCKET");
}

}  // namespace v3d::daemon
