#include "shim/tree/live_text.h"

#include "shim/link/connection.h"
#include "shim/process/config.h"
#include "shim/process/raw.h"
#include "shim/process/read_only_text.h"
#include "shim/tree/connector_files.h"
#include "shim/tree/debug_files.h"
#include "shim/tree/tree_content.h"

namespace v3d::shim {
namespace {

constexpr char kStatistics[] = "/gpu_stats";
constexpr char kProcessors[] = "/proc/cpuinfo";

bool ends_with(const char* path, const char* end) {
  const size_t size = strlen(path), end_size = strlen(end);
  return size >= end_size && strcmp(path + size - end_size, end) == 0;
}

bool is_number(const char* text) { return *text && text[strspn(text, "0123456789")] == '\0'; }

/// The answer to a command of the daemon. The Call keeps the text.
bool ask(Call* call, const char* command) {
  return !call->open() && call->append(command, strlen(command)) && !call->send() && !call->error();
}

/// The daemon's word of a file: a line with its wire minor, then its lines of fdinfo.
bool ask_of_file(Call* call, ino_t socket) {
  Text<48> command;
  command.add("fdinfo ").add(uint64_t{socket});
  return ask(call, command.c_str());
}

/// Room for "/proc/PID/task/TID/fdinfo/N", with slashes and dots to spare.
using EntryPath = Text<256>;

/// "/proc/PID/FOLDER/N" as an absolute path, of a path relative to a descriptor, too. False: no such path.
bool is_descriptor_entry(int dir, const char* path, const char* folder, EntryPath* out) {
  out->clear();
  if (path[0] == '/') {
    if (!starts_with(path, "/proc/")) return false;
  } else {
    if (dir == AT_FDCWD || !is_number(path)) return false;
    descriptor_path(dir, out);
    out->add('/');
  }
  out->add(path);
  const char* number = strrchr(out->c_str(), '/');
  const size_t size = strlen(folder);
  return !out->overflowed() && starts_with(out->c_str(), "/proc/") && is_number(number + 1) &&
         static_cast<size_t>(number - out->c_str()) > size && strncmp(number - size, folder, size) == 0;
}

/// @param start_daemon  to hear the answer: of files that say nothing without one
int open_answer(const char* command, bool start_daemon, int flags) {
  ReadOnlyText text;
  Call call(wire::kCommand, kCloseOnExec | (start_daemon ? unsigned{kStartDaemon} : 0u));
  if (!ask(&call, command)) return -ENOENT;
  text.add(call.reply(), call.reply_size());
  return text.open(flags);
}

int open_fdinfo(const EntryPath& path, int flags) {
  // Of its "fd" the number follows at the same place.
  EntryPath link;
  const char* folder = strstr(path.c_str(), "/fdinfo/");
  link.add(path.c_str(), static_cast<size_t>(folder - path.c_str()))
      .add("/fd/")
      .add(strrchr(path.c_str(), '/') + 1);
  struct stat st;
  if (raw::fstatat(AT_FDCWD, link.c_str(), &st, 0) < 0 || !S_ISSOCK(st.st_mode)) return -ENOENT;
  Call call(wire::kCommand, kCloseOnExec);
  if (!ask_of_file(&call, st.st_ino)) return -ENOENT;
  const auto* first = reinterpret_cast<const char*>(call.reply());
  const auto* line_end = static_cast<const char*>(memchr(first, '\n', call.reply_size()));
  if (!line_end) return -ENOENT;
  ReadOnlyText text;
  text.add_file(path.c_str());
  text.add(line_end + 1, call.reply_size() - static_cast<size_t>(line_end + 1 - first));
  return text.open(flags);
}

int open_processors(int flags) {
  const Tree* nodes = tree();
  if (!nodes) return -ENOENT;
  ReadOnlyText text;
  text.add_file(kProcessors);
  const Text<256> lines = processor_lines(board_of(nodes->chip));
  text.add(lines.c_str(), lines.size());
  return text.open(flags);
}

}  // namespace

int open_live_text(const Rewritten& to, int dir, const char* path, int flags) {
  if (!to.readable() || (flags & (O_ACCMODE | O_CREAT | O_TRUNC | O_DIRECTORY | O_PATH)) != O_RDONLY)
    return -ENOENT;
  // Nearly all calls end here.
  const bool absolute = path[0] == '/';
  if (!to.ours() && (absolute ? !starts_with(path, "/proc/") : dir == AT_FDCWD || !is_number(path)))
    return -ENOENT;
  raw::KeepErrno keep;
  if (to.ours()) {
    struct stat st;
    if (raw::fstatat(to.dir(), to.path(), &st, 0) < 0 || !S_ISREG(st.st_mode)) return -ENOENT;
    if (ends_with(to.path(), kStatistics)) return open_answer(kStatistics + 1, false, flags);
    Text<64> command;
    if (find_debug_file(to.path(), &command)) return open_answer(command.c_str(), true, flags);
    return open_connector_file(to.path(), flags);
  }
  if (absolute && strcmp(path, kProcessors) == 0) return config().no_board ? -ENOENT : open_processors(flags);
  EntryPath entry;
  return is_descriptor_entry(dir, path, "/fdinfo", &entry) ? open_fdinfo(entry, flags) : -ENOENT;
}

const Node* node_in_proc(int dir, const char* path, const struct stat& st) {
  EntryPath entry;
  if (!S_ISSOCK(st.st_mode) || !path || !is_descriptor_entry(dir, path, "/fd", &entry)) return nullptr;
  raw::KeepErrno keep;
  Call call(wire::kCommand, kCloseOnExec);
  if (!ask_of_file(&call, st.st_ino)) return nullptr;
  uint32_t minor = 0;
  const uint8_t* digit = call.reply();
  for (size_t i = 0; i < call.reply_size() && digit[i] != '\n' && minor < 1000; ++i) {
    minor = minor * 10 + (digit[i] - '0');
  }
  const Tree* nodes = tree();
  return nodes ? nodes->node_by_wire_minor(minor) : nullptr;
}

}  // namespace v3d::shim
