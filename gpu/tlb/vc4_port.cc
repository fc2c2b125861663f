#include "gpu/tlb/vc4_port.h"

#include <algorithm>
#include <bit>

#include "gpu/base/quads.h"
#include "gpu/base/vector.h"

namespace v3d::tlb {
namespace {

constexpr uint32_t bits(uint32_t word, int first, int count) { return (word >> first) & ((1u << count) - 1); }

/// A set-up word that has a selector (vc4-qpu.md 4.10).
draw::StencilConfig decode_stencil(uint32_t setup) {
  constexpr uint8_t kWriteMasks[4] = {0x01, 0x03, 0x0f, 0xff};
  const auto op = [setup](int first) { return static_cast<draw::StencilOp>(bits(setup, first, 3)); };
  return {.ref = static_cast<uint8_t>(bits(setup, 8, 8)),
          .test_mask = static_cast<uint8_t>(bits(setup, 0, 8)),
          .write_mask = kWriteMasks[bits(setup, 28, 2)],
          .func = static_cast<Compare>(bits(setup, 16, 3)),
          .fail = op(19),
          .depth_fail = op(25),
          .pass = op(22)};
}

}  // namespace

void Vc4Port::begin_thread(const draw::DrawState& state, FragmentBatch& batch) {
  batch_ = &batch;
  state_.cfg = state.cfg;
  state_.cfg.stencil = false;
  // A face without a set-up word keeps what is stored and lets everything pass. Neither is a copy of the
  // other: a processor waits that reads what it has just written in parts.
  state_.front = draw::StencilConfig{};
  state_.back = draw::StencilConfig{};
  loads_ = writes_ = 0;
}

void Vc4Port::reset() {
  batch_ = nullptr;
  depth_test_.reset();
}

/// The one after those that were counted; after the last one the last one again (assumed).
uint32_t Vc4Port::next_sample(uint32_t* count) const { return std::min((*count)++, tile_.samples() - 1); }

Lanes Vc4Port::load_color(qpu::vc4::Thread&) {
  const uint32_t sample = next_sample(&loads_);
  if (!tile_.has_target(0)) return Lanes{};
  tile_.fill(Tile::kColors);
  return load_quads(tile_.color(0, sample, 0), tile_.quads(*batch_, kAllLanes));
}

/// Of the quads that the front end brought (assumed), at each write: those with a pixel that is still
/// covered.
void Vc4Port::count_coverage(LaneMask live, LaneMask covered) {
  const auto quads_of = [](LaneMask lanes) {
    return static_cast<uint64_t>(std::popcount(uint32_t{quads_with_any(lanes)}));
  };
  const uint64_t with = quads_of(covered);
  tile_.counts[perf::kTlbQuadsCoverage] += with;
  tile_.counts[perf::kTlbQuadsNoCoverage] += quads_of(live) - with;
}

void Vc4Port::write_color(qpu::vc4::Thread& thread, const Lanes& color, LaneMask exec, bool all) {
  const bool has_samples = tile_.samples() > 1;
  const uint32_t sample = next_sample(&writes_);
  if (!tile_.has_target(0)) return;
  Lanes samples = thread.ms_flags & batch_->coverage & as_uint(expand(exec));
  if (!all && has_samples) samples &= 1u << sample;
  const LaneMask pixels = nonzero(samples);
  count_coverage(nonzero(batch_->coverage), pixels);
  if (pixels == 0) return;
  const QuadOffsets quads = tile_.quads(*batch_, pixels);
  tile_.fill(Tile::kColors);
  tile_.dirty(Tile::kColors);
  for (uint32_t s = 0; s < tile_.samples(); ++s) {
    const LanesI written = sample_lanes(samples, s);
    if (nonzero(as_uint(written)) == 0) continue;
    uint32_t* const plane = tile_.color(0, s, 0);
    store_bits(plane, quads, as_uint(written), color, load_quads(plane, quads));
  }
  tile_.counts[perf::kTlbQuadsWritten] +=
      static_cast<uint64_t>(std::popcount(uint32_t{quads_with_any(pixels)}));
}

void Vc4Port::write_z(qpu::vc4::Thread& thread, const Lanes& z, LaneMask exec) {
  const Lanes lanes = as_uint(expand(exec));
  Lanes coverage = thread.ms_flags & batch_->coverage & lanes;
  // The stored depth is the integer itself: as a float both have its 24 bits.
  const LanesF depth = to_float(as_int(z)) * 0x1p-24f;
  batch_->back_facing = thread.back_facing;
  depth_test_.prepare(tile_.config.depth_type, tile_.config.multisample, state_);
  depth_test_.run(tile_, *batch_, &depth, 0, coverage);
  // Without samples bit 0 decides on the pixel, and the others go with it.
  if (tile_.samples() == 1) coverage = as_uint(sample_lanes(coverage, 0));
  thread.ms_flags &= coverage | ~lanes;
}

void Vc4Port::set_stencil(qpu::vc4::Thread&, uint32_t setup) {
  constexpr uint32_t kFront = 1, kBack = 2;
  const uint32_t faces = bits(setup, 30, 2);
  if (faces == 0) {
    state_.front.write_mask = static_cast<uint8_t>(bits(setup, 0, 8));
    state_.back.write_mask = static_cast<uint8_t>(bits(setup, 8, 8));
    return;
  }
  const draw::StencilConfig config = decode_stencil(setup);
  if (faces & kFront) state_.front = config;
  if (faces & kBack) state_.back = config;
  state_.cfg.stencil = true;
}

}  // namespace v3d::tlb
