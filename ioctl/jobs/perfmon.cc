#include "ioctl/jobs/perfmon.h"

#include <cerrno>

#include "gpu/perf/counter_table.h"

namespace v3d::ioctl {

Perfmon::Perfmon(std::span<const uint8_t> counters, chip::Generation generation) {
  counters_.reserve(counters.size());
  for (const uint8_t counter : counters) counters_.push_back(perf::index_in_counts(generation, counter));
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

std::shared_ptr<Perfmon> ActivePerfmons::global() const {
  const std::lock_guard lock(mutex_);
  return global_;
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

}  // namespace v3d::ioctl
