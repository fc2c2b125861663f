/// v3demu inspect: a frame debugger for captures, in the browser.

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "tools/cli/captures/compiler.h"
#include "tools/cli/commands.h"
#include "tools/cli/files/files.h"
#include "tools/inspect/open_browser.h"
#include "tools/inspect/page_server.h"

namespace v3d::tools {
namespace {

struct Options {
  std::string file;
  int port = 0;
  bool no_browser = false;
};

inspect::PageServer* g_server = nullptr;

int fail(const std::string& message) {
  std::fprintf(stderr, "v3demu inspect: %s\n", message.c_str());
  return 1;
}

int inspect_capture(const Options& options) {
  const auto compiler = compiler_of_environment();
  if (!compiler.ok()) return fail(std::string(compiler.status().message()));
  auto inspector = inspect::Inspector::open(options.file, compiler->get());
  if (!inspector.ok()) return fail(std::string(inspector.status().message()));
  const std::string name = std::filesystem::path(options.file).filename().string();
  const auto ask = [&](const std::string& question, const inspect::Parameters& parameters) {
    return inspect::answer(**inspector, name, question, parameters);
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

}  // namespace

void add_inspect(CLI::App* app, int* exit_code) {
  static Options options;
  CLI::App* command = app->add_subcommand(
      "inspect",
      "Look into a capture with the browser: pictures after draws, the history of pixels, shaders");
  command->add_option("file", options.file, "The capture")->required();
  command->add_option("--port", options.port, "The port of the loopback device; 0: one that is free")
      ->option_text("PORT")
      ->check(CLI::Range(0, 65535));
  command->add_flag("--no-browser", options.no_browser, "Print the address alone");
  command->callback([exit_code] { *exit_code = inspect_capture(options); });
}

}  // namespace v3d::tools
