/// @file MODE_ATOMIC (Linux drm_atomic_uapi.c, drm_mode_atomic_ioctl).
#include <cerrno>
#include <utility>
#include <vector>

#include "ioctl/kms/handlers.h"
#include "ioctl/kms/update.h"

namespace v3d::ioctl {
namespace {

using kms::Display;

constexpr uint32_t kAtomicFlags = drm::kPageFlipEvent | drm::kPageFlipAsync | drm::kAtomicTestOnly |
                                  drm::kAtomicNonblock | drm::kAtomicAllowModeset;

/// The properties of one object. @param at  index of its first one, moved on
int read_object(Call& call, const drm::Atomic& args, uint32_t i, uint64_t* at, kms::Update* update) {
  uint32_t id, count;
  if (!call.user.get(args.objects, i, &id)) return EFAULT;
  const kms::Object* object = find_held_object(call, id, drm::kObjectAny);
  if (!object || object->properties.empty()) return ENOENT;
  if (!call.user.get(args.count_properties, i, &count)) return EFAULT;
  for (uint32_t k = 0; k < count; ++k, ++*at) {
    uint32_t property;
    uint64_t value;
    if (!call.user.get(args.properties, *at, &property)) return EFAULT;
    if (!kms::has_property(call.kernel.display(), *object, property)) return ENOENT;
    if (!call.user.get(args.values, *at, &value)) return EFAULT;
    if (const int error = update->set(*object, property, value)) return error;
  }
  return 0;
}

int check_flags(const Call& call, const drm::Atomic& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  if (!call.file.atomic || (args.flags & ~kAtomicFlags) || args.reserved) return EINVAL;
  if ((args.flags & drm::kPageFlipAsync) && !call.kernel.abi().atomic_async_flips) return EINVAL;
  return (args.flags & drm::kAtomicTestOnly) && (args.flags & drm::kPageFlipEvent) ? EINVAL : 0;
}

/// Where in the caller's memory the numbers of the descriptors go.
using OutFences = std::vector<std::pair<uint64_t, UniqueFd>>;

int add_out_fence(Call& call, uint64_t address, FencePtr fence, FencePtr* done, OutFences* out_fences) {
  UniqueFd fd = call.kernel.export_sync_file(call.account, {fence, ""});
  if (!fd) return EMFILE;
  *done = std::move(fence);
  out_fences->emplace_back(address, std::move(fd));
  return 0;
}

/// What tells of the end of the commit (prepare_signaling). 0, EINVAL, ENOMEM or EMFILE.
int prepare_outcomes(Call& call, const drm::Atomic& args, const kms::Update& update, uint32_t pipes,
                     kms::Commit* commit, OutFences* out_fences) {
  const bool event = (args.flags & drm::kPageFlipEvent) != 0;
  if ((event && !pipes) || update.has_fence_of_nothing()) return EINVAL;
  Display& display = call.kernel.display();
  for (uint32_t pipe = 0; pipe < kms::kNumPipes; ++pipe) {
    kms::Commit::Outcome& outcome = commit->outcomes[pipe];
    if (event && (pipes >> pipe & 1))
      if (const int error = call.file.events()->reserve(&outcome.event)) return error;
    if (const uint64_t address = update.out_fence(pipe))
      if (const int error = add_out_fence(call, address, display.make_fence(pipe), &outcome.done, out_fences))
        return error;
    if (const uint64_t address = update.write_fence(pipe))
      if (const int error =
              add_out_fence(call, address, display.make_write_fence(pipe), &outcome.written, out_fences))
        return error;
  }
  return 0;
}

}  // namespace

int atomic(Call& call, drm::Atomic& args) {
  if (const int error = check_flags(call, args)) return error;
  Display& display = call.kernel.display();
  const auto update = std::make_shared<kms::Update>(call, (args.flags & drm::kPageFlipAsync) != 0);
  uint64_t at = 0;
  for (uint32_t i = 0; i < args.count_objects; ++i)
    if (const int error = read_object(call, args, i, &at, update.get())) return error;

  const uint32_t pipes = update->pipes(display.state());
  kms::Commit commit;
  commit.change = [update](kms::DisplayState& state) { update->apply(state); };
  commit.changed = update->changed();
  commit.test_only = (args.flags & drm::kAtomicTestOnly) != 0;
  commit.nonblock = (args.flags & drm::kAtomicNonblock) != 0;
  commit.allow_modeset = (args.flags & drm::kAtomicAllowModeset) != 0;
  commit.async = (args.flags & drm::kPageFlipAsync) != 0;
  commit.user_data = args.user_data;
  OutFences out_fences;
  if (!commit.test_only)
    if (const int error = prepare_outcomes(call, args, *update, pipes, &commit, &out_fences)) return error;
  if (const int error = display.commit(std::move(commit), call.waiter)) return error;
  for (auto& [address, fd] : out_fences) call.fds.give_in_memory(address, std::move(fd), true);
  return 0;
}

}  // namespace v3d::ioctl
