/// @file Lookups by integer coordinates: texel fetch, image access, return words, swizzles, odd state.
#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "tests/tmu/test_texture.h"

namespace v3d::tmu {
namespace {

constexpr uint32_t kR32UI = 109, kR16UI = 103, kR8UI = 97, kRGBA8UI = 101, kRGBA32UI = 113, kRG32UI = 111;

class Fetch : public testing::Test {
 protected:
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_()) % n; }
  /// Random coordinates around [0, n).
  Lanes around(uint32_t n) {
    Lanes v;
    for (int i = 0; i < kLanes; ++i) v[i] = below(3) ? below(n) : below(3 * n) - n;
    return v;
  }
  GpuMemory gpu_;
  std::minstd_rand random_{9};
};

struct ImageCase {
  TextureSpec spec;
  uint8_t written;  ///< kT, kR, kI
};

const ImageCase kImages[] = {
    {{.type = kR32UI, .cpp = 4, .width = 70, .height = 1, .layers = 3, .raster = true}, kI},
    {{.type = kR32UI, .cpp = 4, .width = 33, .height = 17, .max_level = 5}, kT},
    {{.type = kR32UI, .cpp = 4, .width = 70, .height = 300, .max_level = 2}, kT},
    {{.type = kR32UI, .cpp = 4, .width = 20, .height = 9, .max_level = 3, .layers = 7}, kT | kI},
    {{.type = kR32UI, .cpp = 4, .width = 17, .height = 5, .depth = 9, .max_level = 3, .three_d = true},
     kT | kR},
    {{.type = kR8UI, .cpp = 1, .width = 100, .height = 90, .max_level = 3}, kT},
    {{.type = kR16UI, .cpp = 2, .width = 40, .height = 90, .max_level = 3}, kT},
    {{.type = kRG32UI, .cpp = 8, .width = 40, .height = 31, .max_level = 3}, kT},
    {{.type = kRGBA32UI, .cpp = 16, .width = 40, .height = 31, .max_level = 3}, kT},
    {{.type = kR32UI, .cpp = 4, .width = 12, .height = 12, .strictly_uif = true}, kT},
};

/// Picks coordinates and says for every lane which texel they mean, 0 if none.
class Coordinates {
 public:
  Coordinates(const TestTexture& texture, const ImageCase& image, const TextureLookup& lookup) {
    const TextureSpec& spec = image.spec;
    for (int i = 0; i < kLanes; ++i) {
      const bool has_level = lookup.written & kB;
      const int64_t level = int64_t{spec.base_level} + (has_level ? static_cast<int32_t>(lookup.b[i]) : 0);
      const uint32_t x = lookup.s[i], y = lookup.written & kT ? lookup.t[i] : 0;
      const uint32_t z = lookup.written & kR ? lookup.r[i] : lookup.written & kI ? lookup.i[i] : 0;
      const bool exists = (!has_level || static_cast<int32_t>(lookup.b[i]) >= 0) && level <= spec.max_level &&
                          x < texture.width(static_cast<uint32_t>(level)) &&
                          y < texture.height(static_cast<uint32_t>(level)) &&
                          z < (spec.three_d ? texture.depth(static_cast<uint32_t>(level)) : spec.layers);
      address[i] = exists ? texture.address(static_cast<uint32_t>(level), x, y, z) : 0;
    }
  }
  GpuAddr address[kLanes];
};

