// A file of its own: the compiler is not to look through operator new.
#include "tests/ioctl/failing_new.h"

#include <cstdlib>
#include <new>

namespace {

thread_local int t_allocations_left = -1;  // negative: none fails

bool fails_now() { return t_allocations_left >= 0 && t_allocations_left-- == 0; }

}  // namespace

void* operator new(size_t size) {
  if (void* memory = fails_now() ? nullptr : std::malloc(size)) return memory;
  throw std::bad_alloc();
}
// std::get_temporary_buffer takes this one and gives its memory to the delete below.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return fails_now() ? nullptr : std::malloc(size);
}
void* operator new(size_t size, std::align_val_t alignment) {
  const auto unit = static_cast<size_t>(alignment);
  if (void* memory = fails_now() ? nullptr : std::aligned_alloc(unit, (size + unit - 1) / unit * unit))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace v3d::ioctl::test {

void fail_allocation(int n) { t_allocations_left = n; }

bool fail_no_allocation() {
  const bool failed = t_allocations_left < 0;
  t_allocations_left = -1;
  return failed;
}

}  // namespace v3d::ioctl::test
