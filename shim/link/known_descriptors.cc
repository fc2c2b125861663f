#include "shim/link/known_descriptors.h"

#include <sys/socket.h>

#include <atomic>
#include <cstring>

#include "shim/process/raw.h"

namespace v3d::shim {
namespace {

enum Kind : uint64_t { kNothing, kDrmFile, kNotOurs, kForeign, kSyncFile };

struct Fact {
  uint64_t dev = 0, ino = 0, kind = kNothing, token = 0;
  uint64_t detail = 0;  // of a DRM file, driver, minor and daemon; of a sync_file, the place of its fence
};
constexpr uint32_t kDriverShift = 56, kMinorMask = 0xffffff;  // in the detail of a DRM file

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

bool find_known(int fd, Fact* fact) {
  struct stat st;
  return raw::fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && cache.find(st.st_dev, st.st_ino, kDrmFile, fact);
}

}  // namespace

bool find_known_file(const struct stat& st, File* file) {
  Fact fact;
  if (!cache.find(st.st_dev, st.st_ino, kDrmFile, &fact)) return false;
  *file = {fact.token, static_cast<uint32_t>(fact.detail >> 32 & kMinorMask),
           static_cast<pid_t>(static_cast<uint32_t>(fact.detail)),
           static_cast<wire::FileDriver>(fact.detail >> kDriverShift)};
  return true;
}

void remember_file(const struct stat& st, const File& file) {
  knows_files.store(true, std::memory_order_relaxed);
  cache.store({st.st_dev, st.st_ino, kDrmFile, file.token,
               static_cast<uint64_t>(file.driver) << kDriverShift | static_cast<uint64_t>(file.minor) << 32 |
                   static_cast<uint32_t>(file.daemon)});
}

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

bool is_known_other(const struct stat& st) {
  Fact fact;
  return cache.find(st.st_dev, st.st_ino, kNotOurs, &fact);
}

void remember_other(const struct stat& st) { cache.store({st.st_dev, st.st_ino, kNotOurs, 0, 0}); }

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
