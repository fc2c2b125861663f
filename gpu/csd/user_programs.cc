#include "gpu/csd/user_programs.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/str_format.h"
#include "gpu/base/host_time.h"
#include "gpu/chip/profile.h"
#include "gpu/perf/counters.h"
#include "gpu/qpu/run/observer.h"
#include "gpu/qpu/run/program_cache.h"
#include "gpu/qpu/run/program_scope.h"
#include "gpu/qpu/run/vc4_interpreter.h"
#include "gpu/qpu/run/vc4_textures.h"
#include "gpu/tmu/lookup/unit.h"

namespace v3d::csd {
namespace {

using qpu::vc4::Stop;
using qpu::vc4::Thread;

constexpr char kStage[] = "user";
/// Short enough that who waits for another does not wait for long, and long enough to run at full speed.
constexpr uint64_t kTurn = 256;

}  // namespace

UserQpus::UserQpus(int qpus) {
  for (int n = 0; n < qpus; ++n) {
    auto qpu = std::make_unique<Qpu>();
    qpu->thread.reset();
    qpu->thread.qpu_number = static_cast<uint8_t>(n);
    qpus_.push_back(std::move(qpu));
  }
}
UserQpus::~UserQpus() = default;

void UserQpus::reset() {
  fresh_ = true;
  shared_ = {};
  std::fill(std::begin(vpm_), std::end(vpm_), AlignedLanes{});
  for (size_t n = 0; n < qpus_.size(); ++n) {
    Qpu& qpu = *qpus_[n];
    qpu.busy = false;
    qpu.code.reset();
    qpu.thread.reset();
    qpu.thread.qpu_number = static_cast<uint8_t>(n);
  }
}

bool UserQpus::has_waiting() const {
  return std::any_of(qpus_.begin(), qpus_.end(), [](const auto& qpu) { return qpu->busy; });
}

void UserQpus::start(const JobContext& job, Qpu& qpu, const UserProgram& program) {
  Thread& t = qpu.thread;
  t.restart();
  t.pc = program.code & ~7u;
  t.uniforms = program.uniforms & ~3u;
  t.ms_flags = AlignedLanes{};
  t.instructions = t.moves = 0;
  t.host_interrupts = 0;
  t.shared = &shared_;
  t.vpm_in = t.vpm_out = {vpm_, qpu::vc4::kVpmRows};
  qpu.program = program;
  qpu.code = job.programs->get_vc4(job.memory, t.pc);
  qpu.left = std::min(program.most_instructions, job.instruction_limit);
  qpu.busy = true;
  show(job, qpu);
}

void UserQpus::show(const JobContext& job, Qpu& qpu) {
  qpu.thread.observer = nullptr;
  if (job.watch) job.watch->start_vc4(kStage, qpu.thread);
}

/// Gives programs to QPUs that are free. @return whether any has one
bool UserQpus::fill(const JobContext& job, UserQueue& queue) {
  bool busy = false;
  const uint32_t reserved = queue.reserved_qpus();
  for (size_t n = 0; n < qpus_.size(); ++n) {
    Qpu& qpu = *qpus_[n];
    UserProgram program;
    if (!qpu.busy && !(reserved >> n & 1) && queue.take(&program)) start(job, qpu, program);
    busy |= qpu.busy;
  }
  return busy;
}

void UserQpus::fail(const JobContext& job, const Qpu& qpu, const std::string& why) {
  job.error->set_hang(absl::StrFormat("the user program at 0x%08x on QPU %d %s", qpu.program.code,
                                      qpu.thread.qpu_number, why));
}

UserQpus::Turn UserQpus::run_turn(const JobContext& job, UserQueue& queue, size_t number) {
  Qpu& qpu = *qpus_[number];
  Thread& t = qpu.thread;
  const uint64_t before = t.instructions, moves = t.moves;
  t.budget = std::min(qpu.left, kTurn);
  Stop stop;
  {
    const qpu::ProgramScope scope(kStage, qpu.program.code, t);
    stop = qpu::vc4::run(*qpu.code, t);
  }
  const uint64_t ran = t.instructions - before;
  qpu.left -= std::min(qpu.left, ran);
  const uint64_t issued = ran - std::min(ran, t.moves - moves);
  instructions_ += issued;
  if (issued) queue.executed(issued);
  switch (stop) {
    case Stop::kEnd:
      qpu.busy = false;
      qpu.code.reset();
      queue.end(qpu.program, static_cast<int>(number), t.host_interrupts != 0);
      return Turn::kMoved;
    case Stop::kHang:
      fail(job, qpu, absl::StrFormat("cannot go on at 0x%08x: %s", t.pc, t.hang));
      return Turn::kFailed;
    case Stop::kWait:
      return ran > 0 ? Turn::kMoved : Turn::kIdle;
    case Stop::kBudget:
      if (qpu.left > 0) return Turn::kMoved;
      fail(job, qpu,
           absl::StrFormat("does not end in its time (%d instructions), and is at 0x%08x", t.instructions,
                           t.pc));
      return Turn::kFailed;
  }
  return Turn::kFailed;
}

void UserQpus::run(const JobContext& job, UserQueue& queue, bool alone, bool same_watch) {
  host_time::ProgramScope host(host_time::Block::kComputePrograms, kStage, 0);
  tmu::Unit unit(job.memory, job.profile->generation);
  unit.set_job(&job);
  qpu::vc4::Textures textures(unit);
  for (const auto& qpu : qpus_) {
    qpu->thread.memory = job.memory;
    qpu->thread.tmu = &textures;
    if (qpu->busy && !same_watch) show(job, *qpu);
  }
  instructions_ = 0;
  fresh_ = false;
  while (!job.stopped() && fill(job, queue)) {
    bool moved = false;
    for (size_t n = 0; n < qpus_.size() && !job.error->failed(); ++n)
      if (qpus_[n]->busy) moved |= run_turn(job, queue, n) == Turn::kMoved;
    if (moved || job.error->failed()) continue;
    if (!alone) break;
    const auto waiting = std::find_if(qpus_.begin(), qpus_.end(), [](const auto& qpu) { return qpu->busy; });
    fail(job, **waiting,
         absl::StrFormat("waits for a semaphore or the mutex at 0x%08x, and nothing else runs",
                         (*waiting)->thread.pc));
  }
  host.executed(instructions_);
  perf::Counts counts;
  counts[perf::kQpuActive] = instructions_;
  job.counts->merge(counts);
  for (const auto& qpu : qpus_) qpu->thread.tmu = nullptr;
  if (job.ended()) reset();
}

}  // namespace v3d::csd
