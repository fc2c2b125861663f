#include "shim/link/settings_request.h"

#include <atomic>

#include "ioctl/link/place.h"
#include "shim/link/connection.h"
#include "shim/process/config.h"
#include "shim/process/scratch.h"
#include "shim/process/text.h"

namespace v3d::shim {
namespace {

/// @param answer  of the daemon, after its first word
void tell_difference(bool refused, const uint8_t* answer, size_t size) {
  Text<1536> line;
  if (!refused) line.add("warning: ");
  line.add("the daemon that runs at ").add(place().socket.c_str());
  line.add(reinterpret_cast<const char*>(answer), size);
  if (refused)
    line.add("; ")
        .add(v3d::place::kOthersVariable)
        .add('=')
        .add(v3d::place::kAcceptOthers)
        .add(" makes this a warning");
  complain(line.c_str());
}

bool accepts_others() {
  const char* value = environment_variable(v3d::place::kOthersVariable);
  return value && strcmp(value, v3d::place::kAcceptOthers) == 0;
}

/// Whether the answer begins with that word, which is then taken off.
bool take_word(const char* word, const uint8_t** answer, size_t* size) {
  const size_t length = strlen(word);
  if (*size < length || memcmp(*answer, word, length) != 0) return false;
  *answer += length;
  *size -= length;
  return true;
}

}  // namespace

bool compare_settings(pid_t daemon) {
  static std::atomic<pid_t> accepted{0};
  if (accepted.load(std::memory_order_relaxed) == daemon) return true;
  bool refused = false;
  Scratch<Text<8192>> command;
  Call call(wire::kCommand, 0);
  // An error is that of an older daemon, which does not know the command.
  if (command.get() && add_wishes(place(), command.get()) && call.open(daemon) == 0 &&
      call.append(command.get()->c_str(), command.get()->size()) && call.send() == 0 && call.error() == 0) {
    const uint8_t* answer = call.reply();
    size_t size = call.reply_size();
    refused = take_word(v3d::place::kRefusedAnswer, &answer, &size);
    if (refused || take_word(v3d::place::kToldAnswer, &answer, &size)) {
      refused = refused && !accepts_others();
      static std::atomic<pid_t> told{0};
      if (told.exchange(daemon) != daemon) tell_difference(refused, answer, size);
    }
  }
  if (!refused) accepted.store(daemon, std::memory_order_relaxed);
  return !refused;
}

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
