#include "gpu/pse/vc4_fragments.h"

#include <optional>
#include <string>

#include "absl/strings/str_format.h"
#include "gpu/base/host_time.h"
#include "gpu/base/left_out.h"
#include "gpu/base/vector.h"
#include "gpu/qpu/run/observer.h"
#include "gpu/qpu/run/program_scope.h"
#include "gpu/vpm/vc4_stage.h"

namespace v3d::pse {
namespace {

/// Registers that hold the payload at the start of a thread.
constexpr int kPayload = 15;
constexpr uint32_t kAllSamples = 15;

/// The 24 bits of a depth, rounded down and limited to what there is.
Lanes depth_bits(const LanesF& z) {
  constexpr float kOne = 0x1p24f, kMost = kOne - 1;
  return as_uint(floor_to_int(min(max(z * kOne, splat(0.0f)), splat(kMost))));
}

}  // namespace

Vc4Fragments::Vc4Fragments(const JobContext& job, tmu::Unit& tmu)
    : job_(job), textures_(tmu), thread_(std::make_unique<qpu::vc4::Thread>()) {
  thread_->reset();
}

void Vc4Fragments::run(const PreparedDraw& draw, tlb::TileBuffer& tile, tlb::FragmentBatch& batch,
                       const LanesF& w, const LanesF& z, const qpu::Varying* varyings, FragmentWatch* watch) {
  if (is_left_out(Stage::kPrograms)) [[unlikely]]
    return;
  const draw::ShaderCode& fs = draw.record().fs;
  const qpu::ProgramScope scope("fragment", fs.code, *thread_);
  host_time::ProgramScope host(host_time::Block::kFragmentPrograms, "fragment", fs.code);
  const LaneMask covered = nonzero(batch.coverage);
  qpu::vc4::Thread& t = *thread_;
  t.restart();
  // Who watches sees the same each time, whatever ran before and left in registers that nobody may rely on.
  if (job_.watch)
    for (Lanes& r : t.registers) r = Lanes{};
  t.hang = nullptr;
  shared_ = {};
  textures_.begin_thread(covered);
  t.threads_per_qpu = fs.two_threads ? 2 : 1;
  t.memory = job_.memory;
  t.tmu = &textures_;
  qpu::vc4::Tlb& port = tile.thread_port(draw.state(), batch);
  std::optional<WatchedVc4Port> watched;
  if (watch != nullptr) watched.emplace(port, *watch);
  t.tlb = watched ? &*watched : &port;
  t.shared = &shared_;
  t.pc = draw.vc4_program->entry();
  t.uniforms = fs.uniforms;
  t.num_varyings = draw.num_components();
  t.varyings = varyings;
  t.pixel_x = batch.x;
  t.pixel_y = batch.y;
  // A frame without samples has coverage in bit 0; pixels have all flags there (assumed).
  t.ms_flags = draw.multisample ? batch.coverage : select(covered, splat(kAllSamples), Lanes{});
  t.back_facing = batch.back_facing;
  t.ra(kPayload) = as_uint(w);
  t.rb(kPayload) = depth_bits(z);
  if (job_.watch) job_.watch->start_vc4("fragment", t);
  const std::string error = vpm::run_vc4_thread(job_, *draw.vc4_program, t);
  if (watch != nullptr) watch->end(t.ms_flags);
  instructions += t.instructions;
  host.executed(t.instructions);
  if (!error.empty())
    job_.error->set_hang(absl::StrFormat("fragment program at 0x%08x %s (pixel %d, %d)", fs.code, error,
                                         batch.x[0], batch.y[0]));
}

}  // namespace v3d::pse
