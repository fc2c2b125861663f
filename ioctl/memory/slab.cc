#include "ioctl/memory/slab.h"

#include <fcntl.h>

#include <algorithm>
#include <bitset>
#include <vector>

#include "ioctl/link/wire.h"

namespace v3d::ioctl {

using mmu::kPageSize;

struct Slab {
  std::shared_ptr<MemoryFile> file;  // null while it has no memory
  uint32_t address = 0, pages = 0;
  uint32_t frame = 0;  // of its first page (mmu::AddressSpace::new_frames)
  uint32_t live = 0, retired = 0, away = 0;
  uint32_t longest = 0;           // no run of free pages is longer
  std::bitset<kSlabPages> used;   // the memory: of a BO, or retired
  std::bitset<kSlabPages> gone;   // of them those that are retired
  std::bitset<kSlabPages> moved;  // the address: of a BO that was moved out
  std::bitset<kSlabPages> stale;  // the address: of a BO that is gone, and still mapped by the host
  bool whole = false;             // the host maps it as one
  Charge descriptor, mappings;
  uint32_t bos = 0;
  std::vector<Charge> bytes;  // of what is retired; with room for those of all BOs

  /// Whether the account bears a mapping for each run of pages that are mapped, and for each gap.
  bool afford(const std::bitset<kSlabPages>& mapped) {
    const uint64_t ends = (mapped ^ (mapped << 1)).count() + mapped[kSlabPages - 1];
    const uint64_t needed = std::max(kSlabMappings, ends);
    if (needed > mappings.amount()) return mappings.grow(needed - mappings.amount()) == 0;
    mappings.shrink(mappings.amount() - needed);
    return true;
  }
  bool kept = false;  // the host maps other pages that are free, so that jobs may write to them, too

  bool is_writable_where_free() const { return kept || stale.any(); }

  uint32_t at(uint32_t page) const { return address + page * kPageSize; }
  bool map(mmu::AddressSpace& space, uint32_t page, uint32_t count) const {
    return file->map(space, at(page), page * uint64_t{kPageSize}, count * uint64_t{kPageSize}, frame + page);
  }
  uint32_t page_of(const SlabPiece& piece) const { return (piece.address - address) / kPageSize; }

  /// The lowest run of free pages.
  std::optional<uint32_t> find(uint32_t count, uint64_t alignment) {
    const auto aligned = [&](uint32_t page) {
      return static_cast<uint32_t>(((at(page) + alignment - 1) / alignment * alignment - address) /
                                   kPageSize);
    };
    for (uint32_t page = aligned(0), end = page; page + count <= pages;) {
      while (end < page + count && !used[end] && !moved[end]) ++end;
      if (end == page + count) return page;
      page = aligned(++end);
      end = std::max(end, page);
    }
    if (alignment == kPageSize) longest = count - 1;
    return std::nullopt;
  }

