/// v3demu-inspect CAPTURE AGAINST PORT BROWSER: the part of `v3demu inspect` that answers a browser until it
/// is told to end. AGAINST: another capture, or empty; PORT: 0 is one that is free; BROWSER: whether one is
/// opened.
///
/// It is a program of its own for the sake of all other commands: the libraries for HTTP take longer to load
/// than `v3demu run` takes to start a program.

#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "gpu/base/log.h"
#include "tools/cli/captures/compiler.h"
#include "tools/cli/files/files.h"
#include "tools/inspect/whole_profile.h"
#include "tools/inspector/open_browser.h"
#include "tools/inspector/page_server.h"

namespace v3d::inspect {
namespace {

struct Words {
  std::string path;
  std::string against;
  int port;
  bool browser;
};

PageServer* g_server = nullptr;

int fail(const std::string& message) {
  std::fprintf(stderr, "v3demu inspect: %s\n", message.c_str());
  return 1;
}

void serve(PageServer* server, bool browser) {
  std::printf("%s\n", server->address().c_str());
  std::fflush(stdout);
  std::optional<OpenedBrowser> opened;
  if (browser) opened.emplace(server->address());
  g_server = server;
  const auto end = [](int number) {
    g_server->stop();
    std::signal(number, SIG_DFL);  // a second one does not wait for the job that runs
  };
  std::signal(SIGINT, end);
  std::signal(SIGTERM, end);
  server->run();
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

int run(const Words& words) {
  const auto compiler = tools::compiler_of_environment();
  if (!compiler.ok()) return fail(std::string(compiler.status().message()));
  auto inspector = Inspector::open(words.path, compiler->get());
  if (!inspector.ok()) return fail(std::string(inspector.status().message()));
  std::unique_ptr<Inspector> other;
  if (!words.against.empty()) {
    auto opened = Inspector::open(words.against, compiler->get());
    if (!opened.ok()) return fail(std::string(opened.status().message()));
    other = *std::move(opened);
  }
  const auto name_of = [](const std::string& file) {
    return std::filesystem::path(file).filename().string();
  };
  WholeProfile profile(words.path, (*inspector)->jobs().size());
  WholeProfile other_profile(words.against, other ? other->jobs().size() : 0);
  const Captures captures = {{inspector->get(), name_of(words.path), &profile},
                             {other.get(), name_of(words.against), &other_profile}};
  const auto ask = [&](const std::string& question, const Parameters& parameters) {
    return answer(captures, question, parameters);
  };
  auto server = PageServer::create(tools::find_page("inspect"), words.port, ask);
  if (!server.ok()) return fail(std::string(server.status().message()));
  serve(server->get(), words.browser);
  return 0;
}

}  // namespace
}  // namespace v3d::inspect

int main(int argc, char** argv) {
  int port = 0;
  if (argc != 5 || !absl::SimpleAtoi(argv[3], &port)) {
    std::fputs("v3demu-inspect is a part of v3demu inspect; see v3demu help inspect\n", stderr);
    return 2;
  }
  try {
    // As v3demu itself does, which has looked at the former.
    if (const auto debug = v3d::parse_debug(v3d::tools::variable("V3DEMU_DEBUG")); debug.ok())
      v3d::g_debug_mask = debug->mask;
    if (const std::string log = v3d::tools::variable("V3DEMU_LOG"); log != "-") v3d::log_to(log);
    return v3d::inspect::run({argv[1], argv[2], port, std::string(argv[4]) == "1"});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "v3demu inspect: %s\n", e.what());
    return 1;
  }
}
