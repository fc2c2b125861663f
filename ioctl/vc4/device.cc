#include "ioctl/vc4/device.h"

#include <algorithm>
#include <cerrno>

namespace v3d::ioctl::vc4 {
namespace {

/// Linux vc4_v3d.c, bin_bo_alloc.
constexpr uint64_t kBinnerBytes = 16 << 20;

}  // namespace

int Device::binner_memory(std::shared_ptr<ContiguousMemory::Piece>* binner) {
  const std::lock_guard lock(mutex_);
  *binner = binner_.lock();
  if (*binner) return 0;
  auto made = std::make_shared<ContiguousMemory::Piece>();
  if (const int error = memory_->take(kBinnerBytes, KernelLabel::kBinner, made.get())) return error;
  binner_ = made;
  *binner = std::move(made);
  return 0;
}

uint64_t Device::issue_seqno() {
  std::vector<std::shared_ptr<Watcher>> watchers;
  uint64_t seqno;
  {
    const std::lock_guard lock(mutex_);
    seqno = ++issued_;
    // Others may wait for any number, and are many: whoever issues a job has nothing to do with them.
    const auto end = watchers_.upper_bound(seqno);
    for (auto it = watchers_.begin(); it != end; ++it) watchers.push_back(std::move(it->second));
    watchers_.erase(watchers_.begin(), end);
  }
  for (const auto& watcher : watchers) watcher->notify();
  return seqno;
}

uint64_t Device::issued() const {
  const std::lock_guard lock(mutex_);
  return issued_;
}

bool Device::watch(const std::shared_ptr<Watcher>& watcher, uint64_t seqno) {
  const std::lock_guard lock(mutex_);
  if (issued_ >= seqno) return false;
  watchers_.emplace(seqno, watcher);
  return true;
}

void Device::unwatch(const Watcher* watcher, uint64_t seqno) {
  const std::lock_guard lock(mutex_);
  const auto [begin, end] = watchers_.equal_range(seqno);
  const auto kept =
      std::find_if(begin, end, [&](const auto& entry) { return entry.second.get() == watcher; });
  if (kept != end) watchers_.erase(kept);
}

int Client::hold_binner_memory(Device& device) {
  const std::lock_guard lock(mutex_);
  return binner_ ? 0 : device.binner_memory(&binner_);
}

FencePtr Client::next_fence(Device& device) {
  const std::lock_guard lock(mutex_);
  while (!unfinished_.empty() && unfinished_.front()->is_signalled()) unfinished_.pop_front();
  // Who sees that it is issued finds its fence, for which it needs the lock.
  auto fence = std::make_shared<Fence>("vc4", "vc4-v3d", context_, device.issue_seqno());
  unfinished_.push_back(fence);
  return fence;
}

std::vector<FencePtr> Client::unfinished(uint64_t seqno) {
  std::vector<FencePtr> fences;
  const std::lock_guard lock(mutex_);
  for (const FencePtr& fence : unfinished_)
    if (fence->seqno() <= seqno && !fence->is_signalled()) fences.push_back(fence);
  return fences;
}

Device& device_of(Kernel& kernel) { return kernel.driver().get<Device>(kernel.gpu().vc4_board()->memory); }
Device& device_of(Call& call) { return device_of(call.kernel); }

Client& client_of(Call& call) { return call.file.driver().get<Client>(); }

Object& object_of(Call& call, const Bo& bo) {
  Buffer& buffer = *bo.buffer();
  return buffer.driver().get<Object>(device_of(call).memory(), buffer);
}

}  // namespace v3d::ioctl::vc4
