/// Texture lookups of compiled programs against those of the interpreter: random states of textures, samplers
/// and lookups, random coordinates.

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gpu/qpu/isa/assembler.h"
#include "gpu/qpu/jit/jit.h"
#include "gpu/qpu/run/interpreter.h"
#include "gpu/qpu/run/program_cache.h"
#include "tests/tmu/test_texture.h"

namespace v3d::qpu {
namespace {

using tmu::GpuMemory;
using tmu::TestTexture;

/// What one program asks for.
struct Request {
  tmu::TextureSpec texture;
  tmu::SamplerSpec sampler;
  tmu::Launcher launcher = tmu::Launcher::kS;
  uint8_t written = tmu::kT;
  int num_data = 0;
  bool conditional = false;
  std::vector<uint32_t> configs;  ///< P0, P1, P2
  int num_words() const {
    const bool wide = configs.size() > 1 && (configs[1] & 1);
    return std::popcount(configs[0] & (wide ? 15u : 3u));
  }
};

/// S, T, R, I, B, DREF, OFF, and data words: rf1, rf2, ...
struct Inputs {
  Lanes rf[11];
  Lanes msf;
  LaneMask flag;
};

constexpr const char* kLaunchers[] = {"tmus", "tmuscm", "tmusf", "tmuslod"};
constexpr struct {
  tmu::Parameter bit;
  const char* name;
} kParameters[] = {{tmu::kT, "tmut"}, {tmu::kR, "tmur"},       {tmu::kI, "tmui"},
                   {tmu::kB, "tmub"}, {tmu::kDref, "tmudref"}, {tmu::kOff, "tmuoff"}};

std::string text_of(const Request& request) {
  std::string text;
  for (size_t n = 0; n < request.configs.size(); ++n) text += "nop ; nop ; wrtmuc\n";
  for (size_t n = 0; n < std::size(kParameters); ++n)
    if (request.written & kParameters[n].bit)
      text += absl::StrFormat("mov %s, rf%d\n", kParameters[n].name, n + 2);
  for (int n = 0; n < request.num_data; ++n) text += absl::StrFormat("mov tmud, rf%d\n", n + 8);
  text += absl::StrFormat("mov%s %s, rf1\n", request.conditional ? ".ifa" : "",
                          kLaunchers[static_cast<size_t>(request.launcher)]);
  for (int n = 0; n < request.num_words(); ++n) text += absl::StrFormat("nop ; nop ; ldtmu.rf%d\n", n + 20);
  return text + "end";
}

/// A thread with memory, a unit and an engine of its own.
class Side {
 public:
  static constexpr GpuAddr kCode = GpuMemory::kBase + 0x2000, kUniforms = GpuMemory::kBase + 0x4000;
  static constexpr uint32_t kBytes = 6 << 20;  ///< with contents

  Side(chip::Generation generation, Compiler* compiler) : generation_(generation), compiler_(compiler) {
    gpu_.randomize(kBytes, 7);
  }

  void load(const Request& request, const std::vector<uint64_t>& words) {
    TestTexture(gpu_, request.texture).set_sampler(request.sampler);
    gpu_.memory().write(kCode, words.data(), words.size() * 8);
    gpu_.memory().write(kUniforms, request.configs.data(), request.configs.size() * 4);
    cache_ = std::make_unique<ProgramCache>(generation_, compiler_);
  }
  void begin_job() { unit_.begin_job(); }
  Stop run(const Inputs& inputs) {
    start(inputs);
    return qpu::run(*cache_->get(gpu_.memory(), kCode), *thread_);
  }
  /// The same by what threads of all programs have in common that a stage starts.
  Stop run_in_series(const Inputs& inputs) {
    start(inputs);
    const auto program = cache_->get(gpu_.memory(), kCode);
    series_.begin(*program, program->compiled(*thread_));
    const Stop stop = series_.run(*thread_);
    series_.end();
    return stop;
  }
  const Thread& t() const { return *thread_; }
  const GpuMemory& gpu() const { return gpu_; }
  uint64_t faults() { return gpu_.take_faults(); }
  const Lanes& output() const { return output_; }

