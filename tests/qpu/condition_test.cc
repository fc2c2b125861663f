/// All 128 values of the condition field, executed, against the patterns of qpu.md 1.4.

#include <gtest/gtest.h>

#include <bitset>
#include <optional>
#include <random>
#include <string>

#include "tests/qpu/machine.h"

namespace v3d::qpu {
namespace {

using namespace assembly;

// Letters: c, e condition; p push; u update. Bit 6 first.
struct Pattern {
  const char* bits;
  const char *add, *mul;  ///< the letter whose bits the ALU takes, preceded by what they are
};
constexpr Pattern kPatterns[] = {
    {"00000pp", "push p", ""},     {"0010000", "invalid", ""},  {"00100pp", "", "push p"},
    {"000uuuu", "update u", ""},   {"001uuuu", "", "update u"}, {"010ccpp", "if c", "push p"},
    {"011ccpp", "push p", "if c"}, {"1cc00ee", "if e", "if c"}, {"1ccuuuu", "update u", "if c"},
};

const Pattern& pattern_of(uint32_t field) {
  const std::string bits = std::bitset<7>(field).to_string();
  for (const Pattern& p : kPatterns) {
    bool matches = true;
    for (size_t n = 0; n < 7; ++n) matches = matches && (std::isalpha(p.bits[n]) || p.bits[n] == bits[n]);
    if (matches) return p;
  }
  ADD_FAILURE() << "no pattern for " << bits;
  return kPatterns[0];
}

uint32_t bits_of(const Pattern& p, uint32_t field, char letter) {
  uint32_t value = 0;
  for (int n = 0; n < 7; ++n)
    if (p.bits[n] == letter) value = value << 1 | (field >> (6 - n) & 1);
  return value;
}

// What one ALU does: a condition 0..3, or a flag write 1..15.
struct Action {
  std::optional<uint32_t> condition;
  uint32_t write = 0;
};
Action action_of(const Pattern& p, uint32_t field, const std::string& what) {
  Action action;
  if (what.empty()) return action;
  const uint32_t value = bits_of(p, field, what.back());
  if (what.starts_with("if"))
    action.condition = value;
  else
    action.write = value;
  return action;
}

struct LaneFlags {
  bool a, b;
};

bool executes(const Action& action, LaneFlags flags) {
  if (!action.condition) return true;
  const bool by_a[] = {flags.a, flags.b, !flags.a, !flags.b};
  return by_a[*action.condition];
}

LaneFlags written(const Action& action, LaneFlags old, bool z, bool n, bool c) {
  if (action.write == 0) return old;
  if (action.write < 4) return {action.write == 1 ? z : action.write == 2 ? n : c, old.a};
  const bool x = action.write < 8 ? z : action.write < 12 ? n : c;
  const bool updated[] = {old.a && x, old.a && !x, !(old.a || !x), !(old.a || x)};
  return {updated[action.write % 4], old.b};
}

class ConditionTest : public testing::TestWithParam<chip::Generation> {};
INSTANTIATE_TEST_SUITE_P(Versions, ConditionTest,
                         testing::Values(chip::Generation::k71, chip::Generation::k42));

TEST_P(ConditionTest, EveryValue) {
  const chip::Generation generation = GetParam();
  Machine m(generation);
  std::mt19937 random(5);
  const uint64_t word =
      *encode(generation, I().add(Op::kAdd, to(3), rf(1), rf(2)).mul(Op::kSub, to(4), rf(1), rf(2)));
  m.load({nop(), thrsw(), nop(), nop()});
  for (uint32_t field = 0; field < 128; ++field) {
    const Pattern& p = pattern_of(field);
    const uint64_t code = word | uint64_t{field} << 46;
    Instruction i;
    ASSERT_EQ(decode(generation, code, i), std::string(p.add) != "invalid") << std::bitset<7>(field);
    if (std::string(p.add) == "invalid") continue;
    const Action add = action_of(p, field, p.add), mul = action_of(p, field, p.mul);

    m.reset();
    Thread& t = m.t();
    std::memcpy(m.memory().host(Machine::kCode), &code, sizeof(code));
    // Small numbers, so that zeros, negative results and borrows occur.
    for (int lane = 0; lane < kLanes; ++lane)
      t.rf[1][lane] = random() % 3 - 1, t.rf[2][lane] = random() % 3 - 1;
    t.rf[3] = t.rf[4] = splat(0xdeadu);
    const auto a = static_cast<LaneMask>(random()), b = static_cast<LaneMask>(random());
    t.flag_a = a;
    t.flag_b = b;
    ASSERT_EQ(m.resume(), Stop::kEnd);
    for (int lane = 0; lane < kLanes; ++lane) {
      const uint32_t x = t.rf[1][lane], y = t.rf[2][lane], sum = x + y, difference = x - y;
      const LaneFlags old = {(a >> lane & 1) != 0, (b >> lane & 1) != 0};
      EXPECT_EQ(t.rf[3][lane], executes(add, old) ? sum : 0xdeadu) << disassemble(generation, i);
      EXPECT_EQ(t.rf[4][lane], executes(mul, old) ? difference : 0xdeadu) << disassemble(generation, i);
      LaneFlags flags = written(add, old, sum == 0, sum >> 31, uint64_t{x} + y > 0xffffffffu);
      if (mul.write) flags = written(mul, old, difference == 0, difference >> 31, x < y);
      EXPECT_EQ(t.flag_a >> lane & 1, flags.a) << disassemble(generation, i);
      EXPECT_EQ(t.flag_b >> lane & 1, flags.b) << disassemble(generation, i);
    }
    if (HasFailure()) return;
  }
}

// Every operation with a result obeys conditions, in both ALUs, at registers and at 7.1's replicating
// addresses.
TEST_P(ConditionTest, EveryOperation) {
  const chip::Generation generation = GetParam();
  Machine m(generation);
  int tested = 0;
  for (int n = 0; n < kNumOps; ++n) {
    const Op op = static_cast<Op>(n);
    const OpInfo& about = info(op);
    if (!about.has_destination || (about.traits & (kUnknown | kVpm))) continue;
    for (const bool is_mul : {false, true}) {
      for (const Cond cond : {Cond::kIfa, Cond::kIfb, Cond::kIfna, Cond::kIfnb}) {
        AluHalf h =
            half(op, to(3), about.operands > 0 ? rf(1) : Operand{}, about.operands > 1 ? rf(2) : Operand{});
        if (op == Op::kSetmsf) h.magic = true, h.waddr = kWaddrNop;
        h.cond = cond;
        Instruction i;
        (is_mul ? i.mul : i.add) = h;
        if (!encode(generation, i)) continue;
        ++tested;
        const auto run = [&](LaneMask a, LaneMask b) -> Thread& {
          m.reset();
          for (int lane = 0; lane < kLanes; ++lane) m.t().rf[1][lane] = 3 * static_cast<uint32_t>(lane) + 1;
          m.t().rf[2] = splat(2u);
          m.t().rf[3] = splat(0xdeadu);
          m.t().flag_a = a;
          m.t().flag_b = b;
          EXPECT_EQ(m.run_program({i}), Stop::kEnd);
          return m.t();
        };
        const LaneMask a = 0x0ff0, b = 0x3c3c;
        const LaneMask lanes_of[] = {a, b, static_cast<LaneMask>(~a), static_cast<LaneMask>(~b)};
        const LaneMask exec = lanes_of[static_cast<int>(cond) - 1];
        Thread& t = run(a, b);
        for (int lane = 0; lane < kLanes; ++lane) {
          if (op == Op::kSetmsf) {
            EXPECT_EQ(t.msf[lane], (exec >> lane & 1) ? 3u * static_cast<uint32_t>(lane) + 1 : 1u);
          } else if (!(exec >> lane & 1)) {
            EXPECT_EQ(t.rf[3][lane], 0xdeadu) << disassemble(generation, i) << " lane " << lane;
          }
        }
        EXPECT_EQ(t.flag_a, a);
        EXPECT_EQ(t.flag_b, b);
      }
    }
  }
  EXPECT_GT(tested, generation == chip::Generation::k71 ? 330 : 280);
}

}  // namespace
}  // namespace v3d::qpu
