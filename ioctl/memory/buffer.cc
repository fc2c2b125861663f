#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <unordered_map>
#include <utility>

#include "ioctl/memory/bo.h"

namespace v3d::ioctl {
namespace {

// Nobody may shrink a buffer under the daemon's mapping (SIGBUS), nor forbid writing to it.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

/// Of ordinary pages: a memfd of huge ones has the same seals, but the host may run out of them at any
/// access, and cannot unmap a part of one.
bool has_ordinary_pages(int memfd) {
  struct statfs info;
  return fstatfs(memfd, &info) == 0 && info.f_type == TMPFS_MAGIC;
}

}  // namespace

void Reservation::add(FencePtr fence, bool write) {
  const std::lock_guard lock(mutex_);
  add_locked(std::move(fence), write);
  if (status_) status_->forget_bo(handle_);  // two fences that may signal in any order
}

void Reservation::add_last(const FencePtr& fence) {
  const std::lock_guard lock(mutex_);
  add_locked(fence, true);
  if (status_) status_->say_bo(handle_, fence.get());
}

void Reservation::add_locked(FencePtr fence, bool write) {
  std::erase_if(entries_, [&](const Entry& e) {
    return e.fence->is_signalled() || (e.fence->context() == fence->context() && (write || !e.write) &&
                                       e.fence->seqno() <= fence->seqno());
  });
  entries_.push_back({std::move(fence), write});
}

void Reservation::add_all(const std::vector<FencePtr>& fences, bool write,
                          const std::shared_ptr<const Charge>& paid) {
  std::unordered_map<uint64_t, uint64_t> seqnos;  // by context
  for (const FencePtr& fence : fences) seqnos[fence->context()] = fence->seqno();
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const Entry& e) {
    if (e.fence->is_signalled()) return true;
    const auto same = seqnos.find(e.fence->context());
    return same != seqnos.end() && (write || !e.write) && e.fence->seqno() <= same->second;
  });
  entries_.reserve(entries_.size() + fences.size());
  for (const FencePtr& fence : fences) entries_.push_back({fence, write, paid});
  if (status_) status_->forget_bo(handle_);
}

void Reservation::hold() {
  while (held_.exchange(1, std::memory_order_acquire) != 0) held_.wait(1, std::memory_order_relaxed);
}

void Reservation::let_go() {
  held_.store(0, std::memory_order_release);
  held_.notify_one();
}

HeldReservations::HeldReservations(std::vector<Reservation*> reservations)
    : reservations_(std::move(reservations)) {
  // All in one order, so that nobody waits for who waits for him.
  std::ranges::sort(reservations_);
  reservations_.erase(std::unique(reservations_.begin(), reservations_.end()), reservations_.end());
  for (Reservation* reservation : reservations_) reservation->hold();
}

HeldReservations::~HeldReservations() {
  for (Reservation* reservation : reservations_) reservation->let_go();
}

void Reservation::show_in(const std::shared_ptr<FileStatus>& status, uint32_t handle) {
  const std::lock_guard lock(mutex_);
  if (status_ || !entries_.empty()) return;
  status_ = status;
  handle_ = handle;
  status_->say_bo(handle_, nullptr);
}

void Reservation::hide_from(const FileStatus& status, uint32_t handle) {
  std::shared_ptr<FileStatus> hidden;  // dropped outside the lock
  const std::lock_guard lock(mutex_);
  if (status_.get() != &status || handle_ != handle) return;
  status_->forget_bo(handle_);
  hidden.swap(status_);
}

std::vector<FencePtr> Reservation::fences(bool reads_too) {
  std::vector<FencePtr> fences;
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [](const Entry& e) { return e.fence->is_signalled(); });
  for (const Entry& e : entries_)
    if (reads_too || e.write) fences.push_back(e.fence);
  return fences;
}

bool Reservation::is_busy() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(entries_, [](const Entry& e) { return !e.fence->is_signalled(); });
}

bool MemoryFile::map(mmu::AddressSpace& space, GpuAddr address, uint64_t offset, uint64_t size,
                     std::optional<uint32_t> frame) const {
  const auto map_file = [this, offset](void* at, uint64_t bytes) {
    return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memfd.get(),
                static_cast<off_t>(offset)) != MAP_FAILED;
  };
  return space.map(address, size, map_file, frame).ok();
}

