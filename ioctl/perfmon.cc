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

uint64_t Perfmon::start() const {
  const std::lock_guard lock(mutex_);
  return stops_;
}

void Perfmon::add(const perf::Counts& counts, uint64_t started) {
  const std::lock_guard lock(mutex_);
  if (started != stops_) return;
  for (size_t i = 0; i < counters_.size(); ++i)
    if (counters_[i] >= 0) values_[i] += counts.values[static_cast<size_t>(counters_[i])];
}

void Perfmon::stop() {
  const std::lock_guard lock(mutex_);
  ++stops_;
}

void Perfmon::reset() {
  const std::lock_guard lock(mutex_);
  ++stops_;
  values_ = {};
}

std::vector<uint64_t> Perfmon::values() const {
  const std::lock_guard lock(mutex_);
  return {values_.begin(), values_.begin() + static_cast<ptrdiff_t>(counters_.size())};
}

ActivePerfmons::Run ActivePerfmons::begin(std::shared_ptr<Perfmon> own) {
  const std::lock_guard lock(mutex_);
  if (global_) return global_counts_ ? Run{global_, global_->start(), false} : Run{};
  if (!own) return {};
  ++running_;
  const uint64_t started = own->start();
  return {std::move(own), started, true};
}

void ActivePerfmons::end(const Run& run, const perf::Counts* counts) {
  if (!run.perfmon) return;
  if (counts) run.perfmon->add(*counts, run.started);
  const std::lock_guard lock(mutex_);
  if (run.own) --running_;
}

int ActivePerfmons::set_global(std::shared_ptr<Perfmon> perfmon) {
  const std::lock_guard lock(mutex_);
  if (global_ || running_ > 0) return EBUSY;
  global_ = std::move(perfmon);
  global_counts_ = true;
  return 0;
}

int ActivePerfmons::clear_global() {
  const std::lock_guard lock(mutex_);
  if (!global_) return EINVAL;
  global_->stop();
  global_ = nullptr;
  return 0;
}

bool ActivePerfmons::has_global() const {
  const std::lock_guard lock(mutex_);
  return global_ != nullptr;
}

void ActivePerfmons::reset() {
  const std::lock_guard lock(mutex_);
  global_counts_ = false;
  if (global_) global_->stop();
}

void ActivePerfmons::forget(const Perfmon* perfmon) {
  const std::lock_guard lock(mutex_);
  if (global_.get() == perfmon) global_ = nullptr;
}

int perfmon_create(Call& call, drm::PerfmonCreate& args) {
  if (args.ncounters == 0 || args.ncounters > drm::kMaxPerfmonCounters) return EINVAL;
  const int version = call.kernel.gpu().profile().version;
  const std::span counters(args.counters, args.ncounters);
  for (const uint8_t counter : counters)
    if (counter >= perf::counter_table(version).size()) return EINVAL;
  uint32_t id;
  const int error = call.file.add_perfmon(call.account, std::make_shared<Perfmon>(counters, version), &id);
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
