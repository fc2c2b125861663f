/// @file Waits (vc4-abi.md 2.5; Linux vc4_gem.c).
#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "ioctl/vc4/device.h"
#include "ioctl/vc4/handlers.h"

namespace v3d::ioctl::vc4 {
namespace {

/// Of kernels with 250 ticks a second, as Raspberry Pi's are. Times are rounded down to ticks.
constexpr uint64_t kTickNs = 4'000'000;
constexpr uint64_t kForEver = UINT64_MAX;

int64_t deadline_of(int64_t start, uint64_t timeout_ns) {
  return timeout_ns >= static_cast<uint64_t>(INT64_MAX - start) ? INT64_MAX
                                                                : start + static_cast<int64_t>(timeout_ns);
}

uint64_t in_ticks(uint64_t timeout_ns) {
  return timeout_ns == kForEver ? kForEver : timeout_ns / kTickNs * kTickNs;
}

uint64_t time_left(int64_t start, uint64_t timeout_ns) {
  return timeout_ns - std::min(static_cast<uint64_t>(monotonic_ns() - start), timeout_ns);
}

/// The jobs of the caller's file up to that one. One that was never issued, by anybody, is waited for.
int wait_for_jobs(Call& call, uint64_t seqno, int64_t deadline) {
  Device& device = device_of(call);
  for (;;) {
    const bool issued = device.issued() >= seqno;
    if (const int error = wait_for_all(client_of(call).unfinished(seqno), call.waiter, deadline))
      return error;
    if (issued) return 0;
    call.waiter->clear();
    if (!device.watch(call.waiter, seqno)) continue;
    const Waiter::Result result = call.waiter->wait(deadline);
    device.unwatch(call.waiter.get(), seqno);
    if (result == Waiter::Result::kTimedOut) return ETIME;
    if (result == Waiter::Result::kAborted) return EINTR;
  }
}

}  // namespace

int wait_seqno(Call& call, drm::vc4::WaitSeqno& args) {
  const int64_t start = monotonic_ns();
  const int error = wait_for_jobs(call, args.seqno, deadline_of(start, in_ticks(args.timeout_ns)));
  if (error == EINTR && args.timeout_ns != kForEver) args.timeout_ns = time_left(start, args.timeout_ns);
  return error;
}

int wait_bo(Call& call, drm::vc4::WaitBo& args) {
  if (args.pad != 0) return EINVAL;
  const int64_t start = monotonic_ns();
  const bool by_reservation = call.kernel.abi().vc4_waits_for_reservations;
  int error = EINVAL;
  if (const std::shared_ptr<Bo> bo = call.file.find_bo(args.handle)) {
    // The newer ones count microseconds, in 32 bits: what means for ever is some 1271 s there.
    const uint64_t timeout_ns =
        by_reservation ? (args.timeout_ns / 1000 & UINT32_MAX) * 1000 : in_ticks(args.timeout_ns);
    error = wait_for_all(bo->reservation().fences(true), call.waiter, deadline_of(start, timeout_ns));
  }
  if (by_reservation || (error == EINTR && args.timeout_ns != kForEver))
    args.timeout_ns = time_left(start, args.timeout_ns);
  return error;
}

}  // namespace v3d::ioctl::vc4
