#include "shim/drm/moved_memory.h"

#include <sys/sysmacros.h>

#include <atomic>
#include <cstring>

#include "shim/drm/slab_cache.h"
#include "shim/process/raw.h"

namespace v3d::shim {
namespace {

std::atomic<uint32_t> epoch{0};

/// A line of /proc/self/maps: "start-end rwxp offset major:minor inode   path".
struct Mapping {
  uint64_t start, end, offset, major, minor, inode;
  int prot;
  bool shared;
  const char* path;
};

/// Takes a number off the front of a text, and the character after it.
uint64_t take_number(const char** text, unsigned base) {
  uint64_t value = 0;
  for (;; ++*text) {
    const char c = **text;
    unsigned digit = c >= '0' && c <= '9'   ? unsigned(c - '0')
                     : c >= 'a' && c <= 'f' ? unsigned(c - 'a') + 10
                                            : 16;
    if (digit >= base) break;
    value = value * base + digit;
  }
  if (**text) ++*text;
  return value;
}

bool parse(const char* line, Mapping* m) {
  m->start = take_number(&line, 16);
  m->end = take_number(&line, 16);
  if (strnlen(line, 5) < 5) return false;
  m->prot =
      (line[0] == 'r' ? PROT_READ : 0) | (line[1] == 'w' ? PROT_WRITE : 0) | (line[2] == 'x' ? PROT_EXEC : 0);
  m->shared = line[3] == 's';
  line += 5;
  m->offset = take_number(&line, 16);
  m->major = take_number(&line, 16);
  m->minor = take_number(&line, 16);
  m->inode = take_number(&line, 10);
  while (*line == ' ') ++line;
  m->path = line;
  return m->start < m->end;
}

/// Lines of a file, without libc. Those that are longer than the buffer are cut.
class Lines {
 public:
  explicit Lines(const char* path) : fd_(raw::open(path, O_RDONLY | O_CLOEXEC)) {}
  ~Lines() {
    if (fd_ >= 0) raw::close(fd_);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  const char* next() {
    for (;;) {
      if (auto* end = static_cast<char*>(memchr(text_ + at_, '\n', have_ - at_))) {
        *end = 0;
        const char* line = text_ + at_;
        at_ = static_cast<size_t>(end - text_) + 1;
        return line;
      }
      memmove(text_, text_ + at_, have_ - at_);
      have_ -= at_;
      at_ = 0;
      if (have_ == sizeof(text_)) have_ = 0;
      long got = fd_ < 0 ? 0 : raw::read(fd_, text_ + have_, sizeof(text_) - have_);
      if (got == -EINTR) continue;
      if (got <= 0) return nullptr;
      have_ += static_cast<size_t>(got);
    }
  }

 private:
  const int fd_;
  char text_[4096];
  size_t at_ = 0, have_ = 0;
};

bool is_slab(const Mapping& m, const wire::Move& move) {
  constexpr char kPath[] = "/memfd:";
  const size_t prefix = sizeof(kPath) - 1;
  return m.shared && m.inode == move.inode && m.major == major(move.device) &&
         m.minor == minor(move.device) && strncmp(m.path, kPath, prefix) == 0 &&
         strncmp(m.path + prefix, wire::kSlabName, sizeof(wire::kSlabName) - 1) == 0;
}

}  // namespace

uint32_t mappings_epoch() { return epoch.load(); }

void replace_mappings(const wire::Move& move, int memfd) {
  epoch.fetch_add(1);  // before the search: what is mapped later sees it
  Lines lines("/proc/self/maps");
  while (const char* line = lines.next()) {
    Mapping m;
    if (!parse(line, &m) || !is_slab(m, move) || is_kept_slab(m.start)) continue;
    // The part of the mapping that shows the BO.
    const uint64_t end_offset = m.offset + (m.end - m.start), move_end = move.offset + move.size;
    const uint64_t from = m.offset > move.offset ? m.offset : move.offset;
    const uint64_t to = end_offset < move_end ? end_offset : move_end;
    if (from >= to) continue;
    raw::mmap(raw::pointer(m.start + (from - m.offset)), static_cast<size_t>(to - from), m.prot,
              MAP_SHARED | MAP_FIXED, memfd, static_cast<off_t>(from - move.offset));
  }
}

}  // namespace v3d::shim
