#include "gpu/chip/profile.h"

namespace v3d::chip {
namespace {

// Source: Mesa src/broadcom/drm-shim/v3d_noop.c and public v3d_ident dumps, as collected in drm-abi.md 2.8.
constexpr Profile kPi5 = {.name = "rpi5",
                          .description = "Raspberry Pi 5, V3D 7.1.7, 3 slices of 4 QPUs",
                          .version = 71,
                          .revision = 7,
                          .slices = 3,
                          .qpus_per_slice = 4,
                          .clock_mhz = 800,
                          .read_ns_per_byte = 0.083,
                          .write_ns_per_byte = 0.16,
                          .uifcfg = 0x45,
                          .hub_ident1 = 0x00081117,
                          .hub_ident2 = 0x00001900,
                          .hub_ident3 = 0x00000700,
                          .core_ident0 = 0x07443356,
                          .core_ident1 = 0x81001431,
                          .core_ident2 = 0xc0078101};

constexpr Profile kPi5Of16 = [] {
  Profile p = kPi5;
  p.name = "rpi5-16";
  p.description = "Raspberry Pi 5, V3D 7.1.7, 4 slices of 4 QPUs";
  p.slices = 4;
  p.clock_mhz = 960;
  p.core_ident1 = 0x81001441;
  return p;
}();

constexpr Profile kProfiles[] = {kPi5, kPi5Of16};

}  // namespace

std::span<const Profile> profiles() { return kProfiles; }

const Profile* find_profile(std::string_view name) {
  for (const Profile& p : kProfiles)
    if (name == p.name) return &p;
  return nullptr;
}

const Profile& default_profile() { return kProfiles[0]; }

}  // namespace v3d::chip
