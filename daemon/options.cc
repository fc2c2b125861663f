#include "daemon/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gpu/base/left_out.h"
#include "gpu/base/log.h"
#include "ioctl/link/wire.h"

namespace v3d::daemon {
namespace {

constexpr char kFooter[] =
    R"(In the background messages go to v3demud.log beside the socket, or to $V3DEMU_LOG ("-": stderr). Daemons append to
them; beyond 4 MiB the former begins anew and the old one is v3demud.log.1. Of each client 10 errors and warnings of a
kind are written in 5 seconds; the rest is counted.
Exit status: 0 ended or already running, 1 cannot start, 2 wrong usage.)";

constexpr uint32_t kMostVblankHz = 1000;

struct Names {
  std::string device, kernel, memory, engine, vblank_hz, timing, left_out;
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// A check of numbers up to `most`, and from `least` on or above it.
auto number(double least, bool inclusive, double most, const char* what) {
  return [=](const std::string& text) {
    double value;
    const bool good =
        absl::SimpleAtod(text, &value) && (inclusive ? value >= least : value > least) && value <= most;
    return good ? std::string() : absl::StrCat("no ", what, ": ", text);
  };
}

void add_options(CLI::App* app, Options* options, Names* names) {
  app->add_option(
         "--socket", options->socket,
         "Control socket (default: $V3DEMU_SOCKET, else that of these settings in $XDG_RUNTIME_DIR/v3demu "
         "or /tmp/v3demu-UID: \"socket\", \"socket-rpi4\" ...)")
      ->option_text("PATH");
  app->add_option("--device", names->device, "Chip: " + device_names() + "; also $V3DEMU_DEVICE")
      ->option_text("NAME");
  app->add_option(
         "--kernel", names->kernel,
         "Linux whose driver interface is answered with: " + kernel_names() + "; also $V3DEMU_KERNEL")
      ->option_text("VERSION");
  app->add_option("--memory", names->memory,
                  "MiB that buffers are made of on rpi0 to rpi3 (default: the board's); also $V3DEMU_MEMORY")
      ->option_text("MIB");
  app->add_option("--exit-when-idle", options->exit_when_idle,
                  "Leave that long after the last client (default: never)")
      ->option_text("SECONDS")
      ->check(number(0, true, 1e6, "number of seconds"));
  app->add_flag(
      "--shed", options->shed,
      "Go by none of the limits, niceness, processors and umask of whoever starts it, as when a program's "
      "library does");
  app->add_flag("--foreground", options->foreground, "Stay attached to the terminal, log to stderr");
  app->add_option("--threads", options->threads,
                  "Threads that share out tiles and workgroups (default: one per core)")
      ->option_text("N")
      ->check(number(1, true, 1024, "number of threads"));
  app->add_option_function<uint64_t>(
         "--memory-limit",
         [options](uint64_t mebibytes) {
           options->limits.push_back(absl::StrCat("bo-bytes=", mebibytes << 20));
         },
         "Buffer memory of one client process (default: 4096)")
      ->option_text("MIB")
      ->check(number(1, true, 1 << 20, "size in MiB"));
  app->add_option_function<std::vector<std::string>>(
         "--limit",
         [options](const std::vector<std::string>& limits) {
           options->limits.insert(options->limits.end(), limits.begin(), limits.end());
         },
         "What one client process may hold of something, and all together; \"v3demu status\" shows them")
      ->option_text("NAME=N[:ALL]")
      ->allow_extra_args(false);
  app->add_option("--reset-after", options->reset_after,
                  "GPU time without progress after which a job is reset, as the kernel does (default: 1)")
      ->option_text("SECONDS")
      ->check(number(0, false, 1e6, "number of seconds"));
  app->add_option(
         "--jit", names->engine,
         "How QPU programs run: auto (compiled when it is worth it, default), off (interpreted), avx512, "
         "avx2 or neon (all compiled for these); also $V3DEMU_JIT")
      ->option_text("ENGINE");
  app->add_flag("--perf-map", options->perf_map,
                "Name compiled QPU programs for perf in /tmp/perf-PID.map; also $V3DEMU_PERF_MAP=1");
  app->add_option("--host-profile", options->host_profile,
                  "Write where the time of jobs went on this host to FILE at the end; also "
                  "$V3DEMU_HOST_PROFILE")
      ->option_text("FILE");
  app->add_option(
         "--leave-out", names->left_out,
         "Stages not to execute, to see what they cost: " + stage_names() + "; also $V3DEMU_LEAVE_OUT")
      ->option_text("LIST");
  app->add_option("--vblank-hz", names->vblank_hz,
                  "Frames per second that the display shows, 0: as many as there are (default: 60); also "
                  "$V3DEMU_VBLANK_HZ")
      ->option_text("N");
  app->add_option("--timing", names->timing,
                  "Times that the board would take: off (default), count (predicted, for performance "
                  "counters; slower), pace (and jobs end no earlier); also $V3DEMU_TIMING")
      ->option_text("MODE");
  app->add_flag("--no-execute", options->no_execute,
                "Accept jobs but execute none: measures drivers and the daemon alone; also "
                "$V3DEMU_NO_EXECUTE=1");
  app->add_option("--capture", options->capture,
                  "Write every job with the memory that it finds to FILE; also $V3DEMU_CAPTURE")
      ->option_text("FILE");
  app->add_option("--debug", options->debug,
                  "Categories of messages (\"help\" lists them); also $V3DEMU_DEBUG")
      ->option_text("LIST");
}

/// What the options made of each setting; what is no option, the environment says alone.
Settings settings_of(const Options& options, const Names& names) {
  Settings settings = usual_settings();
  const std::pair<std::string_view, std::string> said[] = {
      {"device", options.board.profile->name},
      {"kernel", options.board.abi->name},
      {"memory", names.memory},
      {"timing", timing_mode_name(options.timing)},
      {"engine", names.engine},
      {"vblank-hz", absl::StrCat(options.vblank_hz)},
      {"no-execute", options.no_execute ? "1" : "0"},
      {"capture", options.capture},
      {"debug", options.debug},
      {"perf-map", options.perf_map ? "1" : "0"},
      {"host-profile", options.host_profile},
      {"leave-out", names.left_out},
  };
  for (size_t i = 0; i < place::kNumSettings; ++i) {
    const place::Setting& setting = place::kSettings[i];
    const auto* option = std::find_if(std::begin(said), std::end(said),
                                      [&](const auto& one) { return one.first == setting.name; });
    std::string value = option != std::end(said) ? option->second : variable(setting.variable);
    std::error_code error;  // without a working folder the name stays what it is
    if (setting.is_path && !value.empty() && value != "-")
      value = std::filesystem::absolute(value, error).lexically_normal();
    if (!value.empty()) settings[i] = value;
  }
  return settings;
}

[[noreturn]] void refuse(const std::string& why) {
  std::fprintf(stderr, "v3demud: %s\n", why.c_str());
  std::exit(2);
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  options.socket = variable(wire::kSocketVariable);
  options.capture = variable("V3DEMU_CAPTURE");
  options.capture_trigger = variable("V3DEMU_CAPTURE_TRIGGER") == "1";
  options.perf_map = variable("V3DEMU_PERF_MAP") == "1";
  options.host_profile = variable("V3DEMU_HOST_PROFILE");
  options.no_execute = variable("V3DEMU_NO_EXECUTE") == "1";
  options.watch = {.trace = variable("V3DEMU_TRACE_QPU"), .hazards = variable("V3DEMU_HAZARDS")};
  Names names{variable("V3DEMU_DEVICE"),   variable("V3DEMU_KERNEL"),    variable("V3DEMU_MEMORY"),
              variable("V3DEMU_JIT"),      variable("V3DEMU_VBLANK_HZ"), variable("V3DEMU_TIMING"),
              variable("V3DEMU_LEAVE_OUT")};
  CLI::App app("Emulates the V3D GPU of a Raspberry Pi for programs that run under libv3demu.so.", "v3demud");
  app.set_help_flag("--help", "Print this and exit");
  app.set_version_flag("--version", "v3demud " V3DEMU_VERSION, "Print the version and exit");
  app.footer(kFooter);
  add_options(&app, &options, &names);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    std::exit(app.exit(e));
  } catch (const CLI::ParseError& e) {
    refuse(absl::StrCat(e.what(), "\n(v3demud --help lists the options)"));
  }
  if (options.debug == "help") {
    std::fputs(debug_help().c_str(), stdout);
    std::exit(0);
  }
  if (options.debug.empty()) options.debug = variable("V3DEMU_DEBUG");
  const auto board = find_board({names.device, names.kernel, names.memory});
  if (!board.ok()) refuse(std::string(board.status().message()));
  options.board = *board;
  std::string why;
  const auto engine = qpu::jit::find_engine(names.engine, &why);
  if (!engine) refuse(why);
  options.engine = *engine;
  if (!names.vblank_hz.empty() &&
      (!absl::SimpleAtoi(names.vblank_hz, &options.vblank_hz) || options.vblank_hz > kMostVblankHz))
    refuse(absl::StrCat("no number of frames per second up to ", kMostVblankHz, ": ", names.vblank_hz));
  if (const std::string text = variable("V3DEMU_CAPTURE_FRAMES"); !text.empty()) {
    const auto frames = CaptureFrames::parse(text);
    if (!frames) refuse(absl::StrCat("V3DEMU_CAPTURE_FRAMES: no frames A-B, counted from 1: ", text));
    options.capture_frames = *frames;
  }
  const auto left_out = parse_left_out(names.left_out);
  if (!left_out.ok()) refuse(std::string(left_out.status().message()));
  options.left_out = *left_out;
  const auto timing = find_timing_mode(names.timing);
  if (!timing) refuse(absl::StrCat("unknown timing \"", names.timing, "\"; there are off, count and pace"));
  if (*timing != TimingMode::kOff && options.no_execute)
    refuse("--no-execute: of jobs that are not executed no times can be told");
  options.timing = *timing;
  options.settings = settings_of(options, names);
  return options;
}

}  // namespace v3d::daemon
