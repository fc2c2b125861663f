/// Speed of texture lookups of QPU programs, interpreted (argument 0) and compiled (1 AVX-512, 2 AVX2): time
/// of one for sixteen lanes, which are a 4x4 block of pixels walking over a texture of 256x256 texels, with
/// the instructions that ask for it and take its words.

#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "absl/strings/str_format.h"
#include "gpu/qpu/isa/assembler.h"
#include "gpu/qpu/jit/jit.h"
#include "gpu/qpu/run/interpreter.h"
#include "gpu/qpu/run/program_cache.h"
#include "tests/tmu/test_texture.h"

namespace v3d::qpu {
namespace {

using tmu::GpuMemory;
using tmu::SamplerSpec;
using tmu::TestTexture;
using tmu::TextureSpec;

constexpr uint32_t kSize = 256;
constexpr int kLookups = 32;  ///< of a program

struct Case {
  TextureSpec texture;
  SamplerSpec sampler;
  float texels_per_pixel = 1;
  bool wide = true;
  float turn = 0;  ///< texels in y per pixel in x
};

TextureSpec format(uint32_t type, uint32_t cpp, uint32_t levels = 1) {
  return {.type = type, .cpp = cpp, .width = kSize, .height = kSize, .max_level = levels - 1};
}

void engines(benchmark::internal::Benchmark* b) {
  b->ArgName("engine")->Arg(0);
  for (const jit::Target target : {jit::Target::kAvx512, jit::Target::kAvx2})
    if (jit::can_compile(target)) b->Arg(1 + static_cast<int>(target));
}

std::string program(const Case& k) {
  std::string text;
  for (int n = 0; n < kLookups; ++n) {
    text += "nop ; nop ; wrtmuc\nnop ; nop ; wrtmuc\nmov tmut, rf2\nmov tmus, rf1\n";
    for (int word = 0; word < (k.wide ? 4 : 2); ++word)
      text += absl::StrFormat("nop ; nop ; ldtmu.rf%d\n", 20 + word);
    text += "fadd rf1, rf1, rf3\n";
  }
  return text + "end";
}

void lookup(benchmark::State& state, const Case& k) {
  constexpr GpuAddr kCode = GpuMemory::kBase + 0x2000, kUniforms = GpuMemory::kBase + 0x4000;
  const GpuMemory gpu;
  TestTexture texture(gpu, k.texture);
  texture.fill_random(1);
  texture.set_sampler(k.sampler);
  const Assembly assembly = assemble(chip::Generation::k71, program(k));
  gpu.memory().write(kCode, assembly.words.data(), assembly.words.size() * 8);
  const uint32_t p0 = TestTexture::kState | (k.wide ? 15 : 3), p1 = TestTexture::kSampler | (k.wide ? 1 : 0);
  for (uint32_t n = 0; n < 2 * kLookups; ++n) gpu.memory().store(kUniforms + 4 * n, n & 1 ? p1 : p0);

  const int64_t engine = state.range(0);
  jit::JitCompiler compiler(static_cast<jit::Target>(engine == 0 ? 0 : engine - 1), 0);
  ProgramCache cache(chip::Generation::k71, engine != 0 ? &compiler : nullptr);
  const auto code = cache.get(gpu.memory(), kCode);
  tmu::Unit unit(gpu.memory(), chip::kDefaultGeneration);
  const auto thread = std::make_unique<Thread>();
  thread->reset();
  const LanesF x = {0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3};
  const LanesF y = {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3};
  const float scale = k.texels_per_pixel / kSize;
  uint32_t block = 0;
  for (auto _ : state) {
    thread->restart();
    thread->memory = gpu.memory();
    thread->tmu = &unit;
    thread->pc = kCode;
    thread->uniforms = kUniforms;
    thread->final_section = true;
    thread->msf = splat(1u);
    thread->rf[1] = as_uint((x + static_cast<float>(block * 4 * kLookups % kSize) + 0.3f) * scale);
    thread->rf[2] = as_uint((y + x * k.turn + static_cast<float>(block / 2 * 4 % kSize) + 0.3f) * scale);
    thread->rf[3] = as_uint(splat(4 * scale));
    ++block;
    if (run(*code, *thread) != Stop::kEnd) state.SkipWithError("did not end");
  }
  state.counters["per_lookup"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kLookups,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

const SamplerSpec kNearest{.mag_nearest = true, .min_nearest = true, .mip_nearest = true};
const SamplerSpec kMipNearest{.mip_nearest = true};

#define LOOKUP(name, ...) BENCHMARK_CAPTURE(lookup, name, Case{__VA_ARGS__})->Apply(engines)
LOOKUP(rgba8_nearest, format(4, 4), kNearest);
LOOKUP(rgba8_linear, format(4, 4), {});
LOOKUP(rgba8_linear_f16, .texture = format(4, 4), .sampler = {}, .wide = false);
LOOKUP(rgba8_linear_turned, .texture = format(4, 4), .sampler = {}, .turn = 0.7f);
LOOKUP(rgba8_linear_minified, .texture = format(4, 4), .sampler = {}, .texels_per_pixel = 3);
LOOKUP(rgba8_mip_nearest, .texture = format(4, 4, 9), .sampler = kMipNearest, .texels_per_pixel = 1.5f);
LOOKUP(rgba8_trilinear, .texture = format(4, 4, 9), .sampler = {}, .texels_per_pixel = 1.5f);
LOOKUP(rgba8_trilinear_magnified, .texture = format(4, 4, 9), .sampler = {}, .texels_per_pixel = 0.5f);
LOOKUP(rgba8_srgb_linear, {.type = 4, .cpp = 4, .width = kSize, .height = kSize, .srgb = true}, {});
LOOKUP(r8_linear, format(0, 1), {});
LOOKUP(rgb565_linear, format(6, 2), {});
LOOKUP(rgba16f_linear, format(18, 8), {});
LOOKUP(rgba32f_nearest, format(31, 16), kNearest);

}  // namespace
}  // namespace v3d::qpu

BENCHMARK_MAIN();
