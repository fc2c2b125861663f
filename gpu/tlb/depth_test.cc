#include "gpu/tlb/depth_test.h"

#include <bit>
#include <type_traits>

#include "gpu/base/vector.h"

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

/// Stored depths as what compares in their order.
template <DepthType kType>
auto ordered(Lanes stored) {
  if constexpr (kType == DepthType::k32F)
    return as_float(stored);
  else
    return as_int(stored);
}

template <Compare kFunc, typename Vector>
LanesI passes(Vector fragment, Vector stored) {
  constexpr bool kLess = passes_when(kFunc, 0), kEqual = passes_when(kFunc, 1),
                 kGreater = passes_when(kFunc, 2);
  if constexpr (kLess && kGreater && kEqual) return ~LanesI{};
  if constexpr (!kLess && !kGreater && !kEqual) return LanesI{};
  return by_parts<LanesI>(
      [](auto a, auto b) {
        if constexpr (kLess && kGreater)
          return a != b;
        else if constexpr (kLess)
          return kEqual ? a <= b : a < b;
        else if constexpr (kGreater)
          return kEqual ? a >= b : a > b;
        else
          return a == b;
      },
      fragment, stored);
}

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

void count_stencil(perf::Counts& counts, uint32_t covered, uint32_t stencil_passed) {
  counts[perf::kTlbQuadsStencilFail] +=
      std::popcount(quads_with_any(covered) & ~quads_with_any(stencil_passed));
}
void count_quads(perf::Counts& counts, uint32_t covered, uint32_t all_passed) {
  const uint32_t quads = quads_with_any(covered), passed = quads_with_any(all_passed);
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
      select(depth_passed, apply(face.pass, stored, face.ref), apply(face.depth_fail, stored, face.ref));
  const Lanes updated = select(stencil_passed, passed, apply(face.fail, stored, face.ref));
  return (stored & ~face.write_mask) | (updated & face.write_mask);
}

/// kernel() for one function, as a value: what is not ordered passes where unequal numbers would.
template <typename Vector>
LanesI DepthTest::passes_any(Vector fragment, Vector stored) const {
  const LanesI less = passes<Compare::kLess>(fragment, stored),
               equal = passes<Compare::kEqual>(fragment, stored),
               greater = passes<Compare::kGreater>(fragment, stored);
  return (less & on_less_) | (equal & on_equal_) | (greater & on_greater_) |
         (~(less | equal | greater) & on_unordered_);
}

template <DepthType kType, int kTests, bool kMultisample>
void DepthTest::kernel(const DepthTest& test, Tile& tile, const FragmentBatch& batch, const LanesF* z,
                       int z_step, Lanes& coverage) {
  constexpr bool kAll = kTests == kAllTests;
  const LaneMask covered = nonzero(coverage);
  if (covered == 0) return;
  tile.fill(Tile::kDepth);
  if (kAll && test.stencil_) tile.fill(Tile::kStencil);
  const QuadOffsets quads = tile.quads(batch, covered);
  uint32_t any_stencil_passed = 0, any_passed = 0;
  Lanes survivors{};

  for (uint32_t s = 0; s < (kMultisample ? kMaxSamples : 1); ++s) {
    const LanesI alive = sample_lanes(coverage, s);
    LanesF limited = z[static_cast<int>(s) * z_step];
    if (test.clamps_) {
      limited = min(max(limited, test.lowest_), test.highest_);
    }
    const Lanes fragment = to_stored_depth(kType, limited);
    uint32_t* const depth_plane = tile.depth(s);
    const Lanes stored = load_quads(depth_plane, quads);
    const auto number = ordered<kType>(stored);

    LanesI passed, stencil_passed = alive;
    if constexpr (kAll) {
      passed = test.passes_any(ordered<kType>(fragment), number);
      LanesI in_bounds = alive;
      if (test.bounds_)
        in_bounds &=
            ~((number < ordered<kType>(test.bounds_min_)) | (ordered<kType>(test.bounds_max_) < number));
      stencil_passed = in_bounds;
      if (test.stencil_)
        stencil_passed &= test.run_stencil(tile.stencil(s), quads, batch.back_facing, in_bounds, passed);
    } else {
      passed = passes<static_cast<Compare>(kTests)>(ordered<kType>(fragment), number);
    }
    passed &= stencil_passed;
    if (test.write_depth_) store_bits(depth_plane, quads, as_uint(passed), fragment, stored);

    if constexpr (kAll) any_stencil_passed |= nonzero(as_uint(stencil_passed));
    const LaneMask passed_lanes = nonzero(as_uint(passed));
    any_passed |= passed_lanes;
    tile.occlusion += static_cast<uint64_t>(std::popcount(passed_lanes));
    survivors |= as_uint(passed) & (1u << s);
  }
  if (test.write_depth_) tile.dirty(Tile::kDepth);
  if (kAll && test.stencil_) tile.dirty(Tile::kStencil);
  coverage = survivors;
  if constexpr (kAll) count_stencil(tile.counts, covered, any_stencil_passed);
  count_quads(tile.counts, covered, any_passed);
}

