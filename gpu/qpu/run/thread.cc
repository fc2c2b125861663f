#include "gpu/qpu/run/thread.h"

namespace v3d::qpu {
namespace {

constexpr Varying kNoVaryings[kVaryingsBehind] = {};

}  // namespace

void Thread::reset() {
  for (Lanes& r : rf) r = Lanes{};
  for (Lanes& r : acc) r = Lanes{};
  rtop = Lanes{};
  msf = Lanes{};
  pc = uniforms = 0;

  memory = Memory();
  tmu = nullptr;
  tidx = 0;
  four_threads = final_section = false;
  vpm_in = nullptr;
  gs_in = nullptr;
  vpm_out = nullptr;
  vpm_in_rows = gs_in_rows = gs_in_vertices = vpm_out_rows = 0;
  gs_invocation = Lanes{};
  set_varyings(kNoVaryings, 0);
  pixel_x = pixel_y = Lanes{};
  sample_x = sample_y = LanesF{};
  sample_id = Lanes{};
  back_facing = 0;
  tlb = nullptr;
  tlb_binding = {};
  tlb_block = {};
  snapshot = nullptr;
  snapshot_address = 0;
  snapshot_bytes = 0;
  hang = nullptr;
  meeting = {};
  pending.branch_target = pending.branch_uniforms = 0;
  pending.branch_moves_uniforms = false;
  restart();
}

}  // namespace v3d::qpu
