#include "gpu/qpu/run/thread.h"

namespace v3d::qpu {

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
  varyings = nullptr;
  num_varyings = 0;
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
  restart();
}

void Thread::restart() {
  flag_a = flag_b = 0;
  nn_mode = NnMode::kUu;
  link = 0;
  unifa = 0;
  tmu_config = tlb_config = ~0u;
  budget = UINT64_MAX;
  instructions = 0;
  stop_at_switch = false;
  observer = nullptr;
  hang = {};
  meeting = {};
  tlb_block.quads[0] = nullptr;
  tlb_block.live = 0;

  // The queues and parameters behind the counts need no initial value.
  Pending& p = pending;
  p.events = {};
  p.last_section = false;
  p.sync = Pending::Sync::kNone;
  p.branch_target = p.branch_uniforms = 0;
  p.branch_moves_uniforms = false;
  p.vary_oldest = p.sfu_oldest = 0;
  p.next_varying = 0;
  p.texture.written = p.texture.num_data = 0;
  p.num_config = 0;
  p.fifo_head = p.fifo_tail = 0;
  p.tlb_have = p.tlb_need = 0;
  p.tlb_reading = p.tlb_halves = false;
  p.tlb_exec = kAllLanes;
}

}  // namespace v3d::qpu
