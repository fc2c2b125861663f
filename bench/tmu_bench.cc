/// Speed of the TMU: one lookup of sixteen lanes, which are a 4x4 block of pixels walking over the texture;
/// and of the TFU's work on a 1024x1024 texture.

#include <benchmark/benchmark.h>

#include "gpu/chip/profile.h"
#include "gpu/tfu/tfu.h"
#include "tests/tmu/test_texture.h"

namespace v3d::tmu {
namespace {

constexpr uint32_t kSize = 256;

struct Case {
  TextureSpec texture;
  SamplerSpec sampler;
  Launcher launcher = Launcher::kS;
  uint8_t written = kT;
  float texels_per_pixel = 1;
  bool wide = true;
};

TextureSpec format(uint32_t type, uint32_t cpp, uint32_t levels = 1) {
  return {.type = type, .cpp = cpp, .width = kSize, .height = kSize, .max_level = levels - 1};
}

TextureSpec srgb() {
  TextureSpec spec = format(4, 4);
  spec.srgb = true;
  return spec;
}

void lookup(benchmark::State& state, const Case& k) {
  const GpuMemory gpu;
  TestTexture texture(gpu, k.texture);
  texture.fill_random(1);
  texture.set_sampler(k.sampler);
  Unit unit(gpu.memory(), chip::kDefaultGeneration);
  TextureLookup lookup = texture.lookup(k.launcher, k.written);
  if (!k.wide) lookup.p1 &= ~1u;
  const LanesF x = {0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3};
  const LanesF y = {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3};
  const float scale = k.launcher == Launcher::kSF ? 1 : k.texels_per_pixel / kSize;
  uint32_t block = 0;
  Lanes out[4];
  for (auto _ : state) {
    const LanesF s = (x + static_cast<float>(block * 4 % kSize) + 0.3f) * scale;
    const LanesF t = (y + static_cast<float>(block / 64 * 4 % kSize) + 0.3f) * scale;
    lookup.s = k.launcher == Launcher::kSF ? as_uint(__builtin_convertvector(s, LanesI)) : as_uint(s);
    lookup.t = k.launcher == Launcher::kSF ? as_uint(__builtin_convertvector(t, LanesI)) : as_uint(t);
    ++block;
    benchmark::DoNotOptimize(unit.texture(lookup, out));
    benchmark::ClobberMemory();
  }
}

const SamplerSpec kNearest{.mag_nearest = true, .min_nearest = true, .mip_nearest = true};
const SamplerSpec kMipNearest{.mip_nearest = true};

BENCHMARK_CAPTURE(lookup, rgba8_nearest, Case{format(4, 4), kNearest});
BENCHMARK_CAPTURE(lookup, rgba8_linear, Case{format(4, 4), {}});
BENCHMARK_CAPTURE(lookup, rgba8_linear_f16, Case{.texture = format(4, 4), .sampler = {}, .wide = false});
BENCHMARK_CAPTURE(lookup, rgba8_srgb_linear, Case{srgb(), {}});
BENCHMARK_CAPTURE(lookup, rgba8_trilinear_magnified,
                  Case{.texture = format(4, 4, 9), .sampler = {}, .texels_per_pixel = 0.5f});
BENCHMARK_CAPTURE(lookup, rgba8_trilinear,
                  Case{.texture = format(4, 4, 9), .sampler = {}, .texels_per_pixel = 1.5f});
BENCHMARK_CAPTURE(lookup, rgba8_mip_nearest,
                  Case{.texture = format(4, 4, 9), .sampler = kMipNearest, .texels_per_pixel = 1.5f});
BENCHMARK_CAPTURE(lookup, rgba8_anisotropic,
                  Case{.texture = format(4, 4, 9),
                       .sampler = {.anisotropy = true, .max_anisotropy = 3},
                       .texels_per_pixel = 1.5f});
BENCHMARK_CAPTURE(lookup, r8_linear, Case{format(0, 1), {}});
BENCHMARK_CAPTURE(lookup, rgba16f_linear, Case{format(18, 8), {}});
BENCHMARK_CAPTURE(lookup, rgba32f_nearest, Case{format(31, 16), kNearest});
BENCHMARK_CAPTURE(lookup, d32f_shadow,
                  Case{.texture = format(23, 4), .sampler = {.compare = 3}, .written = kT | kDref});
BENCHMARK_CAPTURE(lookup, rgba8_fetch,
                  Case{.texture = format(4, 4), .sampler = {}, .launcher = Launcher::kSF});

void general(benchmark::State& state, uint8_t config, uint8_t num_data, uint32_t stride) {
  const GpuMemory gpu;
  Unit unit(gpu.memory(), chip::kDefaultGeneration);
  GeneralLookup lookup;
  lookup.config = config;
  lookup.num_data = num_data;
  lookup.address = kLaneIndex * stride + GpuMemory::kBase;
  for (Lanes& word : lookup.data) word = splat(1u);
  Lanes out[4];
  for (auto _ : state) {
    benchmark::DoNotOptimize(unit.general(lookup, out));
    benchmark::ClobberMemory();
  }
}
BENCHMARK_CAPTURE(general, load_consecutive, 0xff, 0, 4);
BENCHMARK_CAPTURE(general, load_scattered, 0xff, 0, 20);
BENCHMARK_CAPTURE(general, load_vec4, 0xfc, 0, 16);
BENCHMARK_CAPTURE(general, store_consecutive, 0xff, 1, 4);
BENCHMARK_CAPTURE(general, store_scattered, 0xff, 1, 20);
BENCHMARK_CAPTURE(general, atomic_add_same_word, 0x87, 1, 0);

/// Registers of 7.1: raster to UIF XOR, or ten mip levels in place.
void conversion(benchmark::State& state, bool mips) {
  const GpuMemory gpu;
  gpu.memory().store<uint32_t>(GpuMemory::kBase, 1);
  JobError error;
  const std::atomic<bool> cancel{false};
  JobContext job{};
  job.memory = gpu.memory();
  job.profile = &chip::default_profile();
  job.error = &error;
  job.cancel = &cancel;
  tfu::Registers r{};
  r.ioa = GpuMemory::kBase + (8 << 20);
  r.ios = 1024 << 16 | 1024;
  r.ioc = 128 << 16 | 7 << 12 | (mips ? 10 << 4 | 1 : 0);
  r.icfg = mips ? 15 << 23 | 4 << 16 : 29 << 16;
  r.iia = mips ? r.ioa : GpuMemory::kBase;
  r.iis = mips ? 128 : 1024;
  for (auto _ : state) tfu::run(job, r);
  if (error.failed()) state.SkipWithError(error.message().c_str());
}
BENCHMARK_CAPTURE(conversion, raster_to_uif, false);
BENCHMARK_CAPTURE(conversion, mips_rgba8, true);

}  // namespace
}  // namespace v3d::tmu

BENCHMARK_MAIN();
