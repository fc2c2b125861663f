/// /dev/vcio is the mailbox by which programs ask the firmware for properties of the board
/// (board-environment.md 6).
#pragma once

#include <cstdint>

#include "gpu/chip/board.h"
#include "shim/process/text.h"

namespace v3d::shim {

/// MiB of its memory that the firmware of a board before the Pi 4 keeps, as gpu_mem in config.txt.
inline constexpr char kMemoryVariable[] = "V3DEMU_GPU_MEM";

/// Whether it is the request word that /dev/vcio takes, of a system of 64 or of 32 bits.
bool is_firmware_request(uint32_t request);

/// 0 or a negative errno. @param argument  address in the caller's memory
/// @param commands_only  of /dev/vcio_gencmd, which refuses what is no text command
int firmware_ioctl(uint32_t request, uint64_t argument, bool commands_only);

/// A clock of the firmware's. Rates in Hz.
struct FirmwareClock {
  uint32_t id;        ///< in properties; 0: it has none there
  const char* name;   ///< in text commands
  uint32_t number;    ///< in the answer of measure_clock
  uint32_t min, max;  ///< 0: the clock does not change
  uint32_t measured;  ///< as boards tell it at `max`
};
/// start4.elf, the one in the EEPROM of a Pi 5, and start.elf of boards with VideoCore IV. Flags.
enum FirmwareKind : uint8_t {
  kStart4 = 1,
  kEmbedded = 2,
  kStart = 4,
  kFromCard = kStart4 | kStart,
  kAny = kFromCard | kEmbedded
};

/// What one firmware says that the others do not.
struct Firmware {
  FirmwareKind kind;
  const char* board;            ///< by name; null: all of the SoC
  const chip::Soc* soc;         ///< on which it runs
  uint32_t timestamp, variant;  ///< variant: 1 "start", 4 "start_cd"
  uint32_t hash[5];
  const char* version_text;  ///< what the command `version` says
  uint32_t vc_memory_mib;    ///< that the ARM does not get of the first GiB, where nobody says
  uint32_t idle_v3d;         ///< Hz of the V3D's clock without jobs
  uint32_t max_millidegrees, millidegrees;
  uint32_t core_microvolts, sdram_c_microvolts, sdram_i_microvolts, sdram_p_microvolts;
  uint8_t mac[6];  ///< of the made-up serial number, with Raspberry Pi's prefix
  const FirmwareClock* clocks;
  uint32_t num_clocks;

  /// With what $V3DEMU_GPU_MEM says of boards that have a gpu_mem. The firmware tells of the first GiB alone.
  uint32_t kept_memory_mib(const chip::Board& on) const;
  uint32_t arm_memory_mib(const chip::Board& on) const;
};
const Firmware& firmware_of(const chip::Board& board);

const FirmwareClock* find_clock(const Firmware& firmware, uint32_t id);
const FirmwareClock* find_clock(const Firmware& firmware, const char* name);
/// What the clock runs at now: the V3D's by whether the daemon has jobs, the others at their most.
uint32_t measure_clock(const Firmware& firmware, const FirmwareClock& clock);

/// An answer to a text command: `get_config int` is the longest.
using CommandAnswer = Text<2048>;
/// A text command, as vcgencmd sends it; its text is cut into words. The error word of the answer.
int32_t run_firmware_command(const chip::Board& board, char* command, CommandAnswer* answer);

}  // namespace v3d::shim
