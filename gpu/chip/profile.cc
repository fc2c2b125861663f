#include "gpu/chip/profile.h"

#include <iterator>

#include "gpu/chip/board.h"

namespace v3d::chip {
namespace {

// Source: Mesa src/broadcom/drm-shim/v3d_noop.c and public v3d_ident dumps, as collected in drm-abi.md 2.8.
constexpr char kV3dDrivers[] = "Vulkan and OpenGL";

constexpr Profile kPi5 = {.name = kBoards[0].name,
                          .description = "Raspberry Pi 5, V3D 7.1.7, 3 slices of 4 QPUs",
                          .drivers = kV3dDrivers,
                          .v3d_device = kBcm2712.v3d,
                          .display_device = kBcm2712.display,
                          .generation = kBcm2712.generation,
                          .revision = 7,
                          .slices = 3,
                          .qpus_per_slice = 4,
                          .clock_mhz = 960,
                          .read_ns_per_byte = 0.083,
                          .write_ns_per_byte = 0.16,
                          .buffer_memory_mib = 0,
                          .uifcfg = 0x45,
                          .hub_ident1 = 0x00081117,
                          .hub_ident2 = 0x00001900,
                          .hub_ident3 = 0x00000700,
                          .core_ident0 = 0x07443356,
                          .core_ident1 = 0x81001431,
                          .core_ident2 = 0xc0078101};

constexpr Profile kPi5Of16 = [] {
  Profile p = kPi5;
  p.name = kBoards[1].name;
  p.description = "Raspberry Pi 5, V3D 7.1.7, 4 slices of 4 QPUs";
  p.slices = 4;
  p.core_ident1 = 0x81001441;
  return p;
}();

constexpr Profile kPi5C1 = [] {
  Profile p = kPi5;
  p.name = kBoards[2].name;
  p.description = "Raspberry Pi 5 of stepping C1, which rpi5 is: V3D 7.1.7, 3 slices of 4 QPUs";
  return p;
}();

constexpr Profile kPi5D0 = [] {
  Profile p = kPi5;
  p.name = kBoards[3].name;
  p.description = "Raspberry Pi 5 of stepping D0, V3D 7.1.10, 3 slices of 4 QPUs";
  p.revision = 10;
  p.hub_ident3 = 0x00020a10;
  return p;
}();

/// Mesa's code for chips before 7.1.6. No board of that revision is known.
constexpr Profile kPi5Of715 = [] {
  Profile p = kPi5;
  p.name = kBoards[4].name;
  p.description = "Raspberry Pi 5 with V3D 7.1.5, the first that Mesa's drivers are for, 3 slices of 4 QPUs";
  p.revision = 5;
  p.hub_ident3 = 0x00000500;
  return p;
}();

constexpr Profile kPi4 = {.name = kBoards[5].name,
                          .description = "Raspberry Pi 4, V3D 4.2.14, 2 slices of 4 QPUs",
                          .drivers = kV3dDrivers,
                          .v3d_device = kBcm2711.v3d,
                          .display_device = kBcm2711.display,
                          .generation = kBcm2711.generation,
                          .revision = 14,
                          .slices = 2,
                          .qpus_per_slice = 4,
                          .clock_mhz = 500,
                          .read_ns_per_byte = 0.138,
                          .write_ns_per_byte = 0.267,
                          .buffer_memory_mib = 0,
                          .uifcfg = 0x45,
                          .hub_ident1 = 0x000e1124,
                          .hub_ident2 = 0x00000100,
                          .hub_ident3 = 0x00000e00,
                          .core_ident0 = 0x04443356,
                          .core_ident1 = 0x81001422,
                          .core_ident2 = 0x40078121};

// Clocks and memory: vc4-timing.md 1, the peak of the memory, since no rate of V3D's own was published.
// Identity registers: vc4-abi.md 1.4. Boards of 512 MiB have no room for the 256 MiB of the others: assumed
// to have the 64 MiB of Linux's own device tree (vc4-abi.md 6.5).
constexpr Profile kPi3 = {.name = kBoards[6].name,
                          .description = "Raspberry Pi 3, V3D 2.1 (VideoCore IV), 3 slices of 4 QPUs",
                          .drivers = "OpenGL, no Vulkan",
                          .v3d_device = kBcm2837.v3d,
                          .display_device = kBcm2837.display,
                          .generation = kBcm2837.generation,
                          .revision = 0,
                          .slices = 3,
                          .qpus_per_slice = 4,
                          .clock_mhz = 400,
                          .read_ns_per_byte = 0.278,
                          .write_ns_per_byte = 0.278,
                          .buffer_memory_mib = 256,
                          .uifcfg = 0,
                          .hub_ident1 = 0,
                          .hub_ident2 = 0,
                          .hub_ident3 = 0,
                          .core_ident0 = 0x02443356,
                          .core_ident1 = 0xc1102431,
                          .core_ident2 = 0x00000121};

constexpr Profile kPi2 = [] {
  Profile p = kPi3;
  p.name = kBoards[7].name;
  p.description = "Raspberry Pi 2, V3D 2.1 (VideoCore IV), 3 slices of 4 QPUs";
  p.v3d_device = kBcm2836.v3d;
  p.clock_mhz = 250;
  return p;
}();

constexpr Profile kPi1 = [] {
  Profile p = kPi2;
  p.name = kBoards[8].name;
  p.description = "Raspberry Pi 1, V3D 2.1 (VideoCore IV), 3 slices of 4 QPUs";
  p.v3d_device = kBcm2835.v3d;
  p.read_ns_per_byte = p.write_ns_per_byte = 0.3125;
  p.buffer_memory_mib = 64;
  return p;
}();

constexpr Profile kPi0 = [] {
  Profile p = kPi1;
  p.name = kBoards[9].name;
  p.description = "Raspberry Pi Zero, V3D 2.1 (VideoCore IV), 3 slices of 4 QPUs";
  p.clock_mhz = 300;
  p.read_ns_per_byte = p.write_ns_per_byte = 0.278;
  return p;
}();

constexpr Profile kProfiles[] = {kPi5, kPi5Of16, kPi5C1, kPi5D0, kPi5Of715, kPi4, kPi3, kPi2, kPi1, kPi0};

constexpr bool are_in_the_order_of_boards() {
  for (size_t i = 0; i < std::size(kProfiles); ++i)
    if (kProfiles[i].name != kBoards[i].name || kProfiles[i].generation != kBoards[i].soc->generation)
      return false;
  return std::size(kProfiles) == std::size(kBoards);
}
static_assert(are_in_the_order_of_boards() && kProfiles[0].generation == kDefaultGeneration);

}  // namespace

std::span<const Profile> profiles() { return kProfiles; }

const Profile* find_profile(std::string_view name) {
  for (const Profile& p : kProfiles)
    if (name == p.name) return &p;
  return nullptr;
}

const Profile& default_profile() { return kProfiles[0]; }

}  // namespace v3d::chip
