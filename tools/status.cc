/// v3demu status: what the daemons of this user do.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "shim/config.h"
#include "tools/commands.h"
#include "tools/control.h"
#include "tools/size_text.h"

namespace v3d::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCaptures = "captures to ";

/// The head of a daemon's status, up to its queues: who it is, and for a capture what lies in the file now.
std::string headline(const std::string& status) {
  std::istringstream lines(status);
  std::string text;
  for (std::string line; std::getline(lines, line) && !line.starts_with("queue ");) {
    text += (text.empty() ? "" : "; ") + line;
    if (!line.starts_with(kCaptures)) continue;
    std::error_code error;
    const auto bytes = fs::file_size(line.substr(kCaptures.size()), error);
    if (!error) text += ", " + size_text(bytes);
  }
  return text;
}

/// Whether a socket of that name may be a daemon's: "socket-DEVICE" of `run`, "capture-PID" of `capture`.
bool names_daemon(const std::string& name) {
  return (name.starts_with("socket") || name.starts_with("capture-")) && !name.ends_with('~');
}

std::vector<fs::path> other_sockets(const fs::path& own) {
  std::vector<fs::path> sockets;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(own.parent_path(), error)) {
    const fs::path& path = entry.path();
    if (names_daemon(path.filename()) && path.filename() != own.filename() && entry.is_socket(error))
      sockets.push_back(path);
  }
  std::sort(sockets.begin(), sockets.end());
  return sockets;
}

/// A line for each daemon on another socket; those that are gone left none but their name.
void print_others(const fs::path& own) {
  bool first = true;
  for (const fs::path& socket : other_sockets(own)) {
    const auto status = ask_daemon_at(socket, "status");
    if (absl::IsNotFound(status.status())) continue;
    if (first) printf("on other sockets:\n");
    first = false;
    printf("  %s: %s\n", socket.c_str(),
           status.ok() ? headline(*status).c_str() : std::string(status.status().message()).c_str());
  }
}

int print_status() {
  const fs::path own = shim::config().socket.c_str();
  const auto status = ask_daemon_at(own, "status");
  if (status.ok()) {
    fputs(status->c_str(), stdout);
  } else {
    fprintf(stderr, "v3demu: %s\n", std::string(status.status().message()).c_str());
  }
  print_others(own);
  return status.ok() ? 0 : 1;
}

}  // namespace

void add_status(CLI::App* app, int* exit_code) {
  app->add_subcommand("status", "Show the running daemons' clients, jobs and captures")
      ->callback([exit_code] { *exit_code = print_status(); });
}

}  // namespace v3d::tools
