/// This stage runs coordinate and vertex programs of VideoCore IV over batches of 16 vertices
/// (vc4-graphics.md 2.1).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gpu/base/job_context.h"
#include "gpu/base/lanes.h"
#include "gpu/base/raw_vector.h"
#include "gpu/draw/state.h"
#include "gpu/qpu/run/vc4_program.h"
#include "gpu/qpu/run/vc4_textures.h"
#include "gpu/qpu/run/vc4_thread.h"
#include "gpu/tmu/lookup/unit.h"

namespace v3d::vpm {

/// A program with what is the same for all batches of a draw.
struct Vc4Stage {
  const char* name = nullptr;  ///< for messages
  const qpu::vc4::Program* program = nullptr;
  draw::ShaderCode code;
};

/// Runs a thread to its end. @return  empty when it or the job ended, or why it cannot end
std::string run_vc4_thread(const JobContext& job, const qpu::vc4::Program& program, qpu::vc4::Thread& thread);

/// What one slot of the pool needs of its own.
class Vc4StageRunner {
 public:
  explicit Vc4StageRunner(tmu::Unit& tmu) : textures_(tmu), thread_(std::make_unique<qpu::vc4::Thread>()) {
    thread_->reset();
  }

  /// Runs a batch to its end. All lanes are live: those after the last vertex repeat it, so that loops end.
  /// @param in  rows of attributes
  /// @return  kVpmWindowRows rows as the program wrote them, 0 where it did not, until the next call. A hang
  /// is
  ///          reported to job.error.
  const Lanes* run(const JobContext& job, const Vc4Stage& stage, Lanes* in, uint32_t in_rows);

  uint64_t instructions = 0;

 private:
  qpu::vc4::Textures textures_;
  qpu::vc4::Shared shared_;
  std::unique_ptr<qpu::vc4::Thread> thread_;
  RawVector<Lanes> out_;
};

}  // namespace v3d::vpm
