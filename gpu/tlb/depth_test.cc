#include "gpu/tlb/depth_test.h"

#include <bit>
#include <type_traits>

namespace v3d::tlb {
namespace {

using draw::StencilOp;

template <typename T>
bool same_bytes(const T& a, const T& b) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}
static_assert(std::has_unique_object_representations_v<draw::CfgBits>);
static_assert(std::has_unique_object_representations_v<draw::StencilConfig>);

/// In the order of the stored format.
template <DepthType kType>
struct Ordered {
  static LanesI less(Lanes a, Lanes b) {
    if constexpr (kType == DepthType::k32F) return as_float(a) < as_float(b);
    return as_int(a) < as_int(b);
  }
  static LanesI equal(Lanes a, Lanes b) {
    if constexpr (kType == DepthType::k32F) return as_float(a) == as_float(b);
    return as_int(a) == as_int(b);
  }
};

Lanes apply(StencilOp op, Lanes stored, uint32_t ref) {
  switch (op) {
    case StencilOp::kZero:
      return Lanes{};
    case StencilOp::kKeep:
      return stored;
    case StencilOp::kReplace:
      return splat(ref);
    case StencilOp::kIncr:
      return stored < 0xffu ? stored + 1 : stored;
    case StencilOp::kDecr:
      return stored != 0u ? stored - 1 : stored;
    case StencilOp::kInvert:
      return ~stored;
    case StencilOp::kIncrWrap:
      return stored + 1;
    case StencilOp::kDecrWrap:
      return stored - 1;
  }
  return stored;
}

void count_quads(perf::Counts& counts, uint32_t covered, uint32_t stencil_passed, uint32_t all_passed) {
  const uint32_t quads = quads_with_any(covered);
  const uint32_t passed = quads_with_any(all_passed);
  counts[perf::kTlbQuadsStencilFail] += std::popcount(quads & ~quads_with_any(stencil_passed));
  counts[perf::kTlbQuadsZStencilFail] += std::popcount(quads & ~passed);
  counts[perf::kTlbQuadsZStencilPass] += std::popcount(passed);
}

}  // namespace

DepthTest::Face DepthTest::decode(const draw::StencilConfig& config) {
  return {config.ref,        config.test_mask,
          config.write_mask, static_cast<Compare>(static_cast<int>(config.func) & 7),
          config.fail,       config.depth_fail,
          config.pass};
}

/// Bits of `stored` above the eighth are 0.
LanesI DepthTest::stencil_passes(const Face& face, Lanes stored) {
  const LanesI masked = as_int(stored & face.test_mask);
  const int32_t ref = static_cast<int32_t>(face.ref & face.test_mask);
  return ((ref < masked) & passes_when(face.func, 0)) | ((ref == masked) & passes_when(face.func, 1)) |
         ((ref > masked) & passes_when(face.func, 2));
}

Lanes DepthTest::stencil_update(const Face& face, Lanes stored, LanesI stencil_passed, LanesI depth_passed) {
  const Lanes passed =
      depth_passed ? apply(face.pass, stored, face.ref) : apply(face.depth_fail, stored, face.ref);
  const Lanes updated = stencil_passed ? passed : apply(face.fail, stored, face.ref);
  return (stored & ~face.write_mask) | (updated & face.write_mask);
}

