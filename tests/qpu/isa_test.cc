#include "gpu/qpu/isa/isa.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "gpu/qpu/isa/instruction.h"
#include "tests/qpu/known_words.h"
#include "tests/qpu/random_words.h"
#if V3DEMU_HAVE_MESA
#include "tests/qpu/mesa_qpu.h"
#endif

namespace v3d::qpu {
namespace {

// One blank between words and around semicolons.
std::string normalised(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (c == ';') {
      while (!result.empty() && result.back() == ' ') result.pop_back();
      result += " ; ";
    } else if (c != ' ' || (!result.empty() && result.back() != ' ')) {
      result += c;
    }
  }
  while (!result.empty() && result.back() == ' ') result.pop_back();
  return result;
}

class IsaTest : public testing::TestWithParam<chip::Generation> {};
INSTANTIATE_TEST_SUITE_P(Versions, IsaTest, testing::Values(chip::Generation::k71, chip::Generation::k42));

TEST(Isa, KnownWords71) {
  for (const KnownWord& k : kKnownWords71) {
    EXPECT_EQ(normalised(disassemble(chip::Generation::k71, k.word)), normalised(k.text))
        << std::hex << k.word;
  }
}

TEST(Isa, KnownWords42) {
  for (const KnownWord& k : kKnownWords42) {
    EXPECT_EQ(normalised(disassemble(chip::Generation::k42, k.word)), normalised(k.text))
        << std::hex << k.word;
  }
}

// What Mesa compiled is in canonical form on 7.1: the encoder must find the same word.
TEST(Isa, EncodesKnownWords71) {
  for (const KnownWord& k : kKnownWords71) {
    Instruction i;
    ASSERT_TRUE(decode(chip::Generation::k71, k.word, i));
    const auto word = encode(chip::Generation::k71, i);
    ASSERT_TRUE(word) << k.text;
    // Operations without operands leave raddr_a open.
    uint64_t unused = info(i.add.op).operands == 0 && !i.is_branch ? 0xfc0 : 0;
    if (sets_nn_mode(i.add.op)) unused |= 0x103f'0000'0000;  // no destination
    EXPECT_EQ(*word & ~unused, k.word & ~unused) << std::hex << *word << " for " << k.word << " " << k.text;
  }
}

TEST_P(IsaTest, DecodeInvertsEncode) {
  const chip::Generation generation = GetParam();
  RandomWords words(generation);
  int valid = 0;
  for (int n = 0; n < 40000; ++n) {
    const uint64_t word = words.next();
    Instruction i, again;
    if (!decode(generation, word, i)) continue;
    ++valid;
    const auto encoded = encode(generation, i);
    ASSERT_TRUE(encoded) << std::hex << word << " " << disassemble(generation, i);
    ASSERT_TRUE(decode(generation, *encoded, again)) << std::hex << word << " " << *encoded;
    ASSERT_EQ(i, again) << std::hex << word << " " << disassemble(generation, i) << " | "
                        << disassemble(generation, again);
  }
  EXPECT_GT(valid, 10000);
}

// The tables must not be ambiguous: no opcode and selector belongs to two rows with the same variant.
TEST_P(IsaTest, EncodingsAreDisjoint) {
  std::set<std::tuple<Alu, uint32_t, uint32_t, Variant>> seen;
  std::set<Op> ops;
  for (const Encoding& e : encodings()) {
    if (!(e.generations & set_of(GetParam()))) continue;
    ops.insert(e.op);
    for (uint32_t opcode = e.first; opcode <= e.last; ++opcode)
      for (uint32_t selector = e.sel_first; selector <= e.sel_last; ++selector) {
        Modifiers modifiers;
        const bool fresh = !read_modifiers(e, opcode, selector, modifiers) ||
                           seen.emplace(e.alu, opcode, selector, e.variant).second;
        EXPECT_TRUE(fresh) << info(e.op).mnemonic << " " << opcode << " " << selector;
      }
  }
  for (int n = 0; n < kNumOps; ++n) {
    const Op op = static_cast<Op>(n);
    static const std::set<Op> kNot42 = {
        Op::kVpack,          Op::kV8pack,         Op::kV10pack,        Op::kV11fpack,
        Op::kFtounorm16,     Op::kFtosnorm16,     Op::kVftounorm8,     Op::kVftosnorm8,
        Op::kVftounorm10lo,  Op::kVftounorm10hi,  Op::kBallot,         Op::kBcastf,
        Op::kAlleq,          Op::kAllfeq,         Op::kRotq,           Op::kRot,
        Op::kShuffle,        Op::kVfadd,          Op::kVfsub,          Op::kVfcmp,
        Op::kV8dot,          Op::kSetnnmodeUu,    Op::kSetnnmodeSu,    Op::kSetnnmodeUs,
        Op::kSetnnmodeSs,    Op::kFunpackunormlo, Op::kFunpackunormhi, Op::kFunpacksnormlo,
        Op::kFunpacksnormhi, Op::kVfmov,          Op::kVfabsmov,       Op::kVfnegmov,
        Op::kVfnabmov,       Op::kVfmovabs,       Op::kVfabs,          Op::kVfnegabs,
        Op::kVfnababs,       Op::kVfmovneg,       Op::kVfabsneg,       Op::kVfneg,
        Op::kVfnabneg,       Op::kVfmovnab,       Op::kVfabsnab,       Op::kVfnegnab,
        Op::kVfnab};
    const bool expected = GetParam() == chip::Generation::k42 ? !kNot42.contains(op) : op != Op::kVpmsetup;
    EXPECT_EQ(ops.contains(op), expected) << info(op).mnemonic;
  }
}

// What the encoder must refuse or repair.
TEST(Isa, MinMaxOrder) {
  Instruction i;
  i.add = {.op = Op::kFmax,
           .magic = false,
           .waddr = 3,
           .a = {Operand::Kind::kRegister, 1, Unpack::kNone},
           .b = {Operand::Kind::kRegister, 2, Unpack::kNone}};
  auto word = encode(chip::Generation::k71, i);
  ASSERT_TRUE(word);
  EXPECT_EQ(normalised(disassemble(chip::Generation::k71, *word)), "fmax rf3, rf2, rf1 ; nop");  // exchanged
  i.add.b.index = 1;
  EXPECT_FALSE(encode(chip::Generation::k71, i));  // FMAX of a register with itself has no word on 7.1
  word = encode(chip::Generation::k42, i);         // but two addresses on 4.2
  ASSERT_TRUE(word);
  EXPECT_EQ(normalised(disassemble(chip::Generation::k42, *word)), "fmax rf3, rf1, rf1 ; nop");
}

TEST(Isa, EncoderRefuses) {
  const auto reg = [](uint8_t n) { return Operand{Operand::Kind::kRegister, n, Unpack::kNone}; };
  const auto imm = [](uint8_t n) { return Operand{Operand::Kind::kImmediate, n, Unpack::kNone}; };
  Instruction i;
  i.add = {.op = Op::kAdd, .magic = false, .waddr = 0, .a = imm(1), .b = imm(2)};
  EXPECT_FALSE(encode(chip::Generation::k71, i));  // two immediates
  EXPECT_FALSE(encode(chip::Generation::k42, i));
  i.add.b = imm(1);
  EXPECT_FALSE(encode(chip::Generation::k71, i));
  EXPECT_TRUE(encode(chip::Generation::k42, i));  // one immediate, read twice
  i.add.b = reg(5);
  i.mul = {.op = Op::kAdd, .magic = false, .waddr = 1, .a = reg(6), .b = reg(7)};
  EXPECT_TRUE(encode(chip::Generation::k71, i));
  EXPECT_FALSE(encode(chip::Generation::k42, i));  // three registers
  i = {};
  i.add = {.op = Op::kAdd, .cond = Cond::kIfa, .flags = FlagWrite::kPushz, .a = reg(1), .b = reg(2)};
  EXPECT_FALSE(encode(chip::Generation::k71, i));  // one ALU both conditional and writing flags
  i.add.cond = Cond::kNone;
  i.signals = kLdvary;
  EXPECT_FALSE(encode(chip::Generation::k71, i));  // the condition field holds the address
  i.add.flags = FlagWrite::kNone;
  EXPECT_TRUE(encode(chip::Generation::k71, i));
  i.signals = kLdvary | kLdtmu;
  EXPECT_FALSE(encode(chip::Generation::k71, i));
}

TEST(Isa, InvalidWords) {
  EXPECT_EQ(disassemble(chip::Generation::k71, 0), "invalid instruction");
  EXPECT_EQ(disassemble(chip::Generation::k42, 0), "invalid instruction");
  EXPECT_EQ(disassemble(chip::Generation::k71, ~uint64_t{0}), "invalid instruction");
  Instruction i;
  EXPECT_FALSE(decode(chip::Generation::k71, 0x0200'0000'0060'0000, i));                         // msfign 3
  EXPECT_FALSE(decode(chip::Generation::k71, 0x3be0'3186'bb03'f000 & ~(uint64_t{3} << 53), i));  // signal 28
}

// Bit 23, which Mesa does not know.
TEST(Isa, SetLink) {
  Instruction i;
  ASSERT_TRUE(decode(chip::Generation::k71, 0x0200'0000'0080'1000, i));
  EXPECT_TRUE(i.branch.set_link);
  EXPECT_EQ(encode(chip::Generation::k71, i), 0x0200'0000'0080'1000);
}

TEST(Isa, SmallImmediates) {
  EXPECT_EQ(small_immediate(15), 15u);
  EXPECT_EQ(small_immediate(16), static_cast<uint32_t>(-16));
  EXPECT_EQ(small_immediate(31), static_cast<uint32_t>(-1));
  EXPECT_EQ(small_immediate(32), 0x3b800000u);  // 2^-8
  EXPECT_EQ(small_immediate(40), 0x3f800000u);
  EXPECT_EQ(small_immediate(47), 0x43000000u);  // 2^7
}

#if V3DEMU_HAVE_MESA

// How Mesa's decoder reads an instruction, where that is known to be wrong (qpu.md 1.10, disassemble.cc).
enum class Known { kSame, kAltered, kNotComparable };

Known alter_half(chip::Generation generation, AluHalf& half, bool is_mul) {
  Known known = Known::kSame;
  const auto alter = [&](auto& field, auto value) {
    if (field == value) return;
    field = value;
    known = Known::kAltered;
  };
  if (half.magic && half.waddr > kWaddrRep) return Known::kNotComparable;  // beyond the end of Mesa's table
  switch (half.op) {
    case Op::kFround:
    case Op::kFtrunc:
    case Op::kFfloor:
    case Op::kFceil:
    case Op::kFdx:
    case Op::kFdy:
      if (generation == chip::Generation::k71) alter(half.a.unpack, Unpack::kNone);
      break;
    case Op::kFmov:
      if (generation != chip::Generation::k71 || !is_mul) break;
      if (half.a.unpack == Unpack::kSat) alter(half.a.unpack, Unpack::kAbs);
      if (half.a.unpack == Unpack::kNsat) alter(half.a.unpack, Unpack::kNone);
      if (half.a.unpack == Unpack::kMax0) alter(half.a.unpack, Unpack::kL);
      break;
    case Op::kMov:
      if (half.a.unpack != Unpack::kNone) return Known::kNotComparable;
      break;
    case Op::kItof:
    case Op::kUtof:
    case Op::kFxcd:
    case Op::kFycd:
      alter(half.pack, Pack::kNone);
      break;
    default:
      break;
  }
  return known;
}

void replace(std::string& text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at != std::string::npos) text.replace(at, from.size(), to);
}

// Opcodes at which Mesa's 7.1 decoder runs into unreachable code, or whose text it cannot print.
bool mesa_crashes(chip::Generation generation, uint64_t word) {
  const uint32_t op_add = word >> 24 & 255, op_mul = static_cast<uint32_t>(word >> 58);
  if (op_mul == 0) return false;
  return generation == chip::Generation::k71 &&
         ((op_add >= 176 && op_add <= 180) || (op_mul >= 4 && op_mul <= 8));
}

// Words that Mesa 25.0.7 does not know and newer ones do: opcodes and selectors of 7.1.
bool is_newer_than_mesa(chip::Generation generation, uint64_t word) {
  const uint32_t op_add = word >> 24 & 255, raddr_b = word & 63;
  const uint32_t op_mul = static_cast<uint32_t>(word >> 58), raddr_d = word >> 12 & 63;
  if (generation != chip::Generation::k71 || op_mul == 0) return false;
  const auto in = [](uint32_t v, uint32_t first, uint32_t last) { return v >= first && v <= last; };
  return in(op_add, 48, 52) || in(op_add, 112, 119) || in(op_add, 208, 215) ||
         (op_add == 187 && in(raddr_b, 48, 51)) || (op_add == 191 && raddr_b < 16) || op_mul == 11 ||
         (op_mul == 14 && in(raddr_d, 36, 39));
}

TEST_P(IsaTest, AgreesWithMesa) {
  const chip::Generation generation = GetParam();
  RandomWords words(generation);
  int compared = 0, altered = 0, skipped = 0, invalid = 0, newer = 0;
  for (int n = 0; n < 1'000'000; ++n) {
    const uint64_t word = words.next();
    Instruction i;
    const bool ours = decode(generation, word, i);
    if (mesa_crashes(generation, word)) {
      ++skipped;
      continue;
    }
    if (is_newer_than_mesa(generation, word)) {
      ASSERT_FALSE(mesa_qpu_disassemble(version_number(generation), word, nullptr, 0)) << std::hex << word;
      newer += ours;
      continue;
    }
    Known known = Known::kSame;
    if (ours && !i.is_branch) {
      const Known add = alter_half(generation, i.add, false), mul = alter_half(generation, i.mul, true);
      const bool far_signal =
          (i.signals & kSignalsWithAddress) && i.signal_magic && i.signal_waddr > kWaddrRep;
      known = add == Known::kNotComparable || mul == Known::kNotComparable || far_signal
                  ? Known::kNotComparable
                  : std::max(add, mul);
      if (generation == chip::Generation::k71 && i.add.op == Op::kVfmax) known = Known::kNotComparable;
    }
    if (known == Known::kNotComparable) {
      ++skipped;
      continue;
    }
    char text[256];
    const bool mesa =
        mesa_qpu_disassemble(version_number(generation), word, ours ? text : nullptr, sizeof(text));
    if (!ours && mesa) {
      // Small immediates that do not exist, and 7.1 mul FMOV with unpack code 7.
      const uint32_t signal = word >> 53 & 31;
      const SignalCode& code = signal_codes(generation)[signal];
      const bool fmov7 = generation == chip::Generation::k71 && word >> 58 == 14 && (word >> 14 & 15) == 7;
      const bool rotate = code.signals & kRotate;
      ASSERT_TRUE(code.immediates != 0 || fmov7 || rotate) << std::hex << word;
      ++skipped;
      continue;
    }
    ASSERT_EQ(ours, mesa) << std::hex << word << " " << disassemble(generation, word);
    if (!ours) {
      ++invalid;
      continue;
    }
    i.signals &= static_cast<uint16_t>(~(kUcb | kRotate));  // not printed by Mesa, as bit 23 of branches
    i.branch.set_link = false;
    std::string expected = disassemble(generation, i);
    if (generation == chip::Generation::k42) replace(expected, "iid", "vdwwt");
    while (expected.find("tmuhscm") != std::string::npos) replace(expected, "tmuhscm", "tmuscm");
    std::string actual = text;
    if (expected != actual &&
        (generation == chip::Generation::k42 || expected.find("tmuscm") != std::string::npos)) {
      expected = normalised(expected);  // the columns moved with the name
      actual = normalised(actual);
    }
    ASSERT_EQ(expected, actual) << std::hex << word;
    ++compared;
    altered += known == Known::kAltered;
  }
  RecordProperty("compared", compared);
  std::printf(
      "%s: %d words compared, %d of them with a known fault of Mesa, %d not comparable, %d invalid, "
      "%d with operations of newer ones\n",
      chip::version_text(generation), compared, altered, skipped, invalid, newer);
  EXPECT_EQ(newer > 30'000, generation == chip::Generation::k71);
  EXPECT_GT(compared, 300'000);
  EXPECT_LT(skipped, 200'000);
}

// Words of our encoder mean the same to Mesa.
TEST_P(IsaTest, MesaReadsOurWords) {
  const chip::Generation generation = GetParam();
  RandomWords words(generation);
  int compared = 0;
  for (int n = 0; n < 40'000; ++n) {
    const uint64_t word = words.next();
    Instruction i;
    if (mesa_crashes(generation, word) || !decode(generation, word, i) || i.is_branch) continue;
    if (alter_half(generation, i.add, false) != Known::kSame ||
        alter_half(generation, i.mul, true) != Known::kSame || (i.signal_magic && i.signal_waddr > kWaddrRep))
      continue;
    const auto encoded = encode(generation, i);
    ASSERT_TRUE(encoded);
    char before[256], after[256];
    if (!mesa_qpu_disassemble(version_number(generation), word, before, sizeof(before))) continue;
    ASSERT_TRUE(mesa_qpu_disassemble(version_number(generation), *encoded, after, sizeof(after)));
    ASSERT_STREQ(before, after) << std::hex << word << " " << *encoded;
    ++compared;
  }
  EXPECT_GT(compared, 8'000);
}

#endif  // V3DEMU_HAVE_MESA

}  // namespace
}  // namespace v3d::qpu
