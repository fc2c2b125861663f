#include "ioctl/jobs/job.h"

#include <algorithm>

#include "absl/strings/str_format.h"

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

std::shared_ptr<const User> ClientInfo::user() const {
  const std::lock_guard lock(mutex_);
  if (!user_)
    user_ = std::make_shared<User>(User{
        pid, program, nullptr, {static_cast<uint64_t>(pid), absl::StrFormat("%s (pid %d)", program, pid)}});
  return user_;
}

void ClientInfo::used_by(const std::shared_ptr<const User>& user) {
  if (last_.load(std::memory_order_relaxed) == user.get()) return;
  const std::lock_guard lock(mutex_);
  user_ = user;
  last_.store(user.get(), std::memory_order_relaxed);
}

FencePtr* Job::find_dependency(uint64_t context) {
  if (dependencies.size() <= kFew) {
    const auto same = std::find_if(dependencies.begin(), dependencies.end(),
                                   [&](const FencePtr& d) { return d->context() == context; });
    return same == dependencies.end() ? nullptr : &*same;
  }
  if (index_.size() != dependencies.size()) {
    index_.clear();
    for (size_t i = 0; i < dependencies.size(); ++i) index_[dependencies[i]->context()] = i;
  }
  const auto same = index_.find(context);
  return same == index_.end() ? nullptr : &dependencies[same->second];
}

int Job::charge_dependencies(Account& account, size_t expected) {
  const size_t count = std::max(dependencies.size(), expected);
  const uint64_t cost = count > kFew ? count * kDependencyBytes : 0;
  if (cost == dependency_bytes_.amount()) return 0;
  return account.charge(Resource::kJobBytes, cost, &dependency_bytes_);
}

void Job::add_dependency(FencePtr fence) {
  if (FencePtr* same = find_dependency(fence->context())) {
    if ((*same)->seqno() < fence->seqno()) *same = std::move(fence);
    return;
  }
  if (!index_.empty()) index_[fence->context()] = dependencies.size();
  dependencies.push_back(std::move(fence));
}

}  // namespace v3d::ioctl
