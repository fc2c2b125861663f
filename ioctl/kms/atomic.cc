/// @file MODE_ATOMIC (Linux drm_atomic_uapi.c, drm_mode_atomic_ioctl).
#include <cerrno>

#include "ioctl/handlers.h"
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
    if (!kms::has_property(*object, property)) return ENOENT;
    if (!call.user.get(args.values, *at, &value)) return EFAULT;
    if (const int error = update->set(*object, property, value)) return error;
  }
  return 0;
}

int check_flags(const Call& call, const drm::Atomic& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  if (!call.file.atomic || (args.flags & ~kAtomicFlags) || args.reserved) return EINVAL;
  return (args.flags & drm::kAtomicTestOnly) && (args.flags & drm::kPageFlipEvent) ? EINVAL : 0;
}

}  // namespace

int atomic(Call& call, drm::Atomic& args) {
  if (const int error = check_flags(call, args)) return error;
  Display& display = call.kernel.display();
  const auto update = std::make_shared<kms::Update>(call, (args.flags & drm::kPageFlipAsync) != 0);
  uint64_t at = 0;
  for (uint32_t i = 0; i < args.count_objects; ++i)
    if (const int error = read_object(call, args, i, &at, update.get())) return error;

  const bool test = (args.flags & drm::kAtomicTestOnly) != 0;
  const bool on_crtc = update->touches_crtc(display.state());
  kms::Commit commit;
  commit.change = [update](kms::DisplayState& state) { update->apply(state); };
  commit.changed = update->changed();
  commit.test_only = test;
  commit.nonblock = (args.flags & drm::kAtomicNonblock) != 0;
  commit.allow_modeset = (args.flags & drm::kAtomicAllowModeset) != 0;
  commit.async = (args.flags & drm::kPageFlipAsync) != 0;
  commit.at_once = !on_crtc;  // nothing is shown in another way
  commit.user_data = args.user_data;
  if (args.flags & drm::kPageFlipEvent) {
    if (!on_crtc) return EINVAL;
    if (const int error = call.file.events()->reserve(&commit.event)) return error;
  }
  UniqueFd out_fence;
  if (!test && update->out_fence()) {
    commit.done = display.make_fence();
    out_fence = call.kernel.export_sync_file(call.account, {commit.done, ""});
    if (!out_fence) return EMFILE;
  }
  if (const int error = display.commit(std::move(commit), call.waiter)) return error;
  if (out_fence) call.fds.give_in_memory(update->out_fence(), std::move(out_fence), true);
  return 0;
}

}  // namespace v3d::ioctl
