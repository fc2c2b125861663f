/// The fixture is a tile buffer over a piece of host memory, with pixel-by-pixel access to it through the
/// fragment port.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gpu/tlb/tile_buffer.h"
#include "gpu/tmu/image/layout.h"

namespace v3d::tlb {

using Words = std::array<uint32_t, 4>;

inline qpu::TlbSpec spec_f16(uint8_t rt, bool per_sample = false, uint8_t words = 2) {
  return {qpu::TlbSpec::Kind::kColorF16, rt, per_sample, false, words};
}
inline qpu::TlbSpec spec_32(uint8_t rt, bool per_sample = false, uint8_t words = 4) {
  return {qpu::TlbSpec::Kind::kColor32, rt, per_sample, false, words};
}
inline qpu::TlbSpec spec_depth(bool invariant) {
  return {qpu::TlbSpec::Kind::kDepth, 0, false, invariant, 1};
}

/// Four adjacent quads whose first pixel is (x, y), all samples covered.
inline FragmentBatch block_batch(uint32_t x, uint32_t y, bool multisample) {
  FragmentBatch batch{};
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    batch.x[lane] = x + (lane >> 2) * 2 + (lane & 1);
    batch.y[lane] = y + ((lane >> 1) & 1);
  }
  batch.coverage = splat(multisample ? 0xfu : 1u);
  return batch;
}

/// The same as two quads above two.
inline FragmentBatch square_batch(uint32_t x, uint32_t y, bool multisample) {
  FragmentBatch batch = block_batch(x, y, multisample);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    batch.x[lane] = x + (lane & 4) / 2 + (lane & 1);
    batch.y[lane] = y + (lane & 8) / 4 + ((lane >> 1) & 1);
  }
  batch.is_block = true;
  return batch;
}

class TileFixture {
 public:
  static constexpr uint32_t kBytes = 4 << 20;
  /// Images start here: an image may lie below it by mistake and still be seen.
  static constexpr GpuAddr kImage = 512 << 10;

  TileFixture() : bytes_(kBytes), tile_(Memory(bytes_.data())), thread_(std::make_unique<qpu::Thread>()) {}

  static Config one_target(ColorType type, uint8_t bpp, uint32_t width = 64, uint32_t height = 64,
                           bool multisample = false, Clamp clamp = Clamp::kNone) {
    Config config;
    config.width = width;
    config.height = height;
    config.multisample = multisample;
    config.targets[0].used = true;
    config.targets[0].type = type;
    config.targets[0].bpp = bpp;
    config.targets[0].clamp = clamp;
    if (multisample) config.tile_width = config.tile_height = 32;
    return config;
  }

  static LoadStore image(uint8_t buffer, uint8_t format, tmu::Tiling tiling, uint32_t stride_or_height) {
    LoadStore packet;
    packet.buffer = buffer;
    packet.format = format;
    packet.memory_format = static_cast<uint8_t>(tiling);
    packet.stride_or_height = stride_or_height;
    packet.address = kImage;
    return packet;
  }

  void randomize(uint32_t seed) {
    uint64_t state = seed;
    for (size_t i = 0; i < bytes_.size(); i += 8) {  // splitmix64
      uint64_t word = state += 0x9e3779b97f4a7c15u;
      word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
      word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
      word ^= word >> 31;
      std::memcpy(&bytes_[i], &word, 8);
    }
  }

  void configure(const Config& config) {
    std::string error;
    ASSERT_TRUE(tile_.configure(config, &error)) << error;
  }
  void load(const LoadStore& packet) {
    std::string error;
    ASSERT_TRUE(tile_.load(packet, &error)) << error;
  }
  void store(const LoadStore& packet) {
    std::string error;
    ASSERT_TRUE(tile_.store(packet, &error)) << error;
  }

  /// Writes one batch without depth test; per-sample words follow one another.
  void write(const draw::DrawState& state, FragmentBatch batch, const qpu::TlbSpec& spec, const Lanes* words,
             LaneMask exec = kAllLanes) {
    thread_->msf = batch.coverage;
    tile_.fragment_port(state, batch, false).write_color(*thread_, spec, words, exec);
  }
  /// The tests before a draw's program.
  void test(const draw::DrawState& state, FragmentBatch& batch) {
    tile_.fragment_port(state, batch, false);
    if (!batch.is_block || !tile_.tests_blocks()) return tile_.test();
    const LaneMask passed = tile_.test_block();
    EXPECT_EQ(passed, nonzero(batch.coverage));
  }
  void read(FragmentBatch batch, const qpu::TlbSpec& spec, Lanes* words) {
    thread_->msf = batch.coverage;
    tile_.fragment_port(state_, batch, false).read_color(*thread_, spec, words);
  }

  const draw::DrawState& plain_state() const { return state_; }
  TileBuffer& tile() { return tile_; }
  qpu::Thread& thread() { return *thread_; }
  Memory memory() { return Memory(bytes_.data()); }
  std::vector<uint8_t>& bytes() { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
  TileBuffer tile_;
  std::unique_ptr<qpu::Thread> thread_;
  draw::DrawState state_;
};

}  // namespace v3d::tlb
