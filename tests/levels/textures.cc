#include <atomic>
#include <cstring>

#include "gpu/chip/generation.h"
#include "gpu/chip/profile.h"
#include "gpu/tfu/mipmap.h"
#include "gpu/tmu/texel/encode.h"
#include "gpu/tmu/texel/format.h"
#include "tests/levels/results.h"
#include "tests/tmu/test_texture.h"

namespace v3d::levels {
namespace {

using namespace tmu;

constexpr int kRounds = 24;
constexpr uint32_t kRepeat = 0, kClamp = 1, kMirror = 2, kBorder = 3, kMirrorOnce = 4, kCustomBorder = 7;

TextureSpec spec_of(const Format& format) {
  TextureSpec spec;
  spec.type = static_cast<uint32_t>(format.type);
  spec.cpp = format.cpp;
  spec.width = spec.height = 24;
  spec.block_width = format.block_width;
  spec.block_height = format.block_height;
  spec.max_level = 4;
  return spec;
}

struct Case {
  Launcher launcher = Launcher::kS;
  uint8_t written = kT;
  uint32_t p2 = kDefaultP2;
};

/// Random lookups, some of whose coordinates are no numbers.
void add_lookups(const GpuMemory& gpu, const TextureSpec& spec, const SamplerSpec& sampler, const Case& how,
                 Words& words, Hash& hash) {
  TestTexture texture(gpu, spec);
  texture.set_sampler(sampler);
  Unit unit(gpu.memory(), spec.generation);
  for (int round = 0; round < kRounds; ++round) {
    TextureLookup lookup = texture.lookup(how.launcher, how.written);
    lookup.p2 = how.p2;
    lookup.exec = lookup.live = static_cast<LaneMask>(round % 3 ? 0xffff : words.any());
    lookup.s = words.moderates();
    lookup.t = words.moderates();
    lookup.r = words.moderates();
    lookup.i = words.moderates();
    lookup.b = words.moderates();
    lookup.dref = words.moderates();
    lookup.off = words.words();
    Lanes out[4] = {};
    const int count = unit.texture(lookup, out);
    hash.add(static_cast<uint32_t>(count));
    for (int i = 0; i < count; ++i) hash.add(out[i]);
  }
}

void fill(const GpuMemory& gpu, const TextureSpec& spec, Words& words) {
  const TestTexture texture(gpu, spec);
  constexpr uint32_t kBytes = 1 << 18;
  for (uint32_t i = 0; i < kBytes; i += 4) {
    const GpuAddr at = TestTexture::kImage + i;
    gpu.memory().store<uint32_t>(at, spec.cpp == 16 || (i & 1024) ? words.word() : words.halves());
  }
}

/// Nearest, bilinear and trilinear lookups, borders and comparisons of one format.
uint64_t format_results(const GpuMemory& gpu, const Format& format) {
  Words words(static_cast<uint32_t>(format.type));
  Hash hash;
  TextureSpec spec = spec_of(format);
  fill(gpu, spec, words);
  for (const bool nearest : {true, false})
    for (uint32_t wrap : {kRepeat, kClamp, kMirror, kBorder, kMirrorOnce})
      for (uint32_t transfer : {0u, 1u}) {
        spec.transfer = transfer;
        SamplerSpec sampler{.mag_nearest = nearest, .min_nearest = nearest, .mip_nearest = nearest};
        sampler.wrap = {wrap, wrap, wrap};
        sampler.border_mode = kCustomBorder;
        for (uint32_t& border : sampler.border) border = words.word();
        add_lookups(gpu, spec, sampler, {}, words, hash);
        add_lookups(gpu, spec, sampler, {Launcher::kS, kT | kB}, words, hash);
        add_lookups(gpu, spec, sampler, {Launcher::kSLod, kT | kB}, words, hash);
        sampler.compare = 3;
        if (format.depth()) add_lookups(gpu, spec, sampler, {Launcher::kS, kT | kDref}, words, hash);
      }
  return hash.value();
}

/// Sixteen texels back from channels of all kinds.
uint64_t encoding_results(uint32_t type, const Packing& packing) {
  Words words(type);
  Hash hash;
  for (int round = 0; round < kRounds * 8; ++round) {
    const Lanes rgba[4] = {words.words(), words.moderates(), words.words(), words.moderates()};
    Lanes texels[4] = {};
    encode_texels(packing, rgba, texels);
    for (const Lanes& word : texels) hash.add(word);
  }
  return hash.value();
}

uint64_t mipmap_results(const GpuMemory& gpu, const Format& format) {
  Words words(static_cast<uint32_t>(format.type));
  fill(gpu, spec_of(format), words);
  chip::Profile profile = {};
  JobError error;
  std::atomic<bool> cancel{false};
  JobContext job = {};
  job.memory = gpu.memory();
  job.profile = &profile;
  job.error = &error;
  job.cancel = &cancel;
  constexpr uint32_t kWidth = 37, kHeight = 21;
  const uint32_t stride = kWidth * format.cpp;
  const Surface source{TestTexture::kImage, Tiling::kRaster, format.cpp, stride};
  const Surface target{TestTexture::kImage + (1 << 18), Tiling::kRaster, format.cpp, stride};
  tfu::filter_level(job, format, source, kWidth, kHeight, target, kWidth / 2, kHeight / 2);
  Hash hash;
  for (uint32_t i = 0; i < stride * (kHeight / 2) / 4; ++i)
    hash.add(gpu.memory().load<uint32_t>(target.address + i * 4));
  return hash.value();
}

/// Every shape of lookup on one format.
void add_shapes(const GpuMemory& gpu, const Format& format, Results& results) {
  Words words(100 + static_cast<uint32_t>(format.type));
  TextureSpec flat = spec_of(format), volume = flat, cube = flat, line = flat;
  volume.three_d = true;
  volume.depth = 9;
  volume.max_level = 2;
  cube.height = cube.width;
  cube.layers = cube.depth_field = 6;
  line.raster = true;
  line.height = 1;
  fill(gpu, volume, words);
  const SamplerSpec linear, nearest{.mag_nearest = true, .min_nearest = true},
      anisotropic{.anisotropy = true, .max_anisotropy = 3}, repeated{.wrap = {kRepeat, kMirror, kMirrorOnce}};
  const struct {
    const char* name;
    const TextureSpec& spec;
    const SamplerSpec& sampler;
    Case how;
  } kCases[] = {
      {"1d", line, linear, {Launcher::kS, 0}},
      {"2d_repeated", flat, repeated, {}},
      {"2d_array", flat, linear, {Launcher::kS, kT | kI}},
      {"2d_offset", flat, linear, {Launcher::kS, kT | kOff}},
      {"3d", volume, linear, {Launcher::kS, kT | kR}},
      {"3d_nearest", volume, nearest, {Launcher::kS, kT | kR}},
      {"cube", cube, linear, {Launcher::kSCm, kT | kR}},
      {"cube_lod", cube, linear, {Launcher::kSCm, kT | kR | kB}},
      {"anisotropic", flat, anisotropic, {}},
      {"fetch", flat, linear, {Launcher::kSF, kT}},
      {"gather", flat, linear, {Launcher::kS, kT, kDefaultP2 | 1u << 7}},
      {"lod_query", flat, linear, {Launcher::kS, kT, kDefaultP2 | 1u << 24}},
  };
  for (const auto& c : kCases) {
    Hash hash;
    add_lookups(gpu, c.spec, c.sampler, c.how, words, hash);
    results.emplace_back(std::string("lookup.") + format.name + "." + c.name, hash.value());
  }
}

}  // namespace

void add_textures(Results& results) {
  const GpuMemory gpu;
  for (uint32_t type = 0; type < 128; ++type) {
    const Format* const format = find_format(chip::kDefaultGeneration, TextureType{type});
    if (!format) continue;
    results.emplace_back(std::string("texture.") + format->name, format_results(gpu, *format));
    if (const Packing* packing = format->stored_packing())
      results.emplace_back(std::string("encoding.") + format->name, encoding_results(type, *packing));
    if (tfu::can_filter(*format))
      results.emplace_back(std::string("mipmap.") + format->name, mipmap_results(gpu, *format));
    for (const char* name : {"RGBA8", "RGBA16F", "RGBA32F"})
      if (strcmp(format->name, name) == 0) add_shapes(gpu, *format, results);
  }
}

}  // namespace v3d::levels
