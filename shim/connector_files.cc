#include "shim/connector_files.h"

#include <cstring>

#include "shim/connection.h"
#include "shim/raw.h"

namespace v3d::shim {
namespace {

constexpr const char* kFiles[] = {"status", "enabled", "dpms", "modes", "edid"};

/// A descriptor for reading alone of memory with that text. A negative errno.
int make_file(const uint8_t* text, size_t size, int flags) {
  const auto memory = static_cast<int>(raw::call(SYS_memfd_create, raw::word("v3demu-sysfs"), MFD_CLOEXEC));
  if (memory < 0) return memory;
  for (size_t done = 0; done < size;) {
    const long wrote = raw::call(SYS_write, memory, raw::word(text + done), static_cast<long>(size - done));
    if (wrote <= 0) break;
    done += static_cast<size_t>(wrote);
  }
  Text<32> self;
  self.add("/proc/self/fd/").add(static_cast<uint64_t>(static_cast<unsigned>(memory)));
  const int fd = raw::open(self.c_str(), O_RDONLY | (flags & O_CLOEXEC));
  raw::close(memory);
  return fd;
}

}  // namespace

bool find_connector_file(const char* path, Text<64>* command) {
  const char* file = strrchr(path, '/');
  if (!file || file == path) return false;
  const char* folder = file;
  while (folder > path && folder[-1] != '/') --folder;
  const char* name = strchr(folder, '-');  // behind "card1"
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
  raw::KeepErrno keep;
  Call call(wire::kCommand, kStartDaemon | kCloseOnExec);
  if (call.open() || !call.append(command.c_str(), command.size()) || call.send() || call.error())
    return -ENOENT;
  return make_file(call.reply(), call.reply_size(), flags);
}

}  // namespace v3d::shim
