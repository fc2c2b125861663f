#include "ioctl/sync/file_status.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <utility>

#include "ioctl/sync/deferred_wakes.h"
#include "ioctl/sync/fence.h"

namespace v3d::ioctl {
namespace {

constexpr uint32_t kIndexMask = (1u << wire::kFenceIndexBits) - 1;
constexpr uint32_t kNumberMask = (1u << (32 - wire::kFenceIndexBits)) - 1;
static_assert(wire::Status::kFences <= kIndexMask);

/// Sequentially consistent, as a client first counts itself as a sleeper and then looks at the word.
template <typename T>
void store(T* word, T value) {
  std::atomic_ref<T>(*word).store(value);
}

/// The futex of an entry of Status::syncobjs: its lower half.
uint32_t* futex_of(uint64_t* entry) { return reinterpret_cast<uint32_t*>(entry); }

}  // namespace

uint64_t FileStatus::bytes() {
  static const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return (sizeof(wire::Status) + page - 1) / page * page;
}

std::shared_ptr<FileStatus> FileStatus::create() {
  UniqueFd memfd(memfd_create("v3demu-status", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memfd || ftruncate(memfd.get(), static_cast<off_t>(bytes())) != 0 ||
      fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return nullptr;
  void* memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, memfd.get(), 0);
  if (memory == MAP_FAILED) return nullptr;
  return std::shared_ptr<FileStatus>(new FileStatus(std::move(memfd), static_cast<wire::Status*>(memory)));
}

FileStatus::FileStatus(UniqueFd memfd, wire::Status* status)
    : memfd_(std::move(memfd)), status_(status), signalled_(Fence::stub()) {
  // Place 0 stands for "none".
  free_.reserve(wire::Status::kFences);
  for (uint32_t i = wire::Status::kFences - 1; i > 0; --i) free_.push_back(i);
}

FileStatus::~FileStatus() { munmap(status_, bytes()); }

void FileStatus::wake(uint32_t* word) {
  const auto offset =
      static_cast<uint32_t>(reinterpret_cast<uintptr_t>(word) - reinterpret_cast<uintptr_t>(status_));
  if (std::atomic_ref<uint32_t>(status_->sleepers[wire::sleepers_of(offset)]).load() == 0) return;
  DeferredWakes* const wakes = DeferredWakes::current();
  if (!wakes || !wakes->add(*this, offset)) wake_at(offset);
}

void FileStatus::wake_at(uint32_t offset) {
  syscall(SYS_futex, reinterpret_cast<uintptr_t>(status_) + offset, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

uint32_t FileStatus::take_place(std::weak_ptr<Fence> fence) {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return 0;
  const uint32_t index = free_.back();
  free_.pop_back();
  fences_[index] = std::move(fence);
  const uint32_t number = numbers_[index] = (numbers_[index] + 1) & kNumberMask;
  store(&status_->fences[index], number * 2);
  return number << wire::kFenceIndexBits | index;
}

void FileStatus::show_signal(uint32_t place) {
  store(&status_->fences[place & kIndexMask], (place >> wire::kFenceIndexBits) * 2 + 1);
}

void FileStatus::give_back(uint32_t place) {
  const uint32_t index = place & kIndexMask;
  wake(&status_->fences[index]);
  const std::lock_guard lock(mutex_);
  free_.push_back(index);  // has the capacity
}

uint32_t FileStatus::say(uint32_t handle, const Fence* fence) {
  const uint32_t number = next_.fetch_add(1, std::memory_order_relaxed) << 2;
  uint64_t entry = wire::kEmpty;
  if (fence && fence->is_signalled())
    entry = wire::kSignalled;
  else if (fence)
    entry = wire::kAsk;
  // One that signals from here on has said so in its place.
  if (const uint32_t place = entry == wire::kAsk ? fence->place_in(*this) : 0)
    entry = uint64_t{place} << 32 | wire::kPending;
  entry |= number;
  store(&status_->syncobjs[handle], entry);
  wake(futex_of(&status_->syncobjs[handle]));
  return static_cast<uint32_t>(entry);
}

uint32_t FileStatus::forget(uint32_t handle) {
  store(&status_->syncobjs[handle], uint64_t{wire::kAsk});
  wake(futex_of(&status_->syncobjs[handle]));
  return 0;
}

std::optional<uint32_t> FileStatus::change_of(uint32_t handle, uint32_t entry) const {
  const uint64_t change = std::atomic_ref<uint64_t>(status_->changes[handle]).load();
  if (entry == 0 || static_cast<uint32_t>(change) != entry) return std::nullopt;
  return static_cast<uint32_t>(change >> 32);
}

FencePtr FileStatus::fence_of_change(uint32_t change) {
  if (change == wire::kEmptied || change == wire::kDestroyed) return nullptr;
  const uint32_t index = change & kIndexMask;
  const std::lock_guard lock(mutex_);
  FencePtr fence;
  if (index < wire::Status::kFences && numbers_[index] == change >> wire::kFenceIndexBits)
    fence = fences_[index].lock();
  // One whose place another one has, or that is gone, has signalled.
  return fence ? fence : signalled_;
}

void FileStatus::say_bo(uint32_t handle, const Fence* fence) {
  if (handle >= wire::Status::kBos) return;
  const uint32_t place = fence ? fence->place_in(*this) : wire::kIdleBo;
  store(&status_->bos[handle], place ? place : wire::kAskOfBo);
}

void FileStatus::forget_bo(uint32_t handle) {
  if (handle < wire::Status::kBos) store(&status_->bos[handle], wire::kAskOfBo);
}

void FileStatus::say_bos_changed() { std::atomic_ref<uint32_t>(status_->bo_changes).fetch_add(1); }

void FileStatus::close() { store(&status_->closed, 1u); }

}  // namespace v3d::ioctl
