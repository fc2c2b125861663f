/// These functions make the depth bounds, stencil and depth tests of sixteen lanes (cle-and-tiles.md 5.2,
/// 5.7, 5.9). They are internal to the TLB.
#pragma once

#include <array>
#include <utility>

#include "gpu/tlb/tile.h"

namespace v3d::tlb {

/// The tests of one draw, made ready once and kept while the state stays the same.
class DepthTest {
 public:
  /// Decodes the state unless it is that of the last call.
  void prepare(DepthType type, bool multisample, const draw::DrawState& state);
  /// Forgets the state: the tile's types changed.
  void reset() { kernel_ = nullptr; }

  /// False: all fragments pass without a look at their depths, which are not stored either.
  bool reads_depth() const { return kernel_ != count; }
  /// Whether run_block() does what run() does.
  bool has_block() const { return block_kernel_ != nullptr; }
  /// run() of a batch that is a block, in frames of one sample. @return  the lanes that pass
  LaneMask run_block(Tile& tile, FragmentBatch& batch) const { return block_kernel_(*this, tile, batch); }
  /// As a function for whole blocks has it. @return  false: has_block() does not hold
  bool describe(qpu::BlockKey& key) const;
  /// Depths of those that pass are stored.
  bool writes() const { return write_depth_; }
  /// Tests and updates every sample of the coverage; failing ones leave it. prepare() came before.
  /// @param z  depth of sample s at z[s * z_step]: step 0 gives all samples the same
  void run(Tile& tile, const FragmentBatch& batch, const LanesF* z, int z_step, Lanes& coverage) const {
    kernel_(*this, tile, batch, z, z_step, coverage);
  }

 private:
  struct Face {
    uint32_t ref, test_mask, write_mask;
    Compare func;
    draw::StencilOp fail, depth_fail, pass;
  };
  static constexpr int kAllTests = 8;  ///< after the values of Compare
  using Kernel = void (*)(const DepthTest&, Tile&, const FragmentBatch&, const LanesF*, int, Lanes&);
  /// @param kTests  a Compare: of depth alone. kAllTests: those of the values below
  template <DepthType kType, int kTests, bool kMultisample>
  static void kernel(const DepthTest& test, Tile& tile, const FragmentBatch& batch, const LanesF* z,
                     int z_step, Lanes& coverage);
  using BlockKernel = LaneMask (*)(const DepthTest&, Tile&, FragmentBatch&);
  template <DepthType kType, int kTest>
  static LaneMask block_kernel(const DepthTest& test, Tile& tile, FragmentBatch& batch);
  template <DepthType kType, int... kTests>
  static constexpr std::array<BlockKernel, sizeof...(kTests)> block_kernels(
      std::integer_sequence<int, kTests...>) {
    return {block_kernel<kType, kTests>...};
  }
  static BlockKernel find_block_kernel(DepthType type, Compare func);
  /// Nothing is tested and nothing updated.
  static void count(const DepthTest& test, Tile& tile, const FragmentBatch& batch, const LanesF* z,
                    int z_step, Lanes& coverage);
  template <DepthType kType, bool kMultisample, int... kTests>
  static constexpr std::array<Kernel, sizeof...(kTests)> kernels(std::integer_sequence<int, kTests...>) {
    return {kernel<kType, kTests, kMultisample>...};
  }
  template <typename Vector>
  LanesI passes_any(Vector fragment, Vector stored) const;
  LanesI run_stencil(uint32_t* plane, const QuadOffsets& quads, LaneMask back_facing, LanesI in_bounds,
                     LanesI depth_passed) const;
  static LanesI stencil_passes(const Face& face, Lanes stored);
  static Lanes stencil_update(const Face& face, Lanes stored, LanesI stencil_passed, LanesI depth_passed);
  static Face decode(const draw::StencilConfig& config);

  Kernel kernel_ = nullptr;
  BlockKernel block_kernel_ = nullptr;
  int32_t on_less_ = 0, on_equal_ = 0, on_greater_ = 0, on_unordered_ = 0;  // all ones: the fragment passes
  bool write_depth_ = false, stencil_ = false, bounds_ = false;
  bool clamps_ = false;                // to other limits than those of stored depths
  LanesF lowest_{}, highest_{};        // limits of depth: Z clamp, also for depth that programs write
  Lanes bounds_min_{}, bounds_max_{};  // stored format
  Face front_{}, back_{};

  // What the above was made from.
  DepthType type_ = DepthType::k32F;
  draw::CfgBits cfg_key_;
  draw::StencilConfig front_key_, back_key_;
  std::array<float, 4> bounds_key_{};  // depth bounds, Z clamp
};

}  // namespace v3d::tlb
