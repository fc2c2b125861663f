/// @file Waiting for the vertical blanking (Linux drm_vblank.c).
#include <cerrno>

#include "ioctl/display/display.h"
#include "ioctl/kms/handlers.h"

namespace v3d::ioctl {
namespace {

using kms::Display;

constexpr uint32_t kVblankFlags =
    drm::kVblankEvent | drm::kVblankSignal | drm::kVblankSecondary | drm::kVblankNextOnMiss;

/// The 64-bit sequence nearest to `now` that has these lower 32 bits.
uint64_t widen(uint32_t sequence, uint64_t now) {
  return now + static_cast<uint64_t>(int64_t{static_cast<int32_t>(sequence - static_cast<uint32_t>(now))});
}

/// Whether a sequence of 64 bits has come, which may wrap.
bool has_come(uint64_t sequence, uint64_t now) { return static_cast<int64_t>(now - sequence) >= 0; }

void answer(const Display::Vblank& at, drm::WaitVblank* args) {
  args->sequence = static_cast<uint32_t>(at.sequence);
  args->tval_sec = at.time_ns / 1'000'000'000;
  args->tval_usec = at.time_ns % 1'000'000'000 / 1000;
}

/// The CRTC by its number among those that the caller has.
int find_pipe(const Call& call, uint32_t type, uint32_t* pipe) {
  constexpr uint32_t kHighShift = 1;
  if (type & drm::kVblankSignal) return EINVAL;
  if (type & ~(drm::kVblankTypeMask | kVblankFlags | drm::kVblankFlip | drm::kVblankHighCrtcMask))
    return EINVAL;
  const uint32_t high = (type & drm::kVblankHighCrtcMask) >> kHighShift;
  const uint32_t number = high ? high : (type & drm::kVblankSecondary) != 0;
  const std::vector<uint32_t> crtcs = held_objects(call, drm::kObjectCrtc);
  if (number >= crtcs.size()) return EINVAL;
  *pipe = kms::find_pipe(crtcs[number]);
  return 0;
}

int find_pipe_of(const Call& call, uint32_t crtc, uint32_t* pipe) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  *pipe = kms::find_pipe(crtc);
  return find_held_object(call, crtc, drm::kObjectCrtc) ? 0 : ENOENT;
}

}  // namespace

int wait_vblank(Call& call, drm::WaitVblank& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  uint32_t pipe;
  if (const int error = find_pipe(call, args.type, &pipe)) return error;
  Display& display = call.kernel.display();
  Display::Vblank now;
  if (!display.vblank(pipe, &now)) return EINVAL;
  uint64_t target =
      args.type & drm::kVblankRelative ? now.sequence + args.sequence : widen(args.sequence, now.sequence);
  args.type &= ~uint32_t{drm::kVblankRelative};
  args.sequence = static_cast<uint32_t>(target);
  if ((args.type & drm::kVblankNextOnMiss) && has_come(target, now.sequence)) {
    target = now.sequence + 1;
    args.type &= ~uint32_t{drm::kVblankNextOnMiss};
    args.sequence = static_cast<uint32_t>(target);
  }
  const bool is_past = has_come(target, now.sequence);
  if (args.type & drm::kVblankEvent) {
    kms::EventQueue::Slot slot;
    if (const int error = call.file.events()->reserve(&slot)) return error;
    display.queue_event(pipe, is_past ? now.sequence : target, std::move(slot), args.signal, false);
    if (is_past) args.sequence = static_cast<uint32_t>(now.sequence);
    return 0;
  }
  if (!is_past) {
    if (const int error = display.wait_for_vblank(pipe, target, call.waiter)) return error;
    display.vblank(pipe, &now);
  }
  answer(now, &args);
  return 0;
}

int crtc_get_sequence(Call& call, drm::CrtcGetSequence& args) {
  uint32_t pipe;
  if (const int error = find_pipe_of(call, args.crtc_id, &pipe)) return error;
  Display::Vblank now;
  if (!call.kernel.display().vblank(pipe, &now)) return EINVAL;
  args.active = call.kernel.display().state().enabled(pipe);
  args.sequence = now.sequence;
  args.sequence_ns = now.time_ns;
  return 0;
}

int crtc_queue_sequence(Call& call, drm::CrtcQueueSequence& args) {
  uint32_t pipe;
  if (const int error = find_pipe_of(call, args.crtc_id, &pipe)) return error;
  if (args.flags & ~(drm::kSequenceRelative | drm::kSequenceNextOnMiss)) return EINVAL;
  Display& display = call.kernel.display();
  Display::Vblank now;
  if (!display.vblank(pipe, &now)) return EINVAL;
  uint64_t target = args.sequence;
  if (args.flags & drm::kSequenceRelative) target += now.sequence;
  if ((args.flags & drm::kSequenceNextOnMiss) && has_come(target, now.sequence)) target = now.sequence + 1;
  kms::EventQueue::Slot slot;
  if (const int error = call.file.events()->reserve(&slot)) return error;
  display.queue_event(pipe, has_come(target, now.sequence) ? now.sequence : target, std::move(slot),
                      args.user_data, true);
  args.sequence = has_come(target, now.sequence) ? now.sequence : target;
  return 0;
}

}  // namespace v3d::ioctl
