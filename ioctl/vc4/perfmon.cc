/// @file Ioctls on performance monitors (vc4-abi.md 2.11, 6.4; Linux vc4_perfmon.c).
#include "ioctl/jobs/perfmon.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "ioctl/vc4/handlers.h"

namespace v3d::ioctl::vc4 {

int perfmon_create(Call& call, drm::vc4::PerfmonCreate& args) {
  if (args.ncounters == 0 || args.ncounters > drm::vc4::kMaxPerfmonCounters) return EINVAL;
  const std::span events(args.events, args.ncounters);
  if (std::any_of(events.begin(), events.end(), [](uint8_t e) { return e >= drm::vc4::kNumPerfmonEvents; }))
    return EINVAL;
  uint32_t id = 0;
  const chip::Generation generation = call.kernel.gpu().profile().generation;
  const int error = call.file.add_perfmon(call.account, std::make_shared<Perfmon>(events, generation), &id);
  if (!error) args.id = id;
  return error;
}

int perfmon_destroy(Call& call, drm::vc4::PerfmonDestroy& args) {
  const std::shared_ptr<Perfmon> perfmon = call.file.find_perfmon(args.id);
  if (!perfmon || !call.file.destroy_perfmon(args.id)) return EINVAL;
  if (call.kernel.abi().vc4_destroy_stops_perfmon) perfmon->stop();
  return 0;
}

int perfmon_get_values(Call& call, drm::vc4::PerfmonGetValues& args) {
  const std::shared_ptr<Perfmon> perfmon = call.file.find_perfmon(args.id);
  if (!perfmon) return EINVAL;
  const std::vector<uint64_t> values = perfmon->values();
  return call.user.write(args.values_ptr, values.data(), values.size() * sizeof(uint64_t)) ? 0 : EFAULT;
}

}  // namespace v3d::ioctl::vc4
