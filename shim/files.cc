#include "shim/files.h"

#include <sys/socket.h>

#include <atomic>
#include <cstring>

#include "shim/board_devices.h"
#include "shim/config.h"
#include "shim/connect.h"
#include "shim/connection.h"
#include "shim/framebuffer.h"
#include "shim/own_pid.h"
#include "shim/raw.h"
#include "shim/status.h"
#include "shim/tree.h"

namespace v3d::shim {
namespace {

enum Kind : uint64_t { kNothing, kDrmFile, kNotOurs, kForeign, kSyncFile };

struct Fact {
  uint64_t dev = 0, ino = 0, kind = kNothing, token = 0;
  uint64_t detail = 0;  // of a DRM file, minor and daemon; of a sync_file, the place of its fence
};

/// A cache of facts about kernel objects, for threads, forks and signal handlers alike: every slot is a
/// sequence lock of its own; who cannot write at once leaves it; who cannot read asks the daemon again.
class FactCache {
 public:
  bool find(uint64_t dev, uint64_t ino, Kind kind, Fact* out) const {
    for (size_t way = 0; way < kWays; ++way) {
      if (read(slots_[set_of(ino) + way], out) && out->ino == ino && out->dev == dev && out->kind == kind) {
        return true;
      }
    }
    return false;
  }

  void store(const Fact& fact) {
    size_t set = set_of(fact.ino);
    size_t way = next_.fetch_add(1, std::memory_order_relaxed) % kWays;
    Fact old;
    for (size_t i = 0; i < kWays; ++i) {  // the same object, or an empty slot, before anybody else's
      if (read(slots_[set + i], &old) &&
          (old.kind == kNothing || (old.ino == fact.ino && old.dev == fact.dev))) {
        way = i;
        break;
      }
    }
    Slot& slot = slots_[set + way];
    uint64_t version = slot.version.load(std::memory_order_relaxed);
    if (version & 1 ||
        !slot.version.compare_exchange_strong(version, version + 1, std::memory_order_acquire)) {
      return;
    }
    uint64_t words[kWords];
    memcpy(words, &fact, sizeof(words));
    std::atomic_thread_fence(std::memory_order_release);
    for (size_t i = 0; i < kWords; ++i) slot.words[i].store(words[i], std::memory_order_relaxed);
    slot.version.store(version + 2, std::memory_order_release);
  }

 private:
  static constexpr size_t kWays = 4, kSets = 128, kWords = sizeof(Fact) / 8;
  struct Slot {
    std::atomic<uint64_t> version, words[kWords];
  };

  static size_t set_of(uint64_t ino) { return (ino * 0x9e3779b97f4a7c15u >> 32) % kSets * kWays; }

  static bool read(const Slot& slot, Fact* out) {
    uint64_t version = slot.version.load(std::memory_order_acquire);
    uint64_t words[kWords];
    for (size_t i = 0; i < kWords; ++i) words[i] = slot.words[i].load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (version & 1 || slot.version.load(std::memory_order_relaxed) != version) return false;
    memcpy(static_cast<void*>(out), words, sizeof(words));
    return true;
  }

  Slot slots_[kSets * kWays];
  std::atomic<uint32_t> next_;
};

constinit FactCache cache{};

/// Whether this process, or that of which it is a fork, has had one.
std::atomic<bool> knows_files{false};

void remember_file(const struct stat& st, const File& file) {
  knows_files.store(true, std::memory_order_relaxed);
  cache.store({st.st_dev, st.st_ino, kDrmFile, file.token,
               static_cast<uint64_t>(file.minor) << 32 | static_cast<uint32_t>(file.daemon)});
}

/// @param status_fd  which of the received descriptors shows the file's status, if one does
bool parse(Call* call, int status_fd, File* file) {
  wire::FileReply reply;
  if (call->reply_size() < sizeof(reply)) return false;
  memcpy(&reply, call->reply(), sizeof(reply));
  *file = {reply.token, reply.minor, call->daemon()};
  if (const int fd = reply.status_bytes ? call->take(status_fd) : -1; fd >= 0) {
    remember_status(reply.token, fd, reply.status_bytes);
    raw::close(fd);
  }
  return true;
}

/// Asks the daemon whether a descriptor that came from elsewhere is one of its files. Starts none: a daemon
/// that does not run has no files. As identify_file().
int adopt(int fd, const struct stat& st, File* file) {
  raw::KeepErrno keep;
  Call call(wire::kAdopt, kCloseOnExec);
  // A daemon of another user, say, whose descriptor was inherited.
  int error = call.open(0, is_named_node(fd) ? fd : -1);
  if (error == ENODEV) return -ENOTTY;
  if (!error && !call.attach(fd)) error = ENOMEM;
  if (!error) error = call.send();
  if (!error) error = call.error();
  if (error == ENOTTY) cache.store({st.st_dev, st.st_ino, kNotOurs, 0, 0});
  if (error) return -error;
  if (!parse(&call, 0, file)) return -EPROTO;
  remember_file(st, *file);
  return 0;
}

/// A socket of the one kind that the daemon makes for its files; says nothing about whose it is.
bool could_be_file(int fd, const struct stat& st) {
  if (!S_ISSOCK(st.st_mode)) return false;
  int value = 0;
  socklen_t size = sizeof(value);
  if (raw::getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &size) < 0 || value != SOCK_SEQPACKET) return false;
  // A socket pair carries the credentials of whoever made it, and the daemon is another process.
  ucred maker{};
  size = sizeof(maker);
  return raw::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &maker, &size) == 0 && maker.pid != own_pid();
}

}  // namespace

