/// Speed of the tile buffer: one batch of sixteen fragments through tests and colour writes, one 64x64 tile
/// through loads and stores.

#include <benchmark/benchmark.h>

#include <vector>

#include "gpu/tlb/tile_buffer.h"
#include "gpu/tmu/image/layout.h"

namespace v3d::tlb {
namespace {

constexpr uint32_t kSize = 640;
constexpr GpuAddr kImage = 1 << 20;

/// One tile in the middle of a frame, and memory for its image.
struct Frame {
  Frame(ColorType type, uint8_t bpp, DepthType depth, bool multisample = false)
      : bytes(16 << 20), tile(Memory(bytes.data())), thread(std::make_unique<qpu::Thread>()) {
    Config config;
    config.width = config.height = kSize;
    config.multisample = multisample;
    if (multisample) config.tile_width = config.tile_height = 32;
    config.depth_type = depth;
    config.auto_clear_zs = false;
    config.targets[0] = {true, type, Clamp::kNone, bpp, {}};
    tile.configure(config);
    tile.begin_tile(1, 1);
    const uint32_t width = config.tile_width, height = config.tile_height;
    for (uint32_t y = 0; y < height; y += 4)
      for (uint32_t x = 0; x < width; x += 4) {
        FragmentBatch& batch = batches.emplace_back();
        batch.x = width + x + ((kLaneIndex >> 1) & 2u) + (kLaneIndex & 1u);
        batch.y = height + y + ((kLaneIndex >> 2) & 2u) + ((kLaneIndex >> 1) & 1u);
        batch.is_block = true;
        batch.coverage = splat(multisample ? 0xfu : 1u);
        for (LanesF& z : batch.z) z = splat(0.5f);
      }
  }

