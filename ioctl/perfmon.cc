/// @file Performance monitors (Linux v3d_perfmon.c).
#include "ioctl/perfmon.h"

#include <cerrno>
#include <cstring>

#include "gpu/perf/counter_table.h"
#include "ioctl/handlers.h"

namespace v3d::ioctl {

Perfmon::Perfmon(std::span<const uint8_t> counters, int version) {
  counters_.reserve(counters.size());
  for (const uint8_t counter : counters) counters_.push_back(perf::index_in_counts(version, counter));
}

void Perfmon::add(const perf::Counts& counts) {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < counters_.size(); ++i)
    if (counters_[i] >= 0) values_[i] += counts.values[static_cast<size_t>(counters_[i])];
}

void Perfmon::reset() {
  const std::lock_guard lock(mutex_);
  values_ = {};
}

std::vector<uint64_t> Perfmon::values() const {
  const std::lock_guard lock(mutex_);
  return {values_.begin(), values_.begin() + static_cast<ptrdiff_t>(counters_.size())};
}

int perfmon_create(Call& call, drm::PerfmonCreate& args) {
  if (args.ncounters == 0 || args.ncounters > drm::kMaxPerfmonCounters) return EINVAL;
  const int version = call.kernel.gpu().profile().version;
  const std::span counters(args.counters, args.ncounters);
  for (const uint8_t counter : counters)
    if (counter >= perf::counter_table(version).size()) return EINVAL;
  const uint32_t id = call.file.add_perfmon(std::make_shared<Perfmon>(counters, version));
  if (id == 0) return ENOSPC;
  args.id = id;
  return 0;
}

int perfmon_destroy(Call& call, drm::PerfmonDestroy& args) {
  return call.file.destroy_perfmon(args.id) ? 0 : EINVAL;
}

int perfmon_get_values(Call& call, drm::PerfmonGetValues& args) {
  if (args.pad != 0) return EINVAL;
  const std::shared_ptr<Perfmon> perfmon = call.file.find_perfmon(args.id);
  if (!perfmon) return EINVAL;
  const std::vector<uint64_t> values = perfmon->values();
  return call.user.write(args.values_ptr, values.data(), values.size() * sizeof(uint64_t)) ? 0 : EFAULT;
}

int perfmon_get_counter(Call& call, drm::PerfmonGetCounter& args) {
  for (const uint8_t byte : args.reserved)
    if (byte != 0) return EINVAL;
  const auto counters = perf::counter_table(call.kernel.gpu().profile().version);
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
