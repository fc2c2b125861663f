#include "shim/live_text.h"

#include "shim/config.h"
#include "shim/connection.h"
#include "shim/raw.h"
#include "shim/tree_content.h"

namespace v3d::shim {
namespace {

constexpr char kStatistics[] = "/gpu_stats";
constexpr char kProcessors[] = "/proc/cpuinfo";

bool ends_with(const Path& path, const char* end) {
  const size_t size = strlen(end);
  return path.size() >= size && strcmp(path.c_str() + path.size() - size, end) == 0;
}

bool is_number(const char* text) { return *text && text[strspn(text, "0123456789")] == '\0'; }

/// Memory that a text is written into, handed out open for reading alone.
class LiveText {
 public:
  LiveText() : fd_(static_cast<int>(raw::call(SYS_memfd_create, raw::word("v3demu-text"), MFD_CLOEXEC))) {}
  ~LiveText() {
    if (fd_ >= 0) raw::close(fd_);
  }
  LiveText(const LiveText&) = delete;
  LiveText& operator=(const LiveText&) = delete;

  void add(const void* text, size_t size) { good_ &= raw::write(fd_, text, size) == static_cast<long>(size); }
  /// What stands in a file now. The path is the kernel's.
  void add_file(const char* path) {
    const int source = raw::open(path, O_RDONLY | O_CLOEXEC);
    char part[4096];
    long got = source;
    while (source >= 0 && (got = raw::read(source, part, sizeof(part))) > 0)
      add(part, static_cast<size_t>(got));
    good_ &= got == 0;
    if (source >= 0) raw::close(source);
  }
  /// -1 when something went wrong on the way.
  int open(int flags) const {
    Text<32> self;
    self.add("/proc/self/fd/").add(static_cast<uint64_t>(static_cast<unsigned>(fd_)));
    const int fd = fd_ >= 0 && good_ ? raw::open(self.c_str(), O_RDONLY | (flags & O_CLOEXEC)) : -1;
    return fd < 0 ? -1 : fd;
  }

 private:
  int fd_;
  bool good_ = true;
};

/// The answer to a command of the daemon that runs; starts none. The Call keeps the text.
bool ask(Call* call, const char* command) {
  return !call->open() && call->append(command, strlen(command)) && !call->send() && !call->error();
}

/// The daemon's word of a file: a line with its wire minor, then its lines of fdinfo.
bool ask_of_file(Call* call, ino_t socket) {
  Text<48> command;
  command.add("fdinfo ").add(uint64_t{socket});
  return ask(call, command.c_str());
}

/// "/proc/PID/FOLDER/N" as an absolute path, of a path relative to a descriptor, too. False: no such path.
bool is_descriptor_entry(int dir, const char* path, const char* folder, Path* out) {
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

int open_statistics(int flags) {
  LiveText text;
  Call call(wire::kCommand, kCloseOnExec);
  if (!ask(&call, kStatistics + 1)) return -1;
  text.add(call.reply(), call.reply_size());
  return text.open(flags);
}

int open_fdinfo(const Path& path, int flags) {
  // Of its "fd" the number follows at the same place.
  Path link;
  const char* folder = strstr(path.c_str(), "/fdinfo/");
  link.add(path.c_str(), static_cast<size_t>(folder - path.c_str()))
      .add("/fd/")
      .add(strrchr(path.c_str(), '/') + 1);
  struct stat st;
  if (raw::fstatat(AT_FDCWD, link.c_str(), &st, 0) < 0 || !S_ISSOCK(st.st_mode)) return -1;
  Call call(wire::kCommand, kCloseOnExec);
  if (!ask_of_file(&call, st.st_ino)) return -1;
  const auto* first = reinterpret_cast<const char*>(call.reply());
  const auto* line_end = static_cast<const char*>(memchr(first, '\n', call.reply_size()));
  if (!line_end) return -1;
  LiveText text;
  text.add_file(path.c_str());
  text.add(line_end + 1, call.reply_size() - static_cast<size_t>(line_end + 1 - first));
  return text.open(flags);
}

int open_processors(int flags) {
  const Tree* nodes = tree();
  if (!nodes) return -1;
  LiveText text;
  text.add_file(kProcessors);
  const Board& board = board_of(nodes->chip);
  Text<256> lines;
  lines.add("Revision\t: ").add(board.revision).add("\nSerial\t\t: ").add(board.serial);
  lines.add("\nModel\t\t: ").add(board.model).add('\n');
  text.add(lines.c_str(), lines.size());
  return text.open(flags);
}

}  // namespace

int open_live_text(const Rewritten& to, int dir, const char* path, int flags) {
  if (!to.readable() || (flags & (O_ACCMODE | O_CREAT | O_TRUNC | O_DIRECTORY | O_PATH)) != O_RDONLY)
    return -1;
  // Nearly all calls end here.
  const bool absolute = path[0] == '/';
  if (!to.ours() && (absolute ? !starts_with(path, "/proc/") : dir == AT_FDCWD || !is_number(path)))
    return -1;
  raw::KeepErrno keep;
  if (to.ours()) {
    Path ours;
    ours.add(to.path());
    return ends_with(ours, kStatistics) ? open_statistics(flags) : -1;
  }
  if (absolute && strcmp(path, kProcessors) == 0) return config().no_board ? -1 : open_processors(flags);
  Path entry;
  return is_descriptor_entry(dir, path, "/fdinfo", &entry) ? open_fdinfo(entry, flags) : -1;
}

const Node* node_in_proc(int dir, const char* path, const struct stat& st) {
  Path entry;
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