std::shared_ptr<MemoryFile> MemoryFile::create(const char* name, uint64_t size) {
  UniqueFd memfd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  struct stat info;
  if (!memfd || ftruncate(memfd.get(), static_cast<off_t>(size)) != 0 ||
      fcntl(memfd.get(), F_ADD_SEALS, kSeals) != 0 || fstat(memfd.get(), &info) != 0)
    return nullptr;
  return std::make_shared<MemoryFile>(MemoryFile{std::move(memfd), {info.st_dev, info.st_ino}});
}

std::shared_ptr<Buffer> BufferTable::create(uint64_t size, BufferCharges* charges, const char* name) {
  std::shared_ptr<MemoryFile> file = MemoryFile::create(name, size);
  if (!file) return nullptr;
  auto buffer = std::make_shared<Buffer>(std::move(file), 0, size, false, this, std::move(*charges));
  add(buffer);
  return buffer;
}

void BufferTable::add(const std::shared_ptr<Buffer>& buffer) {
  const InodeKey key = buffer->backing().file->key;
  const std::lock_guard lock(mutex_);
  buffers_[key] = buffer;
}

int BufferTable::import(UniqueFd fd, Account* account, std::shared_ptr<Buffer>* buffer) {
  // Before the size: one that was read earlier need not be the one that was sealed.
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return EINVAL;
  const InodeKey key{info.st_dev, info.st_ino};
  const std::lock_guard lock(mutex_);
  std::weak_ptr<Buffer>& known = buffers_[key];
  *buffer = known.lock();
  if (*buffer) return 0;
  // Nobody here holds it any more, but a client kept its descriptor: the seals say that it was a buffer.
  if (seals < 0 || (seals & kSeals) != kSeals || (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) ||
      info.st_size <= 0 || info.st_size % mmu::kPageSize ||
      static_cast<uint64_t>(info.st_size) >= mmu::kSpaceSize || !has_ordinary_pages(fd.get())) {
    buffers_.erase(key);
    return EINVAL;
  }
  const auto size = static_cast<uint64_t>(info.st_size);
  BufferCharges charges;
  if (account && (account->charge(Resource::kBoBytes, size, &charges.bytes) != 0 ||
                  account->charge(Resource::kDescriptors, 1, &charges.descriptor) != 0)) {
    buffers_.erase(key);
    return ENOMEM;
  }
  *buffer = std::make_shared<Buffer>(std::make_shared<MemoryFile>(MemoryFile{std::move(fd), key}), 0, size,
                                     false, this, std::move(charges));
  known = *buffer;
  return 0;
}

void BufferTable::forget(InodeKey key) {
  const std::lock_guard lock(mutex_);
  const auto it = buffers_.find(key);
  // An import may have made a new object of the same memory meanwhile.
  if (it != buffers_.end() && it->second.expired()) buffers_.erase(it);
}

Buffer::~Buffer() {
  if (!in_slab_) table_->forget(backing_.file->key);
}

Buffer::Backing Buffer::backing() const {
  const std::lock_guard lock(mutex_);
  return backing_;
}

Buffer::Backing Buffer::backing_for_client() {
  const std::lock_guard lock(mutex_);
  client_mapped_ = true;
  return backing_;
}

bool Buffer::in_slab() const {
  const std::lock_guard lock(mutex_);
  return in_slab_;
}

bool Buffer::client_mapped() const {
  const std::lock_guard lock(mutex_);
  return client_mapped_;
}

Bo::Bo(std::shared_ptr<Buffer> buffer, std::shared_ptr<BoSpace> space, const Placement& placement,
       uint64_t mmap_offset, bool imported, std::shared_ptr<MemoryUse> use, Charge mappings)
    : buffer_(std::move(buffer)),
      space_(std::move(space)),
      placement_(placement),
      mmap_offset_(mmap_offset),
      imported_(imported),
      use_(std::move(use)),
      mappings_(std::move(mappings)) {
  use_->bytes += buffer_->size();
  use_->objects += 1;
}

Bo::~Bo() {
  if (space_) space_->unmap(*buffer_, placement_);
  use_->bytes -= buffer_->size();
  use_->objects -= 1;
}

int Bo::leave_slab(Account& account, MovedMemory* moved) {
  return space_ ? space_->move_out(account, buffer_, placement_, &mappings_, moved) : 0;
}

uint8_t* Bo::host(uint64_t offset, uint64_t bytes) const {
  if (!space_ || offset > size() || bytes > size() - offset) return nullptr;
  return space_->gpu().space().memory().host(address()) + offset;
}

}  // namespace v3d::ioctl
