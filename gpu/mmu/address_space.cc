/// @file The MMU: page table entries are the authority, host mappings follow them. A host fault inside a
/// window is the V3D's "redirect to the scratch page": the handler maps the space's scratch page there and
/// the access is repeated. Memory that a BO has lost (SIGBUS behind a valid entry) is unmapped memory from
/// then on. Hardware has one scratch page per device; here each client has its own, so that nothing leaks
/// between clients.
#include "gpu/mmu/address_space.h"

#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <mutex>

#include "absl/strings/str_format.h"
#include "gpu/base/log.h"
#include "gpu/base/qpu_place.h"
#include "gpu/mmu/fault_place.h"
#include "gpu/mmu/host_pages.h"

#ifdef __SANITIZE_THREAD__
extern "C" void AnnotateBenignRaceSized(const char* file, int line, const volatile void* memory, size_t size,
                                        const char* description);
#endif

namespace v3d::mmu {
namespace {

constexpr uint64_t kReservation = 3 * kSpaceSize;
constexpr uint64_t kPages = kSpaceSize / kPageSize;
constexpr uint32_t kFrameMask = 0xffffff;

/// Where the signal handler looks an address up. It follows `space` only for an address in the reservation,
/// which some job of that space accesses: the space is alive then, while any other may be going.
struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<uint8_t*> reservation{nullptr};  ///< null: not to be looked at
  std::atomic<AddressSpace*> space{nullptr};
  int scratch_segment = -1;                 ///< the scratch page, where mappings cannot be doubled
  std::atomic<const char*> stage{nullptr};  ///< of the QPU program that made the first fault; null: none did
  std::atomic<uint32_t> program{0}, instruction{0};
};
constexpr int kMaxSpaces = 4096;
Slot g_slots[kMaxSpaces];
struct sigaction g_previous_segv, g_previous_bus;

/// Of a space that exists.
Slot* slot_of(const AddressSpace* space) {
  return std::find_if(std::begin(g_slots), std::end(g_slots),
                      [space](const Slot& slot) { return slot.space.load() == space; });
}

/// Makes every access to the range a fault. False: the host has no mappings left (vm.max_map_count).
bool forbid(uint8_t* at, uint64_t size) {
  // With one mapping too many mmap is refused even where it takes none; a range of whole mappings can still
  // be protected. (Unmapping it is no way: something of the daemon's could be placed into the hole.)
  return mmap(at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) !=
             MAP_FAILED ||
         mprotect(at, size, PROT_NONE) == 0;
}

/// mremap(2) makes one more mapping of shared memory when the old size is 0: without a descriptor. User-mode
/// emulators do not know that.
void* double_mapping(uint8_t* memory, int flags, uint8_t* at) {
  return mremap(memory, 0, kPageSize, MREMAP_MAYMOVE | flags, at);
}
bool can_double(uint8_t* memory) {
  static const bool kCan = [&] {
    void* const twin = double_mapping(memory, 0, nullptr);
    return twin != MAP_FAILED && munmap(twin, kPageSize) == 0;
  }();
  return kCan;
}

/// In place of what is there.
bool attach(int segment, uint8_t* page) { return shmat(segment, page, SHM_REMAP) == page; }

/// A segment of shared memory, which may be attached several times, in place of the page at an address. It is
/// gone with the last of them. @return  its number, or -1
int replace_by_segment(uint8_t* page) {
  const int segment = shmget(IPC_PRIVATE, kPageSize, IPC_CREAT | 0600);
  if (segment < 0) return -1;
  const bool attached = attach(segment, page);
  shmctl(segment, IPC_RMID, nullptr);
  return attached ? segment : -1;
}

constexpr uint32_t kPteMapped = kPteValid | kPteKept;

/// Whether the host can have one mapping for two adjacent pages with these entries.
bool joined(uint32_t first, uint32_t second) {
  const bool mapped = (first & kPteMapped) != 0;
  if (mapped != ((second & kPteMapped) != 0)) return false;
  return !mapped || ((first + 1) & kFrameMask) == (second & kFrameMask);
}

void nap() {
  const timespec time = {0, 1'000'000};
  nanosleep(&time, nullptr);
}

/// What a client's tiles and threads race for in the client's own memory is the client's affair, as it is on
/// hardware: ThreadSanitizer is to watch everything else.
void let_clients_race([[maybe_unused]] const uint8_t* reservation) {
#ifdef __SANITIZE_THREAD__
  AnnotateBenignRaceSized(__FILE__, __LINE__, reservation, kReservation, "memory of a GPU client");
#endif
}

}  // namespace