 private:
  void start(const Inputs& inputs) {
    Thread& t = *thread_;
    t.reset();
    t.memory = gpu_.memory();
    t.tmu = &unit_;
    t.pc = kCode;
    t.uniforms = kUniforms;
    t.final_section = true;
    for (size_t n = 0; n < std::size(inputs.rf); ++n) t.rf[n + 1] = inputs.rf[n];
    for (int n = 20; n < 24; ++n) t.rf[n] = splat(0xdeadbeefu);
    t.msf = inputs.msf;
    t.flag_a = inputs.flag;
    t.vpm_out = &output_;
    t.vpm_out_rows = 1;
  }

  const chip::Generation generation_;
  Compiler* const compiler_;
  GpuMemory gpu_;
  tmu::Unit unit_{gpu_.memory(), generation_};
  std::unique_ptr<Thread> thread_ = std::make_unique<Thread>();
  std::unique_ptr<ProgramCache> cache_;
  Series series_;
  AlignedLanes output_{};
};

class JitLookups : public testing::TestWithParam<std::tuple<jit::Target, chip::Generation>> {
 protected:
  void SetUp() override {
    if (!jit::can_compile(target)) GTEST_SKIP() << "the processor has no " << jit::name(target);
  }

  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random() % n); }
  bool one_in(uint32_t n) { return below(n) == 0; }

  void any_texture(Request& request) {
    static constexpr struct {
      uint32_t type, cpp;
    } kFormats[] = {
        {0, 1},    {2, 2},   {4, 4},   {4, 4},   {4, 4},   {1, 1},   {5, 4},   {6, 2},   {9, 4},   {3, 2},
        {7, 2},    {8, 2},   {115, 2}, {16, 2},  {17, 4},  {18, 8},  {21, 2},  {23, 4},  {24, 4},  {29, 4},
        {30, 8},   {31, 16}, {12, 4},  {96, 1},  {97, 1},  {98, 2},  {99, 2},  {100, 4}, {101, 4}, {102, 2},
        {103, 2},  {104, 4}, {105, 4}, {106, 8}, {107, 8}, {108, 4}, {109, 4}, {110, 8}, {111, 8}, {112, 16},
        {113, 16}, {10, 2},  {11, 2},  {13, 4},  {14, 8},  {15, 8},  {19, 4},  {20, 4},  {27, 1},  {114, 4}};
    tmu::TextureSpec& spec = request.texture;
    const auto& format = kFormats[below(one_in(4) ? 5 : std::size(kFormats))];  // 8-bit unorm first
    spec.type = format.type;
    spec.cpp = format.cpp;
    spec.width = 1 + below(one_in(3) ? 80 : 24);
    spec.height = 1 + below(one_in(4) ? 560 : 24);
    spec.max_level = one_in(2) ? 0 : below(4);
    spec.base_level = one_in(3) ? below(spec.max_level + 1) : 0;
    spec.srgb = spec.type == 4 && one_in(3);
    spec.generation = generation;
    spec.rb_swap = one_in(4);
    (generation == chip::Generation::k42 ? spec.reverse_border : spec.reverse) = one_in(10);
    spec.flip_x = one_in(12);
    spec.strictly_uif = one_in(8);
    if (one_in(4))
      for (uint32_t& channel : spec.swizzle) channel = below(6);
    if (!(request.written & (tmu::kT | tmu::kR))) spec.raster = true, spec.height = 1;
    if (request.written & tmu::kR)
      spec.three_d = true, spec.depth = 1 + below(5), spec.height = 1 + below(40);
    if (request.written & tmu::kI) spec.layers = 1 + below(3);
    if (request.launcher == tmu::Launcher::kSCm) {
      spec.three_d = false;
      spec.depth_field = spec.layers;
      spec.layers *= 6;
      spec.height = spec.width = 1 + below(40);
    }
    if (spec.raster) spec.strictly_uif = false;
  }

  void any_sampler(tmu::SamplerSpec& spec) {
    spec.mag_nearest = spec.min_nearest = one_in(2);
    spec.mip_nearest = one_in(2);
    if (one_in(3)) spec.min_nearest = !spec.min_nearest;
    for (uint32_t& wrap : spec.wrap) wrap = one_in(6) ? below(5) : below(3);
    if (one_in(3)) spec.max_lod = 0;
    if (one_in(4)) spec.min_lod = below(800) / 256.0;
    if (one_in(4)) spec.bias = (static_cast<int>(below(2000)) - 1000) / 256.0;
    spec.border_mode = below(3);
    spec.anisotropy = one_in(6);
    if (spec.anisotropy) spec.max_anisotropy = below(4);
  }