TEST_F(Fetch, ReadsTexelsAndZeroOutside) {
  for (ImageCase image : kImages)
    for (uint32_t base : {0u, 1u}) {
      if (base > image.spec.max_level) continue;
      image.spec.base_level = base;
      TestTexture texture(gpu_, image.spec);
      texture.fill_random(image.spec.cpp);
      Unit unit(gpu_.memory(), chip::Generation::k71);
      TextureLookup lookup = texture.lookup(Launcher::kSF, image.written | kB);
      for (int round = 0; round < 20; ++round) {
        lookup.s = around(image.spec.width);
        lookup.t = around(image.spec.height);
        lookup.r = around(image.spec.depth);
        lookup.i = around(image.spec.layers);
        lookup.b = around(image.spec.max_level + 1 - base);
        lookup.live = round < 10 ? 0xffff : 0x3a05;
        lookup.exec = round % 3 ? 0xffff : 0x7f0f;
        lookup.p1 = round % 2 ? 5 : 1;
        const LaneMask quads = round < 10 ? 0xffff : 0xff0f;  // of 0x3a05
        const LaneMask active = lookup.exec & (round % 2 ? lookup.live : quads);
        const Coordinates at(texture, image, lookup);
        Lanes out[4];
        ASSERT_EQ(unit.texture(lookup, out), 4);
        for (int i = 0; i < kLanes; ++i)
          for (uint32_t c = 0; c < 4; ++c) {
            uint32_t expected = 0;
            const bool takes_part = (active >> i) & 1;
            if (takes_part && at.address[i]) {
              if (4 * c < image.spec.cpp)
                memcpy(&expected, gpu_.memory().host(at.address[i] + 4 * c), std::min(image.spec.cpp, 4u));
              else
                expected = c == 3;
            }
            ASSERT_EQ(out[c][i], expected) << "cpp " << image.spec.cpp << " lane " << i << " word " << c;
          }
      }
      EXPECT_EQ(gpu_.take_faults(), 0u);
    }
}

TEST_F(Fetch, StoresGoWhereLoadsRead) {
  for (const ImageCase& image : kImages) {
    TestTexture texture(gpu_, image.spec);
    texture.fill_random(3);
    Unit unit(gpu_.memory(), chip::Generation::k71);
    TextureLookup lookup = texture.lookup(Launcher::kSF, image.written | kB);
    lookup.p0 &= ~15u;
    lookup.p1 = 5;
    for (int round = 0; round < 20; ++round) {
      lookup.s = around(image.spec.width);
      lookup.t = around(image.spec.height);
      lookup.r = around(image.spec.depth);
      lookup.i = around(image.spec.layers);
      lookup.b = around(image.spec.max_level + 1);
      lookup.num_data = static_cast<uint8_t>((image.spec.cpp + 3) / 4);
      for (Lanes& word : lookup.data)
        for (int i = 0; i < kLanes; ++i) word[i] = static_cast<uint32_t>(random_()) * 7;
      lookup.live = round % 2 ? 0xffff : 0x1248;
      lookup.exec = round % 3 ? 0xffff : 0xff00;
      const Coordinates at(texture, image, lookup);
      std::vector<uint8_t> expected(gpu_.memory().host(GpuMemory::kBase),
                                    gpu_.memory().host(GpuMemory::kBase) + (1 << 20));
      for (int i = 0; i < kLanes; ++i) {
        if (!((lookup.live & lookup.exec) >> i & 1) || !at.address[i]) continue;
        for (uint32_t k = 0; k < image.spec.cpp; ++k)
          expected[at.address[i] - GpuMemory::kBase + k] =
              static_cast<uint8_t>(lookup.data[k / 4][i] >> (8 * (k % 4)));
      }
      Lanes out[4];
      ASSERT_EQ(unit.texture(lookup, out), 0);
      ASSERT_EQ(memcmp(expected.data(), gpu_.memory().host(GpuMemory::kBase), expected.size()), 0)
          << "cpp " << image.spec.cpp << " round " << round;
    }
    EXPECT_EQ(gpu_.take_faults(), 0u);
  }
}

