#include "gpu/vpm/vertex_function.h"

#include <algorithm>
#include <cstddef>

#include "gpu/base/host_time.h"
#include "gpu/base/left_out.h"
#include "gpu/qpu/run/program.h"
#include "gpu/qpu/run/program_scope.h"

namespace v3d::vpm {
namespace {

constexpr uint32_t kSign = 0x80000000, kInfinity = 0x7f800000;

}  // namespace

bool VertexFunction::begin(const JobContext& job, const StageProgram& stage, uint32_t rows_in,
                           uint32_t rows_out, qpu::Thread& thread) {
  if (job.is_seen() || g_left_out != 0) return false;
  code_ = stage.program->vertices(job.memory, stage.code.final_section);
  if (code_ == nullptr) return false;
  stage_ = stage.stage;
  address_ = stage.code.code;
  thread.pc = stage.code.code;
  const qpu::ProgramScope scope(stage.stage, stage.code.code, thread);
  read_uniforms(job.memory, stage.code.uniforms);
  // Rows that are not there read 0, and nothing is written to them: threads do so.
  const auto are_there = [this](const std::vector<uint32_t>& rows, uint32_t count) {
    return std::all_of(rows.begin(), rows.end(), [&](uint32_t of) { return row(of) < count; });
  };
  const qpu::VertexRows& rows = code_->rows();
  if (!are_there(rows.in, rows_in) || !are_there(rows.out, rows_out)) return false;
  const auto is_number = [this](uint32_t n) { return (uniforms_[n][0] & ~kSign) <= kInfinity; };
  const std::vector<uint32_t>& numbers = code_->numbers();
  if (!std::all_of(numbers.begin(), numbers.end(), is_number)) return false;
  unwritten_.clear();
  for (uint32_t r = 0; r < rows_out; ++r)
    if (std::none_of(rows.out.begin(), rows.out.end(), [&](uint32_t of) { return row(of) == r; }))
      unwritten_.push_back(r);
  return true;
}

void VertexFunction::read_uniforms(Memory memory, GpuAddr at) {
  const std::vector<qpu::IndirectWord>& indirect = code_->indirect();
  uniforms_.resize(indirect.empty() ? code_->uniforms() : qpu::kFirstIndirect + indirect.size());
  for (uint32_t n = 0; n < code_->uniforms(); ++n) uniforms_[n].fill(memory.load<uint32_t>(at + n * 4));
  for (size_t n = 0; n < indirect.size(); ++n)
    uniforms_[qpu::kFirstIndirect + n].fill(
        memory.load<uint32_t>(indirect[n].address(uniforms_[indirect[n].uniform][0])));
}

uint32_t VertexFunction::row(uint32_t of) const {
  return of < qpu::VertexRows::kByUniform ? of : uniforms_[of - qpu::VertexRows::kByUniform][0];
}

uint32_t VertexFunction::run(const Lanes* in, Lanes* out) const {
  host_time::ProgramScope host(host_time::Block::kVertexPrograms, stage_, address_);
  const qpu::VertexRun run = {in, out, uniforms_.data()};
  code_->function()(&run);
  for (const uint32_t row : unwritten_) out[row] = Lanes{};
  host.executed(code_->instructions());
  return code_->instructions();
}

}  // namespace v3d::vpm
