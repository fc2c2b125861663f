#include "ioctl/job.h"

#include <algorithm>

namespace v3d::ioctl {
namespace {

constexpr struct {
  const char *name, *timeline;
} kQueueNames[kNumQueues] = {
    {"bin", "v3d_bin"}, {"render", "v3d_render"},           {"tfu", "v3d_tfu"},
    {"csd", "v3d_csd"}, {"cache_clean", "v3d_cache_clean"}, {"cpu", "v3d_cpu"},
};

}  // namespace

const char* queue_name(Queue queue) { return kQueueNames[static_cast<size_t>(queue)].name; }
const char* queue_timeline(Queue queue) { return kQueueNames[static_cast<size_t>(queue)].timeline; }

void Job::add_dependency(FencePtr fence) {
  const auto same = std::find_if(dependencies.begin(), dependencies.end(),
                                 [&](const FencePtr& d) { return d->context() == fence->context(); });
  if (same == dependencies.end())
    dependencies.push_back(std::move(fence));
  else if ((*same)->seqno() < fence->seqno())
    *same = std::move(fence);
}

}  // namespace v3d::ioctl
