#include "ioctl/sync/deferred_wakes.h"

#include <algorithm>

#include "ioctl/sync/file_status.h"

namespace v3d::ioctl {
namespace {

thread_local DeferredWakes* t_wakes = nullptr;

}  // namespace

DeferredWakes::DeferredWakes(FileStatus* status) : status_(status) { t_wakes = this; }

DeferredWakes::~DeferredWakes() {
  t_wakes = nullptr;
  for (const uint32_t offset : offsets()) status_->wake_at(offset);
}

DeferredWakes* DeferredWakes::current() { return t_wakes; }

bool DeferredWakes::add(const FileStatus& status, uint32_t offset) {
  if (&status != status_) return false;
  if (std::ranges::find(offsets(), offset) != offsets().end()) return true;
  if (size_ == offsets_.size()) return false;
  offsets_[size_++] = offset;
  return true;
}

}  // namespace v3d::ioctl