  /// Calls fn(page, pages) for the runs of a set of pages. False if that once was.
  template <typename Fn>
  bool for_runs(const std::bitset<kSlabPages>& set, Fn&& fn) const {
    bool done = true;
    for (uint32_t page = 0, end = 0; page < pages; page = end + 1) {
      for (end = page; end < pages && set[end];) ++end;
      if (end > page) done = fn(page, end - page) && done;
    }
    return done;
  }
  bool unmap(mmu::AddressSpace& space, const std::bitset<kSlabPages>& set) const {
    return for_runs(set, [&](uint32_t page, uint32_t count) {
      return space.unmap(at(page), count * uint64_t{kPageSize});
    });
  }
};

namespace {

bool punch(const MemoryFile& file, uint32_t page, uint32_t pages) {
  return fallocate(file.memfd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t{page} * kPageSize,
                   off_t{pages} * kPageSize) == 0;
}

template <size_t kSize>
void set(std::bitset<kSize>& bits, uint32_t first, uint32_t count, bool value) {
  for (uint32_t i = first; i < first + count; ++i) bits[i] = value;
}

}  // namespace

SlabPool::SlabPool(mmu::AddressSpace& space, VaAllocator& va) : space_(space), va_(va) {}
SlabPool::~SlabPool() = default;

const std::shared_ptr<MemoryFile>& SlabPool::file(const SlabPiece& piece) { return piece.slab->file; }
uint64_t SlabPool::offset(const SlabPiece& piece) { return piece.address - piece.slab->address; }

bool SlabPool::make_file(Account& account, Slab& slab) {
  if (account.charge(Resource::kDescriptors, 1, &slab.descriptor) != 0 ||
      account.charge(Resource::kMappings, kSlabMappings, &slab.mappings) != 0)
    return false;
  slab.file = MemoryFile::create(wire::kSlabName, slab.pages * uint64_t{kPageSize});
  if (!slab.file) return false;
  slab.file->slab_bytes = slab.pages * uint64_t{kPageSize};
  slab.frame = space_.new_frames(slab.pages);
  slab.kept = slab.whole = false;
  return true;
}

Slab* SlabPool::make_slab() {
  const auto range = va_.allocate_slab(kSlabSize);
  if (!range) return nullptr;
  auto slab = std::make_unique<Slab>();
  slab->address = range->address;
  slab->pages = slab->longest = static_cast<uint32_t>(range->size / kPageSize);
  return (slabs_[range->address] = std::move(slab)).get();
}

/// The slab in use, else the fullest with room, so that the emptier ones become empty.
Slab* SlabPool::find_slab(uint32_t pages, uint64_t alignment, uint32_t* page) {
  const auto fits = [&](Slab& slab) {
    if (slab.longest < pages) return false;
    const auto found = slab.find(pages, alignment);
    if (found) *page = *found;
    return found.has_value();
  };
  if (current_ && fits(*current_)) return current_;
  Slab* best = nullptr;
  for (const auto& [address, slab] : slabs_) {
    if (best && slab->live <= best->live) continue;
    if (fits(*slab)) best = slab.get();
  }
  if (!best) {
    best = make_slab();
    if (!best) return nullptr;
  }
  current_ = best;
  // As the search may have ended elsewhere.
  return fits(*best) ? best : nullptr;
}

std::optional<SlabPiece> SlabPool::allocate(Account& account, uint64_t size, bool in_need) {
  if (!in_need && retired_bytes() > kMaxRetired + live_bytes()) return std::nullopt;
  const auto pages = static_cast<uint32_t>(size / kPageSize);
  uint32_t page = 0;
  Slab* const slab = find_slab(pages, va_.alignment(size), &page);
  if (!slab) return std::nullopt;
  if (spare_ == slab) spare_ = nullptr;
  if (slab->bytes.capacity() < slab->bytes.size() + slab->bos + 1)
    slab->bytes.reserve(2 * (slab->bytes.size() + slab->bos + 1));
  if ((!slab->file && !make_file(account, *slab)) ||
      (slab->is_writable_where_free() && !punch(*slab->file, page, pages))) {
    tidy(*slab);
    return std::nullopt;
  }
  set(slab->used, page, pages, true);
  slab->live += pages;
  ++slab->bos;
  live_pages_ += pages;
  const SlabPiece piece = {slab, slab->at(page), size};
  if (map(*slab, page, pages)) return piece;
  forget(*slab, page, pages, false, {});
  tidy(*slab);
  return std::nullopt;
}

bool SlabPool::map(Slab& slab, uint32_t page, uint32_t pages) {
  const uint64_t bytes = pages * uint64_t{kPageSize};
  const bool revived = slab.is_writable_where_free() && space_.revive(slab.at(page), bytes);
  set(slab.stale, page, pages, false);
  if (revived) return true;
  if (!slab.whole && (space_.host_mappings() >= kExactMappings || !slab.afford(slab.used & ~slab.gone)))
    return map_whole(slab);
  return slab.map(space_, page, pages) || map_whole(slab);
}

bool SlabPool::map_whole(Slab& slab) {
  const bool mapped = slab.for_runs(
      ~slab.moved, [&](uint32_t page, uint32_t pages) { return slab.map(space_, page, pages); });
  slab.kept = true;
  for (uint32_t page = 0; page < slab.pages; ++page)
    if (!slab.moved[page] && (!slab.used[page] || slab.gone[page])) space_.keep(slab.at(page), kPageSize);
  slab.whole = mapped;
  return mapped;
}

/// The memory of a BO that is no more, or no more here.
void SlabPool::forget(Slab& slab, uint32_t page, uint32_t pages, bool was_mapped, Charge bytes) {
  --slab.bos;
  slab.live -= pages;
  live_pages_ -= pages;
  if (was_mapped || !punch(*slab.file, page, pages)) {
    set(slab.gone, page, pages, true);
    slab.retired += pages;
    retired_pages_ += pages;
    slab.bytes.push_back(std::move(bytes));
  } else {
    set(slab.used, page, pages, false);
    slab.longest = slab.pages;
  }
}

void SlabPool::release(const SlabPiece& piece, bool was_mapped, Charge bytes) {
  Slab& slab = *piece.slab;
  const auto pages = static_cast<uint32_t>(piece.size / kPageSize);
  space_.keep(piece.address, piece.size);
  set(slab.stale, slab.page_of(piece), pages, true);
  any_stale_ = true;
  forget(slab, slab.page_of(piece), pages, was_mapped, std::move(bytes));
  tidy(slab);
}

void SlabPool::settle() {
  if (!any_stale_) return;
  any_stale_ = false;
  for (const auto& [address, slab] : slabs_) {
    if (slab->stale.none()) continue;
    if (slab->whole || space_.host_mappings() >= kExactMappings || !slab->afford(slab->used & ~slab->gone) ||
        !slab->unmap(space_, slab->stale))
      slab->kept = true;
    slab->stale.reset();
  }
}

void SlabPool::move_out(const SlabPiece& piece, bool was_mapped, Charge bytes) {
  Slab& slab = *piece.slab;
  const auto pages = static_cast<uint32_t>(piece.size / kPageSize);
  set(slab.moved, slab.page_of(piece), pages, true);
  slab.away += pages;
  forget(slab, slab.page_of(piece), pages, was_mapped, std::move(bytes));
  tidy(slab);
}

void SlabPool::release_address(const SlabPiece& piece) {
  Slab& slab = *piece.slab;
  const auto pages = static_cast<uint32_t>(piece.size / kPageSize);
  set(slab.moved, slab.page_of(piece), pages, false);
  slab.away -= pages;
  slab.longest = slab.pages;
  tidy(slab);
}

/// A slab without BOs has no need of its memory; one is kept with its addresses for the next.
void SlabPool::tidy(Slab& slab) {
  if (slab.live != 0) return;
  if (slab.is_writable_where_free()) slab.unmap(space_, ~slab.moved);
  slab.kept = slab.whole = false;
  slab.stale.reset();
  retired_pages_ -= slab.retired;
  if (slab.retired != 0 || slab.away != 0) {
    slab.file.reset();
    slab.descriptor.release();
    slab.mappings.release();
  }
  slab.bytes.clear();
  slab.retired = 0;
  slab.used.reset();
  slab.gone.reset();
  slab.longest = slab.pages;
  if (slab.away != 0 || spare_ == &slab) return;
  if (spare_) {
    erase(slab);
  } else {
    spare_ = &slab;
  }
}

void SlabPool::erase(Slab& slab) {
  if (current_ == &slab) current_ = nullptr;
  if (spare_ == &slab) spare_ = nullptr;
  va_.try_release(slab.address, slab.pages * uint64_t{kPageSize});
  slabs_.erase(slab.address);
}

bool SlabPool::trim() {
  if (!spare_) return false;
  erase(*spare_);
  return true;
}

}  // namespace v3d::ioctl
