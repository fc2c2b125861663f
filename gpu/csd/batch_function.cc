#include "gpu/csd/batch_function.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>

#include "gpu/base/host_time.h"
#include "gpu/base/job_control.h"
#include "gpu/base/left_out.h"
#include "gpu/base/qpu_place.h"
#include "gpu/qpu/run/program_scope.h"

namespace v3d::csd {
namespace {

constexpr char kStage[] = "compute";
/// Of so many batches a quarter may be for threads.
constexpr uint32_t kEnough = 64;
/// To find out what a dispatch has takes as long as several batches.
constexpr uint64_t kFewBatches = 16;

}  // namespace

BatchFunction::BatchFunction(const JobContext& job, const Configuration& configuration,
                             const qpu::Program& program, const UniformSnapshot& snapshot)
    : job_(job), configuration_(configuration), program_(program), snapshot_(snapshot), meter_(&job) {
  if (job.is_seen() || g_left_out != 0 || snapshot.size == 0 || configuration.batches <= kFewBatches)
    next_look_ = 0;  // never
}

bool BatchFunction::look(qpu::Thread& thread, tmu::Unit& unit) {
  next_look_ *= 2;
  thread.pc = configuration_.code;
  const qpu::ProgramScope scope(kStage, configuration_.code, thread);
  const qpu::BatchCode* const code = find(thread, unit);
  if (code == nullptr || !snapshot_.has(configuration_.uniforms, code->uniforms())) return false;
  if (code->stretches().empty() && code->instructions() > job_.instruction_limit) return false;
  use(*code);
  return true;
}

void BatchFunction::use(const qpu::BatchCode& code) {
  code_ = &code;
  function_ = code.function();
  instructions_ = code.instructions();
  constexpr GpuAddr kMiddle = 0x80000000;
  run_.middle_of_memory = job_.memory.host(kMiddle);
  run_.textures = textures_.data();
  read_uniforms();
}

const qpu::BatchCode* BatchFunction::find(qpu::Thread& thread, tmu::Unit& unit) {
  const bool final_section = configuration_.single_segment;
  const qpu::BlockLookups* const found = program_.batch_lookups(job_.memory, final_section);
  if (found == nullptr) return nullptr;
  const auto is_there = [&](uint32_t number) { return snapshot_.has(configuration_.uniforms, number + 1); };
  for (const qpu::BlockLookup& lookup : found->lookups)
    for (const uint16_t number : lookup.uniforms)
      if (number != qpu::BlockLookup::kNone && !is_there(number)) return nullptr;
  for (const uint16_t number : found->known)
    if (!is_there(number)) return nullptr;
  thread.tmu = &unit;
  textures_.describe(
      *found, unit, [this](uint32_t n) { return uniform(n); }, key_.lookups);
  qpu::read_known(
      *found, [this](uint32_t n) { return uniform(n); }, key_.known);
  key_.is_whole = configuration_.wg_size % kLanes == 0;
  return program_.batches(job_.memory, final_section, key_);
}

void BatchFunction::read_uniforms() {
  const std::vector<qpu::IndirectWord>& indirect = code_->indirect();
  uniforms_.resize(indirect.empty() ? code_->uniforms() : qpu::kFirstIndirect + indirect.size());
  for (uint32_t n = 0; n < code_->uniforms(); ++n) uniforms_[n].fill(uniform(n));
  indirect_.clear();
  for (size_t n = 0; n < indirect.size(); ++n) {
    indirect_.push_back(job_.memory.host(indirect[n].address(uniforms_[indirect[n].uniform][0])));
    uniforms_[qpu::kFirstIndirect + n].fill(0);
  }
  run_.uniforms = uniforms_.data();
}

/// Words that the batches before may have changed.
void BatchFunction::read_memory() {
  qpu::SpreadWord* const words = uniforms_.data() + qpu::kFirstIndirect;
  for (size_t n = 0; n < indirect_.size(); ++n) {
    uint32_t word;
    std::memcpy(&word, indirect_[n], sizeof(word));
    if (word != words[n][0]) words[n].fill(word);
  }
}

uint32_t BatchFunction::run(qpu::Thread& thread, BatchGenerator& generator, uint32_t count, uint32_t slot,
                            Batch& batch) {
  thread.pc = configuration_.code;
  const qpu::ProgramScope scope(kStage, configuration_.code, thread);
  host_time::ProgramScope host(host_time::Block::kComputePrograms, kStage, configuration_.code);
  uint32_t done = 0;
  while (done < count) {
    generator.next(slot, &batch);
    if (!run(batch)) [[unlikely]]
      break;
    ++done;
  }
  const uint64_t instructions = uint64_t{done} * instructions_;
  executed_ += instructions;
  host.ran(done);
  host.executed(instructions);
  return done;
}

qpu::Stop BatchFunction::run_stretches(Resident& resident, uint64_t budget) {
  if (code_ != resident.code) use(*resident.code);
  const qpu::BatchStretch* const stretches = code_->stretches().data();
  qpu::Thread& thread = *resident.thread;
  thread.pc = configuration_.code;
  run_.slots = resident.slots.empty() ? nullptr : &resident.slots[0].lanes;
  run_.lanes = resident.batch.live;
  if (resident.stretch == 0) {
    run_.payload[0] = resident.batch.workgroup_xy;
    run_.payload[1] = resident.batch.workgroup_z_lii;
  }
  const qpu::ProgramScope scope(kStage, configuration_.code, thread);
  const uint64_t most = job_.instruction_limit - thread.instructions;
  uint64_t executed = 0, look_at = kTurn;
  std::optional<qpu::Stop> stop;
  while (!stop) {
    const qpu::BatchStretch& stretch = stretches[resident.stretch];
    if (executed + stretch.instructions > budget && executed != 0) break;
    if (executed + stretch.instructions > look_at && executed != 0) {
      if (job_.ended() || (job_.control != nullptr && job_.control->look())) break;
      look_at = executed + kTurn;
    }
    if (executed + stretch.instructions > most) {  // its next instructions are too many
      executed = most;
      break;
    }
    const uint64_t end = std::min({budget, most, look_at});
    const auto turns =
        static_cast<uint32_t>(std::max<uint64_t>((end - std::min(end, executed)) / stretch.instructions, 1));
    run_.turns = turns;
    const uint32_t to = stretch.function(&run_);
    executed += uint64_t{stretch.instructions} * (stretch.has_turns ? turns - run_.turns : 1);
    if (to == qpu::kStretchEnds) {
      stop = qpu::Stop::kEnd;
    } else {
      resident.stretch = to & ~qpu::kStretchWaits;
      if (to & qpu::kStretchWaits) stop = qpu::Stop::kBarrier;
    }
    if (t_fault_cost != 0) [[unlikely]] {
      meter_.charge(0);
      break;
    }
  }
  thread.instructions += executed;
  executed_ += executed;
  thread.pc += stretches[resident.stretch].first;
  return stop.value_or(qpu::Stop::kBudget);
}

/// @return  false: nothing was done
bool BatchFunction::run(const Batch& batch) {
  if (code_ == nullptr) [[unlikely]]
    return false;
  if (!indirect_.empty()) read_memory();
  run_.payload[0] = batch.workgroup_xy;
  run_.payload[1] = batch.workgroup_z_lii;
  run_.lanes = batch.live;
  const bool done = function_(&run_) != 0;
  ++runs_;
  if (t_fault_cost != 0) [[unlikely]]
    meter_.charge(0);
  if (done) [[likely]]
    return true;
  if (++missed_ >= kEnough && missed_ > runs_ / 4) {
    code_ = nullptr;
    next_look_ = 0;
  }
  return false;
}

}  // namespace v3d::csd