template <DepthType kType, bool kFull>
void DepthTest::kernel(const DepthTest& test, Tile& tile, const FragmentBatch& batch, const LanesF* z,
                       int z_step, Lanes& coverage) {
  using Order = Ordered<kType>;
  const LaneMask covered = nonzero(coverage);
  if (covered == 0) return;
  const QuadOffsets quads = tile.quads(batch, covered);
  const uint32_t samples = tile.samples();
  uint32_t any_stencil_passed = 0, any_passed = 0;
  Lanes survivors{};

  for (uint32_t s = 0; s < samples; ++s) {
    const LanesI alive = sample_lanes(coverage, s);
    LanesF limited = z[static_cast<int>(s) * z_step];
    limited = limited > test.lowest_ ? limited : test.lowest_;
    limited = limited < test.highest_ ? limited : test.highest_;
    const Lanes fragment = to_stored_depth(kType, limited);
    uint32_t* const depth_plane = tile.depth(s);
    const Lanes stored = load_quads(depth_plane, quads);

    const LanesI less = Order::less(fragment, stored), equal = Order::equal(fragment, stored);
    LanesI passed = (less & test.on_less_) | (equal & test.on_equal_);
    if constexpr (kType == DepthType::k32F) {
      const LanesI greater = Order::less(stored, fragment);
      passed |= (greater & test.on_greater_) | (~(less | equal | greater) & test.on_unordered_);
    } else {
      passed |= ~(less | equal) & test.on_greater_;
    }

    LanesI in_bounds = alive, stencil_passed = alive;
    if constexpr (kFull) {
      if (test.bounds_)
        in_bounds &= ~(Order::less(stored, test.bounds_min_) | Order::less(test.bounds_max_, stored));
      stencil_passed = in_bounds;
      if (test.stencil_) {
        uint32_t* const stencil_plane = tile.stencil(s);
        const Lanes old = load_quads(stencil_plane, quads);
        const LanesI back = expand(batch.back_facing);
        LanesI stencil = stencil_passes(test.front_, old);
        if (batch.back_facing != 0) stencil = back ? stencil_passes(test.back_, old) : stencil;
        Lanes updated = stencil_update(test.front_, old, stencil, passed);
        if (batch.back_facing != 0)
          updated = back ? stencil_update(test.back_, old, stencil, passed) : updated;
        store_quads(stencil_plane, quads, in_bounds ? updated : old);
        stencil_passed &= stencil;
      }
    }
    passed &= stencil_passed;
    if (test.write_depth_) store_quads(depth_plane, quads, passed ? fragment : stored);

    if constexpr (kFull) any_stencil_passed |= nonzero(as_uint(stencil_passed));
    const LaneMask passed_lanes = nonzero(as_uint(passed));
    any_passed |= passed_lanes;
    tile.occlusion += static_cast<uint64_t>(std::popcount(passed_lanes));
    survivors |= as_uint(passed) & (1u << s);
  }
  if (test.write_depth_) tile.depth_is_clear = false;
  if (kFull && test.stencil_) tile.stencil_is_clear = false;
  coverage = survivors;
  count_quads(tile.counts, covered, kFull ? any_stencil_passed : covered, any_passed);
}

void DepthTest::prepare(DepthType type, const draw::DrawState& state) {
  const std::array<float, 4> bounds = {state.depth_bounds_min, state.depth_bounds_max, state.z_min_clip,
                                       state.z_max_clip};
  if (kernel_ && type == type_ && same_bytes(cfg_key_, state.cfg) && same_bytes(front_key_, state.front) &&
      same_bytes(back_key_, state.back) && bounds_key_ == bounds)
    return;
  type_ = type;
  cfg_key_ = state.cfg;
  front_key_ = state.front;
  back_key_ = state.back;
  bounds_key_ = bounds;

  on_less_ = passes_when(state.cfg.depth_func, 0);
  on_equal_ = passes_when(state.cfg.depth_func, 1);
  on_greater_ = passes_when(state.cfg.depth_func, 2);
  on_unordered_ = passes_unordered(state.cfg.depth_func);
  write_depth_ = state.cfg.z_write;
  stencil_ = state.cfg.stencil;
  bounds_ = state.cfg.depth_bounds;
  lowest_ = splat(state.cfg.z_clamp ? state.z_min_clip : 0.0f);
  highest_ = splat(state.cfg.z_clamp ? state.z_max_clip : 1.0f);
  bounds_min_ = to_stored_depth(type, splat(state.depth_bounds_min));
  bounds_max_ = to_stored_depth(type, splat(state.depth_bounds_max));
  front_ = decode(state.front);
  back_ = decode(state.back);

  static constexpr Kernel kKernels[3][2] = {
      {kernel<DepthType::k32F, false>, kernel<DepthType::k32F, true>},
      {kernel<DepthType::k24, false>, kernel<DepthType::k24, true>},
      {kernel<DepthType::k16, false>, kernel<DepthType::k16, true>},
  };
  kernel_ = kKernels[static_cast<int>(type)][stencil_ || bounds_];
}

}  // namespace v3d::tlb