TEST_F(Fetch, ImageAtomics) {
  for (uint32_t type : {96u, kR8UI, 102u, kR16UI, 108u, kR32UI}) {
    const bool is_signed = type % 2 == 0;
    const uint32_t cpp = type < 98 ? 1 : type < 104 ? 2 : 4, bits = 8 * cpp;
    const uint32_t all = cpp == 4 ? ~0u : (1u << bits) - 1;
    const auto sign = [&](uint32_t v) { return static_cast<int32_t>(v << (32 - bits)) >> (32 - bits); };
    TestTexture texture(gpu_, {.type = type, .cpp = cpp, .width = 8, .height = 8});
    texture.fill_random(type);
    Unit unit(gpu_.memory(), chip::Generation::k71);
    for (uint32_t op = 0; op <= 10; ++op)
      for (bool data : {true, false}) {
        if (!data && op < 8) continue;
        TextureLookup lookup = texture.lookup(Launcher::kSF, kT);
        lookup.p0 = (lookup.p0 & ~15u) | 1;
        lookup.p1 = 5;
        lookup.p2 = op << 20;
        lookup.num_data = data ? op == 3 ? 2 : 1 : 0;
        for (int i = 0; i < kLanes; ++i) {
          lookup.s[i] = below(9);  // some outside
          lookup.t[i] = below(3);
          lookup.data[0][i] = static_cast<uint32_t>(random_()) * 3;
          lookup.data[1][i] = static_cast<uint32_t>(random_());
          if (op == 3 && i % 2 && lookup.s[i] < 8) {
            uint32_t word = lookup.data[0][i];
            memcpy(&word, gpu_.memory().host(texture.address(0, lookup.s[i], lookup.t[i])), cpp);
            lookup.data[0][i] = word;
          }
        }
        std::vector<uint8_t> expected(gpu_.memory().host(GpuMemory::kBase),
                                      gpu_.memory().host(GpuMemory::kBase) + (1 << 17));
        uint32_t old[kLanes] = {};
        for (int i = 0; i < kLanes; ++i) {
          if (lookup.s[i] >= 8) continue;
          uint8_t* at = &expected[texture.address(0, lookup.s[i], lookup.t[i]) - GpuMemory::kBase];
          uint32_t v = 0;
          memcpy(&v, at, cpp);
          const uint32_t a = lookup.data[0][i] & all, b = lookup.data[1][i] & all;
          const uint32_t results[11] = {v + a,
                                        v - a,
                                        a,
                                        v == a ? b : v,
                                        std::min(v, a),
                                        std::max(v, a),
                                        sign(v) < sign(a) ? v : a,
                                        sign(v) > sign(a) ? v : a,
                                        data ? v & a : v + 1,
                                        data ? v | a : v - 1,
                                        data ? v ^ a : ~v};
          old[i] = is_signed ? static_cast<uint32_t>(sign(v)) : v;
          memcpy(at, &results[op], cpp);
        }
        Lanes out[4];
        ASSERT_EQ(unit.texture(lookup, out), 1);
        for (int i = 0; i < kLanes; ++i) ASSERT_EQ(out[0][i], old[i]) << "type " << type << " op " << op;
        ASSERT_EQ(memcmp(expected.data(), gpu_.memory().host(GpuMemory::kBase), expected.size()), 0)
            << "type " << type << " op " << op;
      }
  }
}

TEST_F(Fetch, ReturnMasksMayHaveHoles) {
  TestTexture texture(gpu_, {.type = kRGBA8UI});
  texture.fill_random(1);
  Unit unit(gpu_.memory(), chip::Generation::k71);
  TextureLookup lookup = texture.lookup(Launcher::kSF, kT);
  for (int i = 0; i < kLanes; ++i) lookup.s[i] = lookup.t[i] = static_cast<uint32_t>(i);
  Lanes all[4], out[4];
  ASSERT_EQ(unit.texture(lookup, all), 4);
  for (uint32_t mask = 0; mask < 16; ++mask) {
    lookup.p0 = TestTexture::kState | mask;
    lookup.p1 = 1;
    ASSERT_EQ(unit.texture(lookup, out), std::popcount(mask));
    int word = 0;
    for (uint32_t c = 0; c < 4; ++c)
      if ((mask >> c) & 1) {
        for (int i = 0; i < kLanes; ++i) ASSERT_EQ(out[word][i], all[c][i]);
        ++word;
      }
    lookup.p1 = 0;  // 16 bits: two words at most
    ASSERT_EQ(unit.texture(lookup, out), std::popcount(mask & 3));
    word = 0;
    for (uint32_t half = 0; half < 2; ++half)
      if ((mask >> half) & 1) {
        for (int i = 0; i < kLanes; ++i)
          ASSERT_EQ(out[word][i], all[2 * half][i] | all[2 * half + 1][i] << 16);
        ++word;
      }
  }
}

