#include "shim/debug_request.h"

#include <atomic>

#include "shim/config.h"
#include "shim/connection.h"
#include "shim/text.h"

namespace v3d::shim {

void compare_debug_request() {
  static std::atomic<bool> done{false};
  const char* list = environment_variable("V3DEMU_DEBUG");
  if (!list || !*list || done.exchange(true)) return;
  Text<1024> command;
  command.add("debug ").add(list);
  Call call(wire::kCommand, 0);
  // An error is that of an older daemon, which does not know the command.
  if (command.overflowed() || call.open() || !call.append(command.c_str(), command.size()) || call.send() ||
      call.error())
    return;
  const auto* text = reinterpret_cast<const char*>(call.reply());
  Text<512> line;
  for (size_t i = 0; i < call.reply_size(); ++i) {
    if (text[i] != '\n') {
      line.add(text[i]);
      continue;
    }
    complain(line.c_str());
    line.clear();
  }
}

}  // namespace v3d::shim
