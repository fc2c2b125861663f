#include "gpu/qpu/jit/code/code_memory.h"

#include <sys/mman.h>

#include <cstring>
#include <utility>

namespace v3d::qpu::jit {

std::optional<CodeMemory> CodeMemory::copy_of(std::span<const uint8_t> code) {
  void* const pages = mmap(nullptr, code.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return {};
  CodeMemory memory(static_cast<uint8_t*>(pages), code.size());
  std::memcpy(pages, code.data(), code.size());
  if (mprotect(pages, code.size(), PROT_READ | PROT_EXEC) != 0) return {};
  // Hosts other than x86-64 may have something else in their instruction caches.
  char* const begin = static_cast<char*>(pages);
  __builtin___clear_cache(begin, begin + code.size());
  return memory;
}

CodeMemory::CodeMemory(CodeMemory&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)), bytes_(other.bytes_) {}

CodeMemory::~CodeMemory() {
  if (begin_) munmap(begin_, bytes_);
}

}  // namespace v3d::qpu::jit
