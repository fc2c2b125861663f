#include "ioctl/wakes.h"

#include <algorithm>

#include "ioctl/file_status.h"

namespace v3d::ioctl {
namespace {

thread_local Wakes* t_wakes = nullptr;

}  // namespace

Wakes::Wakes(FileStatus* status) : status_(status) { t_wakes = this; }

Wakes::~Wakes() {
  t_wakes = nullptr;
  for (const uint32_t offset : offsets()) status_->wake_at(offset);
}

Wakes* Wakes::current() { return t_wakes; }

bool Wakes::add(const FileStatus& status, uint32_t offset) {
  if (&status != status_) return false;
  if (std::ranges::find(offsets(), offset) != offsets().end()) return true;
  if (size_ == offsets_.size()) return false;
  offsets_[size_++] = offset;
  return true;
}

}  // namespace v3d::ioctl