int identify_file(int fd, const struct stat& st, File* file) {
  if (!S_ISSOCK(st.st_mode)) return -ENOTTY;
  Fact fact;
  if (cache.find(st.st_dev, st.st_ino, kDrmFile, &fact)) {
    *file = {fact.token, static_cast<uint32_t>(fact.detail >> 32),
             static_cast<pid_t>(static_cast<uint32_t>(fact.detail))};
    return 0;
  }
  if (cache.find(st.st_dev, st.st_ino, kNotOurs, &fact)) return -ENOTTY;
  return could_be_file(fd, st) ? adopt(fd, st, file) : -ENOTTY;
}

int identify_file(int fd, File* file) {
  struct stat st;
  return raw::fstat(fd, &st) == 0 ? identify_file(fd, st, file) : -ENOTTY;
}

namespace {

bool find_known(int fd, Fact* fact) {
  struct stat st;
  return raw::fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && cache.find(st.st_dev, st.st_ino, kDrmFile, fact);
}

}  // namespace

bool is_known_file(int fd) {
  Fact fact;
  return find_known(fd, &fact);
}

int any_known_file(pid_t daemon) {
  constexpr int kMostDescriptors = 4096;
  if (!knows_files.load(std::memory_order_relaxed)) return -1;
  Fact fact;
  for (int fd = 0; fd < kMostDescriptors; ++fd)
    if (find_known(fd, &fact) &&
        (!daemon || static_cast<uint32_t>(fact.detail) == static_cast<uint32_t>(daemon)))
      return fd;
  return -1;
}

bool find_file(int fd, const struct stat& st, File* file) { return identify_file(fd, st, file) == 0; }

bool find_file(int fd, File* file) { return identify_file(fd, file) == 0; }

int open_file(uint32_t wire_minor, int flags) {
  if (wire_minor == wire::kFramebufferMinor) return open_framebuffer(flags);
  if (wire_minor >= kFirstBoardDevice) return open_board_device(wire_minor - kFirstBoardDevice, flags);
  raw::KeepErrno keep;
  Call call(wire::kOpen, kStartDaemon | (flags & O_CLOEXEC ? unsigned{kCloseOnExec} : 0u));
  wire::OpenRequest request{wire_minor, flags};
  int error = call.open();
  if (!error && !call.append(&request, sizeof(request))) error = ENOMEM;
  if (!error) error = call.send();
  if (!error) error = call.error();
  if (error) return -error;
  File file;
  int fd = call.take(0);
  if (fd < 0) return -EMFILE;  // the kernel drops what does not fit in
  struct stat st;
  if (!parse(&call, 1, &file) || raw::fstat(fd, &st) < 0) {
    raw::close(fd);
    return -ENODEV;
  }
  if (flags & O_NONBLOCK) raw::fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
  remember_file(st, file);
  return fd;
}

void remember_sync_file(int fd, uint64_t token, uint32_t place) {
  struct stat st;
  if (raw::fstat(fd, &st) == 0) cache.store({st.st_dev, st.st_ino, kSyncFile, token, place});
}

bool find_sync_file(int fd, uint64_t token, uint32_t* place) {
  struct stat st;
  Fact fact;
  if (raw::fstat(fd, &st) < 0 || !S_ISSOCK(st.st_mode) ||
      !cache.find(st.st_dev, st.st_ino, kSyncFile, &fact) || fact.token != token) {
    return false;
  }
  *place = static_cast<uint32_t>(fact.detail);
  return true;
}

bool is_known_foreign(const struct stat& st) {
  Fact fact;
  return cache.find(st.st_dev, st.st_ino, kForeign, &fact);
}

void remember_foreign(const struct stat& st) { cache.store({st.st_dev, st.st_ino, kForeign, 0, 0}); }

}  // namespace v3d::shim