  std::vector<uint8_t> bytes;
  TileBuffer tile;
  std::unique_ptr<qpu::Thread> thread;
  std::vector<FragmentBatch> batches;
};

void per_batch(benchmark::State& state, const Frame& frame) {
  state.counters["per batch"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(frame.batches.size()),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void depth_test(benchmark::State& state, DepthType type, bool stencil) {
  Frame frame(ColorType::k8, 0, type);
  draw::DrawState draw;
  draw.cfg.depth_func = Compare::kLess;
  draw.cfg.z_write = true;
  draw.cfg.stencil = stencil;
  FragmentBatch batch;
  frame.tile.fragment_port(draw, batch, false);
  for (auto _ : state)
    for (const FragmentBatch& next : frame.batches) {
      batch = next;
      frame.tile.test();
    }
  per_batch(state, frame);
}
BENCHMARK_CAPTURE(depth_test, less_d32f, DepthType::k32F, false);
BENCHMARK_CAPTURE(depth_test, less_d24, DepthType::k24, false);
BENCHMARK_CAPTURE(depth_test, less_d24_stencil, DepthType::k24, true);
BENCHMARK_CAPTURE(depth_test, less_d16, DepthType::k16, false);

using Factor = draw::BlendFactor;
constexpr draw::BlendConfig kSourceAlpha{.color_src = Factor::kSrcAlpha,
                                         .color_dst = Factor::kOneMinusSrcAlpha,
                                         .alpha_dst = Factor::kOneMinusSrcAlpha},
    kDestinationColor{.color_src = Factor::kDstColor,
                      .color_dst = Factor::kOneMinusSrcColor,
                      .alpha_src = Factor::kDstAlpha,
                      .alpha_dst = Factor::kOneMinusSrcAlpha};

void color(benchmark::State& state, ColorType type, uint8_t bpp, bool multisample,
           const draw::BlendConfig* blend, uint8_t mask) {
  Frame frame(type, bpp, DepthType::k24, multisample);
  draw::DrawState draw;
  draw.color_masks[0] = mask;
  if (blend) {
    draw.cfg.blend = true;
    draw.blend_enables = 1;
    draw.blend[0] = *blend;
  }
  const bool wide = type == ColorType::k32F;
  const qpu::TlbSpec spec = {wide ? qpu::TlbSpec::Kind::kColor32 : qpu::TlbSpec::Kind::kColorF16, 0, false,
                             false, static_cast<uint8_t>(wide ? 4 : 2)};
  const Lanes word = wide ? as_uint(splat(0.5f)) : splat(0x38003800u);
  const Lanes words[4] = {word, word, word, word};
  FragmentBatch batch;
  qpu::TlbPort& port = frame.tile.fragment_port(draw, batch, false);
  for (auto _ : state)
    for (const FragmentBatch& next : frame.batches) {
      batch = next;
      frame.thread->msf = batch.coverage;
      port.write_color(*frame.thread, spec, words, kAllLanes);
    }
  per_batch(state, frame);
}
BENCHMARK_CAPTURE(color, rgba8_opaque, ColorType::k8, 0, false, nullptr, 0);
BENCHMARK_CAPTURE(color, rgba8_source_alpha, ColorType::k8, 0, false, &kSourceAlpha, 0);
BENCHMARK_CAPTURE(color, rgba8_destination_color, ColorType::k8, 0, false, &kDestinationColor, 0);
BENCHMARK_CAPTURE(color, rgba8_masked, ColorType::k8, 0, false, nullptr, 8);
BENCHMARK_CAPTURE(color, rgba8_4x_opaque, ColorType::k8, 0, true, nullptr, 0);
BENCHMARK_CAPTURE(color, rgba8_4x_source_alpha, ColorType::k8, 0, true, &kSourceAlpha, 0);
BENCHMARK_CAPTURE(color, rgba16f_opaque, ColorType::k16F, 1, false, nullptr, 0);
BENCHMARK_CAPTURE(color, rgba16f_source_alpha, ColorType::k16F, 1, false, &kSourceAlpha, 0);
BENCHMARK_CAPTURE(color, rgba32f_opaque, ColorType::k32F, 2, false, nullptr, 0);

struct ImageCase {
  ColorType type;
  uint8_t bpp;
  DepthType depth;
  uint8_t buffer, format;
  tmu::Tiling tiling;
  uint32_t stride_or_height;
  bool rb_swap = false, multisample = false;
  uint8_t decimate = 0;
};

LoadStore packet_of(const ImageCase& image) {
  LoadStore packet;
  packet.buffer = image.buffer;
  packet.format = image.format;
  packet.memory_format = static_cast<uint8_t>(image.tiling);
  packet.stride_or_height = image.stride_or_height;
  packet.address = kImage;
  packet.rb_swap = image.rb_swap;
  packet.decimate = image.decimate;
  return packet;
}

void transfer(benchmark::State& state, const ImageCase& image, bool is_load) {
  Frame frame(image.type, image.bpp, image.depth, image.multisample);
  const LoadStore packet = packet_of(image);
  std::string error;
  LoadStore first = packet;  // what is stored comes from the planes, not from a clear
  if (image.decimate == 1) first.decimate = 0;
  if (!frame.tile.load(first, &error)) state.SkipWithError(error.c_str());
  for (auto _ : state)
    if (!(is_load ? frame.tile.load(packet, &error) : frame.tile.store(packet, &error)))
      state.SkipWithError(error.c_str());
}

/// Every tile of a frame, which is larger than the caches that are a core's own.
void frame_stores(benchmark::State& state, const ImageCase& image, bool is_clear) {
  Frame frame(image.type, image.bpp, image.depth);
  const LoadStore packet = packet_of(image);
  std::string error;
  if (!is_clear && !frame.tile.load(packet, &error)) state.SkipWithError(error.c_str());
  for (auto _ : state)
    for (uint32_t row = 0; row < kSize / 64; ++row)
      for (uint32_t column = 0; column < kSize / 64; ++column) {
        frame.tile.begin_tile(column, row);
        if (!frame.tile.store(packet, &error)) state.SkipWithError(error.c_str());
      }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * kSize * kSize * 4);
}

using tmu::Tiling;
constexpr ImageCase kRgba8Raster{ColorType::k8, 0, DepthType::k24, 0, 27, Tiling::kRaster, kSize * 4};
constexpr ImageCase kBgra8Raster{ColorType::k8, 0, DepthType::k24, 0, 27, Tiling::kRaster, kSize * 4, true};
constexpr ImageCase kRgba8Uif{ColorType::k8, 0, DepthType::k24, 0, 27, Tiling::kUif, 80};
constexpr ImageCase kSrgb8Uif{ColorType::k16F, 1, DepthType::k24, 0, 0, Tiling::kUif, 80};
constexpr ImageCase kBgr565Uif{ColorType::k8, 0, DepthType::k24, 0, 7, Tiling::kUif, 80};
constexpr ImageCase kRgb10A2Uif{ColorType::k16F, 1, DepthType::k24, 0, 3, Tiling::kUif, 80};
constexpr ImageCase kRgba16fUif{ColorType::k16F, 1, DepthType::k24, 0, 18, Tiling::kUif, 160};
constexpr ImageCase kRgba32fUif{ColorType::k32F, 2, DepthType::k24, 0, 9, Tiling::kUif, 160};
constexpr ImageCase kD24s8{ColorType::k8, 0, DepthType::k24, 11, 43, Tiling::kUif, 80};
constexpr ImageCase kD24s8DepthOnly{ColorType::k8, 0, DepthType::k24, 9, 43, Tiling::kUif, 80};
constexpr ImageCase kD32f{ColorType::k8, 0, DepthType::k32F, 9, 40, Tiling::kUif, 80};
constexpr ImageCase kD16{ColorType::k8, 0, DepthType::k16, 9, 42, Tiling::kUif, 80};
constexpr ImageCase kRgba8Samples{ColorType::k8, 0, DepthType::k24, 0, 27, Tiling::kUif, 160, false, true, 3};
constexpr ImageCase kRgba8Resolve{ColorType::k8, 0, DepthType::k24, 0, 27, Tiling::kUif, 80, false, true, 1};
BENCHMARK_CAPTURE(transfer, store_rgba8_raster, kRgba8Raster, false);
BENCHMARK_CAPTURE(transfer, load_rgba8_raster, kRgba8Raster, true);
BENCHMARK_CAPTURE(transfer, store_bgra8_raster, kBgra8Raster, false);
BENCHMARK_CAPTURE(transfer, store_rgba8_uif, kRgba8Uif, false);
BENCHMARK_CAPTURE(transfer, load_rgba8_uif, kRgba8Uif, true);
BENCHMARK_CAPTURE(transfer, store_srgb8_uif, kSrgb8Uif, false);
BENCHMARK_CAPTURE(transfer, load_srgb8_uif, kSrgb8Uif, true);
BENCHMARK_CAPTURE(transfer, store_bgr565_uif, kBgr565Uif, false);
BENCHMARK_CAPTURE(transfer, store_rgb10_a2_uif, kRgb10A2Uif, false);
BENCHMARK_CAPTURE(transfer, store_rgba16f_uif, kRgba16fUif, false);
BENCHMARK_CAPTURE(transfer, store_rgba32f_uif, kRgba32fUif, false);
BENCHMARK_CAPTURE(transfer, store_d24s8, kD24s8, false);
BENCHMARK_CAPTURE(transfer, load_d24s8, kD24s8, true);
BENCHMARK_CAPTURE(transfer, store_d24s8_depth_only, kD24s8DepthOnly, false);
BENCHMARK_CAPTURE(transfer, store_d32f, kD32f, false);
BENCHMARK_CAPTURE(transfer, store_d16, kD16, false);
BENCHMARK_CAPTURE(transfer, store_rgba8_4x_samples_32x32, kRgba8Samples, false);
BENCHMARK_CAPTURE(transfer, store_rgba8_4x_resolve_32x32, kRgba8Resolve, false);
BENCHMARK_CAPTURE(frame_stores, rgba8_raster, kRgba8Raster, false);
BENCHMARK_CAPTURE(frame_stores, rgba8_raster_clear, kRgba8Raster, true);
BENCHMARK_CAPTURE(frame_stores, bgra8_raster, kBgra8Raster, false);
BENCHMARK_CAPTURE(frame_stores, rgba8_uif, kRgba8Uif, false);
BENCHMARK_CAPTURE(frame_stores, rgba8_uif_clear, kRgba8Uif, true);
BENCHMARK_CAPTURE(frame_stores, d24s8, kD24s8, false);
BENCHMARK_CAPTURE(frame_stores, d24s8_clear, kD24s8, true);

}  // namespace
}  // namespace v3d::tlb

BENCHMARK_MAIN();
