/// v3demu status: what the daemons of this user do.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "daemon/json_writer.h"
#include "tools/cli/commands.h"
#include "tools/cli/files/size_text.h"
#include "tools/cli/run/control.h"

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

/// A line for each daemon on another socket; those that are gone left none but their name.
void print_others(const fs::path& own) {
  bool first = true;
  for (const auto& [socket, captures] : daemon_sockets(own)) {
    if (socket == own) continue;
    const auto status = ask_daemon_at(socket, "status");
    if (absl::IsNotFound(status.status())) continue;
    if (first) printf("on other sockets:\n");
    first = false;
    printf("  %s: %s\n", socket.c_str(),
           status.ok() ? headline(*status).c_str() : std::string(status.status().message()).c_str());
  }
}

int print_status() {
  const fs::path own = used_socket();
  const auto status = ask_daemon_at(own, "status");
  if (status.ok()) {
    fputs(status->c_str(), stdout);
  } else {
    fprintf(stderr, "v3demu status: %s\n", std::string(status.status().message()).c_str());
  }
  print_others(own);
  return status.ok() ? 0 : 1;
}

/// {"daemons": [{"socket": ..., "status": ...} ...]}: that which answers first, if it does.
int print_json() {
  const std::string own = used_socket();
  std::vector<std::string> sockets = {own};
  for (const auto& [socket, captures] : daemon_sockets(own))
    if (socket != own) sockets.push_back(socket);
  bool own_runs = false;
  daemon::JsonWriter json;
  json.begin_object().key("daemons").begin_array();
  for (const std::string& socket : sockets) {
    const auto status = ask_daemon_at(socket, "status json");
    if (absl::IsNotFound(status.status())) continue;
    if (!status.ok()) {
      fprintf(stderr, "v3demu status: %s\n", std::string(status.status().message()).c_str());
      continue;
    }
    own_runs = own_runs || socket == own;
    json.on_new_line().begin_object().field("socket", socket).key("status").raw(*status).end_object();
  }
  printf("%s\n", json.end_array().end_object().take().c_str());
  if (!own_runs) fprintf(stderr, "v3demu status: no daemon runs on %s\n", own.c_str());
  return own_runs ? 0 : 1;
}

}  // namespace

void add_status(CLI::App* app, int* exit_code) {
  static bool json = false;
  CLI::App* command =
      app->add_subcommand("status", "Show the running daemons' clients, jobs, GPU errors and captures");
  command->add_flag("--json", json, "As JSON, of all daemons of this user");
  command->callback([exit_code] { *exit_code = json ? print_json() : print_status(); });
}

}  // namespace v3d::tools