/// kernel() of depth alone, where the batch is a block and depths are not limited.
template <DepthType kType, int kTest>
LaneMask DepthTest::block_kernel(const DepthTest& test, Tile& tile, FragmentBatch& batch) {
  tile.fill(Tile::kDepth);
  uint32_t* const plane = tile.depth(0);
  const QuadOffsets quads = tile.block_quads(batch.x[0], batch.y[0]);
  const Lanes fragment = to_stored_depth(kType, batch.z[0]), stored = load_quads(plane, quads);
  const LanesI passed =
      passes<static_cast<Compare>(kTest)>(ordered<kType>(fragment), ordered<kType>(stored)) &
      sample_lanes(batch.coverage, 0);
  const LaneMask covered = nonzero(batch.coverage), lanes = nonzero(as_uint(passed));
  if (test.write_depth_) {
    store_quads(plane, quads, select(passed, fragment, stored));
    tile.dirty(Tile::kDepth);
  }
  batch.coverage = as_uint(passed) & 1u;
  tile.occlusion += static_cast<uint64_t>(std::popcount(lanes));
  if (lanes == kAllLanes) [[likely]]
    tile.counts[perf::kTlbQuadsZStencilPass] += kLanes / 4;
  else
    count_quads(tile.counts, covered, lanes);
  return lanes;
}

DepthTest::BlockKernel DepthTest::find_block_kernel(DepthType type, Compare func) {
  constexpr auto kFunctions = std::make_integer_sequence<int, kAllTests>();
  static constexpr std::array<BlockKernel, kAllTests> kKernels[3] = {
      block_kernels<DepthType::k32F>(kFunctions), block_kernels<DepthType::k24>(kFunctions),
      block_kernels<DepthType::k16>(kFunctions)};
  return kKernels[static_cast<int>(type)][static_cast<size_t>(func) & 7];
}

/// Tests and updates the stencil of one sample. @return  the lanes that pass
LanesI DepthTest::run_stencil(uint32_t* plane, const QuadOffsets& quads, LaneMask back_facing,
                              LanesI in_bounds, LanesI depth_passed) const {
  const Lanes old = load_quads(plane, quads);
  const LanesI back = expand(back_facing);
  LanesI passed = stencil_passes(front_, old);
  if (back_facing != 0) passed = select(back, stencil_passes(back_, old), passed);
  Lanes updated = stencil_update(front_, old, passed, depth_passed);
  if (back_facing != 0) updated = select(back, stencil_update(back_, old, passed, depth_passed), updated);
  store_bits(plane, quads, as_uint(in_bounds), updated, old);
  return passed;
}

void DepthTest::count(const DepthTest&, Tile& tile, const FragmentBatch&, const LanesF*, int,
                      Lanes& coverage) {
  const LaneMask covered = nonzero(coverage);
  if (tile.samples() == 1)
    tile.occlusion += static_cast<uint64_t>(std::popcount(covered));
  else
    for (uint32_t s = 0; s < kMaxSamples; ++s)
      tile.occlusion += static_cast<uint64_t>(std::popcount(nonzero(coverage & (1u << s))));
  count_quads(tile.counts, covered, covered);
}

bool DepthTest::describe(qpu::BlockKey& key) const {
  if (!has_block()) return false;
  using Depth = qpu::BlockKey::Depth;
  key.depth = type_ == DepthType::k32F ? Depth::k32F : type_ == DepthType::k24 ? Depth::k24 : Depth::k16;
  key.test = static_cast<Compare>(static_cast<int>(cfg_key_.depth_func) & 7);
  key.writes_depth = write_depth_;
  return true;
}

void DepthTest::prepare(DepthType type, bool multisample, const draw::DrawState& state) {
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
  clamps_ = state.cfg.z_clamp;
  lowest_ = splat(state.cfg.z_clamp ? state.z_min_clip : 0.0f);
  highest_ = splat(state.cfg.z_clamp ? state.z_max_clip : 1.0f);
  bounds_min_ = to_stored_depth(type, splat(state.depth_bounds_min));
  bounds_max_ = to_stored_depth(type, splat(state.depth_bounds_max));
  front_ = decode(state.front);
  back_ = decode(state.back);

  if (!stencil_ && !bounds_ && !write_depth_ && state.cfg.depth_func == Compare::kAlways) {
    kernel_ = count;
    block_kernel_ = nullptr;
    return;
  }
  constexpr auto kTests = std::make_integer_sequence<int, kAllTests + 1>();
  static constexpr std::array<Kernel, kAllTests + 1> kKernels[3][2] = {
      {kernels<DepthType::k32F, false>(kTests), kernels<DepthType::k32F, true>(kTests)},
      {kernels<DepthType::k24, false>(kTests), kernels<DepthType::k24, true>(kTests)},
      {kernels<DepthType::k16, false>(kTests), kernels<DepthType::k16, true>(kTests)},
  };
  const bool any = stencil_ || bounds_;
  block_kernel_ = any || clamps_ || multisample ? nullptr : find_block_kernel(type, state.cfg.depth_func);
  const int tests = any ? kAllTests : static_cast<int>(state.cfg.depth_func) & 7;
  kernel_ = kKernels[static_cast<int>(type)][multisample][static_cast<size_t>(tests)];
}

}  // namespace v3d::tlb
