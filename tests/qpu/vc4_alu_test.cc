#include "gpu/qpu/run/vc4_alu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gpu/qpu/isa/vc4.h"

namespace v3d::qpu::vc4 {
namespace {

// ---- What a chip computed: tests/qpu/recorded

struct Table {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;
  explicit Table(const std::string& name) {
    std::ifstream file(std::string(V3DEMU_VC4_RECORDED) + "/" + name + ".csv");
    std::string line;
    while (std::getline(file, line)) {
      std::vector<std::string> cells;
      std::string cell;
      for (std::istringstream stream(line); std::getline(stream, cell, ',');) {
        while (!cell.empty() && cell.back() == '\r') cell.pop_back();
        cells.push_back(cell);
      }
      cells.resize(std::max(cells.size(), names.size()));
      (names.empty() ? names : rows.emplace_back()) = cells;
    }
  }
};

uint32_t word(const std::string& hexadecimal) {
  return static_cast<uint32_t>(std::stoul(hexadecimal, nullptr, 16));
}

Op op_named(const std::string& name) {
  for (int n = 0; n < kNumOps; ++n)
    if (info(static_cast<Op>(n)).text == name) return static_cast<Op>(n);
  return Op::kReserved;
}

Packable computed(Op op, uint32_t a, uint32_t b) {
  const Lanes x = splat(a), y = splat(b);
  Packable result;
  result.value = find_alu(op)(x, y);
  if (const CarryFn carry = find_carry(op)) result.carry = carry(x, y, result.value);
  result.overflow = overflow(op, x, y, result.value);
  result.is_float = info(op).floats & kGivesFloats;
  return result;
}

TEST(Vc4Recorded, ResultsAndFlags) {
  const Table table("results");
  ASSERT_EQ(table.rows.size(), 5460u);
  std::set<Op> seen;
  for (const auto& row : table.rows) {
    const Op op = op_named(row[0]);
    ASSERT_NE(op, Op::kReserved) << row[0];
    seen.insert(op);
    const Packable got = computed(op, word(row[1]), word(row[2]));
    const uint32_t value = got.value[5];
    EXPECT_EQ(value, word(row[3])) << row[0] << " " << row[1] << " " << row[2];
    EXPECT_EQ(packed_to_a(8, got, Lanes{})[5], word(row[4])) << row[0] << " " << row[1] << " " << row[2];
    if (info(op).add == kNoCode) continue;
    const auto has = [&](char flag) { return row[5].find(flag) != std::string::npos; };
    EXPECT_EQ(value == 0, has('z')) << row[0] << " " << row[1] << " " << row[2];
    EXPECT_EQ(static_cast<int32_t>(value) < 0, has('n')) << row[0] << " " << row[1] << " " << row[2];
    EXPECT_EQ(got.carry[5] != 0, has('c')) << row[0] << " " << row[1] << " " << row[2];
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(kNumOps) - 1);  // all but nop
}

TEST(Vc4Recorded, Packed) {
  std::map<std::string, uint8_t> packs = {{"result", 0}, {"result32BitSaturated", 8}};
  uint8_t mode = 1;
  for (const char* part : {"16BitA", "16BitB", "8BitRep", "8BitA", "8BitB", "8BitC", "8BitD"}) {
    packs[std::string("result") + part + "Truncated"] = mode;
    packs[std::string("result") + part + "Saturated"] = mode + 8;
    ++mode;
  }
  const Table table("packed");
  ASSERT_EQ(table.rows.size(), 5460u);
  size_t compared = 0;
  for (const auto& row : table.rows) {
    const Packable got = computed(op_named(row[0]), word(row[1]), word(row[2]));
    for (size_t column = 3; column < row.size(); ++column, ++compared) {
      ASSERT_TRUE(packs.contains(table.names[column])) << table.names[column];
      EXPECT_EQ(packed_to_a(packs[table.names[column]], got, Lanes{})[9], word(row[column]))
          << row[0] << " " << row[1] << " " << row[2] << " " << table.names[column];
    }
  }
  EXPECT_EQ(compared, 16u * 5460);
}

TEST(Vc4Recorded, Unpacked) {
  struct Mode {
    uint8_t unpack;
    bool to_float;
  };
  std::map<std::string, Mode> modes = {
      {"result", {0, false}}, {"result8BitReplicated", {3, false}}, {"result8BitFloatReplicated", {3, true}}};
  for (uint8_t n = 0; n < 2; ++n) {
    const std::string name = std::string("result16Bit") + "AB"[n];
    modes[name + "SignExtended"] = {static_cast<uint8_t>(1 + n), false};
    modes[name + "FloatExtended"] = {static_cast<uint8_t>(1 + n), true};
  }
  for (uint8_t n = 0; n < 4; ++n) {
    const std::string name = std::string("result8Bit") + "ABCD"[n];
    modes[name + "ZeroExtended"] = {static_cast<uint8_t>(4 + n), false};
    modes[name + "FloatExtended"] = {static_cast<uint8_t>(4 + n), true};
  }
  const Table table("unpacked");
  size_t compared = 0;
  for (const auto& row : table.rows) {
    for (size_t column = 1; column < row.size(); ++column, ++compared) {
      ASSERT_TRUE(modes.contains(table.names[column])) << table.names[column];
      const Mode mode = modes[table.names[column]];
      EXPECT_EQ(unpacked(mode.unpack, mode.to_float, splat(word(row[0])))[3], word(row[column]))
          << row[0] << " " << table.names[column];
    }
  }
  EXPECT_EQ(compared, 15u * 15);
}

// ---- What no recorded value can tell: vc4-qpu.md 9.2 "by rule"

uint32_t of(Op op, uint32_t a, uint32_t b) { return find_alu(op)(splat(a), splat(b))[0]; }

TEST(Vc4Alu, Rounding) {
  EXPECT_EQ(of(Op::kFmul, 0x3fc00001, 0x3fc00001), 0x40100001u);
  EXPECT_EQ(of(Op::kFmul, 0x00800000, 0xbf000000), 0u);
  // Just below the smallest number that is not denormal, to which conversion would round.
  EXPECT_EQ(of(Op::kFmul, 0x00ffffff, 0x3f000000), 0u);
  for (const auto& [wide, narrow] :
       {std::pair{0x3f800001u, 0x3c01u}, {0x387fffffu, 0x0400u}, {0xb8000000u, 0u}}) {
    Packable in;
    in.value = splat(wide);
    in.is_float = true;
    EXPECT_EQ(packed_to_a(1, in, Lanes{})[0], narrow);
  }
}

TEST(Vc4Alu, EndsOfRanges) {
  EXPECT_EQ(of(Op::kFadd, 0x7f7fffff, 0x7f7fffff), 0x7f800000u);
  EXPECT_EQ(of(Op::kFadd, 0xff7fffff, 0xff7fffff), 0xff800000u);
  EXPECT_EQ(of(Op::kFadd, 0x7f7fffff, 0x73000000), 0x7f7fffffu);  // nearest would be infinite
  EXPECT_EQ(of(Op::kFadd, 0x7f7fffff, 0x73800000), 0x7f800000u);
  EXPECT_EQ(of(Op::kFtoi, 0x4effffff, 0), 0x7fffff80u);
  EXPECT_EQ(of(Op::kFtoi, 0xcf000000, 0), 0x80000000u);
  // Beyond 32 bits the low ones stay: Mesa's integer division takes 4294966784 for an unsigned number.
  EXPECT_EQ(of(Op::kFtoi, 0x4f7ffffe, 0), 4294966784u);
  EXPECT_EQ(of(Op::kFtoi, 0xcf7ffffe, 0), 0u - 4294966784u);
  EXPECT_EQ(of(Op::kFtoi, 0x4f800001, 0), 512u);
  EXPECT_EQ(of(Op::kFtoi, 0x5f800000, 0), 0u);
  EXPECT_EQ(of(Op::kFtoi, 0x7f800000, 0), 0u);
}

// The host rounds toward zero, too, if it is told to.
TEST(Vc4Alu, AgreesWithTheHostTowardZero) {
  std::mt19937 random(0x5eed);
  const auto flushed = [](uint32_t bits) { return (bits & 0x7f800000) == 0 ? 0 : bits; };
  for (int n = 0; n < 300000; ++n) {
    uint32_t a = random(), b = random();
    if (n % 2) b = (b & 0x807fffff) | ((a + ((random() % 60 - 30) << 23)) & 0x7f800000);  // of like size
    if ((a & 0x7f800000) == 0x7f800000 || (b & 0x7f800000) == 0x7f800000) continue;
    const volatile float x = std::bit_cast<float>(flushed(a)), y = std::bit_cast<float>(flushed(b));
    std::fesetround(FE_TOWARDZERO);
    const volatile float sum = x + y, product = x * y;
    std::fesetround(FE_TONEAREST);
    if (std::fabs(static_cast<double>(x) + y) < 0x1p128) {
      ASSERT_EQ(of(Op::kFadd, a, b), flushed(std::bit_cast<uint32_t>(sum))) << std::hex << a << " " << b;
    }
    if (std::fabs(static_cast<double>(x) * y) < 0x1p128) {
      ASSERT_EQ(of(Op::kFmul, a, b), flushed(std::bit_cast<uint32_t>(product))) << std::hex << a << " " << b;
    }
  }
}

TEST(Vc4Alu, WhatIsNoNumber) {
  constexpr uint32_t kSign = 0x80000000, kInfinity = 0x7f800000, kOne = 0x3f800000;
  const auto is_special = [](uint32_t bits) { return (bits & kInfinity) == kInfinity; };
  const auto is_zero = [](uint32_t bits) { return (bits & kInfinity) == 0; };
  const uint32_t magnitudes[] = {0,          1,         0x007fffff, 0x00800000, kOne,
                                 0x7f7fffff, kInfinity, 0x7f800001, 0x7fffffff};
  for (const uint32_t x : magnitudes)
    for (const uint32_t y : magnitudes)
      for (const uint32_t signs : {0, 1, 2, 3}) {
        const uint32_t a = x | signs << 31, b = y | (signs >> 1) << 31;
        if (!is_special(a) && !is_special(b)) continue;
        // In one lane of sixteen, which leaves the others alone.
        Lanes many_a = splat(kOne), many_b = splat(kOne);
        many_a[5] = a;
        many_b[5] = b;
        const Lanes sum = find_alu(Op::kFadd)(many_a, many_b), product = find_alu(Op::kFmul)(many_a, many_b);
        EXPECT_EQ(sum[5], ((is_special(b) ? b : a) & kSign) | kInfinity) << std::hex << a << " " << b;
        EXPECT_EQ(product[5], is_zero(a) || is_zero(b) ? 0 : ((a ^ b) & kSign) | kInfinity)
            << std::hex << a << " " << b;
        EXPECT_EQ(sum[6], 0x40000000u);
        EXPECT_EQ(product[6], kOne);
      }
}

TEST(Vc4Alu, BytesComeBackFromUnorm8) {
  for (uint32_t v = 0; v < 256; ++v) {
    const Lanes f = unpacked(4, true, splat(v));
    EXPECT_EQ(packed_to_unorm8(4, f, splat(0xabcdef00u))[0], 0xabcdef00u | v);
    EXPECT_EQ(packed_to_unorm8(3, f, Lanes{})[0], v * 0x01010101u);
  }
  EXPECT_EQ(packed_to_unorm8(7, splat(0x40000000u), splat(0x11223344u))[0], 0xff223344u);
  EXPECT_EQ(packed_to_unorm8(5, splat(0xffc00000u), splat(0x11223344u))[0], 0x11220044u);
}

TEST(Vc4Alu, OrderOfFloats) {
  EXPECT_EQ(of(Op::kFmin, 0x80000000, 0), 0x80000000u);  // equal keys: the first
  EXPECT_EQ(of(Op::kFmin, 0, 0x80000000), 0u);
  EXPECT_EQ(of(Op::kFmax, 0x7fc00000, 0x7f800000), 0x7fc00000u);
}

TEST(Vc4Alu, Rotations) {
  const Lanes whole = rotated_operand(kLaneIndex, true, 15);
  const Lanes quads = rotated_operand(kLaneIndex, false, 5);
  for (uint32_t lane = 0; lane < 16; ++lane) {
    EXPECT_EQ(whole[lane], (lane + 1) % 16);
    EXPECT_EQ(quads[lane], (lane & 12) | ((lane + 3) & 3));
  }
}

TEST(Vc4Alu, ImmediatesPerElement) {
  const Lanes is_signed = immediate_lanes(0xccccaaaa, kImmediateSigned),
              is_unsigned = immediate_lanes(0xccccaaaa, kImmediateUnsigned);
  for (uint32_t lane = 0; lane < 16; ++lane) {
    const int32_t kSigned[] = {0, 1, -2, -1};
    EXPECT_EQ(static_cast<int32_t>(is_signed[lane]), kSigned[lane % 4]);
    EXPECT_EQ(is_unsigned[lane], lane % 4);
  }
}

TEST(Vc4Alu, SpecialFunctions) {
  const auto value = [](WritePort port, uint32_t bits) { return special_function(port, splat(bits))[7]; };
  EXPECT_EQ(value(WritePort::kSfuRecip, 0x40000000), 0x3f000000u);
  EXPECT_EQ(value(WritePort::kSfuRecip, 0), 0x7f800000u);
  EXPECT_EQ(value(WritePort::kSfuRecip, 0x00000001), 0x7f800000u);  // denormal
  EXPECT_EQ(value(WritePort::kSfuRecipsqrt, 0xc0800000), 0x3f000000u);
  EXPECT_EQ(value(WritePort::kSfuRecipsqrt, 0x80000000), 0x7f800000u);
  EXPECT_EQ(value(WritePort::kSfuLog, 0xc1000000), 0x40400000u);
  EXPECT_EQ(value(WritePort::kSfuLog, 0), 0xff800000u);
  EXPECT_EQ(value(WritePort::kSfuLog, 0x7f800000), 0x7f800000u);
}

/// Values that were measured on a board (vc4-qpu.md 6.1).
TEST(Vc4Alu, ExponentialsAndLogarithmsAreAsInexactAsTheChips) {
  const auto value = [](WritePort port, float x) {
    return std::bit_cast<float>(uint32_t{special_function(port, splat(std::bit_cast<uint32_t>(x)))[3]});
  };
  const float kPi = 3.14159274f;
  EXPECT_FLOAT_EQ(value(WritePort::kSfuExp, 0.0f), 1.000031f);
  EXPECT_FLOAT_EQ(value(WritePort::kSfuExp, 1.0f), 2.000061f);
  EXPECT_FLOAT_EQ(value(WritePort::kSfuExp, 2.0f), 4.000122f);
  EXPECT_FLOAT_EQ(value(WritePort::kSfuExp, -1.0f), 0.4999847f);
  EXPECT_FLOAT_EQ(value(WritePort::kSfuExp, 0.5f), 1.414246f);
  EXPECT_FLOAT_EQ(value(WritePort::kSfuExp, kPi), 8.825195f);
  EXPECT_FLOAT_EQ(value(WritePort::kSfuExp, 100.0f), 1.267689e30f);
  EXPECT_EQ(value(WritePort::kSfuExp, 1000.0f), std::numeric_limits<float>::infinity());
  EXPECT_EQ(value(WritePort::kSfuExp, -1e5f), 0.0f);
  EXPECT_EQ(value(WritePort::kSfuLog, 1.0f), 0.0f);
  EXPECT_EQ(value(WritePort::kSfuLog, 2.0f), 1.0f);
  EXPECT_FLOAT_EQ(value(WritePort::kSfuLog, 0.5f), -0.9999847f);
  EXPECT_FLOAT_EQ(value(WritePort::kSfuLog, 0.25f), -1.999985f);
  EXPECT_NEAR(value(WritePort::kSfuLog, kPi), 1.651428f, 4e-5f);
  EXPECT_NEAR(value(WritePort::kSfuLog, 100.0f), 6.643829f, 4e-5f);
  EXPECT_NEAR(value(WritePort::kSfuLog, 1000.0f), 9.965729f, 4e-5f);
}

}  // namespace
}  // namespace v3d::qpu::vc4
