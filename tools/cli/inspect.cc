/// v3demu inspect: a frame debugger for captures, in the browser.

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/cli/capture.h"
#include "tools/cli/captures/compiler.h"
#include "tools/cli/commands.h"
#include "tools/cli/files/files.h"
#include "tools/cli/run_options.h"
#include "tools/inspect/open_browser.h"
#include "tools/inspect/page_server.h"
#include "tools/inspect/whole_profile.h"

namespace v3d::tools {
namespace {

struct Options {
  RunOptions run;
  std::string file;     ///< the capture; empty: of the program
  std::string against;  ///< another capture beside it
  std::string output;   ///< where that of the program is kept; empty: nowhere
  int port = 0;
  bool no_browser = false;
};

inspect::PageServer* g_server = nullptr;

int fail(const std::string& message) {
  std::fprintf(stderr, "v3demu inspect: %s\n", message.c_str());
  return 1;
}

int inspect_capture(const Options& options, const std::string& path) {
  const auto compiler = compiler_of_environment();
  if (!compiler.ok()) return fail(std::string(compiler.status().message()));
  auto inspector = inspect::Inspector::open(path, compiler->get());
  if (!inspector.ok()) return fail(std::string(inspector.status().message()));
  std::unique_ptr<inspect::Inspector> other;
  if (!options.against.empty()) {
    auto opened = inspect::Inspector::open(options.against, compiler->get());
    if (!opened.ok()) return fail(std::string(opened.status().message()));
    other = *std::move(opened);
  }
  const auto name_of = [](const std::string& file) {
    return std::filesystem::path(file).filename().string();
  };
  inspect::WholeProfile profile(path, (*inspector)->jobs().size());
  inspect::WholeProfile other_profile(options.against, other ? other->jobs().size() : 0);
  const inspect::Captures captures = {{inspector->get(), name_of(path), &profile},
                                      {other.get(), name_of(options.against), &other_profile}};
  const auto ask = [&](const std::string& question, const inspect::Parameters& parameters) {
    return inspect::answer(captures, question, parameters);
  };
  auto server = inspect::PageServer::create(find_page("inspect"), options.port, ask);
  if (!server.ok()) return fail(std::string(server.status().message()));
  std::printf("%s\n", (*server)->address().c_str());
  std::fflush(stdout);
  std::optional<inspect::OpenedBrowser> browser;
  if (!options.no_browser) browser.emplace((*server)->address());
  g_server = server->get();
  const auto end = [](int number) {
    g_server->stop();
    std::signal(number, SIG_DFL);  // a second one does not wait for the job that runs
  };
  std::signal(SIGINT, end);
  std::signal(SIGTERM, end);
  (*server)->run();
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  return 0;
}

/// What the program leaves is shown whether it ended well or not: it may be why somebody looks.
int inspect_program(const Options& options) {
  std::optional<TemporaryFolder> folder;
  std::string file = options.output;
  if (file.empty()) {
    folder.emplace("v3demu-inspect");
    if (folder->path.empty()) return fail(absl::StrCat("no temporary folder: ", strerror(errno)));
    file = folder->path / std::filesystem::path(options.run.command[0] + ".v3dcap").filename();
  }
  const CaptureEnd captured = capture_program(options.run, file);
  if (!captured.complete()) return captured.status;
  fprintf(stderr, "v3demu inspect: %s\n", captured.summary.c_str());
  const int inspected = inspect_capture(options, file);
  return captured.status ? captured.status : inspected;
}

int inspect(const Options& options) {
  if (options.run.command.empty() == options.file.empty())
    throw CLI::RequiredError("either a capture or, after --, a program to run");
  if (!options.run.command.empty()) return inspect_program(options);
  if (!options.run.board.device.empty())
    throw CLI::ValidationError("--device", "the board of a capture is that on which it was taken");
  if (!options.output.empty())
    throw CLI::ValidationError("--output", "a capture that is there is not written");
  return inspect_capture(options, options.file);
}

}  // namespace

void add_inspect(CLI::App* app, int* exit_code) {
  static Options options;
  CLI::App* command = app->add_subcommand("inspect",
                                          "Look into a capture, or a program's jobs, with the browser: "
                                          "pictures after draws, the history of pixels, shaders");
  options.run.name = "inspect";
  command->add_option("file", options.file, "A capture, in place of a program");
  command
      ->add_option("-o,--output", options.output,
                   "Keep the capture of the program (default: it goes with the command)")
      ->option_text("FILE");
  command
      ->add_option("--against", options.against,
                   "Another capture, to be compared with it, as of the same scene before a change")
      ->option_text("FILE");
  command->add_option("--port", options.port, "The port of the loopback device; 0: one that is free")
      ->option_text("PORT")
      ->check(CLI::Range(0, 65535));
  command->add_flag("--no-browser", options.no_browser, "Print the address alone");
  add_run_options(command, &options.run);
  command->callback([exit_code] {
    options.run.command = program_behind_options();
    *exit_code = inspect(options);
  });
}

}  // namespace v3d::tools