TEST_F(Fetch, SwizzleReverseAndExchange) {
  for (bool reverse : {false, true})
    for (bool swap : {false, true})
      for (int round = 0; round < 10; ++round) {
        TextureSpec spec{.type = kRGBA8UI, .reverse = reverse, .rb_swap = swap};
        for (uint32_t& s : spec.swizzle) s = below(8);
        TestTexture texture(gpu_, spec);
        texture.fill_random(1);
        Unit unit(gpu_.memory(), chip::Generation::k71);
        TextureLookup lookup = texture.lookup(Launcher::kSF, kT);
        for (int i = 0; i < kLanes; ++i) {
          lookup.s[i] = below(17);  // 16 is outside: zero texel, but ones of the swizzle stay
          lookup.t[i] = below(16);
        }
        Lanes out[4];
        ASSERT_EQ(unit.texture(lookup, out), 4);
        for (int i = 0; i < kLanes; ++i) {
          uint32_t x[4] = {};
          if (lookup.s[i] < 16)
            for (uint32_t c = 0; c < 4; ++c)
              x[c] = gpu_.memory().load<uint8_t>(texture.address(0, lookup.s[i], lookup.t[i]) + c);
          if (reverse) std::reverse(x, x + 4);
          if (swap) std::swap(x[0], x[2]);
          for (size_t c = 0; c < 4; ++c) {
            const uint32_t s = spec.swizzle[c];
            ASSERT_EQ(out[c][i], s == 1 ? 1 : s >= 2 && s <= 5 ? x[s - 2] : 0) << "swizzle " << s;
          }
        }
      }
}

TEST_F(Fetch, PackingExamplesOfTheReference) {  // texture.md 3.1
  const uint32_t image71[6] = {0x00402000, 0x00000301, 0x00404001, 0x06b1a840, 0x04020340, 0x00100800};
  const uint32_t image42[6] = {0x00402000, 0x00000180, 0x00404001, 0x06a9c840, 0x00000040, 0x00000000};
  const uint32_t buffer71[6] = {0x00510040, 0x80000000, 0x0040061a, 0x002026d0, 0x05100700, 0x00144010};
  const uint32_t buffer42[6] = {0x00510040, 0x80000000, 0x0040061a, 0x002026d0, 0x00000000, 0x00000000};
  for (uint32_t i = 0; i < 6 << 20; i += 4)
    gpu_.memory().store<uint32_t>(GpuMemory::kBase + i, i * 0x9e3779b1u);
  for (chip::Generation generation : {chip::Generation::k71, chip::Generation::k42}) {
    Unit unit(gpu_.memory(), generation);
    TextureLookup lookup;
    lookup.launcher = Launcher::kSF;
    lookup.p0 = TestTexture::kState | 15;
    lookup.p1 = 1;
    Lanes out[4];
    gpu_.memory().write(TestTexture::kState, generation == chip::Generation::k71 ? image71 : image42, 24);
    lookup.written = kT;
    for (int i = 0; i < kLanes; ++i) {
      lookup.s[i] = below(64);
      lookup.t[i] = below(64);
    }
    ASSERT_EQ(unit.texture(lookup, out), 4);
    for (int i = 0; i < kLanes; ++i) {
      const uint32_t word =
          gpu_.memory().load<uint32_t>(0x402000 + texel_offset(Tiling::kUif, 4, 8, lookup.s[i], lookup.t[i]));
      for (uint32_t c = 0; c < 4; ++c) {
        const uint32_t byte = (word >> (8 * (c == 0 ? 2 : c == 2 ? 0 : c))) & 255;
        ASSERT_EQ(as_float(out[c])[i], static_cast<float>(byte) / 255.0f) << version_text(generation);
      }
    }
    unit.begin_job();
    gpu_.memory().write(TestTexture::kState, generation == chip::Generation::k71 ? buffer71 : buffer42, 24);
    lookup.written = kB;
    lookup.b = splat(0u);
    for (int i = 0; i < kLanes; ++i) lookup.s[i] = i == 0 ? 99999 : i == 1 ? 100000 : below(100000);
    ASSERT_EQ(unit.texture(lookup, out), 4);
    for (int i = 0; i < kLanes; ++i) {
      ASSERT_EQ(out[0][i], i == 1 ? 0 : gpu_.memory().load<uint32_t>(0x510040 + 4 * lookup.s[i]));
      ASSERT_EQ(out[3][i], 1u);
    }
  }
}

