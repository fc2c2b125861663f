/// TMU, TLB and magic write addresses: qpu.md 2.6, 2.7, 3.2, 4.4, 4.5, 8; texture.md 2.

#include "gpu/qpu/run/ports.h"

#include <gtest/gtest.h>

#include "tests/qpu/fake_tmu.h"
#include "tests/qpu/machine.h"

namespace v3d::qpu {
namespace {

using namespace assembly;
using tmu::Launcher;

Instruction move(Dst dst, int from) { return I().mul(Op::kMov, dst, rf(from)); }

class PortTest : public testing::TestWithParam<chip::Generation> {
 protected:
  PortTest() {
    fake_tmu() = {};
    reset();
  }
  void reset() {
    m.reset();
    m.t().tmu = &unit;
    for (uint32_t i = 0; i < 64; ++i) m.t().rf[i] = kLaneIndex + i * 0x100u;
  }
  Lanes value(uint32_t n) const { return kLaneIndex + n * 0x100u; }
  Machine m{GetParam()};
  tmu::Unit unit{m.memory(), GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Versions, PortTest, testing::Values(chip::Generation::k71, chip::Generation::k42));

// ---- TMU

TEST_P(PortTest, TextureLookup) {
  m.t().msf = select(0x0ff0, splat(15u), Lanes{});
  m.t().flag_a = 0x00ff;
  m.uniforms({0xa0, 0xb1, 0xc2});
  fake_tmu().words = 3;
  EXPECT_EQ(m.run_program({I().sig(kWrtmuc), move(to(kWaddrTmut), 2),
                           I().mul(Op::kMov, to(kWaddrTmur), rf(3)).sig(kWrtmuc), move(to(kWaddrTmui), 4),
                           move(to(kWaddrTmub), 5), move(to(kWaddrTmudref), 6), move(to(kWaddrTmuoff), 7),
                           move(to(kWaddrTmud), 8), move(to(kWaddrTmud), 9),
                           // the configuration word of the launching instruction belongs to the lookup
                           I().mul(Op::kMov, to(kWaddrTmus), rf(1)).mul_if(Cond::kNone).sig(kWrtmuc),
                           I().sig(kLdtmu, to(20)), I().sig(kLdtmu, to(21)), I().sig(kLdtmu, to(22))}),
            Stop::kEnd);
  ASSERT_EQ(fake_tmu().textures.size(), 1u);
  const tmu::TextureLookup& lookup = fake_tmu().textures[0];
  EXPECT_EQ(lookup.launcher, Launcher::kS);
  EXPECT_EQ(lookup.written, tmu::kT | tmu::kR | tmu::kI | tmu::kB | tmu::kDref | tmu::kOff);
  EXPECT_EQ(lookup.num_data, 2);
  EXPECT_EQ(lookup.p0, 0xa0u);
  EXPECT_EQ(lookup.p1, 0xb1u);
  EXPECT_EQ(lookup.p2, 0xc2u);
  EXPECT_EQ(lookup.exec, kAllLanes);
  EXPECT_EQ(lookup.live, 0x0ff0);
  EXPECT_EQ(lanes(lookup.s), lanes(value(1)));
  EXPECT_EQ(lanes(lookup.t), lanes(value(2)));
  EXPECT_EQ(lanes(lookup.r), lanes(value(3)));
  EXPECT_EQ(lanes(lookup.i), lanes(value(4)));
  EXPECT_EQ(lanes(lookup.b), lanes(value(5)));
  EXPECT_EQ(lanes(lookup.dref), lanes(value(6)));
  EXPECT_EQ(lanes(lookup.off), lanes(value(7)));
  EXPECT_EQ(lanes(lookup.data[0]), lanes(value(8)));
  EXPECT_EQ(lanes(lookup.data[1]), lanes(value(9)));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(lanes(m.t().rf[20 + i]), lanes(fake_tmu().order[i]));
}

TEST_P(PortTest, TextureLaunchersAndDefaults) {
  m.uniforms({1, 2, 3, 4, 5});
  m.t().flag_a = 0x0003;
  EXPECT_EQ(m.run_program({
                I().sig(kWrtmuc),
                move(to(kWaddrTmut), 2),
                move(to(kWaddrTmuscm), 1),  //
                I().sig(kWrtmuc),
                I().sig(kWrtmuc),
                move(to(kWaddrTmusf), 3),  //
                I().sig(kWrtmuc),
                I().mul(Op::kMov, to(kWaddrTmuslod), rf(4)).mul_if(Cond::kIfa),
                I().sig(kLdtmu, to(20)),
                I().sig(kLdtmu, to(21)),
                I().sig(kLdtmu, to(22)),
            }),
            Stop::kEnd);
  const auto& lookups = fake_tmu().textures;
  ASSERT_EQ(lookups.size(), 3u);
  EXPECT_EQ(lookups[0].launcher, Launcher::kSCm);
  EXPECT_EQ(lookups[0].written, tmu::kT);
  EXPECT_EQ(lookups[0].p0, 1u);
  EXPECT_EQ(lookups[0].p1, tmu::kDefaultP1);
  EXPECT_EQ(lookups[0].p2, tmu::kDefaultP2);
  EXPECT_EQ(lookups[1].launcher, Launcher::kSF);
  EXPECT_EQ(lookups[1].written, 0);  // parameters do not outlive a launch
  EXPECT_EQ(lookups[1].p0, 2u);
  EXPECT_EQ(lookups[1].p1, 3u);
  EXPECT_EQ(lookups[1].p2, tmu::kDefaultP2);
  EXPECT_EQ(lookups[2].launcher, Launcher::kSLod);
  EXPECT_EQ(lookups[2].exec, 0x0003);
  EXPECT_EQ(lookups[2].p1, tmu::kDefaultP1);
  EXPECT_EQ(lookups[2].num_data, 0);
}

// texture.md 2.4: one byte per lookup, 0xff shifted in; tmuau and tmuc load the word.
TEST_P(PortTest, GeneralConfiguration) {
  m.uniforms({0x04030201, 0xfffffffd});
  m.t().rf[9] = splat(0xffff8e77u) + kLaneIndex;
  EXPECT_EQ(
      m.run_program({
          move(to(kWaddrTmua), 1),                                                    // 0xff
          move(to(kWaddrTmuau), 1), move(to(kWaddrTmua), 2),                          // 1, 2
          move(to(kWaddrTmuau), 3), move(to(kWaddrTmua), 4),                          // 0xfd, 0xff
          move(to(kWaddrTmuc), 9), move(to(kWaddrTmua), 5), move(to(kWaddrTmua), 6),  // lane 0: 0x77, 0x8e
      }),
      Stop::kEnd);
  const uint8_t expected[] = {0xff, 1, 2, 0xfd, 0xff, 0x77, 0x8e};
  ASSERT_EQ(fake_tmu().generals.size(), std::size(expected));
  for (size_t i = 0; i < std::size(expected); ++i) EXPECT_EQ(fake_tmu().generals[i].config, expected[i]) << i;
  EXPECT_EQ(lanes(fake_tmu().generals[3].address), lanes(value(3)));
  EXPECT_EQ(m.t().tmu_config, 0xffffffffu);
}

// A launch whose condition no lane meets still takes its byte.
TEST_P(PortTest, LaunchWithoutLanesTakesItsConfiguration) {
  m.uniforms({0xff030201});
  m.t().flag_a = 0;
  EXPECT_EQ(
      m.run_program({move(to(kWaddrTmuau), 1), I().mul(Op::kMov, to(kWaddrTmua), rf(2)).mul_if(Cond::kIfa),
                     move(to(kWaddrTmua), 3)}),
      Stop::kEnd);
  ASSERT_EQ(fake_tmu().generals.size(), 3u);
  EXPECT_EQ(fake_tmu().generals[1].exec, 0);
  EXPECT_EQ(fake_tmu().generals[2].config, 3);
}

TEST_P(PortTest, GeneralStoreAndMasks) {
  m.t().msf = select(0x7777, splat(1u), Lanes{});
  m.t().flag_a = 0x00f0;
  m.uniforms({0xfffffffa, 33});
  EXPECT_EQ(m.run_program({move(to(kWaddrTmud), 10), move(to(kWaddrTmud), 11),
                           I().mul(Op::kMov, to(kWaddrTmuau), rf(1)).mul_if(Cond::kIfa),
                           // no lane: still a launch that takes its uniform
                           I().add(Op::kAdd, {kWaddrNop, true}, rf(1), rf(1)).add_flags(FlagWrite::kPushz),
                           I().mul(Op::kMov, to(kWaddrTmua), rf(2)).mul_if(Cond::kIfa),
                           I().sig(kLdtmu, to(20)), I().sig(kLdunifrf, to(21))}),
            Stop::kEnd);
  ASSERT_EQ(fake_tmu().generals.size(), 2u);
  const tmu::GeneralLookup& store = fake_tmu().generals[0];
  EXPECT_EQ(store.config, 0xfa);
  EXPECT_EQ(store.num_data, 2);
  EXPECT_EQ(store.exec, 0x00f0);
  EXPECT_EQ(store.live, 0x7777);
  EXPECT_EQ(lanes(store.data[0]), lanes(value(10)));
  EXPECT_EQ(lanes(store.data[1]), lanes(value(11)));
  EXPECT_EQ(fake_tmu().generals[1].num_data, 0);
  EXPECT_EQ(lanes(m.t().rf[21]), same(33));
}

// texture.md 8.1: TMUDREF and TMUOFF are data words 0 and 1 of a general access.
TEST_P(PortTest, CompareAndExchangeData) {
  EXPECT_EQ(m.run_program({move(to(kWaddrTmudref), 10), move(to(kWaddrTmuoff), 11), move(to(kWaddrTmua), 1),
                           move(to(kWaddrTmudref), 12), move(to(kWaddrTmua), 1)}),
            Stop::kEnd);
  ASSERT_EQ(fake_tmu().generals.size(), 2u);
  EXPECT_EQ(fake_tmu().generals[0].num_data, 2);
  EXPECT_EQ(lanes(fake_tmu().generals[0].data[0]), lanes(value(10)));
  EXPECT_EQ(lanes(fake_tmu().generals[0].data[1]), lanes(value(11)));
  EXPECT_EQ(fake_tmu().generals[1].num_data, 1);
  EXPECT_EQ(lanes(fake_tmu().generals[1].data[0]), lanes(value(12)));
}

// `eidx rf10 ; mov tmud, rf10` sends the old rf10.
TEST_P(PortTest, DataIsReadBeforeTheOtherAluWrites) {
  EXPECT_EQ(m.run_program(
                {I().add(Op::kEidx, to(10)).mul(Op::kMov, to(kWaddrTmud), rf(10)), move(to(kWaddrTmua), 1)}),
            Stop::kEnd);
  EXPECT_EQ(lanes(fake_tmu().generals[0].data[0]), lanes(value(10)));
  EXPECT_EQ(lanes(m.t().rf[10]), lanes(kLaneIndex));
}

// SETMSF comes last: a lookup in the same word still sees the old mask.
TEST_P(PortTest, MsfChangesBehindTheLookup) {
  EXPECT_EQ(
      m.run_program({I().add(Op::kSetmsf, {kWaddrNop, true}, imm(0)).mul(Op::kMov, to(kWaddrTmua), rf(1)),
                     move(to(kWaddrTmua), 1)}),
      Stop::kEnd);
  EXPECT_EQ(fake_tmu().generals[0].live, kAllLanes);
  EXPECT_EQ(fake_tmu().generals[1].live, 0);
}

TEST_P(PortTest, ReturnQueue) {
  // The word that pops runs before the launch of its own instruction pushes.
  EXPECT_EQ(m.run_program({I().mul(Op::kMov, to(kWaddrTmua), rf(1)).sig(kLdtmu, to(20))}), Stop::kHang);
  reset();
  EXPECT_EQ(
      m.run_program({move(to(kWaddrTmua), 1), I().mul(Op::kMov, to(kWaddrTmua), rf(1)).sig(kLdtmu, to(20)),
                     I().sig(kLdtmu, to(21))}),
      Stop::kEnd);
  // Overflow is a hang, not a write beyond the queue.
  reset();
  fake_tmu().words = 4;
  std::vector<Instruction> program(100, move(to(kWaddrTmua), 1));
  EXPECT_EQ(m.run_program(program), Stop::kHang);
  EXPECT_EQ(m.t().instructions, kTmuFifo / 4 + 1);
}

TEST_P(PortTest, TooMuchData) {
  std::vector<Instruction> program(10, move(to(kWaddrTmud), 2));
  program.push_back(move(to(kWaddrTmua), 1));
  EXPECT_EQ(m.run_program(program), Stop::kEnd);
  EXPECT_EQ(fake_tmu().generals[0].num_data, 4);
}

TEST_P(PortTest, LookupsWithoutUnitOrConfiguration) {
  EXPECT_EQ(m.run_program({move(to(kWaddrTmus), 1)}), Stop::kHang);
  reset();
  m.t().tmu = nullptr;
  EXPECT_EQ(m.run_program({move(to(kWaddrTmua), 1)}), Stop::kHang);
}

// ldtmu into a magic address, with a uniform at the same time.
TEST_P(PortTest, LoadsIntoPorts) {
  m.uniforms({0x24000, 5});
  EXPECT_EQ(
      m.run_program({move(to(kWaddrTmua), 1), I().sig(kLdtmu | kLdunif, to(kWaddrTmud)),
                     move(to(kWaddrTmua), 2), I().sig(kLdunifrf, to(kWaddrTmud)), move(to(kWaddrTmua), 2)}),
      Stop::kEnd);
  ASSERT_EQ(fake_tmu().generals.size(), 3u);
  EXPECT_EQ(lanes(fake_tmu().generals[1].data[0]), lanes(fake_tmu().order[0]));
  EXPECT_EQ(lanes(fake_tmu().generals[2].data[0]), same(5));
}

// ---- TLB

struct TlbCall {
  enum Kind { kColor, kDepth, kRead } kind;
  TlbSpec spec;
  std::vector<Lanes> words;
  LaneMask exec;
};

class RecordingTlb : public TlbPort {
 public:
  std::vector<TlbCall> calls;
  void write_color(Thread&, const TlbSpec& spec, const Lanes* words, LaneMask exec) override {
    calls.push_back({TlbCall::kColor, spec, {words, words + spec.words * (spec.per_sample ? 4 : 1)}, exec});
  }
  void write_depth(Thread& t, const TlbSpec& spec, Lanes z, LaneMask exec) override {
    calls.push_back({TlbCall::kDepth, spec, {z}, exec});
    t.msf = select(0x00ff, t.msf, Lanes{});
  }
  void read_color(Thread&, const TlbSpec& spec, Lanes* words) override {
    const int count = spec.words * (spec.per_sample ? 4 : 1);
    for (int i = 0; i < count; ++i) words[i] = splat(0x5000u + static_cast<uint32_t>(i));
    calls.push_back({TlbCall::kRead, spec, {}, 0});
  }
};

TEST(TlbSpec, Examples) {
  const auto expect = [](uint8_t code, TlbSpec::Kind kind, int rt, int words, bool per_sample) {
    const TlbSpec spec = decode_tlb_spec(code);
    EXPECT_EQ(spec.kind, kind) << int{code};
    EXPECT_EQ(spec.render_target, rt) << int{code};
    EXPECT_EQ(spec.words, words) << int{code};
    EXPECT_EQ(spec.per_sample, per_sample) << int{code};
  };
  using enum TlbSpec::Kind;
  expect(0xff, kColorF16, 0, 2, false);
  expect(0xfb, kColorF16, 0, 2, true);
  expect(0xf6, kColorF16, 1, 1, false);
  expect(0x3f, kColor32, 0, 4, false);
  expect(0x37, kColor32, 1, 4, false);
  expect(0x2d, kColor32, 2, 2, false);
  expect(0x3b, kColor32, 0, 4, true);
  expect(0x84, kDepth, 0, 1, false);
  expect(0x8c, kDepth, 0, 1, false);
  expect(0x90, kUnknown, 0, 1, false);
  expect(0xa0, kUnknown, 0, 1, false);
  EXPECT_TRUE(decode_tlb_spec(0x84).invariant_depth);
  EXPECT_FALSE(decode_tlb_spec(0x8c).invariant_depth);
  for (int code = 0; code < 256; ++code) {
    const TlbSpec spec = decode_tlb_spec(static_cast<uint8_t>(code));
    EXPECT_LE(spec.words * (spec.per_sample ? 4 : 1), 16);
    EXPECT_GE(spec.words, 1);
  }
}

TEST_P(PortTest, TlbColorWrites) {
  RecordingTlb tlb;
  m.t().tlb = &tlb;
  m.t().flag_a = 0x0fff;
  m.uniforms({0xffffff2d, 0xffffffff});
  EXPECT_EQ(m.run_program({
                move(to(kWaddrTlb), 1), move(to(kWaddrTlb), 2),  // f16, RT 0
                move(to(kWaddrTlbu), 3),
                I().mul(Op::kMov, to(kWaddrTlb), rf(4)).mul_if(Cond::kIfa),                   // 32 x 2, RT 2
                I().add(Op::kVfpack, to(kWaddrTlb), rf(10), rf(11)), move(to(kWaddrTlb), 6),  // f16 again
            }),
            Stop::kEnd);
  ASSERT_EQ(tlb.calls.size(), 3u);
  EXPECT_EQ(tlb.calls[0].spec.kind, TlbSpec::Kind::kColorF16);
  ASSERT_EQ(tlb.calls[0].words.size(), 2u);
  EXPECT_EQ(lanes(tlb.calls[0].words[0]), lanes(value(1)));
  EXPECT_EQ(lanes(tlb.calls[0].words[1]), lanes(value(2)));
  EXPECT_EQ(tlb.calls[0].exec, kAllLanes);
  EXPECT_EQ(tlb.calls[1].spec.kind, TlbSpec::Kind::kColor32);
  EXPECT_EQ(tlb.calls[1].spec.render_target, 2);
  EXPECT_EQ(lanes(tlb.calls[1].words[1]), lanes(value(4)));
  EXPECT_EQ(tlb.calls[1].exec, 0x0fff);
  EXPECT_EQ(tlb.calls[2].spec.kind, TlbSpec::Kind::kColorF16);
  EXPECT_EQ(tlb.calls[2].exec, kAllLanes);
}

// Specifiers come from the low byte up, and a tlbu restarts an unfinished sequence.
TEST_P(PortTest, TlbSpecifierSequence) {
  RecordingTlb tlb;
  m.t().tlb = &tlb;
  m.uniforms({0xff3c348c, 0xffffffff});
  EXPECT_EQ(m.run_program({move(to(kWaddrTlbu), 1), I().add(Op::kMsf, to(20)), move(to(kWaddrTlb), 2),
                           move(to(kWaddrTlb), 3), move(to(kWaddrTlb), 4), move(to(kWaddrTlbu), 5),
                           move(to(kWaddrTlb), 6)}),
            Stop::kEnd);
  ASSERT_EQ(tlb.calls.size(), 4u);
  EXPECT_EQ(tlb.calls[0].kind, TlbCall::kDepth);
  EXPECT_FALSE(tlb.calls[0].spec.invariant_depth);
  EXPECT_EQ(lanes(m.t().rf[20]), lanes(select(0x00ff, splat(1u), Lanes{})));  // the port narrowed MSF
  EXPECT_EQ(tlb.calls[1].spec.render_target, 1);
  EXPECT_EQ(lanes(tlb.calls[1].words[0]), lanes(value(2)));
  EXPECT_EQ(tlb.calls[2].spec.render_target, 0);
  EXPECT_EQ(lanes(tlb.calls[2].words[0]), lanes(value(3)));
  // rf4 began an f16 sequence that tlbu abandoned.
  EXPECT_EQ(lanes(tlb.calls[3].words[0]), lanes(value(5)));
  EXPECT_EQ(lanes(tlb.calls[3].words[1]), lanes(value(6)));
}

TEST_P(PortTest, TlbPerSample) {
  RecordingTlb tlb;
  m.t().tlb = &tlb;
  m.uniforms({0xffffff3b});
  std::vector<Instruction> program = {move(to(kWaddrTlbu), 0)};
  for (int i = 1; i < 16; ++i) program.push_back(move(to(kWaddrTlb), i));
  EXPECT_EQ(m.run_program(program), Stop::kEnd);
  ASSERT_EQ(tlb.calls.size(), 1u);
  ASSERT_EQ(tlb.calls[0].words.size(), 16u);
  for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(lanes(tlb.calls[0].words[i]), lanes(value(i)));
}

TEST_P(PortTest, TlbReads) {
  RecordingTlb tlb;
  m.t().tlb = &tlb;
  m.uniforms({0xffffff3f});
  EXPECT_EQ(m.run_program({I().sig(kLdtlbu, to(20)), I().sig(kLdtlb, to(21)), I().sig(kLdtlb, to(22)),
                           I().sig(kLdtlb, to(23)), I().sig(kLdtlb, to(24)), I().sig(kLdtlb, to(25)),
                           move(to(kWaddrTlb), 1), move(to(kWaddrTlb), 2)}),
            Stop::kEnd);
  ASSERT_EQ(tlb.calls.size(), 3u);
  EXPECT_EQ(tlb.calls[0].spec.words, 4);
  EXPECT_EQ(tlb.calls[1].spec.kind, TlbSpec::Kind::kColorF16);
  EXPECT_EQ(tlb.calls[2].kind, TlbCall::kColor);
  for (uint32_t i = 0; i < 6; ++i) EXPECT_EQ(lanes(m.t().rf[20 + i]), same(0x5000 + i % 4));
}

TEST_P(PortTest, TlbWithoutPortOrUnknownSpecifier) {
  m.uniforms({0xffffff95});
  EXPECT_EQ(m.run_program({move(to(kWaddrTlb), 1), I().sig(kLdtlb, to(20))}), Stop::kEnd);
  EXPECT_EQ(lanes(m.t().rf[20]), same(0));
  RecordingTlb tlb;
  reset();
  m.t().tlb = &tlb;
  EXPECT_EQ(m.run_program({move(to(kWaddrTlbu), 1), move(to(kWaddrTlb), 1), move(to(kWaddrTlb), 2)}),
            Stop::kEnd);
  ASSERT_EQ(tlb.calls.size(), 1u);
  EXPECT_EQ(tlb.calls[0].kind, TlbCall::kColor);
}

// The last TLB word of a shader stands in the end slots.
TEST_P(PortTest, TlbInEndSlots) {
  RecordingTlb tlb;
  m.t().tlb = &tlb;
  m.load({I().mul(Op::kMov, to(kWaddrTlb), rf(8)).sig(kThrsw), move(to(kWaddrTlb), 9), nop()});
  EXPECT_EQ(m.resume(), Stop::kEnd);
  ASSERT_EQ(tlb.calls.size(), 1u);
}

// ---- Replicating destinations and 4.2

TEST(Ports71, QuadAndRep) {
  Machine m(chip::Generation::k71);
  Thread& t = m.t();
  const auto set = [&] {
    m.reset();
    t.rf[1] = kLaneIndex + 100u;
    t.rf[3] = splat(1u);
    t.flag_a = 0x0f0f;
  };
  const auto quads = kLaneIndex / 4u * 4u + 100u;
  set();
  EXPECT_EQ(m.run_program({move(to(kWaddrR5), 1)}), Stop::kEnd);
  EXPECT_EQ(lanes(t.rf[0]), lanes(quads));
  set();
  EXPECT_EQ(m.run_program({move(to(kWaddrRep), 1)}), Stop::kEnd);
  EXPECT_EQ(lanes(t.rf[0]), same(100));
  set();
  EXPECT_EQ(m.run_program({I().add(Op::kAdd, to(kWaddrRep), rf(1), imm(1)).add_if(Cond::kIfa)}), Stop::kEnd);
  EXPECT_EQ(lanes(t.rf[0]), lanes(select(0x0f0f, splat(101u), Lanes{})));
  set();
  m.uniforms({9});
  EXPECT_EQ(m.run_program({I().add(Op::kAdd, to(kWaddrR5), rf(1), rf(3)).sig(kLdunifrf, to(2))}), Stop::kEnd);
  EXPECT_EQ(lanes(t.rf[0]), lanes(quads + 1u));
}

TEST(Ports42, Accumulators) {
  Machine m(chip::Generation::k42);
  Thread& t = m.t();
  t.rf[1] = kLaneIndex + 100u;
  m.uniforms({7});
  EXPECT_EQ(m.run_program({move(to(kWaddrR0), 1), I().mul(Op::kMov, {4, true}, acc(0)), move(to(kWaddrR5), 1),
                           I().add(Op::kAdd, to(2), acc(4), acc(5)), move(to(kWaddrRep), 1),
                           I().add(Op::kOr, to(3), acc(5), acc(5)).sig(kLdunifrf, {2, true}),
                           I().mul(Op::kMov, to(4), acc(2))}),
            Stop::kEnd);
  EXPECT_EQ(lanes(t.acc[0]), lanes(kLaneIndex + 100u));
  EXPECT_EQ(lanes(t.rf[2]), lanes(kLaneIndex + 100u + (kLaneIndex / 4u * 4u + 100u)));
  EXPECT_EQ(lanes(t.rf[3]), same(100));
  EXPECT_EQ(lanes(t.rf[4]), same(7));
}

TEST(Ports42, LoadsIntoAccumulators) {
  for (int n = 0; n <= 5; ++n) {
    Machine m(chip::Generation::k42);
    tmu::Unit unit(m.memory(), chip::Generation::k42);
    fake_tmu() = {};
    m.t().tmu = &unit;
    EXPECT_EQ(m.run_program({move(to(kWaddrTmua), 1), I().sig(kLdtmu, {static_cast<uint8_t>(n), true}),
                             I().mul(Op::kMov, to(2), acc(n))}),
              Stop::kEnd);
    // r5 takes the first lane of each quad, as from an ALU
    const Lanes word = fake_tmu().order.at(0);
    EXPECT_EQ(lanes(m.t().rf[2]), lanes(n == 5 ? word - (kLaneIndex & 3u) : word)) << n;
  }
}

// ---- SFU

struct SfuCase {
  Op op;
  Waddr waddr;  ///< the function's address on 4.2
  float in, out;
};
constexpr SfuCase kSfuCases[] = {
    {Op::kRecip, kWaddrRecip, 4, 0.25f},
    {Op::kRsqrt, kWaddrRsqrt, 4, 0.5f},
    {Op::kRsqrt2, kWaddrRsqrt2, 0.25f, 2},
    {Op::kExp, kWaddrExp, -3, 0.125f},
    {Op::kLog, kWaddrLog, 8, 3},
    {Op::kSin, kWaddrSin, 0.5f, 1},
    {Op::kSin, kWaddrSin, 1.0f / 6, 0.5f},
    {Op::kSin, kWaddrSin, -0.75f, -1},
    {Op::kRsqrt, kWaddrRsqrt, 2, 0.70710678f},
    {Op::kExp, kWaddrExp, 0.5f, 1.41421356f},
};
constexpr float kSfuTolerance = 1e-4f;  // of the hardware tests; sfu_test.cc asks for more

// As an operation of the add ALU the result is there in the next instruction.
TEST_P(PortTest, SfuOperationIsReadAtOnce) {
  for (const SfuCase& c : kSfuCases) {
    reset();
    m.t().rf[1] = as_uint(splat(c.in));
    EXPECT_EQ(m.run_program({I().add(c.op, to(3), rf(1)), move(to(4), 3)}), Stop::kEnd);
    for (int lane = 0; lane < kLanes; ++lane)
      EXPECT_NEAR(as_float(m.t().rf[4])[lane], c.out, kSfuTolerance) << info(c.op).mnemonic << " " << c.in;
  }
}

// By its address on 4.2: in r4, one instruction between.
TEST(Ports42, EveryLegacySfuFunction) {
  Machine m(chip::Generation::k42);
  for (const SfuCase& c : kSfuCases) {
    m.reset();
    m.t().rf[1] = as_uint(splat(c.in));
    EXPECT_EQ(m.run_program({move(to(c.waddr), 1), nop(), I().mul(Op::kMov, to(4), acc(4))}), Stop::kEnd);
    for (int lane = 0; lane < kLanes; ++lane)
      EXPECT_NEAR(as_float(m.t().rf[4])[lane], c.out, kSfuTolerance) << info(c.op).mnemonic << " " << c.in;
  }
}

// The SFU behind magic addresses: r4 two instructions later.
TEST(Ports42, LegacySfu) {
  Machine m(chip::Generation::k42);
  Thread& t = m.t();
  t.rf[1] = as_uint(splat(4.0f));
  t.acc[4] = splat(1u);
  EXPECT_EQ(m.run_program({move(to(kWaddrRecip), 1),
                           I().mul(Op::kMov, to(2), acc(4)).add(Op::kOr, to(kWaddrRsqrt), rf(1), rf(1)),
                           I().mul(Op::kMov, to(3), acc(4)), I().mul(Op::kMov, to(4), acc(4))}),
            Stop::kEnd);
  EXPECT_EQ(lanes(t.rf[2]), same(1));
  EXPECT_EQ(lanes(t.rf[3]), lanes(as_uint(splat(0.25f))));
  EXPECT_EQ(lanes(t.rf[4]), lanes(as_uint(splat(0.5f))));
}

// py-videocore6 test_signals: accumulators rotate whole, registers in their quads.
TEST(Ports42, Rotation) {
  Machine m(chip::Generation::k42);
  for (int n = -15; n < 16; ++n) {
    m.reset();
    Thread& t = m.t();
    t.rf[1] = kLaneIndex;
    t.acc[0] = kLaneIndex;
    t.acc[5] = splat(static_cast<uint32_t>(n));
    I whole, quads;
    whole.mul(Op::kMov, to(2), acc(0)).sig(kRotate);
    quads.mul(Op::kMov, to(3), rf(1)).sig(kRotate);
    whole.rotate = quads.rotate = static_cast<uint8_t>(n < 0 ? n + 32 : n);  // 0: the count is in r5
    EXPECT_EQ(m.run_program({whole, quads}), Stop::kEnd);
    for (int i = 0; i < kLanes; ++i) {
      EXPECT_EQ(t.rf[2][i], static_cast<uint32_t>((i - n) & 15));
      EXPECT_EQ(t.rf[3][i], static_cast<uint32_t>((i & 12) + ((i - n) & 3)));
    }
  }
}

// ---- Programs compiled by Mesa (qpu.md 11.4)

void load_words(Machine& m, const std::vector<uint64_t>& words) {
  for (size_t i = 0; i < words.size(); ++i)
    m.memory().store<uint64_t>(Machine::kCode + static_cast<GpuAddr>(i * 8), words[i]);
}

// Stores push[1] at ssbo[0] + push[0] as a byte.
TEST(Compiled, SmallestComputeProgram42) {
  Machine m(chip::Generation::k42);
  tmu::Unit unit(m.memory(), chip::Generation::k42);
  fake_tmu() = {};
  m.t().tmu = &unit;
  m.t().final_section = false;
  m.t().stop_at_switch = true;
  load_words(m, {0x3c403186bb800000, 0x3db032c6bbf40000, 0x3db07186bb800000, 0x3c00318d38801000,
                 0x3c203182bb815000, 0x3c003186bb800000, 0x3c003186bb800000});
  m.uniforms({0x77, 0x10, 0x24000, 0xfffffffd});
  EXPECT_EQ(m.resume(), Stop::kSwitch);
  EXPECT_EQ(m.t().pc, Machine::kCode + 4 * 8);
  EXPECT_EQ(m.resume(), Stop::kEnd);
  EXPECT_EQ(m.t().instructions, 7u);
  ASSERT_EQ(fake_tmu().generals.size(), 1u);
  const tmu::GeneralLookup& store = fake_tmu().generals[0];
  EXPECT_EQ(store.config, 0xfd);
  ASSERT_EQ(store.num_data, 1);
  EXPECT_EQ(lanes(store.data[0]), same(0x77));
  EXPECT_EQ(lanes(store.address), same(0x24010));
}

// The end of a vertex shader: STVPM in the slots, the row of the second from the ldunif of the first.
TEST(Compiled, VertexEnd71) {
  Machine m(chip::Generation::k71);
  AlignedLanes out[8] = {};
  m.t().vpm_out = out;
  m.t().vpm_out_rows = 8;
  m.t().rf[0] = splat(3u);
  m.t().rf[10] = kLaneIndex + 50u;
  m.t().rf[27] = kLaneIndex + 90u;
  load_words(m, {0x38602180be03f00a, 0x38002180be03f01b, 0x38003186bb03f000});
  m.uniforms({4});
  EXPECT_EQ(m.resume(), Stop::kEnd);
  EXPECT_EQ(lanes(out[3]), lanes(kLaneIndex + 50u));
  EXPECT_EQ(lanes(out[4]), lanes(kLaneIndex + 90u));
}

// The end of a 4.2 fragment shader: TLB words in the slots.
TEST(Compiled, FragmentEnd42) {
  Machine m(chip::Generation::k42);
  RecordingTlb tlb;
  m.t().tlb = &tlb;
  m.t().rf[8] = splat(8u);
  m.t().rf[9] = splat(9u);
  load_words(m, {0x3c203206bbf80200, 0x3c0031c6bbf80240, 0x3c003186bb800000});
  m.uniforms({0xffffffff});
  EXPECT_EQ(m.resume(), Stop::kEnd);
  ASSERT_EQ(tlb.calls.size(), 1u);
  EXPECT_EQ(lanes(tlb.calls[0].words[0]), same(8));
  EXPECT_EQ(lanes(tlb.calls[0].words[1]), same(9));
}

TEST_P(PortTest, UnknownPortsAreDropped) {
  m.uniforms({1, 2, 3});
  EXPECT_EQ(m.run_program({move(to(kWaddrTmul), 1), move(to(kWaddrVpm), 1), move(to(kWaddrVpmu), 1),
                           move(to(kWaddrSyncu), 1), move(to(kWaddrTmuhs), 1), move({60, true}, 1),
                           I().sig(kLdunifrf, to(2))}),
            Stop::kEnd);
  EXPECT_EQ(lanes(m.t().rf[2]), same(3));  // vpmu and syncu take a uniform each
}

}  // namespace
}  // namespace v3d::qpu
