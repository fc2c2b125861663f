#include "tools/inspect/memory_snapshot.h"

#include <cstddef>
#include <cstring>

namespace v3d::inspect {
namespace {

constexpr std::array<uint8_t, mmu::kPageSize> kZero = {};

bool is_zero(const uint8_t* page) { return std::memcmp(page, kZero.data(), kZero.size()) == 0; }

}  // namespace

MemorySnapshot::MemorySnapshot(mmu::AddressSpace& space) : space_(space) {
  for (const auto& range : space.mapped_ranges())
    for (uint64_t offset = 0; offset < range.size; offset += mmu::kPageSize) {
      const auto address = static_cast<GpuAddr>(range.address + offset);
      const uint8_t* const page = space.memory().host(address);
      if (is_zero(page)) continue;
      addresses_.push_back(address);
      std::memcpy(pages_.emplace_back().data(), page, mmu::kPageSize);
    }
}

void MemorySnapshot::restore() {
  size_t next = 0;
  for (const auto& range : space_.mapped_ranges())
    for (uint64_t offset = 0; offset < range.size; offset += mmu::kPageSize) {
      const auto address = static_cast<GpuAddr>(range.address + offset);
      uint8_t* const page = space_.memory().host(address);
      const bool kept = next < addresses_.size() && addresses_[next] == address;
      const uint8_t* const was = kept ? pages_[next++].data() : kZero.data();
      if (std::memcmp(page, was, mmu::kPageSize) != 0) std::memcpy(page, was, mmu::kPageSize);
    }
  space_.take_faults();
}

}  // namespace v3d::inspect
