#include "tools/inspector/open_browser.h"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "tools/cli/files/files.h"

extern char** environ;

namespace v3d::inspect {

OpenedBrowser::OpenedBrowser(const std::string& address) : folder_("v3demu-inspect") {
  if (tools::variable("DISPLAY").empty() && tools::variable("WAYLAND_DISPLAY").empty()) return;
  if (folder_.path.empty()) return;
  std::string program = "xdg-open", argument = folder_.path / "open.html";
  const std::string page =
      absl::StrCat("<!DOCTYPE html><meta charset=utf-8><meta http-equiv=refresh content=\"0;url=", address,
                   "\"><a href=\"", address, "\">v3demu inspect</a>\n");
  if (!tools::write_file(argument, page).ok()) return;
  char* const words[] = {program.data(), argument.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  pid_t child;
  posix_spawnp(&child, program.c_str(), &actions, nullptr, words, environ);  // it ends by itself
  posix_spawn_file_actions_destroy(&actions);
}

}  // namespace v3d::inspect
