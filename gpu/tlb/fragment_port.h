/// A FragmentPort is the tile buffer as the fragment programs of one draw see it. It is internal to the TLB.
#pragma once

#include "gpu/tlb/color_write.h"
#include "gpu/tlb/depth_test.h"

namespace v3d::tlb {

class FragmentPort final : public qpu::TlbPort {
 public:
  explicit FragmentPort(Tile& tile) : tile_(tile) {}

  /// Points the port at a draw. Both references stay in use until the next call.
  void begin_draw(const draw::DrawState& state, FragmentBatch& batch, bool late_test);
  /// Depth bounds, stencil and depth tests of the draw's batch, before the program.
  void test_early() { depth_test_.run(tile_, *batch_, batch_->z, 1, batch_->coverage); }
  bool tests_depth() const { return depth_test_.reads_depth(); }
  /// @see TileBuffer
  bool tests_blocks() const { return depth_test_.has_block(); }
  LaneMask test_block() { return depth_test_.run_block(tile_, *batch_); }
  /// @see TileBuffer
  uint32_t* replaced_pixels();
  /// @see TileBuffer
  const char* describe_blocks(qpu::BlockKey& key, std::array<float, 4>& constants);
  void begin_blocks(qpu::BlockRun& run);
  /// The tile was configured anew.
  void reset();

  void write_color(qpu::Thread& thread, const qpu::TlbSpec& spec, const Lanes* words, LaneMask exec) override;
  void write_depth(qpu::Thread& thread, const qpu::TlbSpec& spec, Lanes z, LaneMask exec) override;
  void read_color(qpu::Thread& thread, const qpu::TlbSpec& spec, Lanes* words) override;
  qpu::TlbBinding binding() const override {
    return {write_halves, write_invariant_depth, !late_test_, late_test_ && !tests_depth()};
  }
  /// Adds what a thread did by itself in the draw, and begins anew.
  void count(qpu::TlbBlock& done);

 private:
  static void write_halves(qpu::Thread& thread, LaneMask exec);
  static void replace_pixels(qpu::Thread& thread, LaneMask exec);
  static void write_invariant_depth(qpu::Thread& thread, LaneMask exec);
  void test_late(qpu::Thread& thread, const LanesF* z, int z_step, LaneMask exec);
  void set_live(qpu::Thread& thread) const;
  const ColorWrite& ready_write(uint32_t rt);
  template <typename Write>
  void write(uint32_t rt, const qpu::Thread& thread, LaneMask exec, const Write& words_to);
  void count_written(uint32_t rt, uint32_t pixels);

  Tile& tile_;
  const draw::DrawState* state_ = nullptr;
  FragmentBatch* batch_ = nullptr;
  bool late_test_ = false;
  DepthTest depth_test_;
  std::array<ColorWrite, kMaxRenderTargets> color_writes_;
  uint32_t* block_pixels_ = nullptr;          // where color_writes_[0] may write blocks
  uint32_t ready_targets_ = 0;                // color_writes_ that are prepared for state_
  uint32_t last_target_ = kMaxRenderTargets;  // written by the current program run
  uint32_t counted_quads_ = 0;                // in it; the form of quads_with_any
};

}  // namespace v3d::tlb
