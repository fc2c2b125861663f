#include "gpu/pse/fragment_stage.h"

#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gpu/base/doubles.h"
#include "gpu/base/host_time.h"
#include "gpu/base/left_out.h"
#include "gpu/base/work_meter.h"
#include "gpu/base/work_watch.h"
#include "gpu/chip/profile.h"
#include "gpu/qpu/run/interpreter.h"
#include "gpu/qpu/run/observer.h"
#include "gpu/qpu/run/place_text.h"
#include "gpu/qpu/run/program.h"
#include "gpu/qpu/run/program_scope.h"
#include "gpu/vpm/stage_runner.h"

namespace v3d::pse {
namespace {

constexpr uint32_t kAllQuads = 15;

template <typename V, typename T>
V load(const T* from) {
  V v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}

/// Centroid of each set of covered samples (cle-and-tiles.md 4.3): index of a sample, or -1 for the centre.
constexpr int centroid_sample(int coverage) {
  if (coverage == 0 || (coverage & 9) == 9 || (coverage & 6) == 6) return -1;
  for (const int s : {0, 2, 1, 3})
    if ((coverage >> s) & 1) return s;
  return -1;
}

LanesF centroid_table(const std::array<int, 4>& offsets) {
  LanesF table;
  for (int coverage = 0; coverage < 16; ++coverage) {
    const int sample = centroid_sample(coverage);
    table[coverage] =
        sample < 0 ? 0.0f : static_cast<float>(offsets[static_cast<size_t>(sample)]) / kSubpixels;
  }
  return table;
}

/// The coverage of pixels of which not all samples are covered, 0 of others.
Lanes partly_covered(const Lanes& coverage) {
  return by_parts<Lanes>([](auto v) { return v != 0xfu ? v : decltype(v){}; }, coverage);
}

float sample_offset(const std::array<int, 4>& offsets, uint32_t sample) {
  return static_cast<float>(offsets[sample]) / kSubpixels;
}

}  // namespace

/// Where planes are to be evaluated.
struct FragmentStage::Position {
  Doubles x, y;  ///< in pixels from the anchor
  Doubles scale;
};

/// The set-ups of the quads of a batch, and the position of its pixels in the tile.
/// @param kOne  all quads are of one primitive
template <bool kOne>
struct FragmentStage::Primitives {
  std::array<const PrimitiveSetup*, kOne ? 1 : kQuads> of;
  LanesF x, y;

