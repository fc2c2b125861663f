/// The table of boards has those that are emulated, by name: which SoC they have, and what Linux and the
/// firmware call them. No dependencies: the preload library includes it.
#pragma once

#include <cstdint>
#include <string_view>

#include "gpu/chip/generation.h"

namespace v3d::chip {

/// Display and GPU are one device with the driver vc4, not two of which v3d drives the GPU.
constexpr bool has_driver_vc4(Generation generation) {
  switch (generation) {
    case Generation::k21:
      return true;
    case Generation::k42:
    case Generation::k71:
      return false;
  }
  no_such_generation();
}

/// The pixel valves, transposers and scaler of an SoC that Linux' vc4 drives (board-environment.md 4.2, 4.3).
/// A CRTC is a valve or a transposer.
struct DisplayUnit {
  uint32_t sockets;           ///< of HDMI
  uint32_t writers;           ///< transposers
  uint32_t idle_valves;       ///< those without an encoder in the board's device tree
  uint32_t max_pixels;        ///< of framebuffers and modes, in both directions
  uint32_t max_clock_khz[2];  ///< of modes, by socket
  bool ten_bits;              ///< planes take formats of 10 bits
  bool hdr;                   ///< sockets have HDR_OUTPUT_METADATA
  bool shows_t_tiles;         ///< and SAND columns of 64 bytes; else a commit of what planes list is refused
};
inline constexpr DisplayUnit kHvs4 = {1, 1, 2, 2048, {162'000, 0}, false, false, true};
inline constexpr DisplayUnit kHvs5 = {2, 1, 3, 7680, {600'000, 340'000}, true, true, true};
inline constexpr DisplayUnit kHvs6 = {2, 2, 0, 8192, {600'000, 600'000}, true, true, false};

/// Names of the platform devices and of the folders under /sys/devices/platform that hold them (drm-abi.md
/// 1.2).
struct Soc {
  Generation generation;    ///< of its V3D
  const char* v3d_driver;   ///< of platform devices
  const char* v3d;          ///< device name, as in by-path links and DRM's unique name
  const char* v3d_folder;   ///< under sys/devices/platform
  const char* v3d_of_path;  ///< OF_FULLNAME
  const char* v3d_compatible;
  const char* display;  ///< the same of the one that the vc4 driver has
  const char* display_folder;
  const char* display_of_path;
  const char* display_compatible;
  const DisplayUnit* display_unit;
  const char* platform_roots[2];  ///< first components under sys/devices/platform; nullptr: one is enough
  const char* compatible;         ///< of the SoC in the board's
  /// Where the ARM sees the peripherals that programs of VideoCore IV reach by /dev/mem; 0: there are no
  /// such.
  uint32_t peripherals = 0;

  /// All nodes are those of the display's device; V3D's own has none (vc4-abi.md 1.1).
  constexpr bool has_one_device() const { return has_driver_vc4(generation); }
};
/// Platform driver of the display's device.
inline constexpr char kDisplayDriver[] = "vc4-drm";
inline constexpr Soc kBcm2712 = {Generation::k71,
                                 "v3d",
                                 "1002000000.v3d",
                                 "axi/1002000000.v3d",
                                 "/axi/v3d@2000000",
                                 "brcm,2712-v3d",
                                 "axi:gpu",
                                 "axi/axi:gpu",
                                 "/axi/gpu",
                                 "brcm,bcm2712-vc6",
                                 &kHvs6,
                                 {"axi", nullptr},
                                 "brcm,bcm2712"};
inline constexpr Soc kBcm2711 = {Generation::k42,
                                 "v3d",
                                 "fec00000.v3d",
                                 "v3dbus/fec00000.v3d",
                                 "/v3dbus/v3d@7ec04000",
                                 "brcm,2711-v3d",
                                 "gpu",
                                 "gpu",
                                 "/gpu",
                                 "brcm,bcm2711-vc5",
                                 &kHvs5,
                                 {"v3dbus", "gpu"},
                                 "brcm,bcm2711"};

inline constexpr Soc kBcm2835 = {Generation::k21,     "vc4_v3d",          "20c00000.v3d", "soc/20c00000.v3d",
                                 "/soc/v3d@7ec00000", "brcm,bcm2835-v3d", "soc:gpu",      "soc/soc:gpu",
                                 "/soc/gpu",          "brcm,bcm2835-vc4", &kHvs4,         {"soc", nullptr},
                                 "brcm,bcm2835",      0x20000000};
/// Of BCM2836 and BCM2837, where the same blocks have other addresses.
constexpr Soc with_peripherals_at_3f(const char* compatible) {
  Soc soc = kBcm2835;
  soc.v3d = "3fc00000.v3d";
  soc.v3d_folder = "soc/3fc00000.v3d";
  soc.compatible = compatible;
  soc.peripherals = 0x3f000000;
  return soc;
}
inline constexpr Soc kBcm2836 = with_peripherals_at_3f("brcm,bcm2836");
inline constexpr Soc kBcm2837 = with_peripherals_at_3f("brcm,bcm2837");

/// What the firmware says of a board (raspberrypi/documentation, revision-codes.adoc), by which programs know
/// that they run on one.
struct Board {
  const char* name;  ///< of the device that is emulated: $V3DEMU_DEVICE
  const Soc* soc;
  const char* model;       ///< /proc/device-tree/model
  const char* compatible;  ///< the board's, before the SoC's
  uint32_t revision;
  uint64_t serial;  ///< made up, in the form that the board's have

  /// MiB of memory, by the revision.
  constexpr uint32_t memory_mib() const { return 256u << (revision >> 20 & 7); }
  /// MiB of it that the firmware keeps where config.txt does not say (gpu_mem), on boards before the Pi 4.
  constexpr uint32_t firmware_mib() const { return memory_mib() < 1024 ? 64 : 76; }
};

inline constexpr uint64_t kSerial = 0x1000000076336465;
inline constexpr Board kRpi5 = {
    "rpi5", &kBcm2712, "Raspberry Pi 5 Model B Rev 1.0", "raspberrypi,5-model-b", 0xc04170, kSerial};
inline constexpr Board kRpi5D0 = {
    "rpi5-d0", &kBcm2712, "Raspberry Pi 5 Model B Rev 1.1", "raspberrypi,5-model-b", 0xd04171, kSerial};
inline constexpr Board kRpi4 = {
    "rpi4", &kBcm2711, "Raspberry Pi 4 Model B Rev 1.4", "raspberrypi,4-model-b", 0xc03114, kSerial};

inline constexpr uint64_t kOldSerial = 0x0000000076336465;
inline constexpr Board kRpi3 = {
    "rpi3", &kBcm2837, "Raspberry Pi 3 Model B Rev 1.2", "raspberrypi,3-model-b", 0xa02082, kOldSerial};
inline constexpr Board kRpi2 = {
    "rpi2", &kBcm2836, "Raspberry Pi 2 Model B Rev 1.1", "raspberrypi,2-model-b", 0xa01041, kOldSerial};
inline constexpr Board kRpi1 = {
    "rpi1", &kBcm2835, "Raspberry Pi Model B Plus Rev 1.2", "raspberrypi,model-b-plus", 0x900032, kOldSerial};
inline constexpr Board kRpi0 = {
    "rpi0", &kBcm2835, "Raspberry Pi Zero W Rev 1.1", "raspberrypi,model-zero-w", 0x9000c1, kOldSerial};

/// The same board with another GPU in it.
constexpr Board with_name(Board board, const char* name) {
  board.name = name;
  return board;
}
/// All, the default first, one for each of profiles().
inline constexpr Board kBoards[] = {kRpi5,
                                    with_name(kRpi5, "rpi5-16"),
                                    with_name(kRpi5, "rpi5-c1"),
                                    kRpi5D0,
                                    with_name(kRpi5, "rpi5-7.1.5"),
                                    kRpi4,
                                    kRpi3,
                                    kRpi2,
                                    kRpi1,
                                    kRpi0};

/// By the device of the vc4 node; nullptr: no board has one of that name.
constexpr const DisplayUnit* find_display_unit(std::string_view device) {
  for (const Board& board : kBoards)
    if (device == board.soc->display) return board.soc->display_unit;
  return nullptr;
}
/// nullptr when there is no board of that name.
constexpr const Board* find_board(std::string_view name) {
  for (const Board& board : kBoards)
    if (name == board.name) return &board;
  return nullptr;
}

}  // namespace v3d::chip
