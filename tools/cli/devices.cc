/// v3demu devices: the boards that --device names.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "gpu/chip/profile.h"
#include "tools/cli/commands.h"

namespace v3d::tools {
namespace {

/// Where it is limited.
std::string buffer_memory(const chip::Profile& profile) {
  if (profile.buffer_memory_mib == 0) return "";
  return ", " + std::to_string(profile.buffer_memory_mib) + " MiB for buffers (--memory)";
}

void print_devices() {
  int width = 0;
  for (const chip::Profile& p : chip::profiles())
    width = std::max(width, static_cast<int>(std::strlen(p.name)));
  for (const chip::Profile& p : chip::profiles())
    printf("%-*s  %s, %d MHz%s; %s%s\n", width, p.name, p.description, p.clock_mhz, buffer_memory(p).c_str(),
           p.drivers, &p == &chip::default_profile() ? " (default)" : "");
  std::puts(
      "\nrpi5 is the default since published programs that are written by hand (py-videocore7) count on its "
      "12 QPUs. What boards\n"
      "tell of themselves, and times of frames, say 16: rpi5-16 is for times of what Mesa draws. "
      "docs/running.md says more.");
}

}  // namespace

void add_devices(CLI::App* app, int*) {
  app->add_subcommand("devices", "List the boards that run --device takes")->callback(print_devices);
}

}  // namespace v3d::tools
