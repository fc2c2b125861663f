/// @file The MMU: page table entries are the authority, host mappings follow them. A host fault inside a
/// window is the V3D's "redirect to the scratch page": the handler maps the space's scratch page there and
/// the access is repeated. Memory that a BO has lost (SIGBUS behind a valid entry) is unmapped memory from
/// then on. Hardware has one scratch page per device; here each client has its own, so that nothing leaks
/// between clients.
#include "gpu/mmu/address_space.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <mutex>

#include "absl/strings/str_format.h"
#include "gpu/base/log.h"

#ifdef __SANITIZE_THREAD__
extern "C" void AnnotateBenignRaceSized(const char* file, int line, const volatile void* memory, size_t size,
                                        const char* description);
#endif

namespace v3d::mmu {
namespace {

constexpr uint64_t kReservation = 3 * kSpaceSize;
constexpr uint32_t kFrameMask = 0xffffff;

/// Where the signal handler looks an address up. It follows `space` only for an address in the reservation,
/// which some job of that space accesses: the space is alive then, while any other may be going.
struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<uint8_t*> reservation{nullptr};  ///< null: not to be looked at
  std::atomic<AddressSpace*> space{nullptr};
};
constexpr int kMaxSpaces = 4096;
Slot g_slots[kMaxSpaces];
struct sigaction g_previous_segv, g_previous_bus;

/// Makes every access to the range a fault. False: the host has no mappings left (vm.max_map_count).
bool forbid(uint8_t* at, uint64_t size) {
  return mmap(at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) !=
         MAP_FAILED;
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

  space->scratch_fd_ = memfd_create("v3demu-scratch", MFD_CLOEXEC);
  if (space->scratch_fd_ < 0 || ftruncate(space->scratch_fd_, kPageSize) != 0)
    return absl::ResourceExhaustedError("no scratch page: memfd_create failed");

  for (Slot& slot : g_slots) {
    if (slot.taken.exchange(true)) continue;
    slot.space = space.get();
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
    slot.taken = false;
    break;
  }
  if (reservation_) munmap(reservation_, kReservation);
  if (page_table_) munmap(page_table_, (kSpaceSize / kPageSize) * sizeof(uint32_t));
  if (scratch_fd_ >= 0) close(scratch_fd_);
}

absl::Status AddressSpace::map(GpuAddr address, int memfd, uint64_t offset, uint64_t size) {
  if (address % kPageSize || offset % kPageSize || size % kPageSize || size == 0)
    return absl::InvalidArgumentError(
        absl::StrFormat("map: address %#x, size %#x: not whole pages", address, size));
  if (address < kPageSize || address + size > kSpaceSize)
    return absl::InvalidArgumentError(
        absl::StrFormat("map: [%#x, +%#x) leaves the address space", address, size));
  lock();
  void* mapped = mmap(base_ + address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memfd,
                      static_cast<off_t>(offset));
  if (mapped != MAP_FAILED) {
    ++next_frame_;  // frames of one mapping follow each other, those of two never do (handle_fault)
    for (uint64_t page = address / kPageSize; page < (address + size) / kPageSize; ++page)
      set_entry(page, kPteValid | kPteWriteable | (next_frame_++ & kFrameMask));
  }
  unlock();
  if (mapped == MAP_FAILED) return absl::ResourceExhaustedError("map: the host refuses another mapping");
  return absl::OkStatus();
}

void AddressSpace::unmap(GpuAddr address, uint64_t size) {
  const uint64_t end = (address + size + kPageSize - 1) / kPageSize;
  lock();
  for (uint64_t page = address / kPageSize; page < end; ++page) set_entry(page, 0);
  const bool forbidden = forbid(base_ + address, size);
  unlock();
  if (!forbidden)
    log_error("the host refuses to unmap [%#x, +%#x): jobs of this client still reach it", address, size);
}

void AddressSpace::set_entry(uint64_t page, uint32_t value) {
  const uint32_t old = entry(page);
  if (old == value) return;
  std::atomic_ref(page_table_[page]).store(value, std::memory_order_relaxed);
  std::atomic<uint16_t>& valid = valid_in_part_[page / kEntriesPerPart];
  if ((value & kPteValid) && !(old & kPteValid)) ++valid;
  if (!(value & kPteValid) && (old & kPteValid)) --valid;
}

std::vector<AddressSpace::Range> AddressSpace::mapped_ranges() const {
  std::vector<Range> ranges;
  for (uint64_t page = 0; page < kSpaceSize / kPageSize; ++page) {
    if (page % kEntriesPerPart == 0 && valid_in_part_[page / kEntriesPerPart] == 0) {
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
  unlock();
  return faults;
}

void AddressSpace::recycle_all_scratch() {
  for (uint8_t*& page : scratch_pages_) {
    if (page) recycle_scratch(page);
    page = nullptr;
  }
}

void AddressSpace::recycle_scratch(uint8_t* page) {
  const uint64_t offset = static_cast<uint64_t>(page - reservation_) - kSpaceSize;  // wraps below the window
  if (offset < kSpaceSize && (entry(offset / kPageSize) & kPteValid)) return;       // a BO was mapped over it
  // A page that the host refuses to unmap stays the scratch page: its accesses go uncounted.
  static_cast<void>(forbid(page, kPageSize));
}

bool AddressSpace::map_scratch(uint8_t* page) {
  return mmap(page, kPageSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, scratch_fd_, 0) != MAP_FAILED;
}

bool AddressSpace::handle_fault(uint8_t* host_address) {
  const uint64_t from_start = static_cast<uint64_t>(host_address - reservation_) & ~uint64_t{kPageSize - 1};
  uint8_t* page = reservation_ + from_start;
  lock();
  const uint64_t address = from_start - kSpaceSize;  // wraps for the lower guard
  bool mapped_meanwhile = address < kSpaceSize && (entry(address / kPageSize) & kPteValid);
  bool handled = true;
  // EFAULT: the memfd ends before this page; the access would fault for ever.
  if (mapped_meanwhile && madvise(page, kPageSize, MADV_POPULATE_WRITE) != 0 && errno == EFAULT) {
    mapped_meanwhile = false;
    uint64_t end = address / kPageSize;
    for (uint32_t next = entry(end); end < kSpaceSize / kPageSize && entry(end) == next; ++end) {
      set_entry(end, 0);
      next = (next & ~kFrameMask) | ((next + 1) & kFrameMask);
    }
    // The whole rest at once: page by page a client could use up the host's mappings.
    if (const uint64_t size = end * kPageSize - address; !forbid(page, size)) {
      recycle_all_scratch();
      handled = forbid(page, size);
    }
  }
  if (handled && !mapped_meanwhile) {
    uint8_t*& slot = scratch_pages_[next_scratch_];
    next_scratch_ = (next_scratch_ + 1) % kScratchSlots;
    if (slot) recycle_scratch(slot);
    slot = nullptr;
    handled = map_scratch(page);
    if (!handled) {  // vm.max_map_count: other scratch pages can be spared
      recycle_all_scratch();
      handled = map_scratch(page);
    }
    if (handled) slot = page;
    if (fault_count_++ == 0) first_fault_ = static_cast<GpuAddr>(host_address - base_);
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
    const bool handled = slot.space.load()->handle_fault(address);
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

}  // namespace v3d::mmu
