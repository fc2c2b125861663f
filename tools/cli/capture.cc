/// v3demu capture: a program with a daemon of its own that writes every job to a file.

#include "tools/cli/capture.h"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>

#include "daemon/capture.h"
#include "daemon/capture_window.h"
#include "shim/process/config.h"
#include "tools/cli/captures/capture_trigger.h"
#include "tools/cli/commands.h"
#include "tools/cli/files/files.h"
#include "tools/cli/files/new_file.h"
#include "tools/cli/files/size_text.h"
#include "tools/cli/run/own_daemon.h"
#include "tools/cli/run/run_program.h"
#include "tools/cli/run/run_report.h"
#include "tools/cli/run_options.h"

namespace v3d::tools {
namespace {

int fail(const RunOptions& options, const std::string& what) {
  fprintf(stderr, "v3demu %s: %s\n", options.name.c_str(), what.c_str());
  return 1;
}

/// Sees that there is room, before the program takes its time. False with errno.
bool has_room(const NewFile& file) {
  static constexpr char kTrial[4096] = {};
  const int fd = fileno(file.stream());
  errno = ENOSPC;  // a short write sets none
  return pwrite(fd, kTrial, sizeof kTrial, 0) == sizeof kTrial && ftruncate(fd, 0) == 0;
}

/// Gives the file its name, if there is anything in it: a capture that is cut has its jobs, too. False with a
/// message.
bool keep(const RunOptions& options, NewFile& made, const std::string& file) {
  std::error_code error;
  if (std::filesystem::file_size(made.draft(), error) == 0 && !error) {
    std::filesystem::remove(file, error);  // what lies there in the end is of this run
    fail(options, "the program did not use the GPU; there is no " + file);
    return false;
  }
  const absl::Status named = made.finish();
  if (!named.ok()) fail(options, std::string(named.message()));
  return named.ok();
}

/// What the daemon writes from the time of making on.
class DaemonLog {
 public:
  DaemonLog() : path_(variable("V3DEMU_LOG")) {
    if (path_.empty()) path_ = shim::config().runtime_dir.c_str() + std::string("/v3demud.log");
    if (path_ != "-") start_ = read_file(path_).value_or("").size();
  }
  /// "; the daemon says: LINE (FILE)", its last one.
  std::string last_words() const {
    if (path_ == "-") return "; the daemon's messages are above";
    std::string text = read_file(path_).value_or("");
    text.erase(0, text.size() < start_ ? 0 : start_);  // a log that had grown began anew
    while (text.ends_with('\n')) text.pop_back();
    const std::string line = text.substr(text.rfind('\n') + 1);
    return line.empty() ? "; the daemon's messages: " + path_
                        : "; the daemon says: " + line + " (" + path_ + ")";
  }

 private:
  std::string path_;
  size_t start_ = 0;
};

/// What is in a capture that is complete. Else nothing, and stderr has why.
std::string summary(const RunOptions& options, const std::string& file, const DaemonLog& log) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(file, error);
  const auto jobs = daemon::count_captured_jobs(file);
  if (!jobs.ok()) {
    fail(options, file + ": " + std::string(jobs.status().message()) + log.last_words());
    return "";
  }
  if (*jobs == 0) {
    fail(options, "no job was captured; " + file + " is empty");
    return "";
  }
  return file + ", " + std::to_string(*jobs) + (*jobs == 1 ? " job, " : " jobs, ") + size_text(bytes);
}

/// For the daemon that will be started.
void set_extent(const CaptureExtent& extent) {
  for (const char* name : {"V3DEMU_CAPTURE_FRAMES", "V3DEMU_CAPTURE_TRIGGER"}) unsetenv(name);
  if (!extent.frames.empty()) setenv("V3DEMU_CAPTURE_FRAMES", extent.frames.c_str(), 1);
  if (extent.by_trigger) setenv("V3DEMU_CAPTURE_TRIGGER", "1", 1);
}

}  // namespace

CaptureEnd capture_program(const RunOptions& options, const std::string& file, const CaptureExtent& extent) {
  const std::string socket = own_socket(options.name, "capture-");
  if (socket.empty()) return {.status = 1};
  NewFile made(file);
  if (const absl::Status begun = made.begin(); !begun.ok())
    return {.status = fail(options, "cannot write " + std::string(begun.message()))};
  if (!has_room(made)) return {.status = fail(options, "cannot write " + file + ": " + strerror(errno))};
  setenv("V3DEMU_CAPTURE", std::filesystem::absolute(made.draft()).c_str(), 1);
  set_extent(extent);
  std::optional<CaptureTrigger> trigger;
  if (extent.by_trigger) trigger.emplace(socket);
  const DaemonLog log;
  const RunReport report;
  report.set_variable();
  const OwnDaemonEnd run = run_with_own_daemon(
      options, socket,
      [&] {
        if (trigger) trigger->leave_to_program();
      },
      [&] {
        if (trigger) trigger->listen();
      });
  trigger.reset();
  CaptureEnd end;
  if (!run.ended) fail(options, file + " is cut");
  if (keep(options, made, file) && run.ended) end.summary = summary(options, file, log);
  report.tell(options.name);
  end.status = run.program ? run.program : !end.complete();
  return end;
}

void add_capture(CLI::App* app, int* exit_code) {
  static RunOptions options;
  options.name = "capture";
  static std::string file = "v3demu.v3dcap";
  CLI::App* command = app->add_subcommand("capture", "Run a program and write every job to a file");
  command->add_option("-o,--output", file, "The capture (default: v3demu.v3dcap)")->option_text("FILE");
  static CaptureExtent extent;
  command
      ->add_option(
          "--frames", extent.frames,
          "Only these frames, counted from 1; one ends where the next image of the size and format of "
          "its first one is drawn")
      ->option_text("A-B")
      ->check([](const std::string& text) {
        return daemon::CaptureFrames::parse(text) ? std::string() : "no frames A-B, counted from 1: " + text;
      });
  command->add_flag("--trigger", extent.by_trigger,
                    "Begin, and end, when SIGUSR1 comes or, on a terminal, a line is entered");
  add_run_options(command, &options);
  command->callback([exit_code] {
    options.command = required_program();
    const CaptureEnd end = capture_program(options, file, extent);
    if (end.complete()) fprintf(stderr, "v3demu capture: %s\n", end.summary.c_str());
    *exit_code = end.status;
  });
}

}  // namespace v3d::tools
