/// Every operation of the ALUs against a scalar formula, through whole programs.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <set>

#include "gpu/base/float16.h"
#include "tests/qpu/alu_formulas.h"
#include "tests/qpu/machine.h"
#include "tests/qpu/special_words.h"
#include "tests/qpu/stage_room.h"

namespace v3d::qpu {
namespace {

using namespace assembly;
using namespace formulas;

// Pairs of operands: all special ones with each other, and random ones.
const std::vector<std::pair<uint32_t, uint32_t>>& operands() {
  static const auto pairs = [] {
    std::vector<std::pair<uint32_t, uint32_t>> result;
    for (uint32_t a : kSpecialWords)
      for (uint32_t b : kSpecialWords) result.emplace_back(a, b);
    std::mt19937 random(7);
    for (int i = 0; i < 2000; ++i) result.emplace_back(random(), random());
    for (int i = 0; i < 1000; ++i) {
      const auto moderate = [&] { return u((static_cast<float>(random()) - 0x1p31f) * 0x1p-24f); };
      result.emplace_back(moderate(), moderate());
    }
    while (result.size() % kLanes) result.emplace_back(0, 0);
    return result;
  }();
  return pairs;
}

// Operations that are no function of their lanes' operands, and where they are tested.
const std::set<Op> kElsewhere = {
    // this file
    Op::kNop, Op::kMultop, Op::kFdx, Op::kFdy, Op::kRot, Op::kRotq, Op::kShuffle, Op::kBallot, Op::kBcastf,
    Op::kAlleq, Op::kAllfeq, Op::kFlapush, Op::kFlbpush, Op::kVfla, Op::kVflna, Op::kVflb, Op::kVflnb,
    Op::kFlafirst, Op::kFlnafirst, Op::kTidx, Op::kEidx, Op::kLr, Op::kXcd, Op::kYcd, Op::kFxcd, Op::kFycd,
    Op::kMsf, Op::kSetmsf, Op::kRevf, Op::kSetrevf, Op::kIid, Op::kSampid, Op::kTmuwt, Op::kVpmwt,
    Op::kVpmsetup, Op::kLdvpmgOut, Op::kLdvpmp, Op::kStvpmp,
    // sync_test.cc
    Op::kBarrierid,
    // dot_test.cc
    Op::kV8dot, Op::kSetnnmodeUu, Op::kSetnnmodeSu, Op::kSetnnmodeUs, Op::kSetnnmodeSs,
    // run_test.cc
    Op::kLdvpmvIn, Op::kLdvpmvOut, Op::kLdvpmdIn, Op::kLdvpmdOut, Op::kLdvpmgIn, Op::kStvpmv, Op::kStvpmd};

TEST(Alu, EveryOperationIsTested) {
  std::set<Op> tested = kElsewhere;
  for (const Row& row : kRows) EXPECT_TRUE(tested.insert(row.op).second) << info(row.op).mnemonic;
  for (int n = 0; n < kNumOps; ++n)
    EXPECT_TRUE(tested.contains(static_cast<Op>(n))) << info(static_cast<Op>(n)).mnemonic;
}

bool has_encoding(chip::Generation generation, Alu alu, Op op) {
  for (const Encoding& e : encodings())
    if (e.op == op && e.alu == alu && (e.generations & set_of(generation))) return true;
  return false;
}

// Applies `program` (one instruction on rf1, rf2, rf3) to all operand pairs.
template <typename Check>
void for_all_operands(Machine& machine, const Instruction& i, const Check& check) {
  machine.load({i, thrsw(), nop(), nop()});
  const auto& pairs = operands();
  for (size_t at = 0; at < pairs.size(); at += kLanes) {
    machine.reset();
    for (int lane = 0; lane < kLanes; ++lane) {
      machine.t().rf[1][lane] = pairs[at + static_cast<size_t>(lane)].first;
      machine.t().rf[2][lane] = pairs[at + static_cast<size_t>(lane)].second;
    }
    machine.t().rf[3] = splat(0xdeadbeefu);
    ASSERT_EQ(machine.resume(), Stop::kEnd);
    for (int lane = 0; lane < kLanes; ++lane) {
      check(machine.t().rf[1][lane], machine.t().rf[2][lane], machine.t().rf[3][lane]);
      if (testing::Test::HasFailure()) return;
    }
  }
}

Instruction make(Alu alu, Op op, Unpack ua, Unpack ub, Pack pack) {
  const int n = info(op).operands;
  AluHalf half = assembly::half(op, to(3), n > 0 ? rf(1, ua) : Operand(), n > 1 ? rf(2, ub) : Operand());
  half.pack = pack;
  Instruction i;
  (alu == Alu::kAdd ? i.add : i.mul) = half;
  return i;
}

// The order of the operands tells FADD from FADDNF and FMIN from FMAX, so the word may have them exchanged.
// That matters for the minimum of zeros with different signs.
bool is_exchanged(chip::Generation generation, const Instruction& i) {
  Instruction word;
  return decode(generation, *encode(generation, i), word) && info(word.add.op).operands == 2 &&
         word.add.a.index == 2;
}

class AluTest : public testing::TestWithParam<chip::Generation> {};
INSTANTIATE_TEST_SUITE_P(Versions, AluTest, testing::Values(chip::Generation::k71, chip::Generation::k42));

TEST_P(AluTest, Formulas) {
  const chip::Generation generation = GetParam();
  Machine machine(generation);
  for (const Row& row : kRows) {
    for (Alu alu : {Alu::kAdd, Alu::kMul}) {
      if (!has_encoding(generation, alu, row.op)) continue;
      const Instruction i = make(alu, row.op, Unpack::kNone, Unpack::kNone, Pack::kNone);
      const bool exchanged = is_exchanged(generation, i);
      for_all_operands(machine, i, [&](uint32_t a, uint32_t b, uint32_t result) {
        const uint32_t expected = exchanged ? row.formula(b, a) : row.formula(a, b);
        EXPECT_TRUE(agrees(row.compare, expected, result))
            << info(row.op).mnemonic << std::hex << " " << a << ", " << b << " gave " << result << ", not "
            << expected;
      });
      if (HasFailure()) return;
    }
  }
}

// What an unpack code makes of an operand.
uint32_t scalar_unpack(Unpack unpack, uint32_t v) {
  const float value = f(v);
  switch (unpack) {
    case Unpack::kNone:
      return v;
    case Unpack::kAbs:
      return v & 0x7fffffff;
    case Unpack::kL:
      return u(h(v));
    case Unpack::kH:
      return u(h(v >> 16));
    case Unpack::kSat:
      return u(value > 0 ? std::min(value, 1.0f) : 0.0f);
    case Unpack::kNsat:
      return u(value > -1 ? std::min(value, 1.0f) : -1.0f);
    case Unpack::kMax0:
      return u(value > 0 ? value : 0.0f);
    case Unpack::kFf:
      return fh(value) * 0x10001;
    case Unpack::kLl:
      return (v & 0xffff) * 0x10001;
    case Unpack::kHh:
      return (v >> 16) * 0x10001;
    case Unpack::kSwp:
      return std::rotl(v, 16);
    case Unpack::kU5:
    case Unpack::kU6:
    case Unpack::kU7: {  // as sat, nsat and max0 of each half
      constexpr Unpack kOfFloat[] = {Unpack::kSat, Unpack::kNsat, Unpack::kMax0};
      const Unpack of_float = kOfFloat[static_cast<int>(unpack) - static_cast<int>(Unpack::kU5)];
      return fh(f(scalar_unpack(of_float, u(h(v))))) | fh(f(scalar_unpack(of_float, u(h(v >> 16))))) << 16;
    }
    case Unpack::kUl:
      return v & 0xffff;
    case Unpack::kUh:
      return v >> 16;
    case Unpack::kIl:
      return static_cast<uint32_t>(static_cast<int16_t>(v));
    case Unpack::kIh:
      return static_cast<uint32_t>(static_cast<int16_t>(v >> 16));
  }
  return v;
}

// Every combination of conversions that has an encoding.
TEST_P(AluTest, Conversions) {
  const chip::Generation generation = GetParam();
  Machine machine(generation);
  int combinations = 0;
  for (const Row& row : kRows) {
    if (info(row.op).input == Input::kRaw && info(row.op).output == Output::kRaw) continue;
    for (Alu alu : {Alu::kAdd, Alu::kMul}) {
      for (int ua = 0; ua <= static_cast<int>(Unpack::kIh); ++ua) {
        for (int ub = 0; ub <= static_cast<int>(Unpack::kH); ++ub) {
          for (Pack pack : {Pack::kNone, Pack::kL, Pack::kH}) {
            const auto a_code = static_cast<Unpack>(ua), b_code = static_cast<Unpack>(ub);
            if (info(row.op).operands < 2 && ub != 0) continue;
            const Instruction i = make(alu, row.op, a_code, b_code, pack);
            if (!encode(generation, i)) continue;
            ++combinations;
            const bool exchanged = is_exchanged(generation, i);
            for_all_operands(machine, i, [&](uint32_t a, uint32_t b, uint32_t result) {
              const uint32_t x = scalar_unpack(a_code, a), y = scalar_unpack(b_code, b);
              uint32_t expected = exchanged ? row.formula(y, x) : row.formula(x, y);
              Compare compare = row.compare;
              if (pack == Pack::kL) expected = 0xdead0000 | fh(f(expected));
              if (pack == Pack::kH) expected = 0x0000beef | fh(f(expected)) << 16;
              if (pack != Pack::kNone) compare = Compare::kHalves;
              if (info(row.op).input == Input::kHalf) compare = Compare::kHalves;
              // Widening a signalling half makes it quiet; MOV and FMOV of a whole register must not.
              if (row.op == Op::kFmov && ua != 0) compare = pack == Pack::kNone ? Compare::kFloat : compare;
              EXPECT_TRUE(agrees(compare, expected, result))
                  << disassemble(generation, i) << std::hex << ": " << a << ", " << b << " gave " << result
                  << ", not " << expected;
            });
            if (HasFailure()) return;
          }
        }
      }
    }
  }
  // Counted in isa.def.
  EXPECT_EQ(combinations, generation == chip::Generation::k71 ? 471 : 427);
}

// ---- Flags

struct ScalarFlags {
  bool z, n, c;
};

ScalarFlags scalar_flags(Op op, uint32_t a, uint32_t b, uint32_t result) {
  switch (info(op).flags) {
    case FlagClass::kCompare:
      return {f(a) == f(b), f(a) < f(b), f(a) <= f(b)};
    case FlagClass::kFloat:
      return {f(result) == 0, f(result) < 0, false};
    case FlagClass::kHalves:
      return {h(result) == 0 && h(result >> 16) == 0, h(result) < 0 && h(result >> 16) < 0, false};
    case FlagClass::kCompareHalves: {
      const float low = h(a), high = h(a >> 16), low_b = h(b), high_b = h(b >> 16);
      return {low == low_b && high == high_b, low < low_b && high < high_b, low <= low_b && high <= high_b};
    }
    case FlagClass::kInteger:
      break;
  }
  bool carry = false;
  if (op == Op::kAdd) carry = uint64_t{a} + b > 0xffffffffu;
  if (op == Op::kSub) carry = a < b;
  if (op == Op::kMin || op == Op::kMax) carry = s(a) > s(b);
  if (op == Op::kUmin || op == Op::kUmax) carry = a > b;
  return {result == 0, s(result) < 0, carry};
}

// All 15 flag writes of every operation, from each state of A and B.
TEST_P(AluTest, FlagWrites) {
  const chip::Generation generation = GetParam();
  Machine machine(generation);
  const auto& pairs = operands();
  for (const Row& row : kRows) {
    for (Alu alu : {Alu::kAdd, Alu::kMul}) {
      if (!has_encoding(generation, alu, row.op)) continue;
      for (int code = 1; code < 16; ++code) {
        Instruction i = make(alu, row.op, Unpack::kNone, Unpack::kNone, Pack::kNone);
        (alu == Alu::kAdd ? i.add : i.mul).flags = static_cast<FlagWrite>(code);
        machine.load({i, thrsw(), nop(), nop()});
        for (size_t at = 0; at < 400; at += kLanes) {
          machine.reset();
          Thread& t = machine.t();
          const size_t from = at * 8 % pairs.size();
          for (size_t lane = 0; lane < kLanes; ++lane) {
            t.rf[1][lane] = pairs[from + lane].first;
            t.rf[2][lane] = pairs[from + lane].second;
          }
          const LaneMask a0 = t.flag_a = 0x5a0f, b0 = t.flag_b = 0x33cc;
          ASSERT_EQ(machine.resume(), Stop::kEnd);
          for (int lane = 0; lane < kLanes; ++lane) {
            const ScalarFlags x = scalar_flags(row.op, t.rf[1][lane], t.rf[2][lane], t.rf[3][lane]);
            const int which = code < 4 ? code - 1 : code / 4 - 1;
            const bool v = which == 0 ? x.z : which == 1 ? x.n : x.c;
            const bool a = a0 >> lane & 1, b = b0 >> lane & 1;
            const bool updates[] = {a && v, a && !v, !(a || !v), !(a || v)};  // and, andn, norn, nor
            const bool new_a = code < 4 ? v : updates[code % 4], new_b = code < 4 ? a : b;
            ASSERT_EQ(t.flag_a >> lane & 1, new_a)
                << disassemble(generation, i) << std::hex << " " << t.rf[1][lane] << ", " << t.rf[2][lane];
            ASSERT_EQ(t.flag_b >> lane & 1, new_b) << disassemble(generation, i);
          }
        }
      }
    }
  }
}

TEST_P(AluTest, FlagsOfConvertedCompare) {
  Machine machine(GetParam());
  Thread& t = machine.t();
  t.rf[1] = splat(0x3c00bc00u);  // high half 1.0, low half -1.0
  t.rf[2] = splat(0xbf800000u);  // -1.0
  machine.run_program(
      {I().add(Op::kFcmp, {kWaddrNop, true}, rf(1, Unpack::kL), rf(2)).add_flags(FlagWrite::kPushz)});
  EXPECT_EQ(t.flag_a, kAllLanes);
  machine.reset();
  t.rf[1] = splat(0x3c00bc00u);
  t.rf[2] = splat(0xbf800000u);
  machine.run_program({I().add(Op::kFcmp, {kWaddrNop, true}, rf(2, Unpack::kAbs), rf(1, Unpack::kH))
                           .add_flags(FlagWrite::kPushz)});
  EXPECT_EQ(t.flag_a, kAllLanes);
}

TEST_P(AluTest, Conditions) {
  Machine machine(GetParam());
  const struct {
    Cond cond;
    LaneMask lanes;
  } cases[] = {{Cond::kNone, 0xffff},
               {Cond::kIfa, 0x0ff0},
               {Cond::kIfna, 0xf00f},
               {Cond::kIfb, 0x00ff},
               {Cond::kIfnb, 0xff00}};
  for (const auto& c : cases) {
    for (bool mul : {false, true}) {
      machine.reset();
      Thread& t = machine.t();
      t.flag_a = 0x0ff0;
      t.flag_b = 0x00ff;
      t.rf[1] = splat(7u);
      t.rf[3] = splat(9u);
      I i;
      if (mul)
        i.mul(Op::kAdd, to(3), rf(1), rf(1)).mul_if(c.cond);
      else
        i.add(Op::kAdd, to(3), rf(1), rf(1)).add_if(c.cond);
      ASSERT_EQ(machine.run_program({i}), Stop::kEnd);
      for (int lane = 0; lane < kLanes; ++lane)
        EXPECT_EQ(t.rf[3][lane], (c.lanes >> lane & 1) ? 14u : 9u) << static_cast<int>(c.cond) << " " << lane;
      EXPECT_EQ(t.flag_a, 0x0ff0);
    }
  }
}

// qpu.md 1.5: conditions of both ALUs use the flags from before the instruction; pushes are never masked.
TEST_P(AluTest, ConditionsUseOldFlags) {
  Machine machine(GetParam());
  Thread& t = machine.t();
  t.flag_a = 0x00ff;
  t.rf[1] = kLaneIndex & 1u;
  t.rf[4] = splat(5u);
  ASSERT_EQ(machine.run_program({I().add(Op::kOr, to(2), rf(1), rf(1))
                                     .add_flags(FlagWrite::kPushz)
                                     .mul(Op::kMov, to(3), rf(4))
                                     .mul_if(Cond::kIfa)}),
            Stop::kEnd);
  EXPECT_EQ(t.flag_a, 0x5555);
  EXPECT_EQ(t.flag_b, 0x00ff);
  for (int lane = 0; lane < kLanes; ++lane) EXPECT_EQ(t.rf[3][lane], lane < 8 ? 5u : 0u);
}

// ---- Operations across lanes and of the thread's state

// With every conversion that has an encoding.
TEST_P(AluTest, Derivatives) {
  Machine machine(GetParam());
  int combinations = 0;
  for (const auto& [op, step] : {std::pair{Op::kFdx, 1}, {Op::kFdy, 2}}) {
    for (Unpack unpack : {Unpack::kNone, Unpack::kAbs, Unpack::kL, Unpack::kH}) {
      for (Pack pack : {Pack::kNone, Pack::kL, Pack::kH}) {
        const Instruction i = make(Alu::kAdd, op, unpack, Unpack::kNone, pack);
        if (!encode(GetParam(), i)) continue;
        ++combinations;
        machine.reset();
        Thread& t = machine.t();
        for (int lane = 0; lane < kLanes; ++lane) {
          const auto n = static_cast<float>(lane - 5);
          t.rf[1][lane] = fh(n * 1.5f) << 16 | fh(n * n);
        }
        t.rf[3] = splat(0xdeadbeefu);
        ASSERT_EQ(machine.run_program({i}), Stop::kEnd);
        for (int lane = 0; lane < kLanes; ++lane) {
          const auto at = [&](int n) { return f(scalar_unpack(unpack, t.rf[1][n])); };
          uint32_t expected = u(at(lane | step) - at(lane & ~step));
          if (pack == Pack::kL) expected = 0xdead0000 | fh(f(expected));
          if (pack == Pack::kH) expected = 0x0000beef | fh(f(expected)) << 16;
          EXPECT_EQ(t.rf[3][lane], expected) << disassemble(GetParam(), i) << " lane " << lane;
        }
      }
    }
  }
  EXPECT_EQ(combinations, 2 * 3 * (GetParam() == chip::Generation::k71 ? 4 : 3));  // 4.2 has no .abs
}

TEST(AluLanes, Rotations) {
  Machine machine(chip::Generation::k71);
  for (int count = -15; count < 16; ++count) {
    machine.reset();
    Thread& t = machine.t();
    t.rf[1] = kLaneIndex * 3u + 100u;
    t.rf[2] = splat(static_cast<uint32_t>(count));
    t.rf[6] = kLaneIndex * 7u + 5u;  // a count per quad, in its first lane
    ASSERT_EQ(machine.run_program(
                  {I().add(Op::kRot, to(3), rf(1), rf(2)), I().add(Op::kRotq, to(4), rf(1), rf(2)),
                   I().add(Op::kShuffle, to(5), rf(1), rf(6)), I().add(Op::kRotq, to(7), rf(1), rf(6))}),
              Stop::kEnd);
    for (int i = 0; i < kLanes; ++i) {
      EXPECT_EQ(t.rf[3][i], t.rf[1][(i + count) & 15]);
      EXPECT_EQ(t.rf[4][i], t.rf[1][(i & 12) + ((i + count) & 3)]);
      EXPECT_EQ(t.rf[5][i], t.rf[1][(i * 7 + 5) & 15]);
      EXPECT_EQ(t.rf[7][i], t.rf[1][(i & 12) + ((i + (i & 12) * 7 + 5) & 3)]);
    }
  }
}

TEST(AluLanes, Subgroups) {
  Machine machine(chip::Generation::k71);
  NoTlb tlb;
  for (bool fragment : {false, true}) {
    machine.reset();
    Thread& t = machine.t();
    t.tlb = fragment ? &tlb : nullptr;
    t.msf = select(0x01f2, splat(1u), Lanes{});
    t.flag_a = 0xfffd;  // without lane 1
    const LaneMask live = fragment ? 0x0fff : 0x01f2, active = live & 0xfffd;
    t.rf[1] = kLaneIndex & 2u;
    t.rf[2] = select(0xf000, splat(3u), splat(0x80000000u));  // differs only in dead lanes
    t.rf[3] = select(0x0100, Lanes{}, splat(0x80000000u));    // +0 among -0
    for (int r = 10; r < 15; ++r) t.rf[r] = splat(77u);
    ASSERT_EQ(machine.run_program({I().add(Op::kBallot, to(10), rf(1)).add_if(Cond::kIfa),
                                   I().add(Op::kBcastf, to(11), rf(1)).add_if(Cond::kIfa),
                                   I().add(Op::kAlleq, to(12), rf(2)).add_if(Cond::kIfa),
                                   I().add(Op::kAlleq, to(13), rf(3)).add_if(Cond::kIfa),
                                   I().add(Op::kAllfeq, to(14), rf(3)).add_if(Cond::kIfa)}),
              Stop::kEnd);
    const int first = fragment ? 0 : 4;
    for (int lane = 0; lane < kLanes; ++lane) {
      const bool on = active >> lane & 1;
      EXPECT_EQ(t.rf[10][lane], on ? uint32_t{active} & 0xcccc : 77u);
      EXPECT_EQ(t.rf[11][lane], on ? static_cast<uint32_t>(first & 2) : 77u);
      EXPECT_EQ(t.rf[12][lane], on ? 1u : 77u);
      EXPECT_EQ(t.rf[13][lane], on ? 0u : 77u);
      EXPECT_EQ(t.rf[14][lane], on ? 1u : 77u);
    }
  }
}

TEST(AluLanes, SubgroupsGiveZero) {
  Machine machine(chip::Generation::k71);
  Thread& t = machine.t();
  t.rf[1] = kLaneIndex & 0u;
  t.rf[2] = select(0x0100, as_uint(splat(1.0f)), as_uint(splat(2.0f)));
  for (int r = 10; r < 14; ++r) t.rf[r] = splat(77u);
  ASSERT_EQ(machine.run_program({I().add(Op::kBallot, to(10), rf(1)), I().add(Op::kBcastf, to(11), rf(1)),
                                 I().add(Op::kAlleq, to(12), rf(2)), I().add(Op::kAllfeq, to(13), rf(2))}),
            Stop::kEnd);
  for (int r = 10; r < 14; ++r) EXPECT_EQ(lanes(t.rf[r]), same(0)) << r;
}

TEST_P(AluTest, FlagOperations) {
  Machine machine(GetParam());
  Thread& t = machine.t();
  t.flag_a = 0x0f0c;
  t.flag_b = 0xaaaa;
  t.rf[1] = kLaneIndex + 1u;
  ASSERT_EQ(machine.run_program({I().add(Op::kFlapush, to(10), rf(1)), I().add(Op::kFlbpush, to(11), rf(1)),
                                 I().add(Op::kVfla, to(12)), I().add(Op::kVflna, to(13)),
                                 I().add(Op::kVflb, to(14)), I().add(Op::kVflnb, to(15)),
                                 I().add(Op::kFlafirst, to(16)), I().add(Op::kFlnafirst, to(17))}),
            Stop::kEnd);
  for (int lane = 0; lane < kLanes; ++lane) {
    const bool a = t.flag_a >> lane & 1, b = t.flag_b >> lane & 1;
    EXPECT_EQ(t.rf[10][lane], static_cast<uint32_t>((lane + 1) * 4 + (a ? 3 : 0)));
    EXPECT_EQ(t.rf[11][lane], static_cast<uint32_t>((lane + 1) * 4 + (b ? 3 : 0)));
    EXPECT_EQ(t.rf[12][lane], a ? 0x10001u : 0u);
    EXPECT_EQ(t.rf[13][lane], a ? 0u : 0x10001u);
    EXPECT_EQ(t.rf[14][lane], b ? 0x10001u : 0u);
    EXPECT_EQ(t.rf[15][lane], b ? 0u : 0x10001u);
    EXPECT_EQ(t.rf[16][lane], lane == 2 ? 1u : 0u);
    EXPECT_EQ(t.rf[17][lane], lane == 0 ? 1u : 0u);
  }
}

TEST_P(AluTest, FlagOperationsReadOldFlags) {
  Machine machine(GetParam());
  Thread& t = machine.t();
  t.flag_a = 0x00f0;
  ASSERT_EQ(machine.run_program(
                {I().add(Op::kVfla, to(1)).mul(Op::kMov, to(2), rf(5)).mul_flags(FlagWrite::kPushz)}),
            Stop::kEnd);
  EXPECT_EQ(nonzero(t.rf[1]), 0x00f0);
  EXPECT_EQ(t.flag_a, kAllLanes);
  EXPECT_EQ(t.flag_b, 0x00f0);
}

TEST_P(AluTest, ThreadState) {
  Machine machine(GetParam());
  Thread& t = machine.t();
  t.tidx = 43;
  t.link = 0x1238;
  t.pixel_x = kLaneIndex + 10u;
  t.pixel_y = kLaneIndex + 20u;
  t.sample_x = __builtin_convertvector(kLaneIndex, LanesF) + 0.5f;
  t.sample_y = __builtin_convertvector(kLaneIndex, LanesF) + 0.25f;
  t.msf = kLaneIndex & 3u;
  t.back_facing = 0x0f0f;
  t.gs_invocation = splat(6u);
  t.sample_id = splat(2u);
  std::vector<Instruction> program;
  int r = 10;
  for (Op op : {Op::kTidx, Op::kEidx, Op::kLr, Op::kXcd, Op::kYcd, Op::kFxcd, Op::kFycd, Op::kMsf, Op::kRevf,
                Op::kIid, Op::kSampid, Op::kTmuwt, Op::kVpmwt})
    program.push_back(I().add(op, to(r++)));
  program.push_back(I().add(Op::kFxcd, to(r)).add_pack(Pack::kH));
  ASSERT_EQ(machine.run_program(program), Stop::kEnd);
  EXPECT_EQ(lanes(t.rf[10]), same(43));
  EXPECT_EQ(lanes(t.rf[11]), lanes(kLaneIndex));
  EXPECT_EQ(lanes(t.rf[12]), same(0x1238));
  EXPECT_EQ(lanes(t.rf[13]), lanes(t.pixel_x));
  EXPECT_EQ(lanes(t.rf[14]), lanes(t.pixel_y));
  EXPECT_EQ(lanes(t.rf[15]), lanes(as_uint(t.sample_x)));
  EXPECT_EQ(lanes(t.rf[16]), lanes(as_uint(t.sample_y)));
  EXPECT_EQ(lanes(t.rf[17]), lanes(kLaneIndex & 3u));
  for (int lane = 0; lane < kLanes; ++lane) EXPECT_EQ(t.rf[18][lane], (lane & 4) ? 0u : 1u);
  EXPECT_EQ(lanes(t.rf[19]), same(6));
  EXPECT_EQ(lanes(t.rf[20]), same(2));
  for (int lane = 0; lane < kLanes; ++lane)
    EXPECT_EQ(t.rf[r][lane], fh(static_cast<float>(lane) + 0.5f) << 16);
}

TEST_P(AluTest, SetMsfAndRevf) {
  Machine machine(GetParam());
  Thread& t = machine.t();
  t.flag_a = 0x00ff;
  t.rf[1] = kLaneIndex;
  ASSERT_EQ(machine.run_program({I().add(Op::kSetmsf, {kWaddrNop, true}, rf(1)).add_if(Cond::kIfa),
                                 I().add(Op::kSetrevf, {kWaddrNop, true}, rf(1)).add_if(Cond::kIfa),
                                 I().add(Op::kMsf, to(2)), I().add(Op::kRevf, to(3))}),
            Stop::kEnd);
  for (int lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(t.rf[2][lane], lane < 8 ? static_cast<uint32_t>(lane) : 1u);
    EXPECT_EQ(t.rf[3][lane], lane < 8 && lane > 0 ? 1u : 0u);
  }
}

// nir's imul: MULTOP then UMUL24 give the low 32 bits.
TEST_P(AluTest, Multiplication) {
  Machine machine(GetParam());
  const auto& pairs = operands();
  machine.load({I().mul(Op::kMultop, {kWaddrNop, true}, rf(1), rf(2)),
                I().mul(Op::kUmul24, to(3), rf(1), rf(2)), I().mul(Op::kUmul24, to(4), rf(1), rf(2)), thrsw(),
                nop(), nop()});
  for (size_t at = 0; at < pairs.size(); at += kLanes) {
    machine.reset();
    Thread& t = machine.t();
    for (size_t lane = 0; lane < kLanes; ++lane) {
      t.rf[1][lane] = pairs[at + lane].first;
      t.rf[2][lane] = pairs[at + lane].second;
    }
    ASSERT_EQ(machine.resume(), Stop::kEnd);
    ASSERT_EQ(lanes(t.rf[3]), lanes(t.rf[1] * t.rf[2]));
    ASSERT_EQ(lanes(t.rf[4]), lanes((t.rf[1] & 0xffffffu) * (t.rf[2] & 0xffffffu)));
  }
}

TEST_P(AluTest, SmallImmediates) {
  Machine machine(GetParam());
  for (int code = 0; code < kSmallImmediates; ++code) {
    machine.reset();
    const Operand immediate = {Operand::Kind::kImmediate, static_cast<uint8_t>(code), Unpack::kNone};
    ASSERT_EQ(machine.run_program(
                  {I().add(Op::kOr, to(1), rf(5), immediate), I().mul(Op::kAdd, to(2), rf(5), immediate)}),
              Stop::kEnd);
    uint32_t expected = code < 16 ? static_cast<uint32_t>(code) : static_cast<uint32_t>(code - 32);
    if (code >= 32) expected = u(std::ldexp(1.0f, code - 40));
    EXPECT_EQ(lanes(machine.t().rf[1]), same(expected));
    EXPECT_EQ(lanes(machine.t().rf[2]), same(expected));
  }
}

// An immediate may be any of the four operands.
TEST_P(AluTest, SmallImmediatesOnEitherSide) {
  Machine machine(GetParam());
  machine.t().rf[5] = splat(1000u);
  const Operand five = imm(-5);
  for (const auto& [left, right, expected] :
       {std::tuple{five, rf(5), uint32_t(-1005)}, {rf(5), five, uint32_t{1005}}}) {
    ASSERT_EQ(
        machine.run_program({I().add(Op::kSub, to(1), left, right), I().mul(Op::kSub, to(2), left, right)}),
        Stop::kEnd);
    EXPECT_EQ(lanes(machine.t().rf[1]), same(expected));
    EXPECT_EQ(lanes(machine.t().rf[2]), same(expected));
    machine.reset();
    machine.t().rf[5] = splat(1000u);
  }
}

// Operations on floats with an immediate on either side, and every conversion of the other operand and of the
// result.
TEST_P(AluTest, FloatImmediates) {
  const chip::Generation generation = GetParam();
  Machine machine(generation);
  const struct {
    uint8_t code;
    float value;
  } immediates[] = {{0, 0}, {39, 0.5f}, {40, 1}, {41, 2}};
  int combinations = 0;
  for (const Row& row : kRows) {
    if (info(row.op).input != Input::kFloat || info(row.op).operands < 2) continue;
    for (const auto& immediate : immediates) {
      for (const bool left : {true, false}) {
        for (Unpack unpack : {Unpack::kNone, Unpack::kAbs, Unpack::kL, Unpack::kH}) {
          for (Pack pack : {Pack::kNone, Pack::kL, Pack::kH}) {
            Instruction i = make(row.mul ? Alu::kMul : Alu::kAdd, row.op, left ? Unpack::kNone : unpack,
                                 left ? unpack : Unpack::kNone, pack);
            AluHalf& half = row.mul ? i.mul : i.add;
            half.a.index = half.b.index = 1;
            (left ? half.a : half.b) = {Operand::Kind::kImmediate, immediate.code, Unpack::kNone};
            if (!encode(generation, i)) continue;
            ++combinations;
            machine.reset();
            Thread& t = machine.t();
            // No half is zero: which zero a minimum gives is the business of Formulas.
            for (int lane = 0; lane < kLanes; ++lane) {
              const auto n = static_cast<float>(lane);
              t.rf[1][lane] = fh(n * 1.25f - 9.5f) << 16 | fh(7.75f - n * 0.75f);
            }
            t.rf[3] = splat(0xdeadbeefu);
            ASSERT_EQ(machine.run_program({i}), Stop::kEnd);
            for (int lane = 0; lane < kLanes; ++lane) {
              const uint32_t x = scalar_unpack(unpack, t.rf[1][lane]), y = u(immediate.value);
              uint32_t expected = left ? row.formula(y, x) : row.formula(x, y);
              if (pack == Pack::kL) expected = 0xdead0000 | fh(f(expected));
              if (pack == Pack::kH) expected = 0x0000beef | fh(f(expected)) << 16;
              EXPECT_EQ(t.rf[3][lane], expected) << disassemble(generation, i) << " lane " << lane;
            }
          }
        }
      }
    }
  }
  // Six operations with every conversion; FCMP without packs on 7.1; VFPACK without packs and .abs.
  EXPECT_EQ(combinations, 4 * 2 * (6 * 4 * 3 + 4 * (generation == chip::Generation::k71 ? 1 : 3) + 3));
}

// Both ALUs read before either writes, whatever the order in which they run.
TEST_P(AluTest, HalvesReadOldRegisters) {
  Machine machine(GetParam());
  Thread& t = machine.t();
  const auto set = [&] {
    machine.reset();
    t.rf[1] = splat(10u);
    t.rf[2] = splat(20u);
  };
  set();  // exchange
  machine.run_program({I().add(Op::kOr, to(1), rf(2), rf(2)).mul(Op::kMov, to(2), rf(1))});
  EXPECT_EQ(lanes(t.rf[1]), same(20));
  EXPECT_EQ(lanes(t.rf[2]), same(10));
  set();  // mul reads what add writes
  machine.run_program({I().add(Op::kAdd, to(1), rf(2), rf(2)).mul(Op::kAdd, to(3), rf(1), rf(1))});
  EXPECT_EQ(lanes(t.rf[1]), same(40));
  EXPECT_EQ(lanes(t.rf[3]), same(20));
  set();  // add reads what mul writes
  machine.run_program({I().add(Op::kAdd, to(3), rf(1), rf(2)).mul(Op::kMov, to(1), rf(2))});
  EXPECT_EQ(lanes(t.rf[1]), same(20));
  EXPECT_EQ(lanes(t.rf[3]), same(30));
  set();  // a packed write keeps a half of the old register
  machine.run_program(
      {I().add(Op::kFsub, to(1), rf(2), rf(2)).add_pack(Pack::kH).mul(Op::kMov, to(3), rf(1))});
  EXPECT_EQ(lanes(t.rf[1]), same(10));
  EXPECT_EQ(lanes(t.rf[3]), same(10));
}

TEST(Alu, UnknownOperationsGiveZero) {
  Machine machine(chip::Generation::k71);
  Thread& t = machine.t();
  t.rf[5] = t.rf[6] = splat(1u);
  ASSERT_EQ(
      machine.run_program({I().add(Op::kLdvpmgOut, to(5), rf(1), rf(2)), I().add(Op::kLdvpmp, to(6), rf(1)),
                           I().add(Op::kStvpmp, {kWaddrNop, true}, rf(1), rf(2))}),
      Stop::kEnd);
  EXPECT_EQ(lanes(t.rf[5]), same(0));
  EXPECT_EQ(lanes(t.rf[6]), same(0));
}

}  // namespace
}  // namespace v3d::qpu
