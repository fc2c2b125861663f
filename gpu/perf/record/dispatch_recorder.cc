#include "gpu/perf/record/dispatch_recorder.h"

#include <algorithm>

namespace v3d::timing {

void DispatchRecorder::start_batch(uint64_t number, qpu::Thread& thread) {
  thread.observer = nullptr;
  if (!recorded_.has(number)) return;
  const std::lock_guard lock(mutex_);
  const auto free = std::find_if(parts_.begin(), parts_.end(),
                                 [](const auto& part) { return !part->recorder.is_watching(); });
  Part& part = free != parts_.end() ? **free : *parts_.emplace_back(std::make_unique<Part>(all_));
  places_.push_back({number, &part, part.recorder.batches()});
  part.recorder.start("compute", thread);
}

void DispatchRecorder::gather() {
  for (const auto& part : parts_)
    if (!part->recorder.failure().empty()) all_.fail(part->recorder.failure());
  std::sort(places_.begin(), places_.end(),
            [](const BatchRecord& a, const BatchRecord& b) { return a.number < b.number; });
  for (const BatchRecord& place : places_)
    all_.add(place.part->recorder, place.index, 1, &place.part->numbers);
}

}  // namespace v3d::timing
