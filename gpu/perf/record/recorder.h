/// A Recorder records what the batches of a job do, for the timing model, in the order of their start. A
/// recorder is for one worker; what several recorded is put together by add().
///
/// A batch whose program neither branches nor looks up anything goes the same way with the same uniforms
/// every time, so only the first one is watched.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpu/chip/generation.h"
#include "gpu/perf/record/sampling.h"
#include "gpu/perf/timing/batch_clock.h"
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
    chip::Generation generation = chip::kDefaultGeneration;
    uint64_t max_bytes = kMaxBytes;
    Sampling sampling = kWhole;
    uint64_t max_instructions = ~uint64_t{0};  ///< of a batch of a dispatch; it is watched up to there
    const chip::Profile* profile = nullptr;    ///< null: clocks() are those of instructions alone
    Parameters parameters{};
  };

  explicit Recorder(const Setting& setting);
  struct Part {};
  /// For another worker of the same job: bytes are counted together.
  Recorder(const Recorder& of, Part);
  ~Recorder() override;

  void start(const char* stage, qpu::Thread& thread) override;
  void start_vc4(const char* stage, qpu::vc4::Thread& thread) override;

  /// Watches it up to Setting::max_instructions.
  void begin_slice(qpu::Thread& thread) override;

  uint64_t clocks(const qpu::Thread& thread) const override;
  bool tells_clocks() const override { return latencies_.has_value(); }

  /// What the next batches belong to.
  void set_draw(uint32_t draw) { draw_ = draw; }
  /// Words of 32 bits that a pixel of fragments has in all of its colours and samples.
  void set_pixel_words(uint32_t words) { pixel_words_ = words; }
  /// Lines of vertex buffers that the next batch takes.
  void add_fetch(const Lanes& addresses, LaneMask lanes, uint32_t bytes);
  /// Accounts for what is kept beside the batches.
  void spend(uint64_t bytes);

  /// Whether a batch that is watched did not end yet. Of a batch that did, all that was recorded can be seen.
  bool is_watching() const { return watched_.load(std::memory_order_acquire) != 0; }
  uint32_t batches() const { return static_cast<uint32_t>(trace_.batches.size()); }
  /// Why there is no record of the whole job; empty: there is.
  const std::string& failure() const { return failure_; }
  /// Of what was recorded so far, by all workers.
  uint64_t bytes() const { return bytes_->load(std::memory_order_relaxed); }
  /// How numbers of another recorder's are called here.
  struct Numbers {
    std::vector<uint32_t> programs, shapes;
    std::vector<size_t> paths;
  };
  /// Moves batches here, after those that are. @param numbers  kept from call to call with the same `other`
  /// @return  number of the first one
  uint32_t add(Recorder& other, uint32_t first, uint32_t count, Numbers* numbers);
  /// Gives up, if it did not before.
  void fail(std::string why);
  /// Once, when all batches ended.
  Trace take();

 private:
  class PathRecorder;
  class BatchRecorder;
  class Vc4BatchRecorder;
  /// What batches do that take the same uniforms.
  struct Known {
    bool is_set = false;
    bool by_all = false;  ///< the program has one path
    uint32_t times = 0;   ///< that it stood for a batch
    size_t path = 0;
    std::vector<uint32_t> lines;
    uint64_t uniform_words = 0;
  };
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

  static uint64_t key_of(uint32_t program, GpuAddr uniforms) { return uint64_t{program} << 32 | uniforms; }
  bool failed() const { return !failure_.empty(); }
  Batch& add_batch(const Program& program, uint32_t tlb_quads);
  bool take_known(const Program& program, GpuAddr uniforms, Batch* batch);
  BatchRecorder& idle_recorder();
  qpu::Register rep_result_of(const qpu::AluHalf& half) const;
  const Fact& fact(uint32_t program, uint32_t number, const qpu::Instruction& instruction);
  uint32_t program_number(const Program& program);
  bool has_all_shapes() const;
  uint32_t shape_number(const Shape& shape);
  size_t path_number(const std::vector<Event>& path);
  std::vector<Event> renumbered(const Trace& from, const std::vector<Event>& path,
                                std::vector<uint32_t>* shapes);

  const Setting setting_;
  std::optional<Latencies> latencies_;
  Trace trace_;
  std::string failure_;
  std::shared_ptr<std::atomic<uint64_t>> bytes_;
  const bool alone_;                      // nobody else adds to them
  std::vector<std::vector<Fact>> facts_;  // by program, by number of the instruction
  std::unordered_map<Program, uint32_t, ProgramHash> programs_;
  std::unordered_map<Shape, uint32_t, ShapeHash> shapes_;
  std::unordered_multimap<uint64_t, size_t> paths_;  // by hash
  std::unordered_map<uint64_t, Known> known_;        // by program number and uniforms
  std::vector<std::unique_ptr<BatchRecorder>> batches_;
  std::vector<BatchRecorder*> idle_;  // of them
  std::vector<std::unique_ptr<Vc4BatchRecorder>> vc4_batches_;
  std::atomic<uint32_t> watched_{0};  // batches under way
  tmu::Footprint footprint_;          // of the last texture lookup
  Shape shape_;                       // of the last lookup
  uint32_t draw_ = kNoDraw, pixel_words_ = 1;
  std::vector<uint32_t> fetched_;  // by the batch to come
  uint32_t fetched_words_ = 0;
};

}  // namespace v3d::timing