  Request any_request() {
    using tmu::Launcher;
    Request request;
    static constexpr uint8_t kWritten[] = {tmu::kT,           tmu::kT, tmu::kT, tmu::kT | tmu::kI,
                                           tmu::kT | tmu::kR, 0,       tmu::kI};
    request.launcher = one_in(2)   ? Launcher::kSF
                       : one_in(8) ? Launcher::kSLod
                       : one_in(6) ? Launcher::kSCm
                                   : Launcher::kS;
    const bool is_fetch = request.launcher == Launcher::kSF;
    request.written = kWritten[below(is_fetch ? 7 : 5)];
    if (request.launcher == Launcher::kSCm) request.written |= tmu::kR;
    if (!is_fetch && one_in(6)) request.written |= tmu::kDref;
    if (is_fetch ? one_in(2) : one_in(6)) request.written |= tmu::kB;
    if (one_in(20)) request.written |= tmu::kOff;
    if (is_fetch && one_in(4)) request.num_data = 1 + static_cast<int>(below(4));
    any_texture(request);
    any_sampler(request.sampler);
    request.conditional = one_in(3);
    const uint32_t mask = request.num_data && !one_in(4) ? 0 : one_in(3) ? below(16) : (2u << below(4)) - 1;
    request.configs.push_back(TestTexture::kState | mask);
    if (!is_fetch || !one_in(3)) {
      request.configs.push_back((is_fetch ? 0 : TestTexture::kSampler) | below(2) | below(2) << 2 |
                                (one_in(12) ? 2u : 0u));
      if (one_in(8)) request.configs.push_back(one_in(2) ? 0x00f00000 : 0x00f00000 | below(16) << 8);
    }
    return request;
  }

  uint32_t any_integer(uint32_t size) {
    if (!one_in(12)) return below(size);
    static constexpr uint32_t kSpecial[] = {0xffffffff, 0x80000000, 0x7fffffff,
                                            0xfffffff0, 1u << 14,   1u << 24};
    return one_in(2) ? size - 2 + below(5) : kSpecial[below(std::size(kSpecial))];
  }
  uint32_t any_float() {
    static constexpr float kInfinity = std::numeric_limits<float>::infinity();
    static constexpr float kSpecial[] = {0,       -0.0f,   1,     -1,        0.5f,
                                         -1e-40f, 1e-40f,  1e30f, kInfinity, -kInfinity,
                                         32768,   65536.f, 2,     1e9f,      0.99999994f};
    if (one_in(40)) return 0x7fc00000 | below(2) << 31 | below(2);
    const float v = one_in(10) ? kSpecial[below(std::size(kSpecial))]
                               : static_cast<float>(static_cast<int>(below(6000)) - 2000) / 1024.0f;
    return std::bit_cast<uint32_t>(v);
  }

  /// As a triangle has them: quads of 2x2 pixels, which all belong to one plane or each to its own.
  void coherent_coordinates(const Request& request, Lanes (&coordinates)[11]) {
    const uint32_t sizes[] = {request.texture.width, request.texture.height};
    const bool one_plane = !one_in(3);
    float origin[2] = {}, dx[2] = {}, dy[2] = {};
    for (int lane = 0; lane < kLanes; ++lane) {
      const int quad = lane / 4;
      for (int axis = 0; axis < 2; ++axis) {
        if (lane % 4 == 0 && (quad == 0 || !one_plane)) {
          const auto any = [&] { return static_cast<float>(static_cast<int>(below(4001)) - 2000) / 1000.0f; };
          const float texel = 1.0f / static_cast<float>(sizes[axis]);
          const float scale = std::ldexp(texel, static_cast<int>(below(8)) - 4);
          origin[axis] = any();
          dx[axis] = one_in(8) ? 0 : any() * scale;
          dy[axis] = one_in(8) ? 0 : any() * scale;
        }
        const auto x = static_cast<float>((quad & 1) * 2 + (lane & 1));
        const auto y = static_cast<float>((quad >> 1) * 2 + (lane >> 1 & 1));
        coordinates[axis][lane] = std::bit_cast<uint32_t>(origin[axis] + x * dx[axis] + y * dy[axis]);
      }
    }
  }

