#include "shim/board/firmware.h"

#include <sys/mman.h>

#include <atomic>

#include "shim/board/firmware_calls.h"
#include "shim/link/connection.h"
#include "shim/process/config.h"
#include "shim/process/raw.h"
#include "shim/process/user_memory.h"
#include "shim/tree/tree.h"
#include "shim/tree/tree_content.h"

namespace v3d::shim {
namespace {

constexpr uint32_t kSuccess = 0x80000000;
/// The largest piece of memory that kmalloc gives, and where the firmware stops reading.
constexpr uint32_t kMostMemory = 4u << 20, kMostBytes = 1u << 20;

/// The value buffer of a tag, in which the answer replaces the request. What lies beyond its end is read as 0
/// and not written.
class Value {
 public:
  Value(uint32_t* words, uint32_t bytes) : words_(words), bytes_(bytes) {}
  uint32_t bytes() const { return bytes_; }
  uint32_t word(uint32_t i) const { return i < bytes_ / 4 ? words_[i] : 0; }
  void put(uint32_t i, uint32_t value) { put_bytes(i * 4, &value, sizeof(value)); }
  void put_bytes(uint32_t offset, const void* data, size_t size) {
    if (offset >= bytes_) return;
    memcpy(at(offset), data, size < bytes_ - offset ? size : bytes_ - offset);
  }
  /// @param offset  < bytes()
  char* at(uint32_t offset) { return reinterpret_cast<char*>(words_) + offset; }

 private:
  uint32_t* words_;
  uint32_t bytes_;
};

struct Asked {
  const chip::Board& board;
  const Firmware& firmware;
};

/// Bytes of the answer, which may be more than there is room for; kRefused: this board's firmware would
/// answer, and here it is refused.
constexpr uint32_t kRefused = ~0u;
using Answer = uint32_t(const Asked& asked, Value* value);

uint32_t answer_words(Value* value, uint32_t first) {
  value->put(0, first);
  return 4;
}
uint32_t answer_words(Value* value, uint32_t first, uint32_t second) {
  value->put(0, first);
  value->put(1, second);
  return 8;
}
/// After the number that was asked for, which stays.
uint32_t answer_of(Value* value, uint32_t answer) { return answer_words(value, value->word(0), answer); }

uint32_t get_hash(const Asked& asked, Value* value) {
  value->put_bytes(0, asked.firmware.hash, sizeof(asked.firmware.hash));
  return sizeof(asked.firmware.hash);
}

uint32_t get_mac(const Asked& asked, Value* value) {
  value->put_bytes(0, asked.firmware.mac, sizeof(asked.firmware.mac));
  return sizeof(asked.firmware.mac);
}

uint32_t get_serial(const Asked& asked, Value* value) {
  return answer_words(value, static_cast<uint32_t>(asked.board.serial),
                      static_cast<uint32_t>(asked.board.serial >> 32));
}

uint32_t get_arm_memory(const Asked& asked, Value* value) {
  return answer_words(value, 0, asked.firmware.arm_memory_mib(asked.board) << 20);
}
uint32_t get_vc_memory(const Asked& asked, Value* value) {
  return answer_words(value, asked.firmware.arm_memory_mib(asked.board) << 20,
                      asked.firmware.kept_memory_mib(asked.board) << 20);
}

/// Pairs of a parent, of which none has one, and a number.
uint32_t get_clocks(const Asked& asked, Value* value) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < asked.firmware.num_clocks; ++i) {
    if (!asked.firmware.clocks[i].id) continue;
    value->put(at++, 0);
    value->put(at++, asked.firmware.clocks[i].id);
  }
  return at * 4;
}

