#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/qpu/isa/vc4.h"
#include "gpu/qpu/run/program_room.h"
#include "gpu/qpu/run/vc4_interpreter.h"
#include "gpu/qpu/run/vc4_program.h"
#include "tests/qpu/vc4_machine.h"

namespace v3d::qpu::vc4 {
namespace {

std::vector<uint32_t> lanes(const Lanes& v) {
  std::vector<uint32_t> list;
  for (int lane = 0; lane < kLanes; ++lane) list.push_back(v[lane]);
  return list;
}
std::vector<uint32_t> all(uint32_t v) { return std::vector<uint32_t>(16, v); }
template <typename Fn>
std::vector<uint32_t> each(Fn fn) {
  std::vector<uint32_t> list;
  for (uint32_t lane = 0; lane < 16; ++lane) list.push_back(fn(lane));
  return list;
}

// ---- Flags, conditions and branches

TEST(Vc4Run, FlagsChangeWhereTheConditionHolds) {
  Machine m(
      "load_imm_u ra1, nop, 0x00000001\n"  // lane 0: 1
      "mov.sf nop, elem\n"                 // Z in lane 0
      "mov r0, 0\n"
      "sub.sf.zc nop, ra1, 0\n"  // Z elsewhere too, but lane 0 keeps its own
      "mov.zs r0, 1\n"
      "end");
  EXPECT_EQ(lanes(m.result().r(0)), all(1));

  // vc4-qpu.md 9.2: Z = {1, 0, ...}, ra1 = {5, 1, 1, 2...}
  Machine n(
      "load_imm ra1, nop, 2\n"
      "load_imm_u r1, nop, 0x00010007\n"  // lanes 0..2: 3, 1, 1
      "mov.sf nop, elem\n"
      "mov r2, 0\n"
      "sub.sf nop, elem, 3\n"
      "mov.ns ra1, r1\n"
      "mov.sf nop, elem\n"
      "sub.sf.zc nop, ra1, 1\n"
      "mov.zs r2, 7\n"
      "end");
  const Thread& t = n.result();
  EXPECT_EQ(t.r(2)[0], 7u);
  EXPECT_EQ(t.r(2)[1], 7u);
  EXPECT_EQ(t.r(2)[2], 7u);
  EXPECT_EQ(t.r(2)[3], 0u);
}

TEST(Vc4Run, AllConditions) {
  Machine m(
      "mov r0, 0 ; mov r1, 0\n"
      "mov r2, 0 ; mov r3, 0\n"
      "sub.sf nop, elem, 8\n"  // borrow and negative below 8, zero in 8
      "mov.zs r0, 1 ; mov.zc r1, 1\n"
      "mov.ns r2, 1 ; mov.nc r3, 1\n"
      "mov.cs ra0, 1 ; mov.cc rb0, 1\n"
      "mov.never r0, 2 ; mov.never r1, 2\n"
      "end");
  const Thread& t = m.result();
  EXPECT_EQ(lanes(t.r(0)), each([](uint32_t n) { return uint32_t{n == 8}; }));
  EXPECT_EQ(lanes(t.r(1)), each([](uint32_t n) { return uint32_t{n != 8}; }));
  EXPECT_EQ(lanes(t.r(2)), each([](uint32_t n) { return uint32_t{n < 8}; }));
  EXPECT_EQ(lanes(t.r(3)), each([](uint32_t n) { return uint32_t{n >= 8}; }));
  EXPECT_EQ(lanes(t.ra(0)), each([](uint32_t n) { return uint32_t{n < 8}; }));
  EXPECT_EQ(lanes(t.rb(0)), each([](uint32_t n) { return uint32_t{n >= 8}; }));
}

// Each lane counts to its own number; the loop ends when all have.
TEST(Vc4Run, LoopsOfLanes) {
  Machine m(
      "mov ra0, elem\n"
      "mov r0, 0\n"
      "loop: mov.sf nop, ra0\n"
      "  add.zc r0, r0, 1\n"
      "  sub.zc ra0, ra0, 1\n"
      "  nop\n"
      "  mov.sf nop, ra0\n"
      "  branch.any_zc loop\n"
      "  add r1, r1, 1\n"  // the three words after it execute each time
      "  add r1, r1, 1\n"
      "  add r1, r1, 1\n"
      "end");
  const Thread& t = m.result();
  EXPECT_EQ(lanes(t.r(0)), lanes(kLaneIndex));
  EXPECT_EQ(lanes(t.r(1)), all(45));
}

TEST(Vc4Run, LinksAndRegistersOfBranches) {
  Machine m(
      "nop\n"
      "branch there -> ra7\n"  // at 8
      "nop\n"
      "nop\n"
      "nop\n"
      "mov r0, 1\n"  // comes back here
      "end\n"
      "there: mov r1, 2\n"
      "bra ra7\n"
      "nop\n"
      "nop\n"
      "nop\n"
      "mov r0, 3\n"
      "end");
  const Thread& t = m.result();
  EXPECT_EQ(t.ra(7)[0], Machine::kCode + 0x28);
  EXPECT_EQ(t.r(0)[0], 1u);
  EXPECT_EQ(t.r(1)[0], 2u);
  // Not taken: no link.
  Machine n(
      "mov.sf nop, 1\n"
      "branch.all_zs 0 -> ra7\n"
      "nop\n"
      "nop\n"
      "nop\n"
      "end");
  EXPECT_EQ(n.result().ra(7)[0], 0u);
}

// The first takes effect, the three words at its target are the slots of the second, then that one does.
TEST(Vc4Run, BranchInTheLastDelaySlot) {
  Machine m(
      "branch single\n"
      "nop\n"
      "nop\n"
      "branch after\n"
      "mov r3, 1\n"  // never
      "after: mov r2, r1\n"
      "end\n"
      "single: add r1, r1, 1\n"
      "add r1, r1, 1\n"
      "add r1, r1, 1\n"
      "add r1, r1, 1\n"
      "end");
  const Thread& t = m.result();
  EXPECT_EQ(t.r(2)[0], 3u);
  EXPECT_EQ(t.r(3)[0], 0u);

  Machine n("branch 0\nbranch 0\n");
  EXPECT_EQ(n.run(), Stop::kHang);
  EXPECT_STREQ(n.thread->hang, "a branch in the first two delay slots of another");
}

TEST(Vc4Run, EndsBehindTwoMoreWords) {
  Machine m(
      "sig_end mov r0, r1\n"
      "mov r1, 1\n"
      "mov r2, 1\n"
      "mov r3, 1\n");
  const Thread& t = m.result();
  EXPECT_EQ(t.r(2)[0], 1u);
  EXPECT_EQ(t.r(3)[0], 0u);
  EXPECT_EQ(t.instructions, 3u);
}

// ---- Ports

TEST(Vc4Run, UniformsArePoppedOnceAWord) {
  Machine m(
      ".uniform 1, 2, 3, 4\n"
      "mov.never r3, uni\n"            // pops 1
      "add r0, uni, 0\n"               // 2
      "mov ra0, uni ; mov rb0, uni\n"  // 3 to both
      "add r1, uni, r0\n"              // 4
      "end");
  const Thread& t = m.result();
  EXPECT_EQ(t.r(0)[0], 2u);
  EXPECT_EQ(t.ra(0)[3], 3u);
  EXPECT_EQ(t.rb(0)[3], 3u);
  EXPECT_EQ(t.r(1)[5], 6u);
  EXPECT_EQ(t.uniforms, Machine::kUniforms + 16);
}

TEST(Vc4Run, UniformsGoOnWhereTheirAddressSays) {
  Machine m(
      ".uniform 0xa000, 9\n"
      "load_imm r0, nop, 8\n"
      "add uniforms_addr, r0, uni\n"  // Mesa's reset: base plus offset
      "nop\n"
      "nop\n"
      "mov r1, uni\n"
      "end");
  m.memory().store<uint32_t>(Machine::kData + 8, 77);
  EXPECT_EQ(m.result().r(1)[0], 77u);
}

// C of a varying is in r5 for the next word, and the word that reads the next one still sees it.
TEST(Vc4Run, Varyings) {
  Machine m(
      "fmul r0, vary, ra15\n"
      "fadd r1, r0, r5 ; fmul r2, vary, ra15\n"
      "fadd r3, r2, r5\n"
      "mov ra0, vary\n"  // there is none
      "end");
  const Varying varyings[2] = {{as_uint(splat(3.0f)), as_uint(splat(0.5f))},
                               {as_uint(splat(5.0f)), as_uint(splat(0.25f))}};
  m.thread->varyings = varyings;
  m.thread->num_varyings = 2;
  m.thread->ra(15) = as_uint(splat(2.0f));
  const Thread& t = m.result();
  EXPECT_EQ(as_float(t.r(1))[4], 6.5f);
  EXPECT_EQ(as_float(t.r(3))[4], 10.25f);
  EXPECT_EQ(t.ra(0)[0], 0u);
}

TEST(Vc4Run, SpecialFunctionsArriveInR4ThreeWordsLater) {
  Machine m(
      "load_imm r0, nop, 4.0\n"
      "mov sfu_recip, r0\n"
      "mov r1, r4\n"
      "mov r2, r4\n"
      "mov r3, r4\n"
      "end");
  m.thread->r(4) = splat(5u);
  const Thread& t = m.result();
  EXPECT_EQ(t.r(1)[0], 5u);
  EXPECT_EQ(t.r(2)[0], 5u);
  EXPECT_EQ(as_float(t.r(3))[0], 0.25f);
}

TEST(Vc4Run, DirectReadsTakeNoUniform) {
  Machine m(
      ".uniform 0xa000\n"
      "shl r0, elem, 2\n"
      "add tmu0_s, r0, uni\n"
      "add r0, r0, 3\n"  // the low bits of addresses do not count
      "load_imm r1, nop, 0xa040\n"
      "add tmu1_s, r0, r1\n"
      "load_tmu0 mov r2, r4\n"  // still the old r4
      "load_tmu1 mov r3, r4\n"
      "mov ra0, r4\n"
      "end");
  for (uint32_t n = 0; n < 32; ++n) m.memory().store(Machine::kData + 4 * n, 100 + n);
  m.thread->r(4) = splat(5u);
  const Thread& t = m.result();
  EXPECT_EQ(lanes(t.r(2)), all(5));
  EXPECT_EQ(lanes(t.r(3)), each([](uint32_t n) { return 100 + n; }));
  EXPECT_EQ(lanes(t.ra(0)), each([](uint32_t n) { return 116 + n; }));
  EXPECT_EQ(t.uniforms, Machine::kUniforms + 4);
}

class RecordingTmu : public Tmu {
 public:
  Lanes texture(Thread&, const Lookup& lookup) override {
    lookups.push_back(lookup);
    return splat(static_cast<uint32_t>(0x11 * lookups.size()));
  }
  std::vector<Lookup> lookups;
};

TEST(Vc4Run, TextureParametersTakeUniforms) {
  Machine m(
      ".uniform 10, 11, 12, 13, 14\n"
      "mov tmu0_r, 3\n"
      "mov tmu0_t, 2\n"
      "mov tmu0_s, 1\n"
      "mov tmu0_b, 4\n"
      "mov tmu0_s, 5\n"
      "load_tmu0 nop\n"
      "load_tmu0 mov r0, r4\n"
      "mov r1, r4\n"
      "end");
  RecordingTmu tmu;
  m.thread->tmu = &tmu;
  const Thread& t = m.result();
  ASSERT_EQ(tmu.lookups.size(), 2u);
  const Lookup &first = tmu.lookups[0], &second = tmu.lookups[1];
  EXPECT_TRUE(first.has_t && first.has_r && !first.has_b);
  EXPECT_EQ(first.parameters, 3);
  EXPECT_EQ(std::vector<uint32_t>(first.p, first.p + 4), (std::vector<uint32_t>{10, 11, 12, 0}));
  EXPECT_EQ(first.t[1], 2u);
  EXPECT_TRUE(second.has_b && !second.has_t && !second.has_r);
  EXPECT_EQ(std::vector<uint32_t>(second.p, second.p + 4), (std::vector<uint32_t>{13, 14, 0, 0}));
  EXPECT_EQ(t.r(0)[0], 0x11u);
  EXPECT_EQ(t.r(1)[0], 0x22u);
}

TEST(Vc4Run, R5IsBroadcastByTheColumn) {
  Machine m(
      "mov r5, elem\n"
      "mov r0, r5\n"
      "add r5rep, elem, 3\n"
      "mov r1, r5\n"
      "end");
  const Thread& t = m.result();
  EXPECT_EQ(lanes(t.r(0)), each([](uint32_t n) { return n & 12; }));
  EXPECT_EQ(lanes(t.r(1)), all(3));
}

TEST(Vc4Run, Rotation) {
  Machine m(
      "mov r2, elem\n"
      "mov ra0, elem\n"
      "mov r5rep, 5\n"
      "mov r0, 0 ; mov r1, 0\n"
      "nop ; mov r1, r2+15\n"
      "nop ; mov r3, r2+r5\n"
      "nop ; v8max rb0, ra0+5, ra0+5\n"
      "end");
  const Thread& t = m.result();
  EXPECT_EQ(lanes(t.r(1)), each([](uint32_t n) { return (n + 1) & 15; }));
  EXPECT_EQ(lanes(t.r(3)), each([](uint32_t n) { return (n - 5) & 15; }));
  EXPECT_EQ(lanes(t.rb(0)), each([](uint32_t n) { return (n & 12) | ((n + 3) & 3); }));
}

TEST(Vc4Run, BytesOfAccumulatorsOneAfterTheOther) {
  Machine m(
      "load_imm r1, nop, 1.0\n"
      "load_imm r2, nop, 0.5\n"
      "mov r0, 0\n"
      "nop ; mov r0.8a, r1\n"
      "nop ; mov r0.8b, r2\n"
      "nop ; mov r3.8888, r2\n"
      "end");
  const Thread& t = m.result();
  EXPECT_EQ(t.r(0)[0], 0x80ffu);
  EXPECT_EQ(t.r(3)[0], 0x80808080u);
}

// One converter: an integer operation beside a float one gets the float.
TEST(Vc4Run, UnpacksOfPortA) {
  Machine m(
      "load_imm ra0, nop, 0x00ff3c00\n"
      "mov r3, 0\n"
      "or r0, ra0.16a, r3\n"
      "fadd r1, ra0.16a, r3\n"
      "or r2, ra0.16a, r3 ; fmul rb1, ra0.16a, r3\n"
      "mov ra1, ra0.8c\n"
      "end");
  const Thread& t = m.result();
  EXPECT_EQ(t.r(0)[0], 0x3c00u);
  EXPECT_EQ(t.r(1)[0], 0x3f800000u);
  EXPECT_EQ(t.r(2)[0], 0x3f800000u);
  EXPECT_EQ(t.ra(1)[0], 0xffu);
}

// ---- VPM

TEST(Vc4Run, VertexShaderReadsRowsAndWritesRows) {
  Machine m(
      "load_imm vr_setup, nop, 0x00201a00\n"  // 2 rows from 0
      "mov r0, vpm_read\n"
      "mov r1, vpm_read\n"
      "mov r2, vpm_read\n"  // after the block
      "load_imm vw_setup, nop, 0x00001a00\n"
      "fadd vpm, r0, r1\n"
      "mov vpm, r2\n"
      "end");
  AlignedLanes in[2] = {as_uint(splat(1.0f)), as_uint(splat(2.0f))}, out[1] = {};
  m.thread->vpm_in = {in, 2};
  m.thread->vpm_out = {out, 1};
  m.result();
  EXPECT_EQ(as_float(out[0])[9], 3.0f);
}

TEST(Vc4Run, VectorsOfTheVpm) {
  Machine m(
      "load_imm vw_setup, nop, 0x00001a05\n"  // horizontal, 32 bits, Y 5
      "add vpm, elem, 1\n"
      "load_imm vw_setup, nop, 0x00001107\n"  // vertical, 16 bits packed: X 3, H 1
      "mov vpm, elem\n"
      "load_imm vr_setup, nop, 0x00101203\n"  // vertical, 32 bits: X 3
      "mov r0, vpm_read\n"
      "load_imm vr_setup, nop, 0x00101c14\n"  // horizontal, 8 bits laned: Y 5, B 0
      "mov r1, vpm_read\n"
      "load_imm vr_setup, nop, 0x00101814\n"  // packed
      "mov r2, vpm_read\n"
      "end");
  m.give_vpm();
  const Thread& t = m.result();
  EXPECT_EQ(lanes(m.rows[5])[0], 1u);
  // Halves of rows 8.. of column 3: two lanes each.
  EXPECT_EQ(t.r(0)[8], 0x00010000u);
  EXPECT_EQ(t.r(0)[9], 0x00030002u);
  EXPECT_EQ(lanes(t.r(1)), each([](uint32_t n) { return n + 1; }));
  EXPECT_EQ(lanes(t.r(2)), each([](uint32_t n) { return n % 4 == 0 ? n / 4 + 1 : 0; }));
}

TEST(Vc4Run, Dma) {
  Machine m(
      ".uniform 0xa000, 0xb000, 0xc000\n"
      "load_imm vr_setup, nop, 0x83021000\n"  // 2 rows of 16, 64 bytes apart
      "mov vr_addr, uni\n"
      "mov nop, vpm_ld_wait\n"
      "load_imm vr_setup, nop, 0x00201a00\n"
      "mov r0, vpm_read\n"
      "mov r1, vpm_read\n"
      "load_imm vw_setup, nop, 0x81104000\n"  // 2 rows of 16
      "load_imm vw_setup, nop, 0xc0000040\n"  // 64 bytes between them
      "mov vw_addr, uni\n"
      "load_imm vw_setup, nop, 0x82080010\n"  // 4 columns of 8 words from X 2
      "load_imm vw_setup, nop, 0xc0000000\n"
      "mov vw_addr, uni\n"
      "mov nop, vpm_st_wait\n"
      "end");
  m.give_vpm();
  for (uint32_t n = 0; n < 32; ++n) m.memory().store(Machine::kData + 4 * n, 100 + n);
  const Thread& t = m.result();
  EXPECT_EQ(lanes(t.r(0)), each([](uint32_t n) { return 100 + n; }));
  EXPECT_EQ(lanes(t.r(1)), each([](uint32_t n) { return 116 + n; }));
  EXPECT_EQ(m.word(0xb000), 100u);
  EXPECT_EQ(m.word(0xb03c), 115u);
  EXPECT_EQ(m.word(0xb040), 0u);
  EXPECT_EQ(m.word(0xb080), 116u);
  // Columns 2, 3, ...: two rows of numbers, then none.
  EXPECT_EQ(m.word(0xc000), 102u);
  EXPECT_EQ(m.word(0xc004), 118u);
  EXPECT_EQ(m.word(0xc008), 0u);
  EXPECT_EQ(m.word(0xc020), 103u);
}

TEST(Vc4Run, DmaIsPaidFor) {
  Machine m(
      ".uniform 0xb000\n"
      "load_imm vw_setup, nop, 0x80004000\n"  // 128 rows of 128
      "mov vw_addr, uni\n"
      "end");
  m.give_vpm();
  EXPECT_EQ(m.result().instructions, 2 + 128 * 128 / 16 + 3u);
  m.thread->pc = Machine::kCode;
  m.thread->uniforms = Machine::kUniforms;
  m.thread->budget = 100;
  EXPECT_EQ(m.run(), Stop::kBudget);
}

// ---- The tile buffer

class RecordingTlb : public Tlb {
 public:
  Lanes load_color(Thread&) override { return splat(++loads); }
  void write_color(Thread& t, const Lanes& color, LaneMask exec, bool all_samples) override {
    colors.push_back({color[0], static_cast<LaneMask>(exec & nonzero(t.ms_flags)), all_samples});
  }
  void write_z(Thread& t, const Lanes& z, LaneMask exec) override {
    depths.push_back({z[0], exec, false});
    t.ms_flags &= passes;
  }
  void set_stencil(Thread&, uint32_t setup) override { stencil = setup; }
  struct Access {
    uint32_t value;
    LaneMask exec;
    bool all_samples;
  };
  std::vector<Access> colors, depths;
  Lanes passes = splat(15u);
  uint32_t loads = 0, stencil = 0;
};

// The closed driver's discard: z is conditional, colour is not.
TEST(Vc4Run, DiscardClearsTheMask) {
  Machine m(
      ".uniform 0x12345678, 0xc0de\n"
      "mov tlb_stencil_setup, uni\n"
      "sub.sf nop, elem, 4\n"
      "mov.ns tlb_z, rb15\n"
      "mov tlb_color_all, uni\n"
      "mov r0, ms_flags\n"
      "end");
  RecordingTlb tlb;
  tlb.passes = kLaneIndex & 1u;
  m.thread->tlb = &tlb;
  m.thread->ms_flags = splat(15u);
  m.thread->rb(15) = splat(0xff123456u);
  const Thread& t = m.result();
  EXPECT_EQ(tlb.stencil, 0x12345678u);
  ASSERT_EQ(tlb.depths.size(), 1u);
  EXPECT_EQ(tlb.depths[0].value, 0x123456u);
  EXPECT_EQ(tlb.depths[0].exec, 0xf);
  ASSERT_EQ(tlb.colors.size(), 1u);
  EXPECT_EQ(tlb.colors[0].exec, 0xa);
  EXPECT_TRUE(tlb.colors[0].all_samples);
  EXPECT_EQ(t.r(0)[1], 1u);
  EXPECT_EQ(t.r(0)[5], 0u);
}

// Four loads, each word moving the r4 of the one before.
TEST(Vc4Run, SamplesOfTheTileBuffer) {
  Machine m(
      "sig_color_load nop\n"
      "sig_color_load mov r0, r4\n"
      "sig_color_load mov r1, r4\n"
      "sig_color_load mov r2, r4\n"
      "mov r3, r4 ; nop\n"
      "nop ; mov tlb_color_ms, r3\n"
      "end");
  RecordingTlb tlb;
  m.thread->tlb = &tlb;
  m.thread->ms_flags = splat(15u);
  const Thread& t = m.result();
  EXPECT_EQ(t.r(0)[0], 1u);
  EXPECT_EQ(t.r(1)[0], 2u);
  EXPECT_EQ(t.r(2)[0], 3u);
  EXPECT_EQ(t.r(3)[0], 4u);
  ASSERT_EQ(tlb.colors.size(), 1u);
  EXPECT_FALSE(tlb.colors[0].all_samples);
}

// ---- What stops a thread

TEST(Vc4Run, Hangs) {
  const auto why = [](std::string_view text) {
    Machine m(text);
    EXPECT_EQ(m.run(), Stop::kHang);
    return std::string(m.thread->hang);
  };
  EXPECT_EQ(why("load_tmu0 nop\n"), "a load from a TMU without an outstanding lookup");
  EXPECT_EQ(why(".word 0x100009e7099e7000\n"), "reserved operation of the add ALU");
  EXPECT_EQ(why("mov tlb_z, r0\n"), "access to the tile buffer in a program without one");
  EXPECT_EQ(why("sacq 1\n"), "a semaphore in a program that has none to share");
  EXPECT_EQ(why("mov tmu0_t, r0\nmov tmu0_s, r0\n"), "texture lookup in a program without TMU");
  EXPECT_EQ(why("l: mov tmu0_s, 0\nbranch l\nnop\nnop\nnop\n"), "more TMU results than the queue holds");
}

TEST(Vc4Run, StopsWhenTheBudgetIsUsedUp) {
  Machine m("loop: branch loop\nmov r1, r0\nnop\nmov r2, 1\n");
  m.thread->budget = 1001;
  EXPECT_EQ(m.run(), Stop::kBudget);
  EXPECT_EQ(m.thread->instructions, 1001u);
  EXPECT_EQ(m.thread->pc, Machine::kCode + 8);
  m.thread->budget = 3;
  EXPECT_EQ(m.run(), Stop::kBudget);
  EXPECT_EQ(m.thread->pc, Machine::kCode);
}

// ---- Threads of user programs

TEST(Vc4Run, ThreadsWaitForEachOther) {
  Machine m(
      "mov r3, 1\n"
      "sacq 1\n"
      "mov r0, 5\n"
      "mov nop, mutex_acq\n"
      "mov mutex_release, r0\n"
      "end");
  Machine other;
  Program giver(0x4000, std::make_shared<ProgramRoom>(Program::kMaxChunks));
  const Assembly text = assemble(
      "mov nop, mutex_acq\n"
      "srel 1\n"
      "mov r0, qpu\n"
      "mov mutex_release, r0\n"
      "mov host_int, 1\n"
      "end");
  ASSERT_TRUE(text.errors.empty());
  m.memory().write(0x4000, text.words.data(), text.words.size() * 8);
  Shared shared;
  other.thread->memory = m.memory();
  other.thread->pc = 0x4000;
  other.thread->qpu_number = 7;
  m.thread->shared = other.thread->shared = &shared;
  size_t failed = 0;
  const UserThread threads[] = {{m.thread.get(), m.program.get()}, {other.thread.get(), &giver}};
  EXPECT_EQ(run_by_turns(threads, failed), Stop::kEnd);
  EXPECT_EQ(m.thread->r(0)[0], 5u);
  EXPECT_EQ(other.thread->r(0)[0], 7u);
  EXPECT_EQ(other.thread->host_interrupts, 1u);
  EXPECT_EQ(shared.semaphores[1], 0);
  EXPECT_EQ(shared.mutex, nullptr);

  // Nobody gives: it is alone.
  m.thread->pc = Machine::kCode;
  EXPECT_EQ(run_by_turns(std::span(threads, 1), failed), Stop::kWait);
  EXPECT_EQ(failed, 0u);
  EXPECT_EQ(m.thread->pc, Machine::kCode + 8);
}

class Recorder : public Observer {
 public:
  void before(const Thread& thread, uint64_t word) override {
    text += disassemble(word) + "@" + std::to_string(thread.pc) + "\n";
  }
  void after(const Thread&, uint64_t, const char* error) override {
    if (error) text += error;
  }
  std::string text;
};

TEST(Vc4Run, Observers) {
  Machine m("mov r0, 1\nload_tmu0 nop\n");
  Recorder recorder;
  m.thread->observer = &recorder;
  EXPECT_EQ(m.run(), Stop::kHang);
  EXPECT_EQ(recorder.text,
            "sig_small_imm mov r0, 1 ; nop nop, r0, r0@4096\n"
            "load_tmu0 nop nop, r0, r0 ; nop nop, r0, r0@4104\n"
            "a load from a TMU without an outstanding lookup");
}

TEST(Vc4Run, ProgramsKnowWhenTheirWordsChange) {
  Machine m("mov r0, 1\nend");
  m.result();
  EXPECT_TRUE(m.program->matches(m.memory()));
  m.memory().store<uint64_t>(Machine::kCode, 0);
  EXPECT_FALSE(m.program->matches(m.memory()));
}

}  // namespace
}  // namespace v3d::qpu::vc4
