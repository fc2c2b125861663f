#include "gpu/pse/fragment_stage.h"

#include <cstring>

#include "absl/strings/str_format.h"
#include "gpu/device/profile.h"

namespace v3d::pse {
namespace {

// One quad: its four pixels side by side.
typedef uint32_t Quad __attribute__((vector_size(16)));
typedef int32_t QuadI __attribute__((vector_size(16)));
typedef float QuadF __attribute__((vector_size(16)));
typedef double QuadD __attribute__((vector_size(32)));

constexpr Quad kQuadX = {0, 1, 0, 1}, kQuadY = {0, 0, 1, 1};

/// Instructions between two looks at job.cancel.
constexpr uint64_t kBudgetSlice = 1u << 22;

template <typename V, typename T>
V load(const T* from) {
  V v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}

QuadD to_double(Quad v) { return __builtin_convertvector(reinterpret_cast<QuadI>(v), QuadD); }

/// Four quads to one register.
template <typename Q>
auto join(Q a, Q b, Q c, Q d) {
  const auto low = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
  const auto high = __builtin_shufflevector(c, d, 0, 1, 2, 3, 4, 5, 6, 7);
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

/// Word `i` of each group of four lanes to the whole group.
template <typename V>
V spread(V groups, uint32_t i) {
  constexpr Lanes kGroup = {0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12};
  return __builtin_shuffle(groups, kGroup + i);
}

struct Weights {
  QuadD w0, w1;
};

/// @param x, y  pixels from the tile's origin, fractions relative to the pixel centre
Weights weights_at(const PrimitiveSetup& setup, QuadD x, QuadD y) {
  const auto at = [&](const WeightPlane& p) { return (p.value + x * p.step_x + y * p.step_y) * p.scale; };
  return {at(setup.weights[0]), at(setup.weights[1])};
}

QuadD interpolate(const std::array<double, 3>& q, const Weights& w) {
  return q[0] + w.w0 * q[1] + w.w1 * q[2];
}

QuadF to_float(QuadD v) { return __builtin_convertvector(v, QuadF); }

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

float sample_offset(const std::array<int, 4>& offsets, uint32_t sample) {
  return static_cast<float>(offsets[sample]) / kSubpixels;
}

}  // namespace

bool FragmentStage::Quads::holds(uint32_t at_x, uint32_t at_y) const {
  for (int q = 0; q < count; ++q)
    if (x[4 * q] == at_x && y[4 * q] == at_y) return true;
  return false;
}

void FragmentStage::Quads::push(int setup_index, uint32_t at_x, uint32_t at_y,
                                const uint32_t* quad_coverage) {
  const Quad quad_x = at_x + kQuadX, quad_y = at_y + kQuadY;
  std::memcpy(x + 4 * count, &quad_x, sizeof(Quad));
  std::memcpy(y + 4 * count, &quad_y, sizeof(Quad));
  std::memcpy(coverage + 4 * count, quad_coverage, sizeof(Quad));
  setup[static_cast<size_t>(count)] = static_cast<uint8_t>(setup_index);
  ++count;
}

FragmentStage::FragmentStage(const Job& job, const tlb::Config& config, uint32_t tidx, perf::Counts& counts)
    : job_(job),
      multisample_(config.multisample),
      payload_at_rf0_(job.profile->version < 71),
      counts_(counts),
      tidx_(tidx),
      tmu_(job.memory, job.profile->version) {}

void FragmentStage::begin_tile(tlb::TileBuffer& tile, int tile_x, int tile_y) {
  tile_ = &tile;
  tile_x_ = tile_x;
  tile_y_ = tile_y;
}

void FragmentStage::begin_draw(const PreparedDraw& draw) {
  draw_ = &draw;
  port_ = &tile_->fragment_port(draw.state(), batch_, !draw.early_test);
}

bool FragmentStage::end_draw() {
  test_waiting();
  shade_waiting();
  draw_ = nullptr;
  return !job_.stopped();
}

int FragmentStage::free_setup() const {
  uint32_t used = 0;
  for (int q = 0; q < untested_.count; ++q) used |= 1u << untested_.setup[static_cast<size_t>(q)];
  for (int q = 0; q < tested_.count; ++q) used |= 1u << tested_.setup[static_cast<size_t>(q)];
  return __builtin_ctz(~used);
}

void FragmentStage::add_block(int setup, int x, int y, const Lanes& coverage) {
  const LaneMask covered = nonzero(coverage);
  uint32_t words[kLanes];
  std::memcpy(words, &coverage, sizeof(words));
  for (int q = 0; q < kQuads; ++q) {
    if (((covered >> (4 * q)) & 15) == 0) continue;
    const auto quad_x = static_cast<uint32_t>(x + 2 * (q & 1)), quad_y = static_cast<uint32_t>(y + (q & 2));
    if (untested_.holds(quad_x, quad_y)) test_waiting();
    untested_.push(setup, quad_x, quad_y, words + 4 * q);
    if (untested_.count == kQuads) test_waiting();
  }
}

LanesF FragmentStage::clamp_depth(LanesF z) const {
  const cle::DrawState& state = draw_->state();
  if (!state.cfg.z_clamp) return z;
  z = z < state.z_min_clip ? splat(state.z_min_clip) : z;
  return z > state.z_max_clip ? splat(state.z_max_clip) : z;
}

/// Positions, coverage and facing. Lanes without a quad repeat the position of the first one, so that they
/// stay inside the tile.
void FragmentStage::fill_batch(const Quads& quads) {
  batch_.x = load<Lanes>(quads.x);
  batch_.y = load<Lanes>(quads.y);
  batch_.coverage = load<Lanes>(quads.coverage);
  batch_.back_facing = 0;
  for (int q = 0; q < quads.count; ++q)
    if (setups_[quads.setup[static_cast<size_t>(q)]].back_facing)
      batch_.back_facing |= static_cast<LaneMask>(15u << (4 * q));
  if (quads.count == kQuads) return;
  const auto used = static_cast<LaneMask>((1u << (4 * quads.count)) - 1);
  const Lanes first = kLaneIndex & 3u;
  batch_.x = select(used, batch_.x, __builtin_shuffle(batch_.x, first));
  batch_.y = select(used, batch_.y, __builtin_shuffle(batch_.y, first));
  batch_.coverage = select(used, batch_.coverage, Lanes{});
}

void FragmentStage::compute_depth(const Quads& quads) {
  const uint32_t samples = draw_->four_samples ? 4 : 1;
  for (uint32_t s = 0; s < samples; ++s) {
    const double x = samples == 4 ? kSampleX[s] / double{kSubpixels} : 0.0;
    const double y = samples == 4 ? kSampleY[s] / double{kSubpixels} : 0.0;
    QuadF z[kQuads] = {};
    for (int q = 0; q < quads.count; ++q) {
      const PrimitiveSetup& setup = setups_[quads.setup[static_cast<size_t>(q)]];
      const QuadD quad_x = to_double(load<Quad>(quads.x + 4 * q) - static_cast<uint32_t>(tile_x_)) + x;
      const QuadD quad_y = to_double(load<Quad>(quads.y + 4 * q) - static_cast<uint32_t>(tile_y_)) + y;
      z[q] = to_float(interpolate(setup.z, weights_at(setup, quad_x, quad_y)));
    }
    batch_.z[s] = clamp_depth(join(z[0], z[1], z[2], z[3]));
  }
  for (uint32_t s = samples; s < 4; ++s) batch_.z[s] = batch_.z[0];
}

/// Runs the tests on the waiting quads, as far as they come before the program, and moves the survivors on.
void FragmentStage::test_waiting() {
  if (untested_.count == 0) return;
  fill_batch(untested_);
  compute_depth(untested_);
  if (!draw_->early_test) {
    shade(untested_);
    untested_.count = 0;
    return;
  }
  tile_->test(draw_->state(), batch_);
  const LaneMask alive = nonzero(batch_.coverage);
  uint32_t coverage[kLanes];
  std::memcpy(coverage, &batch_.coverage, sizeof(coverage));
  for (int q = 0; q < untested_.count; ++q) {
    if (((alive >> (4 * q)) & 15) == 0) {
      ++counts_[perf::kFepClippedQuads];
      continue;
    }
    const uint32_t x = untested_.x[4 * q], y = untested_.y[4 * q];
    if (tested_.holds(x, y)) shade_waiting();
    tested_.push(untested_.setup[static_cast<size_t>(q)], x, y, coverage + 4 * q);
    if (tested_.count == kQuads) shade_waiting();
  }
  untested_.count = 0;
}

void FragmentStage::shade_waiting() {
  if (tested_.count == 0) return;
  fill_batch(tested_);
  shade(tested_);
  tested_.count = 0;
}

FragmentStage::Payload FragmentStage::payload_at(const Quads& quads, LanesF offset_x, LanesF offset_y) const {
  alignas(64) float offsets_x[kLanes], offsets_y[kLanes];
  std::memcpy(offsets_x, &offset_x, sizeof(offsets_x));
  std::memcpy(offsets_y, &offset_y, sizeof(offsets_y));
  QuadF w0[kQuads] = {}, w1[kQuads] = {}, r[kQuads] = {}, z[kQuads] = {};
  for (int q = 0; q < quads.count; ++q) {
    const PrimitiveSetup& setup = setups_[quads.setup[static_cast<size_t>(q)]];
    const QuadD x = to_double(load<Quad>(quads.x + 4 * q) - static_cast<uint32_t>(tile_x_)) +
                    __builtin_convertvector(load<QuadF>(offsets_x + 4 * q), QuadD);
    const QuadD y = to_double(load<Quad>(quads.y + 4 * q) - static_cast<uint32_t>(tile_y_)) +
                    __builtin_convertvector(load<QuadF>(offsets_y + 4 * q), QuadD);
    const Weights w = weights_at(setup, x, y);
    w0[q] = to_float(w.w0);
    w1[q] = to_float(w.w1);
    r[q] = to_float(interpolate(setup.r, w));
    z[q] = to_float(interpolate(setup.z, w));
  }
  return {join(w0[0], w0[1], w0[2], w0[3]), join(w1[0], w1[1], w1[2], w1[3]),
          1.0f / join(r[0], r[1], r[2], r[3]), clamp_depth(join(z[0], z[1], z[2], z[3]))};
}

void FragmentStage::centroid_offsets(LanesF& x, LanesF& y) const {
  static const LanesF kTableX = centroid_table(kSampleX), kTableY = centroid_table(kSampleY);
  x = __builtin_shuffle(kTableX, batch_.coverage);
  y = __builtin_shuffle(kTableY, batch_.coverage);
}

/// Runs the program on the quads; batch_ holds their positions and what is left of their coverage.
void FragmentStage::shade(const Quads& quads) {
  counts_[perf::kFepValidQuads] += static_cast<uint64_t>(quads.count);
  for (int q = 0; q < quads.count; ++q) {
    PrimitiveSetup& setup = setups_[quads.setup[static_cast<size_t>(q)]];
    if (setup.varyings_ready) continue;
    set_up_varyings(*draw_, setup.source, setup.coefficients);
    setup.varyings_ready = true;
  }
  if (draw_->sample_shading) {
    const Lanes coverage = batch_.coverage;
    for (uint32_t s = 0; s < 4; ++s) {
      batch_.coverage = coverage & (1u << s);
      if (nonzero(batch_.coverage) == 0) continue;
      const LanesF x = splat(sample_offset(kSampleX, s)), y = splat(sample_offset(kSampleY, s));
      const Payload payload = payload_at(quads, x, y);
      shade_pass(quads, payload, payload, x, y, s);
    }
    return;
  }
  const Payload payload = payload_at(quads, LanesF{}, LanesF{});
  const bool whole = nonzero(batch_.coverage != 0xfu ? batch_.coverage : Lanes{}) == 0;
  if (!multisample_ || whole) {
    shade_pass(quads, payload, payload, LanesF{}, LanesF{}, 0);
    return;
  }
  LanesF x, y;
  centroid_offsets(x, y);
  shade_pass(quads, payload, payload_at(quads, x, y), LanesF{}, LanesF{}, 0);
}

void FragmentStage::shade_pass(const Quads& quads, const Payload& payload, const Payload& centroid,
                               LanesF offset_x, LanesF offset_y, uint32_t sample) {
  compute_varyings(quads, payload, centroid);
  thread_.reset();
  thread_.memory = job_.memory;
  thread_.tmu = &tmu_;
  thread_.tlb = port_;
  thread_.tidx = tidx_;
  thread_.four_threads = draw_->record().fs.four_threads;
  thread_.final_section = draw_->record().fs.final_section;
  thread_.rf[payload_at_rf0_ ? 0 : 3] = as_uint(payload.w);
  thread_.rf[1] = as_uint(centroid.w);
  thread_.rf[2] = as_uint(payload.z);
  thread_.msf = batch_.coverage;
  thread_.pixel_x = batch_.x;
  thread_.pixel_y = batch_.y;
  thread_.sample_x = __builtin_convertvector(as_int(batch_.x), LanesF) + 0.5f + offset_x;
  thread_.sample_y = __builtin_convertvector(as_int(batch_.y), LanesF) + 0.5f + offset_y;
  thread_.sample_id = splat(sample);
  thread_.back_facing = batch_.back_facing;
  thread_.varyings = varyings_.data();
  thread_.num_varyings = draw_->num_components();
  run_program();
}

void FragmentStage::compute_varyings(const Quads& quads, const Payload& payload, const Payload& centroid) {
  const VaryingCoefficients* of[kQuads];
  bool one_primitive = true;
  for (int q = 0; q < kQuads; ++q) {
    const size_t quad = q < quads.count ? static_cast<size_t>(q) : 0;
    of[q] = &setups_[quads.setup[quad]].coefficients;
    one_primitive &= of[q] == of[0];
  }
  const uint32_t count = draw_->num_components();
  const auto interpolated = [&](uint32_t i, LanesF p1, LanesF p2) {
    const Payload& at = draw_->is_centroid[i] ? centroid : payload;
    return as_uint(at.w0 * p1 + at.w1 * p2);
  };
  if (one_primitive) {
    for (uint32_t i = 0; i < count; ++i) {
      varyings_[i].vp =
          draw_->is_flat[i] ? Lanes{} : interpolated(i, splat(of[0]->p1[i]), splat(of[0]->p2[i]));
      varyings_[i].c = splat(of[0]->c[i]);
    }
    return;
  }
  for (uint32_t i = 0; i < count; i += 4) {
    const auto groups = [i, &of](auto member) {
      const auto words = [&](int q) { return load<Quad>(&(of[q]->*member)[i]); };
      return join(words(0), words(1), words(2), words(3));
    };
    const Lanes p1 = groups(&VaryingCoefficients::p1), p2 = groups(&VaryingCoefficients::p2),
                c = groups(&VaryingCoefficients::c);
    for (uint32_t k = 0; k < 4 && i + k < count; ++k) {
      varyings_[i + k].vp = draw_->is_flat[i + k]
                                ? Lanes{}
                                : interpolated(i + k, as_float(spread(p1, k)), as_float(spread(p2, k)));
      varyings_[i + k].c = spread(c, k);
    }
  }
}

void FragmentStage::run_program() {
  const cle::ShaderCode& fs = draw_->record().fs;
  thread_.pc = fs.code;
  thread_.uniforms = fs.uniforms;
  uint64_t left = job_.instruction_limit;
  qpu::Stop stop;
  do {
    thread_.budget = std::min(left, kBudgetSlice);
    left -= thread_.budget;
    stop = qpu::run(*draw_->program, thread_);
  } while (stop == qpu::Stop::kBudget && left > 0 && !job_.stopped());
  counts_[perf::kQpuActive] += thread_.instructions;
  counts_[perf::kQpuFragmentClocks] += 4 * thread_.instructions;
  if (stop == qpu::Stop::kEnd || job_.stopped()) return;
  const char* reason = stop == qpu::Stop::kBudget    ? "does not end"
                       : stop == qpu::Stop::kBarrier ? "waits at a compute barrier"
                                                     : "cannot go on";
  job_.error->set(absl::StrFormat("hang: fragment program at 0x%08x %s (pixel %d, %d)", fs.code, reason,
                                  thread_.pixel_x[0], thread_.pixel_y[0]));
}

}  // namespace v3d::pse