uint32_t get_clock_state(const Asked& asked, Value* value) {
  constexpr uint32_t kOn = 1, kNoSuchClock = 2;
  const FirmwareClock* clock = find_clock(asked.firmware, value->word(0));
  return answer_of(value, !clock ? kNoSuchClock : measure_clock(asked.firmware, *clock) ? kOn : 0);
}
uint32_t get_clock_rate(const Asked& asked, Value* value) {
  const FirmwareClock* clock = find_clock(asked.firmware, value->word(0));
  return answer_of(value, !clock ? 0 : clock->max ? clock->max : clock->measured);
}
uint32_t get_min_clock_rate(const Asked& asked, Value* value) {
  const FirmwareClock* clock = find_clock(asked.firmware, value->word(0));
  return answer_of(value, !clock ? 0 : clock->min ? clock->min : clock->measured);
}
uint32_t measure_clock_rate(const Asked& asked, Value* value) {
  const FirmwareClock* clock = find_clock(asked.firmware, value->word(0));
  return answer_of(value, clock ? measure_clock(asked.firmware, *clock) : 0);
}

uint32_t get_voltage(const Asked& asked, Value* value) {
  const Firmware& f = asked.firmware;
  const uint32_t microvolts[] = {0, f.core_microvolts, f.sdram_c_microvolts, f.sdram_p_microvolts,
                                 f.sdram_i_microvolts};
  const uint32_t id = value->word(0);
  return answer_of(value, id < sizeof(microvolts) / sizeof(*microvolts) ? microvolts[id] : 0);
}

uint32_t get_stc(const Asked&, Value* value) {
  const uint64_t us = raw::monotonic_ns() / 1000;
  return answer_words(value, static_cast<uint32_t>(us), static_cast<uint32_t>(us >> 32));
}

/// Of the monitor at the first connector, as the daemon shows it: the number of the block, a status, the
/// block.
uint32_t get_edid_block(const Asked&, Value* value) {
  constexpr char kCommand[] = "sysfs HDMI-A-1/edid";
  constexpr uint32_t kBlock = 128, kFound = 0, kMissing = 1;
  const uint64_t start = uint64_t{value->word(0)} * kBlock;
  uint8_t block[kBlock] = {};
  Call call(wire::kCommand, kStartDaemon | kCloseOnExec);
  const bool found = !call.open() && call.append(kCommand, strlen(kCommand)) && !call.send() &&
                     !call.error() && start + kBlock <= call.reply_size();
  if (found) memcpy(block, call.reply() + start, kBlock);
  value->put(1, found ? kFound : kMissing);
  value->put_bytes(8, block, kBlock);
  return 8 + kBlock;
}

/// The request is a word and a text, and so is the answer: an error, and what the command says.
uint32_t run_command(const Asked& asked, Value* value) {
  constexpr uint32_t kText = 4;  // where the text begins
  char command[1024];
  uint32_t size = 0;
  for (; kText + size < value->bytes() && size + 1 < sizeof(command) && *value->at(kText + size); ++size)
    command[size] = *value->at(kText + size);
  command[size] = '\0';
  CommandAnswer answer;
  value->put(0, static_cast<uint32_t>(run_firmware_command(asked.board, command, &answer)));
  value->put_bytes(kText, answer.c_str(), answer.size() + 1);
  if (value->bytes() > kText) *value->at(value->bytes() - 1) = '\0';
  return static_cast<uint32_t>(kText + answer.size() + 1);
}

/// What the daemon does, of one word as answer.
template <wire::FirmwareCall call>
uint32_t call_for_programs(const Asked&, Value* value) {
  uint32_t answer;
  if (!has_user_programs() ||
      call_firmware(call, value->word(0), value->word(1), value->word(2), &answer) != 0)
    return kRefused;
  return answer_words(value, answer);
}
/// Programs, where their list is, whether caches are left as they are (here they always are coherent), ms.
uint32_t execute_qpu(const Asked&, Value* value) {
  uint32_t answer;
  if (!has_user_programs() || call_firmware(wire::FirmwareCall::kExecute, value->word(0), value->word(1),
                                            value->word(3), &answer) != 0)
    return kRefused;
  return answer_words(value, answer);
}

struct Property {
  uint32_t tag;
  const char* name;
  Answer* answer;  ///< nullptr: the firmware would; here it is refused, with a message
};

