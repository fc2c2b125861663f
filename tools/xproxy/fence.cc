#include "tools/xproxy/fence.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

extern "C" {
#include <X11/xshmfence.h>
}

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>

namespace v3d::xproxy {
namespace {

/// The page that this thread is about to touch.
std::atomic<uintptr_t> g_touched{0};

/// Puts an empty page where a client's has gone. mmap() is a plain system call, safe in a signal handler.
void replace_page(int, siginfo_t* info, void*) {
  const int saved_errno = errno;  // of the code that was interrupted
  const uintptr_t size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t page = reinterpret_cast<uintptr_t>(info->si_addr) & ~(size - 1);
  void* const place = reinterpret_cast<void*>(page);  // NOLINT(performance-no-int-to-ptr)
  if (page == 0 || page != g_touched ||
      mmap(place, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != place)
    abort();
  errno = saved_errno;
}

void guard() {
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_sigaction = replace_page;
    action.sa_flags = SA_SIGINFO;
    return sigaction(SIGBUS, &action, nullptr) == 0;
  }();
  static_cast<void>(installed);
}

/// While it lives, the page may vanish.
class Touch {
 public:
  explicit Touch(const void* page) { g_touched = reinterpret_cast<uintptr_t>(page); }
  ~Touch() { g_touched = 0; }
  Touch(const Touch&) = delete;
  Touch& operator=(const Touch&) = delete;
};

}  // namespace

std::shared_ptr<Fence> Fence::map(int descriptor) {
  // Where it cannot map, the library closes what it was given.
  const int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return nullptr;
  guard();
  xshmfence* page = xshmfence_map_shm(own);
  if (!page) return nullptr;
  close(own);
  return std::shared_ptr<Fence>(new Fence(page));
}

Fence::~Fence() { xshmfence_unmap_shm(page_); }

void Fence::trigger() {
  const Touch touch(page_);
  xshmfence_trigger(page_);
}

void Fence::reset() {
  const Touch touch(page_);
  xshmfence_reset(page_);
}

bool Fence::triggered() {
  const Touch touch(page_);
  return xshmfence_query(page_) != 0;
}

}  // namespace v3d::xproxy
