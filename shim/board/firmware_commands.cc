/// Text commands of the firmware, which vcgencmd sends (board-environment.md 6).
#include "shim/board/firmware.h"
#include "shim/process/raw.h"

namespace v3d::shim {
namespace {

constexpr char kInvalidArguments[] = "error=2 error_msg=\"Invalid arguments\"";

struct Asked {
  const chip::Board& board;
  const Firmware& firmware;
  const char* argument;  ///< the first; "": none
};

/// One thousandth and the like after a point. @param digits  how many there are
void add_decimal(CommandAnswer* answer, uint64_t value, int digits) {
  uint64_t unit = 1;
  for (int i = 0; i < digits; ++i) unit *= 10;
  answer->add(value / unit).add('.');
  for (unit /= 10; unit; unit /= 10) answer->add(value / unit % 10);
}

void measure_clock(const Asked& asked, CommandAnswer* answer) {
  if (!*asked.argument) {
    answer->add(kInvalidArguments);
    return;
  }
  const FirmwareClock* clock = find_clock(asked.firmware, asked.argument);
  answer->add("frequency(").add(uint64_t{clock ? clock->number : 0}).add(")=");
  answer->add(uint64_t{clock ? measure_clock(asked.firmware, *clock) : 0});
}

/// A name that is none of a voltage measures the core's.
void measure_volts(const Asked& asked, CommandAnswer* answer) {
  const Firmware& f = asked.firmware;
  const struct {
    const char* name;
    uint32_t microvolts;
  } rails[] = {{"sdram_c", f.sdram_c_microvolts},
               {"sdram_i", f.sdram_i_microvolts},
               {"sdram_p", f.sdram_p_microvolts}};
  uint32_t microvolts = f.core_microvolts;
  for (const auto& rail : rails)
    if (strcmp(rail.name, asked.argument) == 0) microvolts = rail.microvolts;
  answer->add("volt=");
  add_decimal(answer, microvolts / 100, 4);
  answer->add('V');
}

void measure_temp(const Asked& asked, CommandAnswer* answer) {
  answer->add("temp=");
  add_decimal(answer, asked.firmware.millidegrees / 100, 1);
  answer->add("'C");
}

void get_mem(const Asked& asked, CommandAnswer* answer) {
  const uint32_t gpu = asked.firmware.kept_memory_mib(asked.board);
  if (strcmp(asked.argument, "arm") == 0)
    answer->add("arm=").add(uint64_t{asked.firmware.arm_memory_mib(asked.board)}).add('M');
  else if (strcmp(asked.argument, "gpu") == 0)
    answer->add("gpu=").add(uint64_t{gpu}).add('M');
  else
    answer->add(kInvalidArguments);
}

void get_throttled(const Asked&, CommandAnswer* answer) { answer->add("throttled=0x0"); }

void version(const Asked& asked, CommandAnswer* answer) { answer->add(asked.firmware.version_text); }

/// Of the codecs that a firmware has had that of the Pi 5 has none left, and the others one.
void codec_enabled(const Asked& asked, CommandAnswer* answer) {
  const bool enabled = (asked.firmware.kind & kFromCard) != 0 && strcmp(asked.argument, "H264") == 0;
  if (*asked.argument)
    answer->add(asked.argument).add(enabled ? "=enabled" : "=disabled");
  else
    answer->add(kInvalidArguments);
}

void display_power(const Asked&, CommandAnswer* answer) { answer->add("display_power=1"); }

void get_camera(const Asked&, CommandAnswer* answer) {
  answer->add("supported=0 detected=0, libcamera interfaces=0");
}

/// A configuration value, in the order in which the firmware lists them.
struct Setting {
  FirmwareKind of;
  const char* name;
  const char* value;  ///< nullptr: of the board
};
constexpr Setting kIntegers[] = {{kAny, "arm_64bit", "1"},
                                 {kAny, "arm_boost", "1"},
                                 {kAny, "arm_freq", nullptr},
                                 {kAny, "arm_freq_min", nullptr},
                                 {kEmbedded, "arm_peri_high", "1"},
                                 {kFromCard, "audio_pwm_mode", "514"},
                                 {kEmbedded, "audio_pwm_mode", "2"},
                                 {kAny, "auto_initramfs", "1"},
                                 {kAny, "camera_auto_detect", "1"},
                                 {kFromCard, "config_hdmi_boost", "5"},
                                 {kAny, "core_freq", nullptr},
                                 {kAny, "core_freq_min", nullptr},
                                 {kAny, "disable_commandline_tags", "2"},
                                 {kAny, "disable_fw_kms_setup", "1"},
                                 {kAny, "disable_l2cache", "1"},
                                 {kAny, "disable_overscan", "1"},
                                 {kAny, "display_auto_detect", "1"},
                                 {kEmbedded, "display_default_lcd", "-1"},
                                 {kAny, "display_hdmi_rotate", "-1"},
                                 {kAny, "display_lcd_rotate", "-1"},
                                 {kStart4, "dvfs", "3"},
                                 {kEmbedded, "dvfs", "4"},
                                 {kAny, "enable_gic", "1"},
                                 {kAny, "force_eeprom_read", "1"},
                                 {kAny, "force_pwm_open", "1"},
                                 {kAny, "framebuffer_depth", "16"},
                                 {kAny, "framebuffer_ignore_alpha", "1"},
                                 {kAny, "framebuffer_swap", "1"},
                                 {kFromCard, "gpu_freq", nullptr},
                                 {kFromCard, "gpu_freq_min", nullptr},
                                 {kEmbedded, "gpu_freq_min", "500"},
                                 {kEmbedded, "hdmi_enable_4kp60", "1"},
                                 {kEmbedded, "hevc_freq", nullptr},
                                 {kEmbedded, "hevc_freq_min", nullptr},
                                 {kAny, "init_uart_clock", "0x2dc6c00"},
                                 {kAny, "initial_turbo", "60"},
                                 {kEmbedded, "isp_freq", nullptr},
                                 {kEmbedded, "isp_freq_min", nullptr},
                                 {kAny, "max_framebuffers", "2"},
                                 {kAny, "pause_burst_frames", "1"},
                                 {kAny, "pciex4_reset", "1"},
                                 {kAny, "pmic_turbo_threshold", "600"},
                                 {kAny, "program_serial_random", "1"},
                                 {kAny, "total_mem", nullptr},
                                 {kEmbedded, "v3d_freq", nullptr},
                                 {kEmbedded, "v3d_freq_min", nullptr},
                                 {kAny, "hdmi_force_cec_address:0", "65535"},
                                 {kAny, "hdmi_force_cec_address:1", "65535"},
                                 {kStart4, "hdmi_pixel_freq_limit:0", "0x11e1a300"},
                                 {kStart4, "hdmi_pixel_freq_limit:1", "0x11e1a300"}};
constexpr Setting kStrings[] = {{kAny, "device_tree", "-"},         {kAny, "overlay_prefix", "overlays/"},
                                {kAny, "hdmi_cvt:0", ""},           {kAny, "hdmi_cvt:1", ""},
                                {kAny, "hdmi_edid_filename:0", ""}, {kAny, "hdmi_edid_filename:1", ""},
                                {kAny, "hdmi_timings:0", ""},       {kAny, "hdmi_timings:1", ""}};

bool has(const Asked& asked, const Setting& setting) { return (setting.of & asked.firmware.kind) != 0; }

/// A limit of the clock in whose name a setting begins, in MHz. False: of none.
bool add_clock(const Firmware& firmware, const char* setting, CommandAnswer* answer) {
  constexpr char kFrequency[] = "_freq", kGpu[] = "gpu";
  const char* const end = strstr(setting, kFrequency);
  if (!end) return false;
  Text<16> name;
  name.add(setting, static_cast<size_t>(end - setting));
  const bool is_gpu = strcmp(name.c_str(), kGpu) == 0;
  const FirmwareClock* clock = find_clock(firmware, is_gpu ? "v3d" : name.c_str());
  if (!clock) return false;
  const bool is_least = end[sizeof(kFrequency) - 1] != '\0';
  answer->add(uint64_t{is_least ? clock->min : clock->max} / 1'000'000);
  return true;
}

void add_setting(const Asked& asked, const Setting& setting, CommandAnswer* answer) {
  answer->add(setting.name).add('=');
  if (setting.value)
    answer->add(setting.value);
  else if (!add_clock(asked.firmware, setting.name, answer))
    answer->add(uint64_t{asked.board.memory_mib()});
}

template <size_t kNum>
void list_settings(const Asked& asked, const Setting (&settings)[kNum], CommandAnswer* answer) {
  for (const Setting& setting : settings) {
    if (!has(asked, setting)) continue;
    if (answer->size()) answer->add('\n');
    add_setting(asked, setting, answer);
  }
}

template <size_t kNum>
bool add_named(const Asked& asked, const Setting (&settings)[kNum], CommandAnswer* answer) {
  for (const Setting& setting : settings) {
    if (!has(asked, setting) || strcmp(setting.name, asked.argument) != 0) continue;
    add_setting(asked, setting, answer);
    return true;
  }
  return false;
}

/// A number that config.txt does not set is 0.
void get_config(const Asked& asked, CommandAnswer* answer) {
  if (!*asked.argument)
    answer->add(kInvalidArguments);
  else if (strcmp(asked.argument, "int") == 0)
    list_settings(asked, kIntegers, answer);
  else if (strcmp(asked.argument, "str") == 0)
    list_settings(asked, kStrings, answer);
  else if (!add_named(asked, kIntegers, answer) && !add_named(asked, kStrings, answer))
    answer->add(asked.argument).add("=0");
}

/// What the power management of a Pi 5 measures, at rest. Values in units of 10 nA and 10 nV.
struct Rail {
  const char* name;
  const char* kind;
  uint32_t channel;
  uint32_t value;
};
constexpr Rail kRails[] = {{"3V7_WL_SW_A", "current", 0, 7'709'848}, {"3V3_SYS_A", "current", 1, 4'782'057},
                           {"1V8_SYS_A", "current", 2, 11'515'970},  {"DDR_VDD2_A", "current", 3, 780'744},
                           {"DDR_VDDQ_A", "current", 4, 0},          {"1V1_SYS_A", "current", 5, 17'664'330},
                           {"0V8_SW_A", "current", 6, 33'084'030},   {"VDD_CORE_A", "current", 7, 94'657'990},
                           {"3V3_DAC_A", "current", 17, 146'520},    {"3V3_ADC_A", "current", 18, 140'415},
                           {"0V8_AON_A", "current", 16, 494'505},    {"HDMI_A", "current", 22, 1'697'190},
                           {"3V7_WL_SW_V", "volt", 8, 369'049'700},  {"3V3_SYS_V", "volt", 9, 329'982'600},
                           {"1V8_SYS_V", "volt", 10, 179'633'500},   {"DDR_VDD2_V", "volt", 11, 110'805'800},
                           {"DDR_VDDQ_V", "volt", 12, 60'329'610},   {"1V1_SYS_V", "volt", 13, 110'146'400},
                           {"0V8_SW_V", "volt", 14, 80'219'700},     {"VDD_CORE_V", "volt", 15, 87'490'000},
                           {"3V3_DAC_V", "volt", 20, 330'402'600},   {"3V3_ADC_V", "volt", 21, 329'670'000},
                           {"0V8_AON_V", "volt", 19, 79'941'320},    {"HDMI_V", "volt", 23, 511'612'000},
                           {"EXT5V_V", "volt", 24, 511'478'000},     {"BATT_V", "volt", 25, 1'880'340}};

void pmic_read_adc(const Asked& asked, CommandAnswer* answer) {
  constexpr size_t kWidth = 13;
  for (const Rail& rail : kRails) {
    if (*asked.argument && strcmp(asked.argument, rail.name) != 0) continue;
    if (answer->size()) answer->add('\n');
    for (size_t i = strlen(rail.name); i < kWidth; ++i) answer->add(' ');
    answer->add(rail.name).add(' ').add(rail.kind).add('(').add(uint64_t{rail.channel}).add(")=");
    add_decimal(answer, rail.value, 8);
    answer->add(*rail.kind == 'c' ? 'A' : 'V');
  }
}

void list_commands(const Asked& asked, CommandAnswer* answer);

struct Command {
  FirmwareKind of;
  const char* name;
  void (*run)(const Asked& asked, CommandAnswer* answer);
};
constexpr Command kCommands[] = {{kAny, "commands", list_commands},
                                 {kAny, "codec_enabled", codec_enabled},
                                 {kAny, "get_mem", get_mem},
                                 {kAny, "measure_clock", measure_clock},
                                 {kAny, "measure_temp", measure_temp},
                                 {kAny, "measure_volts", measure_volts},
                                 {kAny, "get_config", get_config},
                                 {kAny, "get_throttled", get_throttled},
                                 {kAny, "version", version},
                                 {kFromCard, "get_camera", get_camera},
                                 {kFromCard, "display_power", display_power},
                                 {kEmbedded, "pmic_read_adc", pmic_read_adc}};

bool has(const Firmware& firmware, const Command& command) { return (command.of & firmware.kind) != 0; }

void list_commands(const Asked& asked, CommandAnswer* answer) {
  answer->add("commands=\"");
  bool first = true;
  for (const Command& command : kCommands) {
    if (!has(asked.firmware, command)) continue;
    answer->add(first ? "" : ", ").add(command.name);
    first = false;
  }
  answer->add('"');
}

/// Ends the first word of a text. @return where the next one begins
char* end_word(char* text) {
  text += strcspn(text, " ");
  while (*text == ' ') *text++ = '\0';
  return text;
}

}  // namespace

int32_t run_firmware_command(const chip::Board& board, char* command, CommandAnswer* answer) {
  char* name = command + strspn(command, " ");
  char* argument = end_word(name);
  end_word(argument);
  const Asked asked{board, firmware_of(board), argument};
  for (const Command& known : kCommands) {
    if (!has(asked.firmware, known) || strcmp(known.name, name) != 0) continue;
    known.run(asked, answer);
    return 0;
  }
  answer->add("error=1 error_msg=\"Command not registered\"");
  return -1;
}

}  // namespace v3d::shim
