#include "shim/tree/connector_files.h"

#include <cstring>

#include "shim/link/connection.h"
#include "shim/process/read_only_text.h"

namespace v3d::shim {
namespace {

constexpr const char* kFiles[] = {"status", "enabled", "dpms", "modes", "edid"};

}  // namespace

bool find_connector_file(const char* path, Text<64>* command) {
  const char* file = strrchr(path, '/');
  if (!file || file == path) return false;
  const char* folder = file;
  while (folder > path && folder[-1] != '/') --folder;
  const char* name = strchr(folder, '-');  // after "card1"
  if (!starts_with(folder, "card") || !name || name > file) return false;
  const auto length = static_cast<size_t>(file - ++name);
  for (const wire::Connector& connector : wire::kConnectors) {
    if (strlen(connector.name) != length || strncmp(connector.name, name, length) != 0) continue;
    for (const char* known : kFiles) {
      if (strcmp(file + 1, known) != 0) continue;
      command->clear();
      command->add("sysfs ").add(name, length).add('/').add(known);
      return true;
    }
  }
  return false;
}

int open_connector_file(const char* path, int flags) {
  Text<64> command;
  if (!find_connector_file(path, &command)) return -ENOENT;
  Call call(wire::kCommand, kStartDaemon | kCloseOnExec);
  if (call.open() || !call.append(command.c_str(), command.size()) || call.send() || call.error())
    return -ENOENT;
  ReadOnlyText text;
  text.add(call.reply(), call.reply_size());
  return text.open(flags);
}

}  // namespace v3d::shim