  Inputs any_inputs(const Request& request) {
    const bool is_fetch = request.launcher == tmu::Launcher::kSF, robust = one_in(2);
    const uint32_t sizes[] = {request.texture.width, request.texture.height, request.texture.depth,
                              request.texture.layers};
    Inputs inputs;
    for (int lane = 0; lane < kLanes; ++lane) {
      for (size_t n = 0; n < 4; ++n)
        inputs.rf[n][lane] = !is_fetch ? any_float() : robust ? any_integer(sizes[n]) : below(sizes[n]);
      for (size_t n = 4; n < std::size(inputs.rf); ++n) inputs.rf[n][lane] = static_cast<uint32_t>(random());
    }
    const uint32_t levels = request.texture.max_level - request.texture.base_level + 1;
    const uint32_t level = one_in(8) ? static_cast<uint32_t>(random()) : below(levels);
    inputs.rf[4] = is_fetch ? splat(level) : as_uint(splat(static_cast<float>(below(4))));
    if (one_in(6)) inputs.rf[4][static_cast<int>(below(16))] = below(5);
    if (!is_fetch)
      for (int lane = 0; lane < kLanes; ++lane) inputs.rf[5][lane] = any_float();
    if (!is_fetch)
      for (int lane = 0; lane < kLanes; ++lane)
        inputs.rf[3][lane] = one_in(8) ? any_float() : std::bit_cast<uint32_t>(static_cast<float>(below(4)));
    if (!is_fetch && !one_in(3)) coherent_coordinates(request, inputs.rf);
    inputs.msf = splat(1u);
    if (one_in(3))
      for (int lane = 0; lane < kLanes; ++lane) inputs.msf[lane] = below(2) * 5;
    inputs.flag = static_cast<LaneMask>(random());
    return inputs;
  }

  static bool same(Lanes a, Lanes b) { return nonzero(a ^ b) == 0; }

  /// Several threads of one program: the first finds nothing prepared.
  void run_threads(Side& plain, Side& compiled, const Request& request) {
    for (int n = 0; n < 4; ++n) {
      const Inputs inputs = any_inputs(request);
      EXPECT_EQ(plain.run(inputs), compiled.run(inputs));
      const Thread &a = plain.t(), &b = compiled.t();
      for (int r = 0; r < 64; ++r) EXPECT_TRUE(same(a.rf[r], b.rf[r])) << "rf" << r << " thread " << n;
      EXPECT_EQ(a.pending.num_config, b.pending.num_config);
      EXPECT_EQ(a.pending.texture.written, b.pending.texture.written);
      EXPECT_EQ(a.pending.texture.num_data, b.pending.texture.num_data);
      EXPECT_EQ(a.pending.fifo_tail - a.pending.fifo_head, b.pending.fifo_tail - b.pending.fifo_head);
      EXPECT_EQ(a.flag_a, b.flag_a);
      EXPECT_EQ(plain.faults(), compiled.faults());
    }
    EXPECT_EQ(std::memcmp(plain.gpu().memory().host(GpuMemory::kBase),
                          compiled.gpu().memory().host(GpuMemory::kBase), Side::kBytes),
              0);
  }

  std::string describe(const Request& request) {
    const tmu::TextureSpec& t = request.texture;
    return absl::StrFormat("type %d, %dx%dx%d, %d layers, levels %d to %d, P1 %#x, sampler wraps %d %d\n%s",
                           t.type, t.width, t.height, t.depth, t.layers, t.base_level, t.max_level,
                           request.configs.size() > 1 ? request.configs[1] : 4, request.sampler.wrap[0],
                           request.sampler.wrap[1], text_of(request));
  }

  /// @param words  a bit for each return word
  Request fetch(uint32_t words) const {
    Request request;
    request.launcher = tmu::Launcher::kSF;
    request.configs = {TestTexture::kState | words, 1};
    request.texture.generation = generation;
    return request;
  }
  /// Its text, for more after it.
  static std::string once_of(const Request& request) {
    const std::string text = text_of(request);
    return text.substr(0, text.size() - std::strlen("end"));
  }

