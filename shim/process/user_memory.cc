#include "shim/process/user_memory.h"

#include <atomic>
#include <climits>
#include <csignal>
#include <cstring>

#include "shim/process/config.h"
#include "shim/process/own_pid.h"
#include "shim/process/raw.h"

namespace v3d::shim {
namespace {

/// Whether a program of this kind can have memory there; cut short, the number would name other memory.
bool is_memory(uint64_t address, size_t size) {
  return raw::is_address(address) && (size == 0 || raw::is_address(address + (size - 1)));
}

enum class Access { kDone, kFault, kUnknown };

/// process_vm_readv and _writev go through the page tables and report what a plain access would die of.
Access copy(long number, void* local, uint64_t remote, size_t size) {
  auto* at = static_cast<unsigned char*>(local);
  while (size) {
    iovec here{at, size};
    iovec there{raw::pointer(remote), size};
    long done = raw::call(number, own_pid(), raw::word(&here), 1, raw::word(&there), 1, 0);
    if (done == -EFAULT || done == 0) return Access::kFault;
    if (done < 0) return Access::kUnknown;
    at += done;
    remote += static_cast<uint64_t>(done);
    size -= static_cast<size_t>(done);
  }
  return Access::kDone;
}

constexpr size_t kMaskSize = 8;  // of the kernel's signal masks

/// Valgrind, which names itself there, complains of what the kernel only refuses.
bool is_under_valgrind() {
  enum : int { kUnknown, kNo, kYes };
  static std::atomic<int> known{kUnknown};
  if (known.load(std::memory_order_relaxed) == kUnknown) {
    const char* preloaded = environment_variable("LD_PRELOAD");
    known.store(preloaded && strstr(preloaded, "/vgpreload_") ? kYes : kNo, std::memory_order_relaxed);
  }
  return known.load(std::memory_order_relaxed) == kYes;
}

/// Whether kMaskSize bytes at a multiple of kMaskSize can be read. rt_sigprocmask copies the mask first and
/// then finds that it is told to do nothing that it knows: EFAULT, or EINVAL and no change.
bool is_readable_word(uint64_t address) {
  if (address == 0) return false;  // a null pointer is no mask, which the kernel does not mind
  if (is_under_valgrind()) {
    uint64_t word;
    return copy(SYS_process_vm_readv, &word, address, sizeof(word)) != Access::kFault;
  }
  constexpr long kNoSuchChange = -1;
  return raw::call(SYS_rt_sigprocmask, kNoSuchChange, static_cast<long>(address), 0, kMaskSize) != -EFAULT;
}

/// The smallest page of all machines: it is readable as a whole or not at all, and so is it writable.
constexpr size_t kPage = 4096;

#if defined(__x86_64__)

/// Whether kMaskSize bytes can be written, which then hold anything: rt_sigprocmask stores the mask there.
bool is_writable_word(uint64_t address) {
  return raw::call(SYS_rt_sigprocmask, SIG_BLOCK, 0, static_cast<long>(address), kMaskSize) == 0;
}

/// Of the calling thread's stack what was found writable before, near the frames of this library: most
/// arguments lie there. (Who unmaps the stack on which it runs gets no EFAULT.)
// initial-exec: no allocation on first access, which may happen inside malloc.
struct Pages {
  uint64_t begin, end;
};
thread_local Pages known_stack [[gnu::tls_model("initial-exec")]] = {0, 0};
constexpr uint64_t kNear = 4 * kPage;

bool is_near_frame(uint64_t address, size_t size) {
  const auto frame = raw::address_of(__builtin_frame_address(0));
  return address >= frame && address - frame <= kNear && size <= kNear;
}

bool is_known_stack(uint64_t address, size_t size) {
  return is_near_frame(address, size) && address >= known_stack.begin && address + size <= known_stack.end;
}

void remember_stack(uint64_t address, size_t size) {
  if (!is_near_frame(address, size)) return;
  const Pages fresh{address & ~(kPage - 1), (address + size + kPage - 1) & ~(kPage - 1)};
  Pages& known = known_stack;
  if (fresh.begin > known.end || fresh.end < known.begin)
    known = fresh;
  else
    known = {fresh.begin < known.begin ? fresh.begin : known.begin,
             fresh.end > known.end ? fresh.end : known.end};
}

/// Up to here probing each page is cheaper than process_vm_readv, which takes six times as long as a probe.
constexpr size_t kProbed = 4 * kPage;

/// False when it is not known.
bool is_readable(uint64_t address, size_t size) {
  if (is_known_stack(address, size)) return true;
  if (size > kProbed || address + size < address) return false;
  for (uint64_t page = address & ~(kPage - 1); page < address + size; page += kPage) {
    const uint64_t first = page > address ? page : address;
    if (!is_readable_word(first & ~uint64_t{kMaskSize - 1})) return false;
  }
  return true;
}

/// The same for what is about to be written.
bool is_writable(uint64_t address, size_t size) {
  if (is_known_stack(address, size)) return true;
  if (size > kProbed || address + size < address) return false;
  for (uint64_t page = address & ~(kPage - 1); page < address + size; page += kPage) {
    const uint64_t first = page > address ? page : address;
    const uint64_t last = page + kPage < address + size ? page + kPage : address + size;
    if (last - first < kMaskSize || !is_writable_word(first)) return false;
  }
  remember_stack(address, size);
  return true;
}

#else

// User-mode emulators look at the mask after they have looked at what to do with it.
bool is_readable(uint64_t, size_t) { return false; }
bool is_writable(uint64_t, size_t) { return false; }

#endif

}  // namespace

// Where a sandbox forbids the call, a plain copy is right for every correct program.

bool copy_from_user(void* destination, uint64_t source, size_t size) {
  if (!is_memory(source, size)) return false;
  if (is_readable(source, size)) {
    memcpy(destination, raw::pointer(source), size);
    return true;
  }
  Access access = copy(SYS_process_vm_readv, destination, source, size);
  if (access == Access::kUnknown) memcpy(destination, raw::pointer(source), size);
  return access != Access::kFault;
}

// A path may come from a thread in a sandbox that kills for process_vm_readv, as browsers' renderers live in.
// All sandboxes let signal masks be changed.
bool is_readable_path(const char* path) {
  const auto address = raw::address_of(path);
  for (size_t seen = 0; seen < PATH_MAX;) {
    if (!is_readable_word((address + seen) & ~uint64_t{kMaskSize - 1})) return false;
    const size_t size = kPage - (address + seen) % kPage;
    if (memchr(path + seen, 0, size)) return true;
    seen += size;
  }
  return false;
}

bool copy_to_user(uint64_t destination, const void* source, size_t size) {
  if (!is_memory(destination, size)) return false;
  if (is_writable(destination, size)) {
    memcpy(raw::pointer(destination), source, size);
    return true;
  }
  Access access = copy(SYS_process_vm_writev, const_cast<void*>(source), destination, size);
  if (access == Access::kUnknown) memcpy(raw::pointer(destination), source, size);
  return access != Access::kFault;
}

}  // namespace v3d::shim
