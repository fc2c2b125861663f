#include "gpu/vpm/vc4_stage.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "gpu/base/host_time.h"
#include "gpu/base/work_meter.h"
#include "gpu/qpu/run/observer.h"
#include "gpu/qpu/run/program_scope.h"
#include "gpu/qpu/run/vc4_interpreter.h"
#include "gpu/vpm/packed_positions.h"

namespace v3d::vpm {
std::string run_vc4_thread(const JobContext& job, const qpu::vc4::Program& program,
                           qpu::vc4::Thread& thread) {
  uint64_t left = job.instruction_limit;
  for (;;) {
    thread.budget = std::min(left, kInstructionSlice);
    left -= thread.budget;
    switch (qpu::vc4::run(program, thread)) {
      case qpu::vc4::Stop::kEnd:
        return {};
      case qpu::vc4::Stop::kHang:
        return absl::StrFormat("cannot go on at 0x%08x: %s", thread.pc, thread.hang);
      case qpu::vc4::Stop::kWait:  // nobody else could let it go on
        return absl::StrFormat("waits for another thread at 0x%08x", thread.pc);
      case qpu::vc4::Stop::kBudget:
        if (job.progress && !job.progress->spend(kInstructionSlice)) left = 0;
        if (job.stopped()) return {};
        if (left == 0) return absl::StrFormat("does not end, and is at 0x%08x", thread.pc);
    }
  }
}

const Lanes* Vc4StageRunner::run(const JobContext& job, const Vc4Stage& stage, Lanes* in, uint32_t in_rows) {
  const qpu::ProgramScope scope(stage.name, stage.code.code, *thread_);
  host_time::ProgramScope host(host_time::Block::kVertexPrograms, stage.name, stage.code.code);
  qpu::vc4::Thread& t = *thread_;
  out_.assign(kVpmWindowRows, Lanes{});
  shared_ = {};
  textures_.begin_thread(kAllLanes);
  t.restart();
  // Who watches sees the same each time, whatever ran before and left in registers that nobody may rely on.
  if (job.watch)
    for (Lanes& r : t.registers) r = Lanes{};
  t.hang = nullptr;
  t.ms_flags = Lanes{};
  t.back_facing = 0;
  t.memory = job.memory;
  t.tmu = &textures_;
  t.shared = &shared_;
  t.pc = stage.program->entry();
  t.uniforms = stage.code.uniforms;
  t.vpm_in = {in, in_rows};
  t.vpm_out = {out_.data(), kVpmWindowRows};
  if (job.watch) job.watch->start_vc4(stage.name, t);
  if (const std::string error = run_vc4_thread(job, *stage.program, t); !error.empty())
    job.error->set_hang(absl::StrFormat("%s program at 0x%08x %s", stage.name, stage.code.code, error));
  instructions += t.instructions;
  host.executed(t.instructions);
  return out_.data();
}

}  // namespace v3d::vpm
