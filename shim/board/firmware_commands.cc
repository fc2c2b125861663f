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

/// One thousandth and the like behind a point. @param digits  how many there are
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
  const uint32_t gpu = asked.firmware.vc_memory_mib;
  if (strcmp(asked.argument, "arm") == 0)
    answer->add("arm=").add(uint64_t{1024 - gpu}).add('M');
  else if (strcmp(asked.argument, "gpu") == 0)
    answer->add("gpu=").add(uint64_t{gpu}).add('M');
  else
    answer->add(kInvalidArguments);
}

void get_throttled(const Asked&, CommandAnswer* answer) { answer->add("throttled=0x0"); }

void version(const Asked& asked, CommandAnswer* answer) { answer->add(asked.firmware.version_text); }

/// Of the codecs that a firmware has had the Pi 4's has one left, and the Pi 5's none.
void codec_enabled(const Asked& asked, CommandAnswer* answer) {
  const bool enabled = asked.firmware.kind == kStart4 && strcmp(asked.argument, "H264") == 0;
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
constexpr Setting kIntegers[] = {{kBoth, "arm_64bit", "1"},
                                 {kBoth, "arm_boost", "1"},
                                 {kStart4, "arm_freq", "1800"},
                                 {kStart4, "arm_freq_min", "600"},
                                 {kEmbedded, "arm_freq", "2400"},
                                 {kEmbedded, "arm_freq_min", "1500"},
                                 {kEmbedded, "arm_peri_high", "1"},
                                 {kStart4, "audio_pwm_mode", "514"},
                                 {kEmbedded, "audio_pwm_mode", "2"},
                                 {kBoth, "auto_initramfs", "1"},
                                 {kBoth, "camera_auto_detect", "1"},
                                 {kStart4, "config_hdmi_boost", "5"},
                                 {kStart4, "core_freq", "500"},
                                 {kStart4, "core_freq_min", "200"},
                                 {kEmbedded, "core_freq", "910"},
                                 {kEmbedded, "core_freq_min", "500"},
                                 {kBoth, "disable_commandline_tags", "2"},
                                 {kBoth, "disable_fw_kms_setup", "1"},
                                 {kBoth, "disable_l2cache", "1"},
                                 {kBoth, "disable_overscan", "1"},
                                 {kBoth, "display_auto_detect", "1"},
                                 {kEmbedded, "display_default_lcd", "-1"},
                                 {kBoth, "display_hdmi_rotate", "-1"},
                                 {kBoth, "display_lcd_rotate", "-1"},
                                 {kStart4, "dvfs", "3"},
                                 {kEmbedded, "dvfs", "4"},
                                 {kBoth, "enable_gic", "1"},
                                 {kBoth, "force_eeprom_read", "1"},
                                 {kBoth, "force_pwm_open", "1"},
                                 {kBoth, "framebuffer_depth", "16"},
                                 {kBoth, "framebuffer_ignore_alpha", "1"},
                                 {kBoth, "framebuffer_swap", "1"},
                                 {kStart4, "gpu_freq", "500"},
                                 {kStart4, "gpu_freq_min", "250"},
                                 {kEmbedded, "gpu_freq_min", "500"},
                                 {kEmbedded, "hdmi_enable_4kp60", "1"},
                                 {kEmbedded, "hevc_freq", "910"},
                                 {kEmbedded, "hevc_freq_min", "500"},
                                 {kBoth, "init_uart_clock", "0x2dc6c00"},
                                 {kBoth, "initial_turbo", "60"},
                                 {kEmbedded, "isp_freq", "910"},
                                 {kEmbedded, "isp_freq_min", "500"},
                                 {kBoth, "max_framebuffers", "2"},
                                 {kBoth, "pause_burst_frames", "1"},
                                 {kBoth, "pciex4_reset", "1"},
                                 {kBoth, "pmic_turbo_threshold", "600"},
                                 {kBoth, "program_serial_random", "1"},
                                 {kBoth, "total_mem", nullptr},
                                 {kEmbedded, "v3d_freq", "960"},
                                 {kEmbedded, "v3d_freq_min", "500"},
                                 {kBoth, "hdmi_force_cec_address:0", "65535"},
                                 {kBoth, "hdmi_force_cec_address:1", "65535"},
                                 {kStart4, "hdmi_pixel_freq_limit:0", "0x11e1a300"},
                                 {kStart4, "hdmi_pixel_freq_limit:1", "0x11e1a300"}};
constexpr Setting kStrings[] = {{kBoth, "device_tree", "-"},         {kBoth, "overlay_prefix", "overlays/"},
                                {kBoth, "hdmi_cvt:0", ""},           {kBoth, "hdmi_cvt:1", ""},
                                {kBoth, "hdmi_edid_filename:0", ""}, {kBoth, "hdmi_edid_filename:1", ""},
                                {kBoth, "hdmi_timings:0", ""},       {kBoth, "hdmi_timings:1", ""}};

bool has(const Asked& asked, const Setting& setting) { return (setting.of & asked.firmware.kind) != 0; }

void add_setting(const Asked& asked, const Setting& setting, CommandAnswer* answer) {
  answer->add(setting.name).add('=');
  if (setting.value)
    answer->add(setting.value);
  else
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
constexpr Command kCommands[] = {{kBoth, "commands", list_commands},
                                 {kBoth, "codec_enabled", codec_enabled},
                                 {kBoth, "get_mem", get_mem},
                                 {kBoth, "measure_clock", measure_clock},
                                 {kBoth, "measure_temp", measure_temp},
                                 {kBoth, "measure_volts", measure_volts},
                                 {kBoth, "get_config", get_config},
                                 {kBoth, "get_throttled", get_throttled},
                                 {kBoth, "version", version},
                                 {kStart4, "get_camera", get_camera},
                                 {kStart4, "display_power", display_power},
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
