/// An AddressSpace is one client's 4 GiB of GPU addresses: the V3D page table and the host window made from
/// it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gpu/base/memory.h"

namespace v3d::mmu {

inline constexpr uint32_t kPageSize = 4096;
inline constexpr uint64_t kSpaceSize = uint64_t{1} << 32;

/// Page table entry (Linux v3d_mmu.c): page frame in bits 23:0.
inline constexpr uint32_t kPteValid = 1u << 28;
inline constexpr uint32_t kPteWriteable = 1u << 29;
/// A bit that hardware ignores: the page is invalid, but the host still maps the frame (AddressSpace::keep).
inline constexpr uint32_t kPteKept = 1u << 27;

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

  /// Numbers for the pages of a file that is mapped in pieces: pieces whose numbers and addresses follow each
  /// other are one mapping of the host (vm.max_map_count counts those).
  uint32_t new_frames(uint64_t pages);

  /// InvalidArgument unless the range is of whole pages, at least one, inside [kPageSize, 4 GiB).
  static absl::Status check_range(GpuAddr address, uint64_t size);

  /// Maps `size` bytes of memory at `at` in place of what is there, readable and writable. False when
  /// the host refuses. Where the memory comes from is the caller's affair.
  using MapMemory = absl::FunctionRef<bool(void* at, uint64_t size)>;
  /// Maps memory at a GPU address, a range as check_range() wants it. InvalidArgument when it is not;
  /// ResourceExhausted, and nothing changed, when `map_memory` returns false.
  /// @param frame  the number of the first page, from new_frames(); without one it gets numbers of its own
  absl::Status map(GpuAddr address, uint64_t size, MapMemory map_memory, std::optional<uint32_t> frame = {});
  /// The same with memory that only this space has: zeros, which go with the mapping.
  absl::Status map_zeros(GpuAddr address, uint64_t size);
  /// Pages in the range become invalid; unmapped ones are ignored. False when the host refuses to unmap them,
  /// which may happen to a part of what map() or new_frames() made one mapping (vm.max_map_count): they are
  /// as after keep().
  bool unmap(GpuAddr address, uint64_t size);
  /// Mapped pages in the range become invalid, but the host goes on mapping them: accesses reach the file
  /// instead of the scratch page, and are not counted. Takes no mapping of the host.
  void keep(GpuAddr address, uint64_t size);
  /// Makes kept pages valid again. False, and nothing changed, unless all pages are kept.
  bool revive(GpuAddr address, uint64_t size);

  // For as many scratch pages as one instruction can need at once, each of which takes two, one more, and
  // what mremap wants to be left beyond what it takes (Linux mm/mremap.c): to be given up when the fault
  // handler needs a mapping and the host has none left.
  static constexpr uint64_t kReserveScratch = 4;
  static constexpr uint64_t kRemapMargin = 4;
  static constexpr uint64_t kReserveMappings = 2 * kReserveScratch + 1 + kRemapMargin;
  /// Of an empty space: reserve, reservation in three, page table, scratch page.
  static constexpr uint64_t kFixedMappings = kReserveMappings + 5;

  /// Mappings of the host that this space takes, with its reserve. Any thread.
  uint64_t host_mappings() const {
    return kFixedMappings + breaks_.load(std::memory_order_relaxed) +
           2 * num_scratch_.load(std::memory_order_relaxed);
  }

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
  bool handle_fault(uint8_t* host_address, bool memory_lost);
  bool map_scratch(uint8_t* page);
  bool redirect(uint8_t* page, bool memory_lost);
  void lose_mapping(uint64_t page);
  void recycle_scratch(uint8_t* page);
  void recycle_all_scratch();
  bool take_reserve();
  void drop_reserve();
  template <typename Op>
  bool insist(Op&& op);
  std::pair<uint8_t*, uint8_t*> gap_around(uint64_t page) const;
  bool open_gap(uint8_t* page);
  bool separate();
  void close_gaps();

  uint32_t entry(uint64_t page) const {
    return std::atomic_ref(page_table_[page]).load(std::memory_order_relaxed);
  }
  template <typename Change>
  void change_entries(uint64_t first, uint64_t end, Change&& change);

  void lock() {
    while (lock_.test_and_set(std::memory_order_acquire)) {
    }
  }
  void unlock() { lock_.clear(std::memory_order_release); }

  static constexpr int kScratchSlots = 1024;
  /// Scratch pages that the window had, after which the page tables of the host go that they needed: one for
  /// each of them, as a client likes, and they stay when the pages are unmapped one by one.
  static constexpr uint32_t kMostTouched = 512;

  uint8_t* reservation_ = nullptr;
  uint8_t* base_ = nullptr;
  // 2^20 entries, written under the lock, read without. The host gives memory for those that are used.
  uint32_t* page_table_ = nullptr;
  // How many of each 1024 entries have a mapping: the others need not be looked at.
  static constexpr uint64_t kEntriesPerPart = 1024;
  static constexpr uint64_t kParts = kSpaceSize / kPageSize / kEntriesPerPart;
  std::array<std::atomic<uint16_t>, kParts> used_in_part_{};
  // Pairs of adjacent pages that cannot lie in one mapping of the host.
  std::atomic<uint64_t> breaks_{0};
  uint32_t next_frame_ = 1;
  uint8_t* scratch_ = nullptr;  // the scratch page, of which those in the window are copies
  // Held for short, signal-safe sections only: the fault handler takes it too.
  std::atomic_flag lock_ = ATOMIC_FLAG_INIT;
  uint8_t* scratch_pages_[kScratchSlots] = {};
  int next_scratch_ = 0;
  std::atomic<uint32_t> num_scratch_{0};
  uint8_t* reserve_ = nullptr;
  bool gaps_open_ = false;
  uint32_t touched_ = 0;  // pages, since close_gaps()
  uint64_t fault_count_ = 0;
  GpuAddr first_fault_ = 0;
};

}  // namespace v3d::mmu