  /// One coefficient per lane.
  template <typename Field>
  Doubles spread(Field field) const {
    if constexpr (kOne)
      return v3d::splat(field(*of[0]));
    else
      return spread_quads({field(*of[0]), field(*of[1]), field(*of[2]), field(*of[3])});
  }
  /// The pixels at an offset from their centres, from the anchors of their primitives.
  Position position(LanesF offset_x, LanesF offset_y) const {
    const auto weights = [](const PrimitiveSetup& s) -> const Weights& { return s.source.spread; };
    return {widen(x + offset_x) - spread([&](const PrimitiveSetup& s) { return weights(s).anchor_x; }),
            widen(y + offset_y) - spread([&](const PrimitiveSetup& s) { return weights(s).anchor_y; }),
            spread([&](const PrimitiveSetup& s) { return weights(s).scale; })};
  }
  template <typename Plane>
  LanesF at(Plane plane, const Position& p) const {
    const Doubles rise = p.x * spread([&](const PrimitiveSetup& s) { return plane(s).step_x; }) +
                         p.y * spread([&](const PrimitiveSetup& s) { return plane(s).step_y; });
    return narrow(
        still_one_nan(spread([&](const PrimitiveSetup& s) { return plane(s).value; }) + rise * p.scale));
  }
  LanesF z_at(const Position& p) const {
    return at([](const PrimitiveSetup& s) { return s.z; }, p);
  }
  /// A word of each primitive.
  template <typename Field>
  Lanes words(Field field) const {
    if constexpr (kOne) return v3d::splat(field(*of[0]));
    const uint32_t a = field(*of[0]), b = field(*of[kOne ? 0 : 1]), c = field(*of[kOne ? 0 : 2]),
                   d = field(*of[kOne ? 0 : 3]);
    return Lanes{a, a, a, a, b, b, b, b, c, c, c, c, d, d, d, d};
  }
};

FragmentStage::FragmentStage(const JobContext& job, const tlb::Config& config, uint32_t tidx,
                             perf::Counts& counts)
    : job_(job),
      multisample_(config.multisample),
      tile_width_(config.tile_width),
      first_slice_(std::min(job.instruction_limit, kInstructionSlice)),
      isa_(qpu::isa(job.profile->generation)),
      counts_(counts),
      tmu_(job.memory, job.profile->generation),
      functions_(job) {
  thread_.reset();
  thread_.memory = job.memory;
  thread_.tmu = &tmu_;
  tmu_.set_job(&job_);
  thread_.tidx = tidx;
}

void FragmentStage::begin_tile(tlb::TileBuffer& tile, int tile_x, int tile_y) {
  tile_ = &tile;
  tile_x_ = tile_x;
  tile_y_ = tile_y;
}

void FragmentStage::begin_draw(const PreparedDraw& draw) {
  draw_ = &draw;
  watch_ = job_.tile ? job_.tile->fragments() : nullptr;
  has_function_ = false;
  if (draw.vc4_program != nullptr) {
    // The program asks for all tests, and may look at everything.
    if (vc4_ == nullptr) vc4_ = std::make_unique<Vc4Fragments>(job_, tmu_);
    replaced_pixels_ = nullptr;
    tests_depth_ = tests_blocks_ = only_counts_ = false;
    passes_blocks_ = !multisample_ && watch_ == nullptr;
    needs_position_ = true;
  } else {
    begin_program();
  }
  begin_varyings();
}

/// What draw_'s varyings are in all batches.
void FragmentStage::begin_varyings() {
  flat_words_of_ = nullptr;
  num_smooth_ = 0;
  for (uint32_t i = 0; i < draw_->num_components(); ++i) {
    if (draw_->is_flat[i])
      varyings_[i].vp = Lanes{};
    else
      smooth_[num_smooth_++] = static_cast<uint8_t>(i);
  }
}

/// The thread for the program of draw_, one of V3D.
void FragmentStage::begin_program() {
  const PreparedDraw& draw = *draw_;
  thread_.tlb = &tile_->fragment_port(draw.state(), batch_, !draw.early_test);
  thread_.tlb_binding = thread_.tlb->binding();
  replaced_pixels_ = nullptr;
  thread_.four_threads = draw.record().fs.four_threads;
  thread_.final_section = draw.record().fs.final_section;
  thread_.set_varyings(varyings_.data(), draw.num_components());
  std::fill_n(&varyings_[draw.num_components()], qpu::kVaryingsBehind, qpu::Varying{});
  tests_depth_ = tile_->tests_depth();
  const bool is_watched = job_.watch != nullptr || watch_ != nullptr;
  const qpu::HostProgram* const code = is_watched ? nullptr : draw.program->compiled(thread_);
  const auto reads = [&](qpu::Register r) { return code == nullptr || code->inputs().registers.has(r); };
  const auto reads_other = [&](bool qpu::HostProgram::Inputs::*what) {
    return code == nullptr || code->inputs().*what;
  };
  using Inputs = qpu::HostProgram::Inputs;
  reads_ = {reads(isa_.fragment_w),      reads(isa_.fragment_centroid_w), reads(isa_.fragment_z),
            reads_other(&Inputs::pixel), reads_other(&Inputs::position),  reads_other(&Inputs::sample),
            reads_other(&Inputs::facing)};
  passes_blocks_ = !multisample_ && !tests_depth_ && !draw.sample_shading;
  tests_blocks_ = draw.early_test && tests_depth_ && tile_->tests_blocks() && !draw.sample_shading;
  only_counts_ = draw.early_test && !tests_depth_ && !multisample_;
  series_.begin(*draw.program, code);
  needs_position_ = tests_depth_ || reads_.w || reads_.centroid_w || reads_.z || draw.num_components() != 0;
  if (watch_ != nullptr) [[unlikely]] {
    watched_port_.set(thread_.tlb, watch_);
    thread_.tlb = &watched_port_;
    thread_.tlb_binding = {};
    passes_blocks_ = tests_blocks_ = only_counts_ = false;
    needs_position_ = true;
    return;
  }
  has_function_ = functions_.begin_draw(draw, *tile_, tile_x_, tile_y_, thread_);
  if (!has_function_) replaced_pixels_ = tile_->replaced_pixels();
}

bool FragmentStage::end_draw() {
  test_waiting();
  shade_waiting();
  if (draw_->vc4_program != nullptr) {
    instructions_ += std::exchange(vc4_->instructions, 0);
  } else {
    series_.end();
    draw_->program->count_batches(std::exchange(batches_, 0));
  }
  if (has_function_) instructions_ += functions_.end_draw();
  draw_ = nullptr;
  counts_[perf::kQpuActive] += instructions_;
  counts_[perf::kQpuFragmentClocks] += 4 * std::exchange(instructions_, 0);
  tile_->count(thread_.tlb_block);
  return !job_.stopped();
}

int FragmentStage::free_setup() {
  if (has_function_) functions_.flush();
  return std::countr_zero(~(untested_.setups() | tested_.setups()));
}

/// Early tests that functions do not have, in a frame of one sample.
LaneMask FragmentStage::tested_pixels(int setup, int x, int y, LaneMask pixels) {
  fill_block(setup, position_in_tile(x, y), x, y, select(pixels, splat(1u), Lanes{}));
  const Primitives<true> primitives = {{&setups_[static_cast<size_t>(setup)]}, {}, {}};
  batch_.z[0] = primitives.z_at(block_position(primitives));
  tile_->test();
  return nonzero(batch_.coverage);
}

void FragmentStage::add_whole_block(int setup, int x, int y, const Lanes& coverage) {
  const uint32_t block = position_in_tile(x, y);
  if (untested_.may_be_in(block) && untested_.covers_block(block, block_coverage(coverage))) test_waiting();
  fill_block(setup, block, x, y, coverage);
  if (passes_blocks_) return pass_block(setup);
  tests_blocks_ ? test_block(setup) : run_batch<true>();
}

/// run_batch() where tests leave the batch as it is.
void FragmentStage::pass_block(int setup) {
  if (only_counts_) count_batch();
  const Primitives<true> primitives = {{ready_setup(setup)}, {}, {}};
  Position center;
  if (needs_position_) center = block_position(primitives);
  shade_block(primitives, center);
}

/// run_batch() where early tests are all there is before the program.
void FragmentStage::test_block(int setup) {
  if (tested_.may_be_in(position_of_block())) shade_before_block();
  const Primitives<true> primitives = {{&setups_[static_cast<size_t>(setup)]}, {}, {}};
  const Position center = block_position(primitives);
  batch_.z[0] = primitives.z_at(center);
  const LaneMask alive = tile_->test_block();
  if (alive != kAllLanes) {
    if (alive == 0) {
      counts_[perf::kFepClippedQuads] += kQuads;
      return;
    }
    if (quads_of(alive) != kAllQuads) return keep_quads(alive);
  }
  ready_setup(setup);
  shade_block(primitives, center);
}

/// shade() of a block in a frame of one sample.
void FragmentStage::shade_block(const Primitives<true>& primitives, const Position& center) {
  counts_[perf::kFepValidQuads] += kQuads;
  shade_pass(primitives, center, center, LanesF{}, LanesF{}, 0);
}

/// Early tests that only count.
void FragmentStage::count_batch() {
  if (nonzero(batch_.coverage) == kAllLanes)
    ++thread_.tlb_block.tested;
  else
    tile_->test();
}

void FragmentStage::add_block(int setup, int x, int y, const Lanes& coverage) {
  if (has_function_) return add_to_function(setup, x, y, nonzero(coverage));
  const uint32_t quads = quads_of(nonzero(coverage));
  if (quads == kAllQuads) return add_whole_block(setup, x, y, coverage);
  wait_for_tests(setup, position_in_tile(x, y), block_coverage(coverage), quads);
}

void FragmentStage::add_block(int setup, int x, int y, LaneMask pixels, uint32_t samples) {
  if (has_function_) return add_to_function(setup, x, y, pixels);
  const uint32_t quads = quads_of(pixels);
  if (quads == kAllQuads) return add_whole_block(setup, x, y, select(pixels, splat(samples), Lanes{}));
  wait_for_tests(setup, position_in_tile(x, y), block_coverage(pixels, samples), quads);
}

uint32_t FragmentStage::position_in_tile(int x, int y) const {
  return quad_position(static_cast<uint32_t>(x - tile_x_), static_cast<uint32_t>(y - tile_y_));
}

/// Some quads of a block.
void FragmentStage::wait_for_tests(int setup, uint32_t block, FourQuads coverage, uint32_t quads) {
  if (quads == 0) return;
  if (untested_.may_be_in(block)) return wait_beside_others(setup, block, coverage, quads);
  const bool back_facing = setups_[static_cast<size_t>(setup)].back_facing;
  for (BlockQuads some = BlockQuads::some(block, coverage, quads);;) {
    const uint32_t left = untested_.push(static_cast<uint32_t>(setup), back_facing, some);
    if (!untested_.full()) return;
    test_waiting();
    if (left == 0) return;
    some = some.behind(some.count - left);
  }
}

/// The same where others may lie at the same positions.
void FragmentStage::wait_beside_others(int setup, uint32_t block, FourQuads coverage, uint32_t quads) {
  const bool back_facing = setups_[static_cast<size_t>(setup)].back_facing;
  for (; quads != 0; quads &= quads - 1) {
    const auto q = static_cast<uint32_t>(std::countr_zero(quads));
    const uint32_t position = block + (q & 1) + (q >> 1 << 8),
                   samples = static_cast<uint32_t>(coverage >> (16 * q)) & 0xffff;
    if (untested_.covers(position, samples)) test_waiting();
    untested_.push(static_cast<uint32_t>(setup), back_facing, position, samples);
    if (untested_.full()) test_waiting();
  }
}

/// Makes 4x4 pixels of one primitive the batch.
void FragmentStage::fill_block(int setup, uint32_t block, int x, int y, const Lanes& coverage) {
  positions_ = positions_in_block(block);
  batch_.x = kBlockX + static_cast<uint32_t>(x);
  batch_.y = kBlockY + static_cast<uint32_t>(y);
  batch_.coverage = coverage;
  batch_.is_block = true;
  batch_.again = false;
  batch_.back_facing = setups_[static_cast<size_t>(setup)].back_facing ? kAllLanes : LaneMask{0};
  setup_of_quad_.fill(static_cast<uint8_t>(setup));
  num_quads_ = kQuads;
}

/// Makes quads the batch. Lanes without a quad repeat the position of the last one, so that they stay inside
/// the tile. @return  whether they are of one primitive
bool FragmentStage::fill_quads(const WaitingQuads& quads) {
  positions_ = quads.positions();
  batch_.x = WaitingQuads::x(positions_) + static_cast<uint32_t>(tile_x_);
  batch_.y = WaitingQuads::y(positions_) + static_cast<uint32_t>(tile_y_);
  batch_.coverage = quads.coverage();
  batch_.is_block = false;
  batch_.again = quads.again();
  batch_.back_facing = quads.back_facing();
  num_quads_ = quads.count();
  setup_of_quad_ = quads.setup();
  return std::has_single_bit(quads.setups());
}

template <bool kOne>
FragmentStage::Primitives<kOne> FragmentStage::primitives() const {
  std::array<const PrimitiveSetup*, kOne ? 1 : kQuads> of;
  for (size_t q = 0; q < of.size(); ++q) of[q] = &setups_[setup_of_quad_[q]];
  return primitives_of<kOne>(of);
}

template <bool kOne>
FragmentStage::Primitives<kOne> FragmentStage::primitives_of(
    std::array<const PrimitiveSetup*, kOne ? 1 : kQuads> of) const {
  Primitives<kOne> p;
  p.of = of;
  p.x = __builtin_convertvector(as_int(batch_.x) - tile_x_, LanesF);
  p.y = __builtin_convertvector(as_int(batch_.y) - tile_y_, LanesF);
  return p;
}

/// Primitives::position() of the centres of 4x4 pixels: anchors lie between pixels by multiples of 1/64, so
/// that no sum is rounded.
FragmentStage::Position FragmentStage::block_position(const Primitives<true>& primitives) const {
  alignas(kHostBytes) static constexpr double kX[kLanes] = {0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3},
                                              kY[kLanes] = {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3};
  const Weights& weights = primitives.of[0]->source.spread;
  const double x = static_cast<double>(static_cast<int>(batch_.x[0]) - tile_x_) - weights.anchor_x,
               y = static_cast<double>(static_cast<int>(batch_.y[0]) - tile_y_) - weights.anchor_y;
  return {load_doubles(kX) + v3d::splat(x), load_doubles(kY) + v3d::splat(y), v3d::splat(weights.scale)};
}

/// Depths of the batch where its tests look at them.
template <bool kOne>
void FragmentStage::compute_depth(const Primitives<kOne>& primitives, const Position& center) {
  if (!draw_->four_samples) {
    batch_.z[0] = primitives.z_at(center);
    for (uint32_t s = 1; s < 4 && multisample_; ++s) batch_.z[s] = batch_.z[0];
    return;
  }
  for (uint32_t s = 0; s < 4; ++s)
    batch_.z[s] = primitives.z_at(
        primitives.position(splat(sample_offset(kSampleX, s)), splat(sample_offset(kSampleY, s))));
}

/// Runs the tests, as far as they come before the program, on the quads that wait for them.
void FragmentStage::test_waiting() {
  if (untested_.empty()) return;
  const bool one = fill_quads(untested_);
  untested_.clear();
  one ? run_batch<true>() : run_batch<false>();
}

/// Tests of the batch, if they come before the program. Whole batches go on to it, the rest waits for
/// company; blocks pass by quads that wait, others stay behind them.
template <bool kOne>
void FragmentStage::run_batch() {
  if (batch_.is_block && tested_.may_be_in(position_of_block())) shade_before_block();
  const Primitives<kOne> primitives = this->primitives<kOne>();
  Position center;
  if (needs_position_) center = primitives.position(LanesF{}, LanesF{});
  if (tests_depth_ || watch_ != nullptr) compute_depth(primitives, center);
  if (watch_ != nullptr) watch_->arrive(watched());
  if (draw_->early_test) {
    only_counts_ ? count_batch() : tile_->test();
    if (watch_ != nullptr) watch_->tested(watched());
    if (tests_depth_) {
      const LaneMask alive = nonzero(batch_.coverage);
      const bool behind_others = !batch_.is_block && !tested_.empty();
      if (quads_of(alive) != kAllQuads || behind_others) return keep_quads(alive);
    }
  }
  shade(primitives, center);
}

/// Adds the quads of the batch that have lanes in the mask to those that wait for their program.
void FragmentStage::keep_quads(LaneMask alive) {
  const FourQuads positions = positions_;
  const FourQuads coverage = block_coverage(batch_.coverage);
  const std::array<uint8_t, kQuads> setup = setup_of_quad_;
  const int count = num_quads_;
  for (size_t q = 0; q < static_cast<size_t>(count); ++q) {
    if (((alive >> (4 * q)) & 15) == 0) {
      ++counts_[perf::kFepClippedQuads];
      continue;
    }
    const uint8_t index = setup[q];
    const uint32_t position = static_cast<uint32_t>(positions >> (16 * q)) & 0xffff,
                   samples = static_cast<uint32_t>(coverage >> (16 * q)) & 0xffff;
    if (tested_.covers(position, samples)) shade_waiting();
    tested_.push(index, setups_[index].back_facing, position, samples);
    if (tested_.full()) shade_waiting();
  }
}

/// Runs the program on the quads that wait for it, if the batch, which may be near them and is a block, has
/// samples of theirs, and leaves the batch as it is.
void FragmentStage::shade_before_block() {
  if (!tested_.covers_block(position_of_block(), block_coverage(batch_.coverage))) return;
  const tlb::FragmentBatch batch = batch_;
  const FourQuads positions = positions_;
  const std::array<uint8_t, kQuads> setup = setup_of_quad_;
  const int count = num_quads_;
  shade_waiting();
  batch_ = batch;
  positions_ = positions;
  setup_of_quad_ = setup;
  num_quads_ = count;
}

void FragmentStage::shade_waiting() {
  if (tested_.empty()) return;
  const bool one = fill_quads(tested_);
  tested_.clear();
  one ? shade_quads<true>() : shade_quads<false>();
}

template <bool kOne>
void FragmentStage::shade_quads() {
  const Primitives<kOne> primitives = this->primitives<kOne>();
  Position center;
  if (needs_position_) center = primitives.position(LanesF{}, LanesF{});
  shade(primitives, center);
}

void FragmentStage::centroid_offsets(LanesF& x, LanesF& y) const {
  static const LanesF table_x = centroid_table(kSampleX), table_y = centroid_table(kSampleY);
  x = permute(table_x, batch_.coverage);
  y = permute(table_y, batch_.coverage);
}

/// With what its varyings need.
const PrimitiveSetup* FragmentStage::ready_setup(int index) {
  PrimitiveSetup& setup = setups_[static_cast<size_t>(index)];
  if (setup.varyings_ready) return &setup;
  set_up_varyings(*draw_, setup.source, setup.coefficients);
  setup.varyings_ready = true;
  flat_words_of_ = nullptr;
  return &setup;
}

/// Runs the program on the batch: what is left of its coverage.
/// @param center  of the pixels
template <bool kOne>
void FragmentStage::shade(const Primitives<kOne>& primitives, const Position& center) {
  counts_[perf::kFepValidQuads] += static_cast<uint64_t>(num_quads_);
  for (size_t q = 0; q < primitives.of.size(); ++q) ready_setup(setup_of_quad_[q]);
  if (draw_->sample_shading) return shade_samples(primitives);
  if (!multisample_ || nonzero(partly_covered(batch_.coverage)) == 0)
    return shade_pass(primitives, center, center, LanesF{}, LanesF{}, 0);
  LanesF x, y;
  centroid_offsets(x, y);
  shade_pass(primitives, center, primitives.position(x, y), LanesF{}, LanesF{}, 0);
}

/// Runs the program once for every sample.
template <bool kOne>
void FragmentStage::shade_samples(const Primitives<kOne>& primitives) {
  const Lanes coverage = batch_.coverage;
  for (uint32_t s = 0; s < 4; ++s) {
    batch_.coverage = coverage & (1u << s);
    if (nonzero(batch_.coverage) == 0) continue;
    const LanesF x = splat(sample_offset(kSampleX, s)), y = splat(sample_offset(kSampleY, s));
    const Position at = primitives.position(x, y);
    shade_pass(primitives, at, at, x, y, s);
  }
}

/// shade_pass() of a program of VideoCore IV, whose varyings are those of the centres.
template <bool kOne>
void FragmentStage::shade_vc4(const Primitives<kOne>& primitives, const Position& at) {
  compute_varyings(primitives, at, at);
  const LanesF w = 1.0f / primitives.at([](const PrimitiveSetup& s) { return s.r; }, at);
  if (watch_ != nullptr) watch_->start(watched(), -1);
  vc4_->run(*draw_, *tile_, batch_, w, primitives.z_at(at), varyings_.data(), watch_);
}

template <bool kOne>
void FragmentStage::shade_pass(const Primitives<kOne>& primitives, const Position& at,
                               const Position& centroid, LanesF offset_x, LanesF offset_y, uint32_t sample) {
  if (draw_->vc4_program != nullptr) return shade_vc4(primitives, at);
  if (needs_position_) {
    compute_payload(primitives, at, centroid);
    compute_varyings(primitives, at, centroid);
  }
  thread_.restart();
  if (!multisample_) thread_.tlb_block.live = nonzero(batch_.coverage);
  if (replaced_pixels_ != nullptr) offer_pixels();
  thread_.msf = batch_.coverage;
  if (reads_.pixel) {
    thread_.pixel_x = batch_.x;
    thread_.pixel_y = batch_.y;
  }
  if (reads_.position) {
    thread_.sample_x = __builtin_convertvector(as_int(batch_.x), LanesF) + 0.5f + offset_x;
    thread_.sample_y = __builtin_convertvector(as_int(batch_.y), LanesF) + 0.5f + offset_y;
  }
  if (reads_.sample) thread_.sample_id = splat(sample);
  if (reads_.facing) thread_.back_facing = batch_.back_facing;
  watch_ == nullptr ? run_program() : run_watched_program(sample);
}

WatchedBatch FragmentStage::watched() const {
  WatchedBatch watched = {.draw = *draw_->draw, .tile = *tile_, .batch = batch_, .num_quads = num_quads_};
  for (size_t q = 0; q < kQuads; ++q) watched.of[q] = setups_[setup_of_quad_[q]].primitive;
  return watched;
}

void FragmentStage::run_watched_program(uint32_t sample) {
  watch_->start(watched(), draw_->sample_shading ? static_cast<int>(sample) : -1);
  run_program();
  watch_->end(thread_.msf);
}

/// What the program gets of its pixels in registers.
template <bool kOne>
void FragmentStage::compute_payload(const Primitives<kOne>& primitives, const Position& at,
                                    const Position& centroid) {
  const auto w_at = [&](const Position& position) {
    return as_uint(1.0f / primitives.at([](const PrimitiveSetup& s) { return s.r; }, position));
  };
  if (&centroid == &at) {
    if (reads_.w || reads_.centroid_w)
      thread_.at(isa_.fragment_w) = thread_.at(isa_.fragment_centroid_w) = w_at(at);
  } else {
    if (reads_.w) thread_.at(isa_.fragment_w) = w_at(at);
    if (reads_.centroid_w) thread_.at(isa_.fragment_centroid_w) = w_at(centroid);
  }
  if (reads_.z) thread_.at(isa_.fragment_z) = as_uint(primitives.z_at(at));
}

template <bool kOne>
void FragmentStage::compute_varyings(const Primitives<kOne>& primitives, const Position& at,
                                     const Position& centroid) {
  const uint32_t count = draw_->num_components();
  // The words of the batch before are still there.
  const bool same_words = kOne && flat_words_of_ == primitives.of[0];
  flat_words_of_ = kOne ? primitives.of[0] : nullptr;
  for (uint32_t n = 0; n < num_smooth_; ++n) {
    const uint32_t i = smooth_[n];
    const auto plane = [i](const PrimitiveSetup& s) { return s.coefficients.plane(i); };
    varyings_[i].vp = as_uint(primitives.at(plane, draw_->is_centroid[i] ? centroid : at));
  }
  if (same_words) return;
  for (uint32_t i = 0; i < count; ++i)
    varyings_[i].c = primitives.words([i](const PrimitiveSetup& s) { return s.coefficients.c[i]; });
}

/// Lets the program replace the live pixels of the batch.
void FragmentStage::offer_pixels() {
  typedef uint16_t Positions __attribute__((vector_size(8)));
  typedef uint64_t Places __attribute__((vector_size(32)));
  const auto positions = std::bit_cast<Positions>(positions_);
  const Positions quads = (positions & 0xff) + (positions >> 8) * static_cast<uint16_t>(tile_width_ >> 1);
  const Places places = __builtin_convertvector(quads, Places) * (kQuads * sizeof(uint32_t)) +
                        reinterpret_cast<uintptr_t>(replaced_pixels_);
  static_assert(sizeof(places) == sizeof(thread_.tlb_block.quads));
  std::memcpy(&thread_.tlb_block.quads, &places, sizeof(places));
}

void FragmentStage::run_program() {
  if (is_left_out(Stage::kPrograms)) [[unlikely]]
    return;
  const draw::ShaderCode& fs = draw_->record().fs;
  thread_.pc = fs.code;
  thread_.uniforms = fs.uniforms;
  if (job_.watch) job_.watch->start("fragment", thread_);
  thread_.budget = first_slice_;
  const qpu::ProgramScope scope("fragment", fs.code, thread_);
  host_time::ProgramScope host(host_time::Block::kFragmentPrograms, "fragment", fs.code);
  ++batches_;
  const qpu::Stop stop = series_.run(thread_);
  if (stop != qpu::Stop::kEnd) [[unlikely]]
    go_on(stop);
  instructions_ += thread_.instructions;
  host.executed(thread_.instructions);
}

/// With a program that did not end within the first slice.
void FragmentStage::go_on(qpu::Stop stop) {
  const draw::ShaderCode& fs = draw_->record().fs;
  while (stop == qpu::Stop::kBudget && vpm::may_go_on(job_, thread_))
    stop = qpu::run(*draw_->program, thread_);
  if (stop == qpu::Stop::kEnd || job_.stopped()) return;
  const qpu::Program& program = *draw_->program;
  const std::string reason = stop == qpu::Stop::kBudget
                                 ? absl::StrCat("does not end, and is at ", pc_text(program, thread_))
                             : stop == qpu::Stop::kBarrier
                                 ? absl::StrCat("waits at a compute barrier at ", pc_text(program, thread_))
                                 : absl::StrCat("cannot go on: ", hang_text(program, thread_));
  job_.error->set_hang(absl::StrFormat("fragment program at 0x%08x %s (pixel %d, %d)", fs.code, reason,
                                       batch_.x[0], batch_.y[0]));
}

}  // namespace v3d::pse