absl::StatusOr<std::unique_ptr<AddressSpace>> AddressSpace::create() {
  if (absl::Status pages = check_host_pages(); !pages.ok()) return pages;
  static std::once_flag once;
  std::call_once(once, install_handler);

  auto space = std::unique_ptr<AddressSpace>(new AddressSpace);
  void* reservation =
      mmap(nullptr, kReservation, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reservation == MAP_FAILED) return absl::ResourceExhaustedError("no 12 GiB of address space left");
  space->reservation_ = static_cast<uint8_t*>(reservation);
  space->base_ = space->reservation_ + kSpaceSize;
  let_clients_race(space->reservation_);

  void* table = mmap(nullptr, (kSpaceSize / kPageSize) * sizeof(uint32_t), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (table == MAP_FAILED) return absl::ResourceExhaustedError("no memory for a page table");
  space->page_table_ = static_cast<uint32_t*>(table);

  void* scratch = mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (scratch == MAP_FAILED) return absl::ResourceExhaustedError("no memory for a scratch page");
  space->scratch_ = static_cast<uint8_t*>(scratch);
  if (!space->separate() || !space->take_reserve())
    return absl::ResourceExhaustedError("the host has too few mappings left");

  for (Slot& slot : g_slots) {
    if (slot.taken.exchange(true)) continue;
    slot.space = space.get();
    if (!can_double(space->scratch_) && (slot.scratch_segment = replace_by_segment(space->scratch_)) < 0)
      return absl::ResourceExhaustedError("no shared memory for a scratch page");
    slot.reservation.store(space->reservation_, std::memory_order_release);
    return space;
  }
  return absl::ResourceExhaustedError(absl::StrFormat("more than %d address spaces", kMaxSpaces));
}

AddressSpace::~AddressSpace() {
  for (Slot& slot : g_slots) {
    if (slot.space != this) continue;
    slot.reservation = nullptr;
    slot.space = nullptr;
    slot.scratch_segment = -1;
    slot.stage = nullptr;
    slot.taken = false;
    break;
  }
  drop_reserve();
  if (reservation_) munmap(reservation_, kReservation);
  if (page_table_) munmap(page_table_, (kSpaceSize / kPageSize) * sizeof(uint32_t));
  if (scratch_) munmap(scratch_, kPageSize);
}

uint32_t AddressSpace::new_frames(uint64_t pages) {
  lock();
  const uint32_t first = ++next_frame_;  // two files never follow each other
  next_frame_ += static_cast<uint32_t>(pages);
  unlock();
  return first;
}

absl::Status AddressSpace::check_range(GpuAddr address, uint64_t size) {
  if (address % kPageSize || size % kPageSize || size == 0)
    return absl::InvalidArgumentError(
        absl::StrFormat("map: address %#x, size %#x: not whole pages", address, size));
  if (address < kPageSize || size > kSpaceSize - address)
    return absl::InvalidArgumentError(
        absl::StrFormat("map: [%#x, +%#x) leaves the address space", address, size));
  return absl::OkStatus();
}

absl::Status AddressSpace::map(GpuAddr address, uint64_t size, MapMemory map_memory,
                               std::optional<uint32_t> frame) {
  absl::Status range = check_range(address, size);
  if (!range.ok()) return range;
  uint32_t number = frame ? *frame : new_frames(size / kPageSize);
  lock();
  const bool mapped = map_memory(base_ + address, size);
  if (mapped)
    change_entries(address / kPageSize, (address + size) / kPageSize,
                   [&](uint32_t) { return kPteValid | kPteWriteable | (number++ & kFrameMask); });
  unlock();
  if (!mapped) return absl::ResourceExhaustedError("map: the host refuses another mapping");
  return absl::OkStatus();
}

absl::Status AddressSpace::map_zeros(GpuAddr address, uint64_t size) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  return map(address, size, [](void* at, uint64_t bytes) {
    return mmap(at, bytes, PROT_READ | PROT_WRITE, kFlags, -1, 0) != MAP_FAILED;
  });
}