constexpr uint32_t kGencmd = 0x00030080;
/// [K] raspberrypi-firmware.h. What is not here the firmware does not know.
constexpr Property kProperties[] = {
    {0x00000001, "GET_FIRMWARE_REVISION",
     [](const Asked& asked, Value* value) { return answer_words(value, asked.firmware.timestamp); }},
    {0x00000002, "GET_FIRMWARE_VARIANT",
     [](const Asked& asked, Value* value) { return answer_words(value, asked.firmware.variant); }},
    {0x00000003, "GET_FIRMWARE_HASH", get_hash},
    {0x00010001, "GET_BOARD_MODEL", [](const Asked&, Value* value) { return answer_words(value, 0); }},
    {0x00010002, "GET_BOARD_REVISION",
     [](const Asked& asked, Value* value) { return answer_words(value, asked.board.revision); }},
    {0x00010003, "GET_BOARD_MAC_ADDRESS", get_mac},
    {0x00010004, "GET_BOARD_SERIAL", get_serial},
    {0x00010005, "GET_ARM_MEMORY", get_arm_memory},
    {0x00010006, "GET_VC_MEMORY", get_vc_memory},
    {0x00010007, "GET_CLOCKS", get_clocks},
    {0x00030001, "GET_CLOCK_STATE", get_clock_state},
    {0x00030002, "GET_CLOCK_RATE", get_clock_rate},
    {0x00030003, "GET_VOLTAGE", get_voltage},
    {0x00030004, "GET_MAX_CLOCK_RATE", get_clock_rate},
    {0x00030005, "GET_MAX_VOLTAGE", get_voltage},
    {0x00030006, "GET_TEMPERATURE",
     [](const Asked& asked, Value* value) { return answer_of(value, asked.firmware.millidegrees); }},
    {0x00030007, "GET_MIN_CLOCK_RATE", get_min_clock_rate},
    {0x00030008, "GET_MIN_VOLTAGE", get_voltage},
    {0x00030009, "GET_TURBO", [](const Asked&, Value* value) { return answer_of(value, 0); }},
    {0x0003000a, "GET_MAX_TEMPERATURE",
     [](const Asked& asked, Value* value) { return answer_of(value, asked.firmware.max_millidegrees); }},
    {0x0003000b, "GET_STC", get_stc},
    {0x00030020, "GET_EDID_BLOCK", get_edid_block},
    {0x00030046, "GET_THROTTLED", [](const Asked&, Value* value) { return answer_words(value, 0); }},
    {0x00030047, "GET_CLOCK_MEASURED", measure_clock_rate},
    {kGencmd, "GET_GENCMD_RESULT", run_command},
    {0x0003000c, "ALLOCATE_MEMORY", call_for_programs<wire::FirmwareCall::kAllocate>},
    {0x0003000d, "LOCK_MEMORY", call_for_programs<wire::FirmwareCall::kLock>},
    {0x0003000e, "UNLOCK_MEMORY", call_for_programs<wire::FirmwareCall::kUnlock>},
    {0x0003000f, "RELEASE_MEMORY", call_for_programs<wire::FirmwareCall::kRelease>},
    {0x00030011, "EXECUTE_QPU", execute_qpu},
    {0x00030012, "SET_ENABLE_QPU", call_for_programs<wire::FirmwareCall::kEnable>},

    {0x00030010, "EXECUTE_CODE", nullptr},
    {0x00030030, "GET_DOMAIN_STATE", nullptr},
    {0x00038001, "SET_CLOCK_STATE", nullptr},
    {0x00038002, "SET_CLOCK_RATE", nullptr},
    {0x00038003, "SET_VOLTAGE", nullptr},
    {0x00038009, "SET_TURBO", nullptr},
    {0x00038030, "SET_DOMAIN_STATE", nullptr},
    {0x00040001, "FRAMEBUFFER_ALLOCATE", nullptr},
    {0x00040002, "FRAMEBUFFER_BLANK", nullptr},
    {0x00040003, "FRAMEBUFFER_GET_PHYSICAL_WIDTH_HEIGHT", nullptr},
    {0x00040004, "FRAMEBUFFER_GET_VIRTUAL_WIDTH_HEIGHT", nullptr},
    {0x00040013, "FRAMEBUFFER_GET_NUM_DISPLAYS", nullptr},
    {0x00050001, "GET_COMMAND_LINE", nullptr},
    {0x00060001, "GET_DMA_CHANNELS", nullptr},
};

