#include "shim/user_memory.h"

#include <climits>
#include <cstring>

#include "shim/raw.h"

namespace v3d::shim {
namespace {

enum class Access { kDone, kFault, kUnknown };

/// process_vm_readv and _writev go through the page tables and report what a plain access would die of.
Access copy(long number, void* local, uint64_t remote, size_t size) {
  auto* at = static_cast<unsigned char*>(local);
  while (size) {
    iovec here{at, size};
    iovec there{raw::pointer(remote), size};
    long done = raw::call(number, raw::getpid(), raw::word(&here), 1, raw::word(&there), 1, 0);
    if (done == -EFAULT || done == 0) return Access::kFault;
    if (done < 0) return Access::kUnknown;
    at += done;
    remote += static_cast<uint64_t>(done);
    size -= static_cast<size_t>(done);
  }
  return Access::kDone;
}

}  // namespace

// Where a sandbox forbids the call, a plain copy is right for every correct program.

bool copy_from_user(void* destination, uint64_t source, size_t size) {
  Access access = copy(SYS_process_vm_readv, destination, source, size);
  if (access == Access::kUnknown) memcpy(destination, raw::pointer(source), size);
  return access != Access::kFault;
}

bool is_readable_path(const char* path) {
  constexpr size_t kPiece = 256;  // nearly all paths end in the first one
  char piece[kPiece];
  auto address = reinterpret_cast<uint64_t>(path);
  for (size_t seen = 0; seen < PATH_MAX;) {
    // Up to a boundary that no page crosses, so that what lies behind the end of the text cannot matter.
    const size_t size = kPiece - (address + seen) % kPiece;
    const Access access = copy(SYS_process_vm_readv, piece, address + seen, size);
    if (access == Access::kUnknown) return true;
    if (access == Access::kFault) return false;
    if (memchr(piece, 0, size)) return true;
    seen += size;
  }
  return false;
}

bool copy_to_user(uint64_t destination, const void* source, size_t size) {
  Access access = copy(SYS_process_vm_writev, const_cast<void*>(source), destination, size);
  if (access == Access::kUnknown) memcpy(raw::pointer(destination), source, size);
  return access != Access::kFault;
}

}  // namespace v3d::shim
