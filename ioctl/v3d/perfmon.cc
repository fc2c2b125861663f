/// @file Ioctls on performance monitors (Linux v3d_perfmon.c).
#include "ioctl/jobs/perfmon.h"

#include <cerrno>
#include <cstring>

#include "gpu/perf/counter_table.h"
#include "ioctl/v3d/handlers.h"

namespace v3d::ioctl {

int perfmon_create(Call& call, drm::PerfmonCreate& args) {
  if (args.ncounters == 0 || args.ncounters > drm::kMaxPerfmonCounters) return EINVAL;
  const chip::Generation generation = call.kernel.gpu().profile().generation;
  const std::span counters(args.counters, args.ncounters);
  for (const uint8_t counter : counters)
    if (counter >= perf::counter_table(generation).size()) return EINVAL;
  uint32_t id;
  const int error = call.file.add_perfmon(call.account, std::make_shared<Perfmon>(counters, generation), &id);
  if (!error) args.id = id;
  return error;
}

int perfmon_destroy(Call& call, drm::PerfmonDestroy& args) {
  return call.file.destroy_perfmon(args.id) ? 0 : EINVAL;
}

int perfmon_get_values(Call& call, drm::PerfmonGetValues& args) {
  if (args.pad != 0) return EINVAL;
  const std::shared_ptr<Perfmon> perfmon = call.file.find_perfmon(args.id);
  if (!perfmon) return EINVAL;
  const std::vector<uint64_t> values = perfmon->values();
  if (call.kernel.abi().reading_stops_perfmon) perfmon->stop();
  return call.user.write(args.values_ptr, values.data(), values.size() * sizeof(uint64_t)) ? 0 : EFAULT;
}

int perfmon_set_global(Call& call, drm::PerfmonSetGlobal& args) {
  if (args.flags & ~drm::kPerfmonClearGlobal) return EINVAL;
  // Clearing names a perfmon too, any of the caller's.
  std::shared_ptr<Perfmon> perfmon = call.file.find_perfmon(args.id);
  if (!perfmon) return EINVAL;
  ActivePerfmons& perfmons = call.kernel.perfmons();
  return args.flags ? perfmons.clear_global() : perfmons.set_global(std::move(perfmon));
}

int perfmon_get_counter(Call& call, drm::PerfmonGetCounter& args) {
  for (const uint8_t byte : args.reserved)
    if (byte != 0) return EINVAL;
  const auto counters = perf::counter_table(call.kernel.gpu().profile().generation);
  if (args.counter >= counters.size()) return EINVAL;
  const perf::CounterInfo& counter = counters[args.counter];
  const auto copy = [](const char* from, std::span<uint8_t> to) {
    const size_t length = std::min(std::strlen(from), to.size() - 1);
    std::memcpy(to.data(), from, length);
    to[length] = 0;
  };
  copy(counter.name, args.name);
  copy(counter.category, args.category);
  copy(counter.description, args.description);
  return 0;
}

}  // namespace v3d::ioctl