constexpr size_t kNumProperties = sizeof(kProperties) / sizeof(*kProperties);
static_assert(kNumProperties <= 64, "told_of is one word");
std::atomic<uint64_t> told_of{0};

/// Once a process.
void say_not_implemented(size_t row) {
  if (told_of.fetch_or(uint64_t{1} << row) >> row & 1) return;
  Text<16> tag;
  tag.add(uint64_t{kProperties[row].tag}, 16);
  complain("/dev/vcio: not implemented: the property 0x", tag.c_str(),
           Text<64>().add(" (").add(kProperties[row].name).add(")").c_str());
}

bool answer_tag(const Asked& asked, uint32_t tag, Value* value, uint32_t* size) {
  for (size_t row = 0; row < kNumProperties; ++row) {
    if (kProperties[row].tag != tag) continue;
    *size = kProperties[row].answer ? kProperties[row].answer(asked, value) : kRefused;
    if (*size == kRefused) say_not_implemented(row);
    return *size != kRefused;
  }
  return false;
}

/// Calls `visit` with the index of each tag's first word, until it is not 0 any more, which is the result.
/// -EINVAL when a value is larger than the rest. A rest that has no room for a tag says nothing: vcgencmd
/// leaves a word of it unset.
template <typename Visit>
int visit_tags(const uint32_t* words, uint32_t num_words, Visit visit) {
  constexpr uint32_t kHead = 3;  // words: tag, room for the value, size of the answer
  for (uint32_t at = 2; num_words - at >= kHead && words[at];) {
    const uint32_t bytes = words[at + 1], room = (num_words - at - kHead) * 4;
    if (bytes > room) return -EINVAL;
    if (const int result = visit(at)) return result;
    at += kHead + (bytes + 3) / 4;
  }
  return 0;
}

/// The kernel's part ([R] drivers/char/broadcom/vcio.c; [K] drivers/firmware/raspberrypi.c) and the
/// firmware's, which marks the whole list as failed when it does not know a tag: that is EINVAL, and the
/// caller's list stays as it was.
int answer_list(uint32_t* words, uint32_t bytes, bool commands_only) {
  const uint32_t num_words = bytes / 4;
  if (commands_only) {
    const int error =
        visit_tags(words, num_words, [&](uint32_t at) { return words[at] == kGencmd ? 0 : -EPERM; });
    if (error) return error;
  }
  if (bytes % 4 || bytes >= kMostBytes) return -EINVAL;
  const Tree* nodes = tree();
  if (!nodes) return -ENODEV;
  const chip::Board& board = board_of(nodes->chip);
  const Asked asked{board, firmware_of(board)};
  const int error = visit_tags(words, num_words, [&](uint32_t at) {
    Value value(words + at + 3, words[at + 1]);
    uint32_t size = 0;
    if (!answer_tag(asked, words[at], &value, &size)) return -EINVAL;
    words[at + 2] = kSuccess | size;
    return 0;
  });
  words[1] = kSuccess;
  return error;
}

// Programs of boards that run systems of 32 bits say so in numbers, and are built for 64 here.
constexpr uint32_t kProperty = 3u << 30 | 100 << 8 | uint32_t{sizeof(char*)} << 16,
                   kPropertyOf32Bits = 3u << 30 | 100 << 8 | 4 << 16;

}  // namespace

bool is_firmware_request(uint32_t request) { return request == kProperty || request == kPropertyOf32Bits; }

int firmware_ioctl(uint32_t request, uint64_t argument, bool commands_only) {
  if (!is_firmware_request(request) || (request != kProperty && !has_user_programs())) return -EINVAL;
  uint32_t bytes;
  if (!copy_from_user(&bytes, argument, sizeof(bytes))) return -EFAULT;
  if (bytes < 12) return -EINVAL;
  auto* words = static_cast<uint32_t*>(bytes > kMostMemory ? nullptr : raw::map_memory(bytes));
  if (!words) return -ENOMEM;
  int error = copy_from_user(words, argument, bytes) ? answer_list(words, bytes, commands_only) : -EFAULT;
  if (!error && !copy_to_user(argument, words, bytes)) error = -EFAULT;
  raw::unmap_memory(words, bytes);
  return error;
}

}  // namespace v3d::shim