TEST_F(Fetch, OffsetsApplyBeforeTheRangeCheck) {
  TestTexture texture(gpu_, {.type = kR32UI});
  texture.fill_random(1);
  Unit unit(gpu_.memory(), chip::Generation::k71);
  TextureLookup lookup = texture.lookup(Launcher::kSF, kT);
  lookup.p2 = 0x00f03e00;  // S -2, T 3
  lookup.s = kLaneIndex;
  lookup.t = splat(12u);
  Lanes out[4];
  for (bool dynamic : {false, true}) {
    if (dynamic) {
      lookup.p2 = kDefaultP2;
      lookup.written |= kOff;
      lookup.off = splat(0x3eu);
    }
    unit.texture(lookup, out);
    for (int i = 0; i < kLanes; ++i)
      EXPECT_EQ(
          out[0][i],
          i < 2 ? 0 : gpu_.memory().load<uint32_t>(texture.address(0, static_cast<uint32_t>(i) - 2, 15)));
  }
}

TEST_F(Fetch, StateIsDecodedOncePerJob) {
  TestTexture texture(gpu_, {.type = kR32UI});
  texture.fill_random(1);
  Unit unit(gpu_.memory(), chip::Generation::k71);
  TextureLookup lookup = texture.lookup(Launcher::kSF, kT);
  lookup.s = lookup.t = Lanes{};
  Lanes first[4], out[4];
  unit.texture(lookup, first);
  TestTexture other(gpu_, {.type = kR8UI, .cpp = 1});
  unit.texture(lookup, out);
  EXPECT_EQ(out[0][0], first[0][0]);
  unit.begin_job();
  unit.texture(lookup, out);
  EXPECT_EQ(out[0][0], first[0][0] & 255);
}

