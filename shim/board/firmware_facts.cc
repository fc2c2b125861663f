/// What the firmwares say of clocks, memory and themselves. Sources: board-environment.md 6, and
/// [K] raspberrypi-firmware.h for the numbers of clocks. Rates without a published measurement are nominal.
#include <array>
#include <cstdlib>

#include "shim/board/firmware.h"
#include "shim/link/connection.h"
#include "shim/process/config.h"

namespace v3d::shim {
namespace {

constexpr uint32_t kMHz = 1'000'000;
enum ClockId : uint32_t {
  kEmmc = 1,
  kUart,
  kArm,
  kCore,
  kV3d,
  kH264,
  kIsp,
  kPixel = 9,
  kPwm,
  kHevc,
  kVec = 15
};

constexpr FirmwareClock kClocksOf2711[] = {{kEmmc, "emmc", 50, 0, 0, 250'000'496},
                                           {kUart, "uart", 22, 0, 0, 48'001'464},
                                           {kArm, "arm", 48, 600 * kMHz, 1800 * kMHz, 1'800'457'088},
                                           {kCore, "core", 1, 200 * kMHz, 500 * kMHz, 500'000'992},
                                           {kV3d, "v3d", 46, 250 * kMHz, 500 * kMHz, 500'000'992},
                                           {kH264, "h264", 28, 250 * kMHz, 500 * kMHz, 0},
                                           {kIsp, "isp", 45, 250 * kMHz, 500 * kMHz, 0},
                                           {kPixel, "pixel", 29, 0, 0, 148'500'000},
                                           {kPwm, "pwm", 25, 0, 0, 0},
                                           {kVec, "vec", 10, 0, 0, 0},
                                           {0, "hdmi", 9, 0, 0, 119'997'072},
                                           {0, "dpi", 4, 0, 0, 0}};
constexpr FirmwareClock kClocksOf2712[] = {{kArm, "arm", 0, 1500 * kMHz, 2400 * kMHz, 2'400'023'808},
                                           {kCore, "core", 0, 500 * kMHz, 910 * kMHz, 910'000'000},
                                           {kV3d, "v3d", 0, 500 * kMHz, 960 * kMHz, 960'016'128},
                                           {kIsp, "isp", 0, 500 * kMHz, 910 * kMHz, 0},
                                           {kHevc, "hevc", 0, 500 * kMHz, 910 * kMHz, 0}};

constexpr char kVersionOf2024[] =
    "Aug 30 2024 19:19:11 \nCopyright (c) 2012 Broadcom\n"
    "version 2808975b80149bbfe86844655fe45c7de66fc078 (clean) (release) (start)";

/// Of boards with VideoCore IV: what config.txt has where it says nothing (vc4-timing.md 1). The numbers of
/// measure_clock are assumed.
struct NominalClocks {
  uint32_t arm, arm_min, core, v3d;  ///< MHz
};
constexpr std::array<FirmwareClock, 6> clocks_of(const NominalClocks& of) {
  return {{{kUart, "uart", 22, 0, 0, 48'000'000},
           {kArm, "arm", 45, of.arm_min * kMHz, of.arm * kMHz, of.arm * kMHz},
           {kCore, "core", 1, 250 * kMHz, of.core * kMHz, of.core * kMHz},
           {kV3d, "v3d", 43, 250 * kMHz, of.v3d * kMHz, of.v3d * kMHz},
           {kH264, "h264", 28, 250 * kMHz, of.v3d * kMHz, 0},
           {kPixel, "pixel", 29, 0, 0, 148'500'000}}};
}
constexpr auto kClocksOfPi3 = clocks_of({1200, 600, 400, 400}),
               kClocksOfPi2 = clocks_of({900, 600, 250, 250}), kClocksOfPi1 = clocks_of({700, 700, 250, 250}),
               kClocksOfPi0 = clocks_of({1000, 700, 400, 300});

constexpr Firmware start_elf(const chip::Board& board, const std::array<FirmwareClock, 6>& clocks) {
  return {.kind = kStart,
          .board = board.name,
          .soc = board.soc,
          .timestamp = 1'725'045'551,
          .variant = 1,
          .hash = {0x2808975b, 0x80149bbf, 0xe8684465, 0x5fe45c7d, 0xe66fc078},
          .version_text = kVersionOf2024,
          .vc_memory_mib = board.firmware_mib(),
          .idle_v3d = 250 * kMHz,
          .max_millidegrees = 85'000,
          .millidegrees = 47'200,
          .core_microvolts = 1'200'000,
          .sdram_c_microvolts = 1'200'000,
          .sdram_i_microvolts = 1'200'000,
          .sdram_p_microvolts = 1'225'000,
          .mac = {0xb8, 0x27, 0xeb, 0x33, 0x64, 0x65},
          .clocks = clocks.data(),
          .num_clocks = static_cast<uint32_t>(clocks.size())};
}

constexpr Firmware kFirmwares[] = {
    {.kind = kEmbedded,
     .board = nullptr,
     .soc = &chip::kBcm2712,
     .timestamp = 1'778'502'002,
     .variant = 4,
     .hash = {0x66f33f7e, 0, 0, 0, 0},
     .version_text =
         "2026/05/11 12:20:02 \nCopyright (c) 2012 Broadcom\nversion 66f33f7e (release) (embedded)",
     .vc_memory_mib = 4,
     .idle_v3d = 0,
     .max_millidegrees = 85'000,
     .millidegrees = 48'300,
     .core_microvolts = 874'900,
     .sdram_c_microvolts = 600'000,
     .sdram_i_microvolts = 600'000,
     .sdram_p_microvolts = 1'100'000,
     .mac = {0x2c, 0xcf, 0x67, 0x33, 0x64, 0x65},
     .clocks = kClocksOf2712,
     .num_clocks = sizeof(kClocksOf2712) / sizeof(*kClocksOf2712)},
    {.kind = kStart4,
     .board = nullptr,
     .soc = &chip::kBcm2711,
     .timestamp = 1'725'045'551,
     .variant = 1,
     .hash = {0x2808975b, 0x80149bbf, 0xe8684465, 0x5fe45c7d, 0xe66fc078},
     .version_text = kVersionOf2024,
     .vc_memory_mib = 76,
     .idle_v3d = 250'000'496,
     .max_millidegrees = 85'000,
     .millidegrees = 48'700,
     .core_microvolts = 856'300,
     .sdram_c_microvolts = 1'100'000,
     .sdram_i_microvolts = 1'100'000,
     .sdram_p_microvolts = 1'100'000,
     .mac = {0xdc, 0xa6, 0x32, 0x33, 0x64, 0x65},
     .clocks = kClocksOf2711,
     .num_clocks = sizeof(kClocksOf2711) / sizeof(*kClocksOf2711)},
    start_elf(chip::kRpi3, kClocksOfPi3),
    start_elf(chip::kRpi2, kClocksOfPi2),
    start_elf(chip::kRpi1, kClocksOfPi1),
    start_elf(chip::kRpi0, kClocksOfPi0),
};

/// Whether the GPU has jobs now. Without a daemon it has none.
bool v3d_is_active() {
  constexpr char kCommand[] = "gpu_active";
  Call call(wire::kCommand, kCloseOnExec);
  return !call.open() && call.append(kCommand, strlen(kCommand)) && !call.send() && !call.error() &&
         call.reply_size() && *call.reply() == '1';
}

}  // namespace

static uint32_t told_memory_mib(const chip::Board& board) {
  return board.memory_mib() < 1024 ? board.memory_mib() : 1024;
}

uint32_t Firmware::kept_memory_mib(const chip::Board& on) const {
  const char* asked = on.soc->peripherals ? environment_variable(kMemoryVariable) : nullptr;
  const unsigned long mib = asked ? strtoul(asked, nullptr, 10) : 0;
  return mib > 0 && mib < told_memory_mib(on) ? static_cast<uint32_t>(mib) : vc_memory_mib;
}

uint32_t Firmware::arm_memory_mib(const chip::Board& on) const {
  return told_memory_mib(on) - kept_memory_mib(on);
}

const Firmware& firmware_of(const chip::Board& board) {
  for (const Firmware& firmware : kFirmwares)
    if (firmware.soc == board.soc && (!firmware.board || strcmp(firmware.board, board.name) == 0))
      return firmware;
  return kFirmwares[0];
}

const FirmwareClock* find_clock(const Firmware& firmware, uint32_t id) {
  for (uint32_t i = 0; id && i < firmware.num_clocks; ++i)
    if (firmware.clocks[i].id == id) return &firmware.clocks[i];
  return nullptr;
}

const FirmwareClock* find_clock(const Firmware& firmware, const char* name) {
  for (uint32_t i = 0; i < firmware.num_clocks; ++i)
    if (strcmp(firmware.clocks[i].name, name) == 0) return &firmware.clocks[i];
  return nullptr;
}

uint32_t measure_clock(const Firmware& firmware, const FirmwareClock& clock) {
  return clock.id == kV3d && !v3d_is_active() ? firmware.idle_v3d : clock.measured;
}

}  // namespace v3d::shim
