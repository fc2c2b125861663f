#include "gpu/tlb/tile_buffer.h"

#include <algorithm>

#include "gpu/tlb/fragment_port.h"
#include "gpu/tlb/transfer.h"
#include "gpu/tlb/vc4_port.h"

namespace v3d::tlb {

struct TileBuffer::State {
  explicit State(Memory m) : memory(m), port(tile), vc4_port(tile) { tile.configure(Config{}, nullptr); }
  Memory memory;
  Tile tile;
  FragmentPort port;
  Vc4Port vc4_port;
};

TileBuffer::TileBuffer(Memory memory) : state_(std::make_unique<State>(memory)) {}
TileBuffer::~TileBuffer() = default;

bool TileBuffer::configure(const Config& config, std::string* error) {
  if (!state_->tile.configure(config, error)) return false;
  state_->port.reset();
  state_->vc4_port.reset();
  return true;
}

void TileBuffer::begin_tile(uint32_t column, uint32_t row) { state_->tile.begin(column, row); }

void TileBuffer::clear_colors() {
  for (uint32_t rt = 0; rt < kMaxRenderTargets; ++rt) state_->tile.clear(Tile::kColors + rt);
}

void TileBuffer::clear_depth_stencil() {
  state_->tile.clear(Tile::kDepth);
  state_->tile.clear(Tile::kStencil);
}

void TileBuffer::copy_from(const TileBuffer& other) { state_->tile.copy_from(other.state_->tile); }

const Config& TileBuffer::config() const { return state_->tile.config; }

TileBuffer::Place TileBuffer::place() const {
  const Tile& tile = state_->tile;
  return {tile.origin_x, tile.origin_y, tile.live_width, tile.live_height};
}

TileBuffer::Sample TileBuffer::sample(uint32_t x, uint32_t y, uint32_t number) {
  Tile& tile = state_->tile;
  const uint32_t in_x = x & (tile.config.tile_width - 1), in_y = y & (tile.config.tile_height - 1),
                 at = tile.quad_offset(in_x, in_y) + (in_y & 1) * 2 + (in_x & 1),
                 of = std::min(number, tile.samples() - 1);
  Sample sample;
  tile.fill(Tile::kDepth);
  tile.fill(Tile::kStencil);
  sample.depth = tile.depth(of)[at];
  sample.stencil = tile.stencil(of)[at];
  for (uint32_t rt = 0; rt < kMaxRenderTargets; ++rt) {
    if (!tile.has_target(rt)) continue;
    tile.fill(Tile::kColors + rt);
    for (uint32_t word = 0; word < color_words(tile.config.targets[rt]); ++word)
      sample.colors[rt][word] = tile.color(rt, of, word)[at];
  }
  return sample;
}

bool TileBuffer::load(const LoadStore& packet, std::string* error) {
  return load_tile(state_->memory, state_->tile, packet, error);
}

bool TileBuffer::store(const LoadStore& packet, std::string* error) {
  return store_tile(state_->memory, state_->tile, packet, error);
}

qpu::TlbPort& TileBuffer::fragment_port(const draw::DrawState& state, FragmentBatch& batch, bool late_test) {
  state_->port.begin_draw(state, batch, late_test);
  return state_->port;
}

qpu::vc4::Tlb& TileBuffer::thread_port(const draw::DrawState& state, FragmentBatch& batch) {
  state_->vc4_port.begin_thread(state, batch);
  return state_->vc4_port;
}

uint32_t* TileBuffer::replaced_pixels() { return state_->port.replaced_pixels(); }

void TileBuffer::test() { state_->port.test_early(); }
bool TileBuffer::tests_blocks() const { return state_->port.tests_blocks(); }
LaneMask TileBuffer::test_block() { return state_->port.test_block(); }
bool TileBuffer::tests_depth() const { return state_->port.tests_depth(); }

const char* TileBuffer::describe_blocks(qpu::BlockKey& key,
                                        std::array<float, qpu::kBlendConstants>& constants) {
  return state_->port.describe_blocks(key, constants);
}
void TileBuffer::begin_blocks(qpu::BlockRun& run) { state_->port.begin_blocks(run); }
void TileBuffer::add_passed(uint64_t samples) { state_->tile.occlusion += samples; }

void TileBuffer::count(qpu::TlbBlock& done) { state_->port.count(done); }

uint64_t TileBuffer::take_occlusion_count() { return std::exchange(state_->tile.occlusion, 0); }

perf::Counts& TileBuffer::counts() { return state_->tile.counts; }

}  // namespace v3d::tlb