  void load(Side& plain, Side& compiled, const Request& request) {
    load(plain, compiled, request, text_of(request));
  }
  void load(Side& plain, Side& compiled, const Request& request, const std::string& text) {
    const Assembly assembly = assemble(generation, text);
    ASSERT_TRUE(assembly.errors.empty()) << to_string(assembly.errors.at(0));
    for (Side* side : {&plain, &compiled}) side->load(request, assembly.words);
  }

  const jit::Target target = std::get<0>(GetParam());
  const chip::Generation generation = std::get<1>(GetParam());
  std::mt19937_64 random{12};
  jit::JitCompiler compiler{target, 0};
};

INSTANTIATE_TEST_SUITE_P(Targets, JitLookups,
                         testing::Combine(testing::Values(jit::Target::kAvx512, jit::Target::kAvx2,
                                                          jit::Target::kNeon),
                                          testing::Values(chip::Generation::k71, chip::Generation::k42)),
                         [](const auto& p) {
                           return absl::StrCat(jit::name(std::get<0>(p.param)), "_",
                                               version_number(std::get<1>(p.param)));
                         });

TEST_P(JitLookups, AnyStateAndCoordinates) {
  Side plain(generation, nullptr), compiled(generation, &compiler);
  for (int n = 0; n < 3000; ++n) {
    const Request request = any_request();
    SCOPED_TRACE(describe(request));
    load(plain, compiled, request);
    for (Side* side : {&plain, &compiled}) side->begin_job();
    run_threads(plain, compiled, request);
    if (HasFailure()) return;
  }
}

/// All ways to choose levels and filters, of all wrap modes with code of their own.
TEST_P(JitLookups, LevelsAndFilters) {
  Side plain(generation, nullptr), compiled(generation, &compiler);
  constexpr uint32_t kWraps = 3, kFilters = 8, kKinds = 4;
  const auto not_generated = tmu::lookups_not_generated();
  static constexpr struct Format {
    uint32_t type, cpp;
  } kFormats[] = {{4, 4}, {0, 1}, {2, 2}, {6, 2}, {7, 2}, {8, 2}, {9, 4}, {5, 4}};
  static constexpr Format kUnfiltered[] = {{21, 2}, {24, 4}, {18, 8}, {29, 4}};
  for (uint32_t n = 0; n < kWraps * kWraps * kFilters * kKinds; ++n) {
    const uint32_t filters = n % kFilters, kind = n / kFilters % kKinds, wraps = n / kFilters / kKinds;
    Request request;
    request.launcher = kind == 3 ? tmu::Launcher::kSLod : tmu::Launcher::kS;
    request.written = static_cast<uint8_t>(tmu::kT | (kind & 1 ? tmu::kB : 0) | (one_in(4) ? tmu::kI : 0));
    const bool is_nearest = (filters & 3) == 3;
    const Format& format = is_nearest && one_in(2) ? kUnfiltered[below(std::size(kUnfiltered))]
                                                   : kFormats[one_in(2) ? 0 : below(std::size(kFormats))];
    request.texture = {.type = format.type, .cpp = format.cpp};
    request.texture.srgb = format.type == 4 && one_in(3);
    request.texture.generation = generation;
    request.texture.width = 1 + below(200);
    request.texture.height = 1 + below(200);
    request.texture.max_level = below(8);
    request.texture.base_level = one_in(3) ? below(request.texture.max_level + 1) : 0;
    if (request.written & tmu::kI) request.texture.layers = 1 + below(3);
    request.sampler.mag_nearest = filters & 1;
    request.sampler.min_nearest = filters & 2;
    request.sampler.mip_nearest = filters & 4;
    request.sampler.wrap = {wraps % kWraps, wraps / kWraps, 0};
    if (one_in(4)) request.sampler.bias = -1.25;
    request.sampler.anisotropy = !is_nearest && one_in(3);
    if (request.sampler.anisotropy) request.sampler.max_anisotropy = below(4);
    request.configs = {TestTexture::kState | (one_in(2) ? 15u : 3u),
                       TestTexture::kSampler | below(2) | below(2) << 2};
    if (!(request.configs[1] & 1)) request.configs[0] &= ~12u;
    SCOPED_TRACE(describe(request));
    load(plain, compiled, request);
    for (Side* side : {&plain, &compiled}) side->begin_job();
    run_threads(plain, compiled, request);
    if (HasFailure()) return;
  }
  for (Side* side : {&plain, &compiled}) side->begin_job();
  EXPECT_EQ(tmu::lookups_not_generated(), not_generated);
  EXPECT_GE(compiler.statistics().lookups.functions, kWraps * kWraps * kFilters);
}

