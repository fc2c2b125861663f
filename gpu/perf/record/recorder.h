/// Records what the batches of a dispatch do, for the timing model. Their order is that of their start, so
/// the dispatch runs on one worker, on which that is the order of the batches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpu/perf/timing/events.h"
#include "gpu/qpu/isa/register_set.h"
#include "gpu/qpu/run/observer.h"

namespace v3d::timing {

class Recorder final : public qpu::ThreadWatch {
 public:
  /// Of events and addresses. A dispatch with more of them has no prediction.
  static constexpr uint64_t kMaxBytes = uint64_t{1} << 30;

  struct Setting {
    int version = 71;
    uint32_t code = 0;
    uint32_t batches_per_supergroup = 1;
    uint32_t threads_per_qpu = 4;
    uint64_t max_bytes = kMaxBytes;
  };

  explicit Recorder(const Setting& setting);
  ~Recorder() override;

  void start(const char* stage, qpu::Thread& thread) override;

  /// Why there is no record of the whole dispatch; empty: there is.
  const std::string& failure() const { return failure_; }
  /// Once, when all batches ended.
  Dispatch take();

 private:
  class BatchRecorder;
  struct ShapeHash {
    size_t operator()(const Shape& shape) const;
  };
  /// What the timing needs of an instruction besides what it does.
  struct Fact {
    bool known = false;
    qpu::RegisterSet reads;
    qpu::Register sfu_result = qpu::kNoRegister;
    qpu::Register rep_result = qpu::kNoRegister;
    bool waits = false;  ///< tmuwt
  };

  bool failed() const { return !failure_.empty(); }
  void fail(std::string why);
  void spend(uint64_t bytes);
  qpu::Register rep_result_of(const qpu::AluHalf& half) const;
  const Fact& fact(uint32_t number, const qpu::Instruction& instruction);
  uint32_t shape_number(const Shape& shape);
  size_t path_number(std::vector<Event> path);

  const Setting setting_;
  Dispatch dispatch_;
  std::string failure_;
  uint64_t bytes_ = 0;
  std::vector<Fact> facts_;  // by number of the instruction
  std::unordered_map<Shape, uint32_t, ShapeHash> shapes_;
  std::unordered_multimap<uint64_t, size_t> paths_;  // by hash
  std::vector<std::unique_ptr<BatchRecorder>> batches_;
};

}  // namespace v3d::timing
