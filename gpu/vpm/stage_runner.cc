#include "gpu/vpm/stage_runner.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gpu/base/host_time.h"
#include "gpu/base/work_meter.h"
#include "gpu/chip/profile.h"
#include "gpu/qpu/run/interpreter.h"
#include "gpu/qpu/run/observer.h"
#include "gpu/qpu/run/place_text.h"
#include "gpu/qpu/run/program_scope.h"

namespace v3d::vpm {

void start_thread(const JobContext& job, const StageProgram& program, int slot, LaneMask live,
                  Worker* worker) {
  qpu::Thread& t = worker->thread;
  if (!worker->tmu) {
    worker->tmu = std::make_unique<tmu::Unit>(job.memory, job.profile->generation);
    worker->tmu->set_job(&job);
  }
  if (worker->stage == program.stage && worker->code == program.code.code) {
    t.restart();
  } else {
    worker->end_series();
    worker->stage = program.stage;
    worker->code = program.code.code;
    t.reset();
    t.memory = job.memory;
    t.tmu = worker->tmu.get();
    t.tidx = job.first_tidx + static_cast<uint32_t>(slot);
  }
  t.pc = program.code.code;
  t.uniforms = program.code.uniforms;
  t.four_threads = program.code.four_threads;
  t.final_section = program.code.final_section;
  t.msf = select(live, splat(1u), Lanes{});
  if (worker->in_series) return;
  worker->series.begin(*program.program, job.watch ? nullptr : program.program->compiled(t));
  worker->in_series = true;
}

bool may_go_on(const JobContext& job, qpu::Thread& t) {
  const uint64_t left = job.instruction_limit - std::min(job.instruction_limit, t.instructions);
  if ((job.progress && !job.progress->spend(kInstructionSlice)) || left == 0 || job.stopped()) return false;
  t.stop_at_block = true;
  t.budget = std::min(left, kInstructionSlice);
  return true;
}

bool finish_thread(const JobContext& job, const StageProgram& program, Worker* worker) {
  qpu::Thread& t = worker->thread;
  if (job.watch) job.watch->start(program.stage, t);
  t.budget = std::min(job.instruction_limit, kInstructionSlice);
  const qpu::ProgramScope scope(program.stage, program.code.code, t);
  host_time::ProgramScope host(host_time::Block::kVertexPrograms, program.stage, program.code.code);
  qpu::Stop stop = worker->series.run(t);
  while (stop == qpu::Stop::kBudget && may_go_on(job, t)) stop = qpu::run(*program.program, t);
  worker->instructions += t.instructions;
  host.executed(t.instructions);
  if (stop == qpu::Stop::kEnd) return true;
  if (job.stopped()) return false;
  const std::string what = stop == qpu::Stop::kBudget
                               ? absl::StrCat("does not end, and is at ", pc_text(*program.program, t))
                           : stop == qpu::Stop::kBarrier
                               ? absl::StrCat("waits at a compute barrier at ", pc_text(*program.program, t))
                               : absl::StrCat("cannot go on: ", hang_text(*program.program, t));
  job.error->set_hang(absl::StrFormat("%s program at 0x%08x %s", program.stage, program.code.code, what));
  return false;
}

}  // namespace v3d::vpm