/// A driver may write other records to the same address between jobs.
TEST_P(JitLookups, StateOfTheJob) {
  Side plain(generation, nullptr), compiled(generation, &compiler);
  Request request;
  request.launcher = tmu::Launcher::kSF;
  request.configs = {TestTexture::kState | 15, 1};
  request.texture.width = request.texture.height = 40;
  request.texture.generation = generation;
  for (const uint32_t type : {4u, 101u, 29u, 4u}) {
    request.texture.type = type;
    SCOPED_TRACE(describe(request));
    load(plain, compiled, request);
    for (Side* side : {&plain, &compiled}) side->begin_job();
    run_threads(plain, compiled, request);
  }
}

/// Words at the end of the queue, whose next one is at its start.
TEST_P(JitLookups, QueueGoesRound) {
  Side plain(generation, nullptr), compiled(generation, &compiler);
  Request request = fetch(7);
  const std::string once = once_of(request);
  std::string text;
  for (int n = 0; n < 50; ++n) text += once;
  request.configs.clear();
  for (int n = 0; n < 50; ++n) request.configs.insert(request.configs.end(), {TestTexture::kState | 7, 1});
  load(plain, compiled, request, text + "end");
  for (Side* side : {&plain, &compiled}) side->begin_job();
  run_threads(plain, compiled, request);
}

/// Lanes that leave the sample mask between two lookups take no part in the second.
TEST_P(JitLookups, MaskOfTheMoment) {
  Side plain(generation, nullptr), compiled(generation, &compiler);
  Request request = fetch(15);
  request.texture.width = request.texture.height = 16;
  const std::string once = once_of(request);
  request.configs.insert(request.configs.end(), {TestTexture::kState | 15, 1});
  load(plain, compiled, request, once + "setmsf -, rf9\n" + once + "end");
  for (Side* side : {&plain, &compiled}) side->begin_job();
  for (int n = 0; n < 4; ++n) {
    Inputs inputs = any_inputs(request);
    inputs.msf = splat(1u);
    for (int lane = 0; lane < kLanes; ++lane) {
      inputs.rf[0][lane] = below(16);
      inputs.rf[1][lane] = below(16);
      inputs.rf[8][lane] = lane / 4 == n ? 1 : 0;
    }
    EXPECT_EQ(plain.run(inputs), compiled.run(inputs));
    for (int r = 20; r < 24; ++r) EXPECT_TRUE(same(plain.t().rf[r], compiled.t().rf[r])) << "rf" << r;
  }
}

/// Of a program with one lookup after another one, whose threads had all lanes.
TEST_P(JitLookups, MaskOfTheNextProgram) {
  Side plain(generation, nullptr), compiled(generation, &compiler);
  Request request = fetch(15);
  request.texture.width = request.texture.height = 16;
  const std::string once = once_of(request);
  Inputs inputs = any_inputs(request);
  for (int r = 0; r < 2; ++r)
    for (int lane = 0; lane < kLanes; ++lane) inputs.rf[r][lane] = below(16);
  inputs.msf = splat(1u);
  request.configs.insert(request.configs.end(), {TestTexture::kState | 15, 1});
  load(plain, compiled, request, once + once + "end");
  for (Side* side : {&plain, &compiled}) side->begin_job();
  EXPECT_EQ(plain.run(inputs), compiled.run_in_series(inputs));
  load(plain, compiled, request, once + "stvpmv 0, rf20\nend");
  for (int n = 0; n < 4; ++n) {
    for (int lane = 0; lane < kLanes; ++lane) inputs.msf[lane] = lane / 4 == n ? 1 : 0;
    EXPECT_EQ(plain.run(inputs), compiled.run_in_series(inputs));
    EXPECT_TRUE(same(plain.output(), compiled.output()));
  }
}

}  // namespace
}  // namespace v3d::qpu