TEST_F(Fetch, RandomStateIsHarmless) {
  // Any state record, any configuration, any coordinates: no crash, no hang, the promised number of words.
  GpuMemory memory;
  memory.randomize(1 << 20, 77);
  Unit unit(memory.memory(), chip::Generation::k71), unit42(memory.memory(), chip::Generation::k42);
  std::set<int> counts;
  for (int round = 0; round < 6000; ++round) {
    TextureLookup lookup;
    const auto word = [&] { return static_cast<uint32_t>(random_()) * 2654435761u; };
    lookup.launcher = static_cast<Launcher>(below(4));
    lookup.written = static_cast<uint8_t>(below(64));
    lookup.p0 = GpuMemory::kBase + below(0x8000) * 16 + below(16);
    lookup.p1 = GpuMemory::kBase + below(0x8000) * 8 + below(8);
    if (round % 50 == 0) lookup.p0 = word(), lookup.p1 = word();
    lookup.p2 = below(4) ? kDefaultP2 : word();
    lookup.num_data = below(4) ? 0 : static_cast<uint8_t>(below(5));
    lookup.live = static_cast<LaneMask>(below(2) ? 0xffff : word());
    lookup.exec = static_cast<LaneMask>(below(2) ? 0xffff : word());
    for (Lanes* v : {&lookup.s, &lookup.t, &lookup.r, &lookup.i, &lookup.b, &lookup.dref, &lookup.off})
      for (int i = 0; i < kLanes; ++i)
        (*v)[i] = below(2) ? word() : std::bit_cast<uint32_t>(static_cast<float>(below(100)) / 50);
    // Mostly point the state at mapped memory of a sane format, so that deep paths run.
    if (round % 4) {
      const GpuAddr state = lookup.p0 & ~15u;
      if (state >= GpuMemory::kBase && state < GpuMemory::kBase + (1 << 20)) {
        memory.memory().store<uint32_t>(state, (GpuMemory::kBase + (1 << 19)) | (word() & 0x24));
        const uint32_t type = memory.memory().load<uint32_t>(state + 12);
        static constexpr uint32_t kSome[] = {0, 2, 4, 18, 20, 23, 24, 32, 38, 48, 70, 77, 101, 109, 113};
        memory.memory().store<uint32_t>(state + 12, (type & ~0x7f0u) | kSome[below(15)] << 4);
      }
    }
    Unit& u = round % 5 ? unit : unit42;
    if (round % 16 == 0) u.begin_job();
    Lanes out[4];
    const int expected = std::popcount(lookup.p0 & (lookup.p1 & 1 ? 15 : 3));
    ASSERT_EQ(u.texture(lookup, out), expected);
    counts.insert(expected);
  }
  EXPECT_EQ(counts.size(), 5u);
}

TEST_F(Fetch, DimensionQueryTellsExtentOfALevel) {
  TextureSpec spec{.type = kR8UI, .cpp = 1, .width = 100, .height = 30, .max_level = 5, .layers = 3};
  spec.base_level = 1;
  const TestTexture texture(gpu_, spec);
  TextureLookup lookup = texture.lookup(Launcher::kSF, kT | kB);
  lookup.p2 = 0x02f00000;
  lookup.b = kLaneIndex - 1u;
  Lanes out[4];
  ASSERT_EQ(Unit(gpu_.memory(), chip::Generation::k71).texture(lookup, out), 4);
  for (int i = 0; i < kLanes; ++i) {
    const bool exists = i >= 1 && i < 6;
    const uint32_t expected[4] = {std::max(1u, 100u >> i), std::max(1u, 30u >> i), 3, 5};
    for (int c = 0; c < 4; ++c) EXPECT_EQ(out[c][i], exists ? expected[c] : 0) << i << "." << c;
  }
  lookup.p0 = (lookup.p0 & ~15u) | 3;
  lookup.p1 = 4;  // 16-bit output
  ASSERT_EQ(Unit(gpu_.memory(), chip::Generation::k71).texture(lookup, out), 2);
  EXPECT_EQ(out[0][2], 25u | 7u << 16);
  EXPECT_EQ(out[1][2], 3u | 5u << 16);
}

TEST_F(Fetch, SampleNumberPicksATexelOfThePixel) {
  TextureSpec spec{.type = kR32UI, .cpp = 4, .width = 32, .height = 8, .strictly_uif = true};
  TestTexture texture(gpu_, spec);
  texture.fill_random(8);
  Unit unit(gpu_.memory(), chip::Generation::k71);
  for (uint32_t sample = 0; sample < 4; ++sample)
    for (const uint8_t off : {0, int{kOff}}) {
      TextureLookup lookup = texture.lookup(Launcher::kSF, static_cast<uint8_t>(kT | off));
      lookup.p2 = kDefaultP2 | sample << 2;
      lookup.s = kLaneIndex * 2u;
      lookup.t = Lanes{} + 4u;
      lookup.off = Lanes{};
      Lanes out[4];
      ASSERT_EQ(unit.texture(lookup, out), 4);
      for (uint32_t i = 0; i < kLanes; ++i)
        EXPECT_EQ(out[0][i],
                  gpu_.memory().load<uint32_t>(texture.address(0, 2 * i + (sample & 1), 4 + sample / 2)));
    }
}

}  // namespace
}  // namespace v3d::tmu
