/// A Vc4Port is the tile buffer as the fragment programs of VideoCore IV see it (vc4-graphics.md 3.5, 3.6).
/// It is internal to the TLB.
#pragma once

#include "gpu/qpu/run/vc4_thread.h"
#include "gpu/tlb/depth_test.h"

namespace v3d::tlb {

class Vc4Port final : public qpu::vc4::Tlb {
 public:
  explicit Vc4Port(Tile& tile) : tile_(tile) {}

  /// Points the port at a thread that is about to start: samples count from the first, and there is no
  /// stencil test. Of the state only what packets say of depth counts. The batch stays in use until the next
  /// call.
  void begin_thread(const draw::DrawState& state, FragmentBatch& batch);
  /// The tile was configured anew.
  void reset();

  Lanes load_color(qpu::vc4::Thread& thread) override;
  void write_color(qpu::vc4::Thread& thread, const Lanes& color, LaneMask exec, bool all) override;
  void write_z(qpu::vc4::Thread& thread, const Lanes& z, LaneMask exec) override;
  void set_stencil(qpu::vc4::Thread& thread, uint32_t setup) override;

 private:
  void count_coverage(LaneMask live, LaneMask covered);
  uint32_t next_sample(uint32_t* count) const;

  Tile& tile_;
  FragmentBatch* batch_ = nullptr;
  draw::DrawState state_;  // with the stencil of the thread
  DepthTest depth_test_;
  uint32_t loads_ = 0, writes_ = 0;  // of samples
};

}  // namespace v3d::tlb