bool AddressSpace::unmap(GpuAddr address, uint64_t size) {
  const uint64_t end = (address + size + kPageSize - 1) / kPageSize;
  lock();
  bool forbidden = forbid(base_ + address, size);
  if (!forbidden) {
    recycle_all_scratch();
    forbidden = forbid(base_ + address, size);
  }
  change_entries(address / kPageSize, end, [&](uint32_t old) {
    return forbidden || !(old & kPteMapped) ? 0 : (old & kFrameMask) | kPteKept;
  });
  if (!reserve_) static_cast<void>(take_reserve());
  unlock();
  return forbidden;
}

void AddressSpace::keep(GpuAddr address, uint64_t size) {
  lock();
  change_entries(address / kPageSize, (address + size) / kPageSize,
                 [](uint32_t old) { return old & kPteMapped ? (old & kFrameMask) | kPteKept : 0; });
  unlock();
}

bool AddressSpace::revive(GpuAddr address, uint64_t size) {
  const uint64_t first = address / kPageSize, end = (address + size) / kPageSize;
  lock();
  bool kept = true;
  for (uint64_t page = first; page < end; ++page) kept = kept && (entry(page) & kPteKept);
  if (kept)
    change_entries(first, end, [](uint32_t old) { return (old & kFrameMask) | kPteValid | kPteWriteable; });
  unlock();
  return kept;
}

/// Replaces the entries of [first, end) by change(old).
template <typename Change>
void AddressSpace::change_entries(uint64_t first, uint64_t end, Change&& change) {
  uint32_t old_before = first == 0 ? 0 : entry(first - 1), new_before = old_before;
  int64_t breaks = 0;
  for (uint64_t page = first; page < end; ++page) {
    const uint32_t old = entry(page), value = change(old);
    breaks += !joined(new_before, value) - !joined(old_before, old);
    old_before = old;
    new_before = value;
    if (old == value) continue;
    std::atomic_ref(page_table_[page]).store(value, std::memory_order_relaxed);
    std::atomic<uint16_t>& used = used_in_part_[page / kEntriesPerPart];
    if ((value & kPteMapped) && !(old & kPteMapped)) ++used;
    if (!(value & kPteMapped) && (old & kPteMapped)) --used;
  }
  const uint32_t after = end == kPages ? 0 : entry(end);
  breaks += !joined(new_before, after) - !joined(old_before, after);
  breaks_.fetch_add(static_cast<uint64_t>(breaks), std::memory_order_relaxed);
}

std::vector<AddressSpace::Range> AddressSpace::mapped_ranges() const {
  std::vector<Range> ranges;
  for (uint64_t page = 0; page < kPages; ++page) {
    if (page % kEntriesPerPart == 0 && used_in_part_[page / kEntriesPerPart] == 0) {
      page += kEntriesPerPart - 1;
      continue;
    }
    if (!(entry(page) & kPteValid)) continue;
    const uint64_t address = page * kPageSize;
    if (!ranges.empty() && ranges.back().address + ranges.back().size == address)
      ranges.back().size += kPageSize;
    else
      ranges.push_back({static_cast<GpuAddr>(address), kPageSize});
  }
  return ranges;
}

Faults AddressSpace::take_faults() {
  lock();
  const Faults faults{fault_count_, first_fault_};
  fault_count_ = 0;
  recycle_all_scratch();  // the next fault of the same page is a new one
  if (gaps_open_ || touched_ >= kMostTouched) close_gaps();
  if (!reserve_) static_cast<void>(take_reserve());
  unlock();
  return faults;
}

void AddressSpace::recycle_all_scratch() {
  if (num_scratch_ == 0) return;
  for (uint8_t*& page : scratch_pages_) {
    if (page) recycle_scratch(page);
    page = nullptr;
  }
}

