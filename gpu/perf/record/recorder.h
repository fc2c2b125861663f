/// Records what the batches of a job do, for the timing model. Their order is that of their start, so the job
/// runs on one worker, on which that is the order of the batches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpu/perf/timing/events.h"
#include "gpu/qpu/isa/register_set.h"
#include "gpu/qpu/run/observer.h"
#include "gpu/tmu/lookup/footprint.h"

namespace v3d::timing {

class Recorder final : public qpu::ThreadWatch {
 public:
  /// Of events and addresses. A job with more of them has no prediction.
  static constexpr uint64_t kMaxBytes = uint64_t{1} << 30;

  struct Setting {
    int version = 71;
    uint64_t max_bytes = kMaxBytes;
  };

  explicit Recorder(const Setting& setting);
  ~Recorder() override;

  void start(const char* stage, qpu::Thread& thread) override;

  /// What the next batches belong to.
  void set_draw(uint32_t draw) { draw_ = draw; }
  /// Words of 32 bits that a pixel of fragments has in all of its colours and samples.
  void set_pixel_words(uint32_t words) { pixel_words_ = words; }
  /// Lines of vertex buffers that the next batch takes.
  void add_fetch(const Lanes& addresses, LaneMask lanes, uint32_t bytes);
  /// Accounts for what is kept beside the batches.
  void spend(uint64_t bytes);

  uint32_t batches() const { return static_cast<uint32_t>(trace_.batches.size()); }
  /// Why there is no record of the whole job; empty: there is.
  const std::string& failure() const { return failure_; }
  /// Once, when all batches ended.
  Trace take();

 private:
  class BatchRecorder;
  struct ShapeHash {
    size_t operator()(const Shape& shape) const;
  };
  struct ProgramHash {
    size_t operator()(const Program& program) const;
  };
  /// What the timing needs of an instruction besides what it does.
  struct Fact {
    bool known = false;
    qpu::RegisterSet reads;
    qpu::Register sfu_result = qpu::kNoRegister;
    qpu::Register rep_result = qpu::kNoRegister;
    bool waits = false;  ///< tmuwt
    bool tlb = false;    ///< accesses the tile buffer
  };

  bool failed() const { return !failure_.empty(); }
  void fail(std::string why);
  qpu::Register rep_result_of(const qpu::AluHalf& half) const;
  const Fact& fact(uint32_t program, uint32_t number, const qpu::Instruction& instruction);
  uint32_t program_number(const Program& program);
  uint32_t shape_number(const Shape& shape);
  size_t path_number(std::vector<Event> path);

  const Setting setting_;
  Trace trace_;
  std::string failure_;
  uint64_t bytes_ = 0;
  std::vector<std::vector<Fact>> facts_;  // by program, by number of the instruction
  std::unordered_map<Program, uint32_t, ProgramHash> programs_;
  std::unordered_map<Shape, uint32_t, ShapeHash> shapes_;
  std::unordered_multimap<uint64_t, size_t> paths_;  // by hash
  std::vector<std::unique_ptr<BatchRecorder>> batches_;
  tmu::Footprint footprint_;  // of the last texture lookup
  uint32_t draw_ = kNoDraw, pixel_words_ = 1;
  std::vector<uint32_t> fetched_;  // by the batch to come
  uint32_t fetched_words_ = 0;
};

}  // namespace v3d::timing
