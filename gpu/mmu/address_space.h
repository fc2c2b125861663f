/// One client's 4 GiB GPU address space: the V3D page table and the host window made from it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gpu/base/memory.h"

namespace v3d::mmu {

inline constexpr uint32_t kPageSize = 4096;
inline constexpr uint64_t kSpaceSize = uint64_t{1} << 32;

/// Page table entry (Linux v3d_mmu.c): page frame in bits 23:0.
inline constexpr uint32_t kPteValid = 1u << 28;
inline constexpr uint32_t kPteWriteable = 1u << 29;

/// Accesses to unmapped pages since the last call of take_faults().
struct Faults {
  uint64_t count = 0;
  GpuAddr first_address = 0;
};

class AddressSpace {
 public:
  /// Reserves 4 GiB of guard, the window, and 4 GiB of guard; commits no memory.
  static absl::StatusOr<std::unique_ptr<AddressSpace>> create();
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  Memory memory() const { return Memory(base_); }

  /// Maps bytes [offset, offset + size) of a memfd at a GPU address. All three are multiples of kPageSize and
  /// the range lies inside [kPageSize, 4 GiB); else InvalidArgument.
  absl::Status map(GpuAddr address, int memfd, uint64_t offset, uint64_t size);
  /// Pages in the range become invalid; unmapped ones are ignored.
  void unmap(GpuAddr address, uint64_t size);

  /// Any thread. While another one maps or unmaps the page, either answer.
  bool is_mapped(GpuAddr address) const { return entry(address / kPageSize) & kPteValid; }
  /// Mapped ranges in ascending order, adjacent pages joined. Any thread, as is_mapped().
  struct Range {
    GpuAddr address;
    uint64_t size;
  };
  std::vector<Range> mapped_ranges() const;

  Faults take_faults();

 private:
  AddressSpace() = default;
  static void install_handler();
  static void on_signal(int signal, void* info, void* context);
  bool handle_fault(uint8_t* host_address);
  bool map_scratch(uint8_t* page);
  void recycle_scratch(uint8_t* page);
  void recycle_all_scratch();

  uint32_t entry(uint64_t page) const {
    return std::atomic_ref(page_table_[page]).load(std::memory_order_relaxed);
  }
  void set_entry(uint64_t page, uint32_t value);

  void lock() {
    while (lock_.test_and_set(std::memory_order_acquire)) {
    }
  }
  void unlock() { lock_.clear(std::memory_order_release); }

  static constexpr int kScratchSlots = 1024;

  uint8_t* reservation_ = nullptr;
  uint8_t* base_ = nullptr;
  // 2^20 entries, written under the lock, read without. The host gives memory for those that are used.
  uint32_t* page_table_ = nullptr;
  // How many of each 1024 entries are valid: the others need not be looked at.
  static constexpr uint64_t kEntriesPerPart = 1024;
  static constexpr uint64_t kParts = kSpaceSize / kPageSize / kEntriesPerPart;
  std::array<std::atomic<uint16_t>, kParts> valid_in_part_{};
  uint32_t next_frame_ = 1;
  int scratch_fd_ = -1;
  // Held for short, signal-safe sections only: the fault handler takes it too.
  std::atomic_flag lock_ = ATOMIC_FLAG_INIT;
  uint8_t* scratch_pages_[kScratchSlots] = {};
  int next_scratch_ = 0;
  uint64_t fault_count_ = 0;
  GpuAddr first_fault_ = 0;
};

}  // namespace v3d::mmu
