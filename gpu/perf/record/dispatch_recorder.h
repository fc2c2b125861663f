/// A DispatchRecorder records part of the batches of a dispatch, whichever workers run them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "gpu/perf/record/recorder.h"
#include "gpu/perf/record/sampling.h"
#include "gpu/qpu/run/observer.h"

namespace v3d::timing {

class DispatchRecorder final : public qpu::ThreadWatch {
 public:
  /// @param all  gets the batches in the end; outlives this
  DispatchRecorder(Recorder& all, const RecordedBatches& recorded) : all_(all), recorded_(recorded) {}

  void start(const char* stage, qpu::Thread& thread) override { all_.start(stage, thread); }
  bool takes_any_order() const override { return true; }
  void start_batch(uint64_t number, qpu::Thread& thread) override;
  void begin_slice(qpu::Thread& thread) override { all_.begin_slice(thread); }
  uint64_t clocks(const qpu::Thread& thread) const override { return all_.clocks(thread); }
  bool tells_clocks() const override { return all_.tells_clocks(); }

  /// Puts the batches together in their order, once all ended.
  void gather();

 private:
  /// Of one batch at a time.
  struct Part {
    explicit Part(const Recorder& all) : recorder(all, Recorder::Part{}) {}
    Recorder recorder;
    Recorder::Numbers numbers;
  };
  struct BatchRecord {
    uint64_t number;
    Part* part;
    uint32_t index;  // in its recorder
  };

  Recorder& all_;
  const RecordedBatches recorded_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<BatchRecord> places_;
};

}  // namespace v3d::timing
