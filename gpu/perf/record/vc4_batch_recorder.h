/// A Vc4BatchRecorder watches a batch of VideoCore IV.
#pragma once

#include <cstdint>

#include "gpu/perf/record/path_recorder.h"
#include "gpu/qpu/isa/vc4.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::timing {

class Recorder::Vc4BatchRecorder final : public qpu::vc4::Observer, PathRecorder {
 public:
  explicit Vc4BatchRecorder(Recorder& recorder) : PathRecorder(recorder) {}

  void begin(size_t number, qpu::vc4::Thread& thread);
  bool is_idle() const { return idle_; }

  void before(const qpu::vc4::Thread& t, uint64_t word) override;
  void direct_lookup(const qpu::vc4::Thread& t, int unit, const Lanes& addresses) override;
  void texture_lookup(const qpu::vc4::Thread& t, const qpu::vc4::Lookup& lookup) override;
  void transfer(const qpu::vc4::Thread& t, bool stores, GpuAddr address) override;
  void after(const qpu::vc4::Thread& t, uint64_t word, const char* error) override;
  void finished(const qpu::vc4::Thread& t, Next next) override;

 private:
  void add_uniforms(GpuAddr to);
  void add_reads(const qpu::vc4::Instruction& i);
  void add_writes(const qpu::vc4::Instruction& i);
  void add_signal(qpu::vc4::Signal signal);
  void access_tlb();
  uint8_t unit_of(int unit) const { return static_cast<uint8_t>(unit | (in_.no_swap ? Shape::kNoSwap : 0)); }

  /// Of the thread, at the instruction.
  struct In {
    bool is_issued = false;  ///< it waits for its turn, if not for the first time
    GpuAddr uniforms = 0;    ///< next one
    uint32_t uniform_line = ~0u;
    uint8_t switch_in = 0;  ///< instructions
    bool wrote = false;     ///< to the tile buffer
    bool no_swap = false;   ///< of TMUs
  } in_;
  bool idle_ = true;
};

}  // namespace v3d::timing
