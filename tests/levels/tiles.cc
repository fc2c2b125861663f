#include <cstring>

#include "gpu/tlb/color_codec.h"
#include "tests/levels/results.h"
#include "tests/tlb/tile_fixture.h"

namespace v3d::levels {
namespace {

using namespace tlb;

constexpr uint32_t kStride = 1024;
constexpr GpuAddr kTarget = TileFixture::kImage + (64 << 10);

/// Words of all kinds where images are loaded from.
void fill(TileFixture& fixture, Words& words) {
  for (uint32_t i = 0; i < (64u << 10); i += 4)
    fixture.memory().store<uint32_t>(TileFixture::kImage + i, i & 64 ? words.word() : words.halves());
}

void add_memory(TileFixture& fixture, Hash& hash) {
  for (uint32_t i = 0; i < (64u << 10); i += 4) hash.add(fixture.memory().load<uint32_t>(kTarget + i));
  std::memset(&fixture.bytes()[kTarget], 0, 64 << 10);
}

/// Loads, what programs read then, and stores; with averages of multisampled frames.
void transfer(TileFixture& fixture, const Config& config, LoadStore packet, Hash& hash) {
  fixture.configure(config);
  fixture.tile().begin_tile(0, 0);
  std::string error;
  packet.decimate = config.multisample ? 3 : 0;
  const bool loaded = fixture.tile().load(packet, &error);
  hash.add(uint32_t{loaded});
  for (uint32_t x = 0; loaded && packet.buffer == 0 && x < 16; x += 8)
    for (const qpu::TlbSpec& spec : {spec_f16(0), spec_32(0)}) {
      Lanes words[4] = {};
      fixture.read(block_batch(x, 0, config.multisample), spec, words);
      for (const Lanes& word : words) hash.add(word);
    }
  for (uint8_t decimate : {0, 1}) {
    packet.address = kTarget;
    packet.decimate = decimate;
    packet.dither = decimate;  // both variants once
    hash.add(uint32_t{fixture.tile().store(packet, &error)});
    add_memory(fixture, hash);
  }
}

uint64_t format_results(uint8_t format) {
  TileFixture fixture;
  Words words(format);
  fill(fixture, words);
  Hash hash;
  const LoadStore color = TileFixture::image(0, format, tmu::Tiling::kRaster, kStride);
  for (int type = 0; type <= static_cast<int>(ColorType::k32F); ++type)
    for (uint8_t bpp = 0; bpp < 3; ++bpp)
      for (const bool multisample : {false, true})
        transfer(fixture, TileFixture::one_target(static_cast<ColorType>(type), bpp, 64, 64, multisample),
                 color, hash);
  for (uint8_t buffer : {9, 10, 11})
    for (DepthType type : {DepthType::k32F, DepthType::k24, DepthType::k16}) {
      Config config = TileFixture::one_target(ColorType::k8, 0);
      config.depth_type = type;
      transfer(fixture, config, TileFixture::image(buffer, format, tmu::Tiling::kRaster, kStride), hash);
    }
  return hash.value();
}

/// Source and destination of all kinds through all factors of a mode.
uint64_t blend_results(ColorType type, Clamp clamp, uint8_t mode) {
  constexpr uint8_t kFactors = 15;
  TileFixture fixture;
  Words words(mode);
  Hash hash;
  fixture.configure(TileFixture::one_target(type, type == ColorType::k16F ? 1 : 0, 64, 64, false, clamp));
  fixture.tile().begin_tile(0, 0);
  for (uint8_t source = 0; source < kFactors; ++source)
    for (uint8_t destination = 0; destination < kFactors; ++destination) {
      draw::DrawState state;
      state.cfg.blend = true;
      state.blend_enables = 1;
      const auto of_mode = static_cast<draw::BlendMode>(mode);
      const auto from = static_cast<draw::BlendFactor>(source),
                 to = static_cast<draw::BlendFactor>(destination);
      state.blend[0] = {of_mode, from, to, of_mode, from, to};
      for (float& v : state.blend_color) v = std::bit_cast<float>(words.moderate());
      const FragmentBatch batch = block_batch(8, 8, false);
      Lanes old[2] = {words.halves_of_lanes(), words.halves_of_lanes()};
      const Lanes fresh[4] = {words.halves_of_lanes(), words.halves_of_lanes()};
      fixture.write(draw::DrawState{}, batch, spec_f16(0), old);
      fixture.write(state, batch, spec_f16(0), fresh);
      Lanes result[4] = {};
      fixture.read(batch, spec_32(0), result);
      for (const Lanes& word : result) hash.add(word);
    }
  return hash.value();
}

/// What programs write without blending into every type.
uint64_t write_results(ColorType type) {
  TileFixture fixture;
  Words words(static_cast<uint32_t>(type));
  Hash hash;
  for (int clamp = 0; clamp <= static_cast<int>(Clamp::kHlg); ++clamp)
    for (uint8_t bpp = 0; bpp < 3; ++bpp) {
      fixture.configure(TileFixture::one_target(type, bpp, 64, 64, false, static_cast<Clamp>(clamp)));
      fixture.tile().begin_tile(0, 0);
      for (int round = 0; round < 16; ++round)
        for (const qpu::TlbSpec& spec : {spec_f16(0), spec_32(0)}) {
          const FragmentBatch batch = block_batch(8, 8, false);
          const Lanes in[4] = {words.words(), words.halves_of_lanes(), words.words(), words.moderates()};
          fixture.write(draw::DrawState{}, batch, spec, in);
          Lanes out[4] = {};
          fixture.read(batch, spec_32(0), out);
          for (const Lanes& word : out) hash.add(word);
        }
    }
  return hash.value();
}

}  // namespace

void add_tiles(Results& results) {
  static constexpr const char* kTypes[] = {"8i", "8ui", "8", "16i", "16ui", "16f", "32i", "32ui", "32f"};
  for (uint8_t format = 0; format < 64; ++format)
    if (image_format(format).numeric != Numeric::kUnsupported)
      results.emplace_back("tile." + std::to_string(format), format_results(format));
  for (int type = 0; type <= static_cast<int>(ColorType::k32F); ++type)
    results.emplace_back(std::string("write.") + kTypes[type], write_results(static_cast<ColorType>(type)));
  constexpr uint8_t kModes = 9;
  for (uint8_t mode = 0; mode < kModes; ++mode) {
    const std::string number = std::to_string(mode);
    results.emplace_back("blend.8." + number, blend_results(ColorType::k8, Clamp::kNone, mode));
    results.emplace_back("blend.16f." + number, blend_results(ColorType::k16F, Clamp::kNone, mode));
    results.emplace_back("blend.16f_clamped." + number, blend_results(ColorType::k16F, Clamp::kPos, mode));
  }
}

}  // namespace v3d::levels