void AddressSpace::recycle_scratch(uint8_t* page) {
  --num_scratch_;
  const uint64_t offset = static_cast<uint64_t>(page - reservation_) - kSpaceSize;  // wraps below the window
  if (offset < kSpaceSize && (entry(offset / kPageSize) & kPteMapped)) return;      // a BO was mapped over it
  // A page that the host refuses to unmap stays the scratch page: its accesses go uncounted.
  static_cast<void>(forbid(page, kPageSize));
}

/// One more mapping of the scratch page.
bool AddressSpace::map_scratch(uint8_t* page) {
  if (can_double(scratch_)) return double_mapping(scratch_, MREMAP_FIXED, page) != MAP_FAILED;
  const Slot* const slot = slot_of(this);
  return slot != std::end(g_slots) && attach(slot->scratch_segment, page);
}

bool AddressSpace::take_reserve() {
  void* pages = mmap(nullptr, kReserveMappings * kPageSize, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return false;
  reserve_ = static_cast<uint8_t*>(pages);
  for (uint64_t page = 1; page < kReserveMappings; page += 2) {
    if (mprotect(reserve_ + page * kPageSize, kPageSize, PROT_READ) == 0) continue;
    drop_reserve();
    return false;
  }
  return true;
}

void AddressSpace::drop_reserve() {
  if (reserve_) munmap(reserve_, kReserveMappings * kPageSize);
  reserve_ = nullptr;
}

/// Tries what takes a mapping of the host; where that fails, gives up what can be spared. Others in the
/// process may be quicker to take what was freed, but not for ever.
template <typename Op>
bool AddressSpace::insist(Op&& op) {
  if (op()) return true;
  drop_reserve();  // first: recycling takes less than it gives, but not nothing
  recycle_all_scratch();
  for (int attempt = 0; attempt < 20; ++attempt) {
    if (op()) return true;
    nap();
  }
  return false;
}

/// The unmapped pages around one of the window, as the host's memory: into the guards where nothing is
/// between. What is returned begins and ends with mappings of the host.
std::pair<uint8_t*, uint8_t*> AddressSpace::gap_around(uint64_t page) const {
  uint64_t first = page, end = page;
  while (first > 0 && !(entry(first - 1) & kPteMapped)) --first;
  while (end < kPages && !(entry(end) & kPteMapped)) ++end;
  return {first == 0 ? reservation_ + kPageSize : base_ + first * kPageSize,
          end == kPages ? reservation_ + kReservation - kPageSize : base_ + end * kPageSize};
}

/// When there is no mapping for a scratch page: the whole gap, which is one mapping, becomes memory of the
/// job until take_faults(). That needs none.
bool AddressSpace::open_gap(uint8_t* page) {
  gaps_open_ = true;
  if (page == reservation_ || page == reservation_ + kReservation - kPageSize)
    return mprotect(page, kPageSize, PROT_READ | PROT_WRITE) == 0;
  // The upper guard is as the last page, the lower one as the first.
  const auto distance = static_cast<uint64_t>(std::max(page, base_) - base_);
  const auto [first, end] = gap_around(std::min(distance / kPageSize, kPages));
  return mprotect(first, static_cast<uint64_t>(end - first), PROT_READ | PROT_WRITE) == 0;
}

void AddressSpace::close_gaps() {
  gaps_open_ = false;
  touched_ = 0;
  separate();
  for (uint64_t page = 0; page <= kPages; ++page) {
    if (page < kPages && (entry(page) & kPteMapped)) continue;
    const auto [first, end] = gap_around(page);
    const auto size = static_cast<uint64_t>(end - first);
    if (madvise(first, size, MADV_DONTNEED) != 0 || !forbid(first, size)) gaps_open_ = true;
    page = std::min(static_cast<uint64_t>(end - base_) / kPageSize, kPages);
  }
}

/// First and last page of the reservation are mappings that never grow together with others: what lies
/// between them, and between BOs, begins and ends with mappings of the host.
bool AddressSpace::separate() {
  constexpr int kFlags = MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED;
  return mmap(reservation_, kPageSize, PROT_NONE, kFlags, -1, 0) != MAP_FAILED &&
         mmap(reservation_ + kReservation - kPageSize, kPageSize, PROT_NONE, kFlags, -1, 0) != MAP_FAILED;
}

/// A valid page whose memory is gone: so is the rest of the mapping. At once: page by page a client could use
/// up the host's mappings.
void AddressSpace::lose_mapping(uint64_t page) {
  uint64_t end = page;
  for (uint32_t next = entry(end); end < kSpaceSize / kPageSize && entry(end) == next; ++end)
    next = (next & ~kFrameMask) | ((next + 1) & kFrameMask);
  change_entries(page, end, [](uint32_t) { return 0; });
  // What cannot be forbidden goes to the scratch page one by one.
  static_cast<void>(insist([&] { return forbid(base_ + page * kPageSize, (end - page) * kPageSize); }));
}

/// Makes a page the scratch page.
bool AddressSpace::redirect(uint8_t* page, bool memory_lost) {
  uint8_t*& slot = scratch_pages_[next_scratch_];
  next_scratch_ = (next_scratch_ + 1) % kScratchSlots;
  if (slot) recycle_scratch(slot);
  slot = nullptr;
  if (!reserve_ && num_scratch_ >= kReserveScratch) recycle_all_scratch();  // at the host's limit
  // Memory that is gone is so with any protection.
  if (!insist([&] { return map_scratch(page); })) return !memory_lost && open_gap(page);
  slot = page;
  ++num_scratch_;
  ++touched_;
  return true;
}

bool AddressSpace::handle_fault(uint8_t* host_address, bool memory_lost) {
  const uint64_t from_start = static_cast<uint64_t>(host_address - reservation_) & ~uint64_t{kPageSize - 1};
  uint8_t* page = reservation_ + from_start;
  lock();
  const uint64_t address = from_start - kSpaceSize;  // wraps for the lower guard
  const uint32_t pte = address < kSpaceSize ? entry(address / kPageSize) : 0;
  bool handled = pte & kPteValid;  // mapped meanwhile
  // EFAULT: the file ends before this page; the access would fault for ever.
  if (handled && madvise(page, kPageSize, MADV_POPULATE_WRITE) != 0 && errno == EFAULT) {
    lose_mapping(address / kPageSize);
    handled = false;
  } else if (pte & kPteKept) {
    change_entries(address / kPageSize, address / kPageSize + 1, [](uint32_t) { return 0; });
  }
  if (!handled) {
    handled = redirect(page, memory_lost);
    if (fault_count_++ == 0) {
      first_fault_ = static_cast<GpuAddr>(host_address - base_);
      if (Slot* const slot = slot_of(this); slot != std::end(g_slots)) {
        const QpuPlace& place = t_qpu_place;
        slot->program = place.program;
        slot->instruction = place.stage ? place.instruction(place.thread) : 0;
        slot->stage = place.stage;
      }
    }
  }
  unlock();
  return handled;  // else the access would fault for ever
}

void AddressSpace::on_signal(int signal, void* info_pointer, void* context) {
  auto* info = static_cast<siginfo_t*>(info_pointer);
  auto* address = static_cast<uint8_t*>(info->si_addr);
  for (Slot& slot : g_slots) {
    uint8_t* const start = slot.reservation.load(std::memory_order_acquire);
    if (start == nullptr || address < start || address >= start + kReservation) continue;
    const int saved_errno = errno;  // of the code that was interrupted
    const bool handled = slot.space.load()->handle_fault(address, signal == SIGBUS);
    t_fault_cost += kFaultCost;
    errno = saved_errno;
    if (handled) return;
    break;
  }
  // Not GPU memory: what would have happened without us.
  const struct sigaction& previous = signal == SIGSEGV ? g_previous_segv : g_previous_bus;
  if (previous.sa_flags & SA_SIGINFO) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else {
    std::signal(signal, SIG_DFL);  // the repeated access ends the process
  }
}

void AddressSpace::install_handler() {
  struct sigaction action = {};
  action.sa_sigaction = [](int signal, siginfo_t* info, void* context) { on_signal(signal, info, context); };
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &g_previous_segv);
  sigaction(SIGBUS, &action, &g_previous_bus);
}

FaultPlace take_fault_place(const AddressSpace& space) {
  Slot* const slot = slot_of(&space);
  if (slot == std::end(g_slots)) return {};
  return {slot->stage.exchange(nullptr), slot->program, slot->instruction};
}

}  // namespace v3d::mmu
