#include "gpu/tlb/fragment_port.h"

#include <algorithm>
#include <bit>

namespace v3d::tlb {
namespace {

/// In the form of quads_with_any().
uint32_t whole_quads_of(uint32_t pixels) {
  const uint32_t pairs = pixels & (pixels >> 1);
  return pairs & (pairs >> 2) & 0x1111u;
}

}  // namespace

void FragmentPort::begin_draw(const draw::DrawState& state, FragmentBatch& batch, bool late_test) {
  state_ = &state;
  batch_ = &batch;
  late_test_ = late_test;
  ready_targets_ = 0;
  last_target_ = kMaxRenderTargets;
  block_pixels_ = nullptr;
  depth_test_.prepare(tile_.config.depth_type, tile_.config.multisample, state);
}

void FragmentPort::reset() {
  state_ = nullptr;
  batch_ = nullptr;
  block_pixels_ = nullptr;
  depth_test_.reset();
  for (ColorWrite& write : color_writes_) write.reset();
  ready_targets_ = 0;
}

const ColorWrite& FragmentPort::ready_write(uint32_t rt) {
  ColorWrite& write = color_writes_[rt];
  if (!((ready_targets_ >> rt) & 1)) {
    write.prepare(tile_, rt, *state_);
    ready_targets_ |= 1u << rt;
  }
  return write;
}

uint32_t* FragmentPort::replaced_pixels() {
  const Config& config = tile_.config;
  if (config.multisample || !tile_.has_target(0) || config.targets[0].type != ColorType::k8) return nullptr;
  for (uint32_t rt = 1; rt < kMaxRenderTargets; ++rt)
    if (tile_.has_target(rt)) return nullptr;
  if (!ready_write(0).has_block()) return nullptr;
  tile_.fill(Tile::kColors);
  tile_.dirty(Tile::kColors);
  block_pixels_ = tile_.color(0, 0, 0);
  return state_->cfg.blend ? nullptr : block_pixels_;
}

const char* FragmentPort::describe_blocks(qpu::BlockKey& key, std::array<float, 4>& constants) {
  if (tile_.config.multisample) return "several samples";
  for (uint32_t rt = 1; rt < kMaxRenderTargets; ++rt)
    if (tile_.has_target(rt)) return "several render targets";
  key.is_late = late_test_;
  if (!tests_depth() || !depth_test_.describe(key)) {
    if (tests_depth() && late_test_) return "late tests of more than depth";
    key.depth = qpu::BlockKey::Depth::kNone;
    key.test = Compare::kAlways;
    key.writes_depth = false;
  }
  if (tile_.has_target(0)) return ready_write(0).describe(key.target, constants);
  key.target = {.type = qpu::BlockTarget::Type::kNone};
  return nullptr;
}

void FragmentPort::begin_blocks(qpu::BlockRun& run) {
  if (tests_depth()) {
    tile_.fill(Tile::kDepth);
    if (depth_test_.writes()) tile_.dirty(Tile::kDepth);
  }
  if (tile_.has_target(0) && ready_write(0).writes_anything()) {
    tile_.fill(Tile::kColors);
    tile_.dirty(Tile::kColors);
  }
  run.depth = tile_.depth(0);
  run.color = tile_.color(0, 0, 0);
  run.bytes_of_planes = static_cast<uint32_t>(tile_.color(0, 0, 1) - run.color) * sizeof(uint32_t);
  run.bytes_of_rows = tile_.quad_offset(0, 2) * sizeof(uint32_t);
}

void FragmentPort::test_late(qpu::Thread& thread, const LanesF* z, int z_step, LaneMask exec) {
  if (exec == kAllLanes) {
    batch_->coverage &= thread.msf;
    depth_test_.run(tile_, *batch_, z, z_step, batch_->coverage);
    thread.msf = batch_->coverage;
    set_live(thread);
    return;
  }
  const Lanes lanes = as_uint(expand(exec));
  Lanes coverage = thread.msf & batch_->coverage & lanes;
  depth_test_.run(tile_, *batch_, z, z_step, coverage);
  thread.msf = (thread.msf & ~lanes) | coverage;
  batch_->coverage = (batch_->coverage & ~lanes) | coverage;
  set_live(thread);
}

void FragmentPort::set_live(qpu::Thread& thread) const {
  if (!tile_.config.multisample) thread.tlb_block.live = nonzero(batch_->coverage);
}

void FragmentPort::write_depth(qpu::Thread& thread, const qpu::TlbSpec& spec, Lanes z, LaneMask exec) {
  if (!late_test_) return;
  const LanesF written = as_float(z);
  spec.invariant_depth ? test_late(thread, batch_->z, 1, exec) : test_late(thread, &written, 0, exec);
}

void FragmentPort::write_invariant_depth(qpu::Thread& thread, LaneMask exec) {
  auto& port = static_cast<FragmentPort&>(*thread.tlb);
  if (port.late_test_) port.test_late(thread, port.batch_->z, 1, exec);
}

/// @param words_to  (write, lanes) writes words as ColorWrite says
template <typename Write>
[[gnu::always_inline]] inline void FragmentPort::write(uint32_t rt, const qpu::Thread& thread, LaneMask exec,
                                                       const Write& words_to) {
  if (!tile_.has_target(rt)) return;
  LiveLanes live;
  live.samples = thread.msf & batch_->coverage;
  if (exec != kAllLanes) live.samples &= as_uint(expand(exec));
  const LaneMask pixels = nonzero(live.samples);
  if (pixels == 0) return;
  const ColorWrite& write = ready_write(rt);
  if (!write.writes_anything()) return;
  live.all = pixels == kAllLanes && (tile_.samples() == 1 || nonzero(live.samples ^ 0xfu) == 0);
  live.quads = tile_.quads(*batch_, pixels);
  tile_.fill(Tile::kColors + rt);
  tile_.dirty(Tile::kColors + rt);
  words_to(write, live);
  count_written(rt, pixels);
}

void FragmentPort::write_color(qpu::Thread& thread, const qpu::TlbSpec& spec, const Lanes* words,
                               LaneMask exec) {
  write(spec.render_target, thread, exec,
        [&](const ColorWrite& write, const LiveLanes& live) { write.write(tile_, spec, words, live); });
}

/// What compiled code may do by itself, and counts in the same way. Not inline: whole blocks, which pass it
/// by, are to need no room on the stack for it.
[[gnu::noinline]] void FragmentPort::replace_pixels(qpu::Thread& thread, LaneMask exec) {
  qpu::TlbBlock& block = thread.tlb_block;
  const auto pixels = static_cast<LaneMask>(exec & block.live & nonzero(thread.msf & 1u));
  if (pixels == 0) return;
  ColorWrite::replace_pixels(block.quads, pixels, thread.pending.tlb_words);
  if (pixels == kAllLanes) {
    ++block.whole;
    return;
  }
  const uint32_t quads = quads_with_any(pixels);
  block.some_quads += static_cast<uint64_t>(std::popcount(quads));
  block.split_quads += static_cast<uint64_t>(std::popcount(quads & ~whole_quads_of(pixels)));
}

void FragmentPort::write_halves(qpu::Thread& thread, LaneMask exec) {
  auto& port = static_cast<FragmentPort&>(*thread.tlb);
  if (port.block_pixels_ != nullptr && exec == kAllLanes && thread.tlb_block.live == kAllLanes &&
      port.batch_->is_block && nonzero(thread.msf ^ 1u) == 0) {
    port.color_writes_[0].write_block(port.block_pixels_,
                                      port.tile_.block_quads(port.batch_->x[0], port.batch_->y[0]),
                                      thread.pending.tlb_words);
    ++thread.tlb_block.whole;
    return;
  }
  if (thread.tlb_block.quads[0] != nullptr) return replace_pixels(thread, exec);
  port.write(0, thread, exec, [&](const ColorWrite& write, const LiveLanes& live) {
    write.write_halves(port.tile_, thread.pending.tlb_words, live);
  });
}

/// A quad counts once per program run, whatever the number of its targets. Programs write their targets in
/// ascending order (Mesa nir_to_vir.c, emit_frag_end): a target at or below the last one belongs to a new
/// run.
void FragmentPort::count_written(uint32_t rt, uint32_t pixels) {
  if (rt <= last_target_) counted_quads_ = 0;
  last_target_ = rt;
  const uint32_t quads = quads_with_any(pixels) & ~counted_quads_;
  if (quads == 0) return;
  counted_quads_ |= quads;
  tile_.counts[perf::kTlbQuadsWritten] += static_cast<uint64_t>(std::popcount(quads));
  tile_.counts[perf::kTlbPartialQuadsWritten] +=
      static_cast<uint64_t>(std::popcount(quads & ~whole_quads_of(pixels)));
}

void FragmentPort::count(qpu::TlbBlock& done) {
  constexpr uint64_t kQuads = 4;
  tile_.occlusion += kLanes * done.tested;
  tile_.counts[perf::kTlbQuadsZStencilPass] += kQuads * done.tested;
  tile_.counts[perf::kTlbQuadsWritten] += kQuads * done.whole + done.some_quads;
  tile_.counts[perf::kTlbPartialQuadsWritten] += done.split_quads;
  done = {};
}

void FragmentPort::read_color(qpu::Thread&, const qpu::TlbSpec& spec, Lanes* words) {
  const uint32_t rt = spec.render_target;
  const uint32_t reads = spec.per_sample ? kMaxSamples : 1;
  if (!tile_.has_target(rt)) {
    std::fill_n(words, reads * spec.words, Lanes{});
    return;
  }
  tile_.fill(Tile::kColors + rt);
  const RenderTarget& target = tile_.config.targets[rt];
  const QuadOffsets quads = tile_.quads(*batch_, kAllLanes);
  for (uint32_t s = 0; s < reads; ++s) {
    Lanes stored[kMaxWords];
    for (uint32_t w = 0; w < color_words(target); ++w)
      stored[w] = load_quads(tile_.color(rt, std::min(s, tile_.samples() - 1), w), quads);
    tlb::read_color(target, spec, stored, words + s * spec.words);
  }
}

}  // namespace v3d::tlb
