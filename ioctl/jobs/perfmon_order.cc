#include "ioctl/jobs/perfmon_order.h"

#include <algorithm>

namespace v3d::ioctl {

void PerfmonOrder::add(Job& job) {
  if (job.perfmon) {
    for (const auto& [context, fence] : in_flight_)
      if (!fence->is_signalled()) job.add_dependency(fence);
    last_counted_ = job.done;
  } else if (last_counted_ && !last_counted_->is_signalled()) {
    job.add_dependency(last_counted_);
  }
  pass(job);
}

void PerfmonOrder::pass(const Job& job) {
  in_flight_[job.done->context()] = job.done;
  if (in_flight_.size() < prune_at_) return;
  std::erase_if(in_flight_, [](const auto& entry) { return entry.second->is_signalled(); });
  prune_at_ = std::max<size_t>(64, 2 * in_flight_.size());
}

}  // namespace v3d::ioctl
