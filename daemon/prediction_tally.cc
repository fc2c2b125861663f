#include "daemon/prediction_tally.h"

#include <new>
#include <numeric>

#include "absl/strings/str_format.h"
#include "gpu/perf/timing/prediction.h"

namespace v3d::daemon {
namespace {

uint64_t sum(const std::array<uint64_t, ioctl::kNumQueues>& counts) {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

/// "2 bin, 1 render".
std::string by_queue(const std::array<uint64_t, ioctl::kNumQueues>& counts) {
  std::string text;
  for (size_t q = 0; q < counts.size(); ++q)
    if (counts[q] != 0)
      absl::StrAppendFormat(&text, "%s%d %s", text.empty() ? "" : ", ", counts[q],
                            ioctl::queue_name(static_cast<ioctl::Queue>(q)));
  return text;
}

}  // namespace

PredictionTally::Counts& PredictionTally::counts_of(const device::JobResult& result) {
  if (result.prediction) return predicted_;
  try {
    const std::string reason = result.why_not_predicted();
    if (const auto known = without_.find(reason); known != without_.end()) return known->second;
    if (without_.size() < kMostReasons) return without_[reason];
  } catch (const std::bad_alloc&) {
    return others_;
  }
  return others_;
}

void PredictionTally::begin() {
  const std::lock_guard lock(mutex_);
  ++under_way_;
}

void PredictionTally::add(ioctl::Queue queue, const device::JobResult& result) {
  const std::lock_guard lock(mutex_);
  --under_way_;
  ++counts_of(result)[static_cast<size_t>(queue)];
  if (result.prediction) predicted_ns_ += result.prediction->ns() - result.prediction->submit_ns;
}

std::string PredictionTally::text() const {
  const std::lock_guard lock(mutex_);
  std::string text = absl::StrFormat("%d jobs predicted", sum(predicted_));
  if (sum(predicted_) != 0)
    absl::StrAppendFormat(&text, " (%s), %.3f ms", by_queue(predicted_),
                          static_cast<double>(predicted_ns_) * 1e-6);
  if (under_way_ != 0) absl::StrAppendFormat(&text, "; %d under way", under_way_);
  uint64_t count = sum(others_);
  std::string reasons;
  const auto tell = [&](const Counts& counts, const std::string& reason) {
    absl::StrAppendFormat(&reasons, "%s%s (%s)", reasons.empty() ? "" : ", ", by_queue(counts), reason);
  };
  for (const auto& [reason, counts] : without_) {
    count += sum(counts);
    tell(counts, reason);
  }
  if (sum(others_) != 0) tell(others_, "other reasons");
  if (count != 0) absl::StrAppendFormat(&text, "; %d not: %s", count, reasons);
  return text;
}

}  // namespace v3d::daemon
