#include "shim/process/own_pid.h"

#include <atomic>

#include "shim/process/raw.h"

namespace v3d::shim {

#if defined(__x86_64__)

namespace {

/// A word that reads as 0 in the child of every fork, also of those that run no handlers. nullptr when there
/// is none to be had.
std::atomic<pid_t>* word_of_this_process() {
  static std::atomic<std::atomic<pid_t>*> word{nullptr};
  std::atomic<pid_t>* known = word.load(std::memory_order_acquire);
  if (known) return known;
  void* page = raw::map_memory(raw::kPage);
  if (!page) return nullptr;
  auto* fresh = static_cast<std::atomic<pid_t>*>(page);
  if (raw::call(SYS_madvise, raw::word(page), raw::kPage, MADV_WIPEONFORK) == 0 &&
      word.compare_exchange_strong(known, fresh, std::memory_order_acq_rel)) {
    return fresh;
  }
  raw::unmap_memory(page, raw::kPage);
  return known;
}

}  // namespace

pid_t own_pid() {
  std::atomic<pid_t>* word = word_of_this_process();
  if (!word) return raw::getpid();
  pid_t pid = word->load(std::memory_order_relaxed);
  if (pid == 0) word->store(pid = raw::getpid(), std::memory_order_relaxed);
  return pid;
}

#else

// User-mode emulators say that they wipe memory on fork and do not.
pid_t own_pid() { return raw::getpid(); }

#endif

}  // namespace v3d::shim
