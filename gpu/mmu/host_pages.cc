#include "gpu/mmu/host_pages.h"

#include <sys/auxv.h>

#include "absl/strings/str_format.h"
#include "gpu/mmu/address_space.h"

namespace v3d::mmu {

absl::Status check_host_pages(uint64_t bytes) {
  if (bytes <= kPageSize) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "this kernel's pages have %d bytes, and the GPU's of %d cannot be mapped there one by one: "
      "start a kernel with pages of 4 KiB (a Raspberry Pi 5 does with kernel=kernel8.img in "
      "config.txt)",
      bytes, kPageSize));
}

absl::Status check_host_pages() { return check_host_pages(uint64_t{getauxval(AT_PAGESZ)}); }

}  // namespace v3d::mmu
