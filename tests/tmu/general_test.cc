/// @file Memory access by address: every type and operation against a lane-by-lane statement of texture.md 8.
#include <gtest/gtest.h>

#include <bit>
#include <thread>

#include "gpu/tmu/lookup/unit.h"
#include "tests/tmu/gpu_memory.h"

namespace v3d::tmu {
namespace {

constexpr GpuAddr kBase = GpuMemory::kBase;
constexpr uint32_t kBytes = 8192;

constexpr uint8_t config(bool per_pixel, uint32_t op, uint32_t type) {
  return static_cast<uint8_t>((per_pixel ? 0x80u : 0u) | op << 3 | type);
}

struct Type {
  uint32_t value, bytes, words;
  bool is_signed;
};
constexpr Type kTypes[] = {{0, 1, 1, true},  {1, 2, 1, true},  {2, 4, 2, false}, {3, 4, 3, false},
                           {4, 4, 4, false}, {5, 1, 1, false}, {6, 2, 1, false}, {7, 4, 1, false}};

class General : public testing::TestWithParam<chip::Generation> {
 protected:
  General() : unit_(gpu_.memory(), GetParam()) {
    gpu_.randomize(kBytes, 1);
    for (int k = 0; k < 4; ++k)
      for (int i = 0; i < kLanes; ++i) lookup_.data[k][i] = static_cast<uint32_t>(random_()) * 5;
  }
  bool wraps() const { return GetParam() == chip::Generation::k42; }

  /// Address patterns: consecutive, all equal, strided, random; some misaligned.
  void set_addresses(int pattern, uint32_t alignment) {
    for (int i = 0; i < kLanes; ++i) {
      const auto lane = static_cast<uint32_t>(i);
      const uint32_t offset = pattern == 0   ? 64 + 4 * lane
                              : pattern == 1 ? 128
                              : pattern == 2 ? 256 + 20 * lane
                              : pattern == 3 ? static_cast<uint32_t>(random_()) % (kBytes / 2)
                                             : 4096 + 16 * (15 - lane) + 4;
      lookup_.address[i] = kBase + offset / alignment * alignment;
    }
  }
  LaneMask expected_active() const {
    LaneMask live = lookup_.live;
    if (!(lookup_.config & 0x80))
      for (int q = 0; q < 4; ++q)
        if ((live >> 4 * q) & 15) live |= static_cast<LaneMask>(15 << 4 * q);
    return live & lookup_.exec;
  }
  GpuAddr component(GpuAddr address, uint32_t k) const {
    return wraps() ? (address & ~15u) | ((address + 4 * k) & 15) : address + 4 * k;
  }
  std::vector<uint8_t> snapshot() const {
    return {gpu_.memory().host(kBase), gpu_.memory().host(kBase) + kBytes};
  }

  GpuMemory gpu_;
  Unit unit_;
  GeneralLookup lookup_;
  std::minstd_rand random_{5};
};

constexpr LaneMask kMasks[] = {0xffff, 0x0001, 0x8421, 0x0ff0, 0x0000, 0x5a3c};

TEST_P(General, LoadsOfEveryType) {
  for (const Type& type : kTypes)
    for (bool per_pixel : {true, false})
      for (LaneMask live : kMasks)
        for (int pattern = 0; pattern < 5; ++pattern) {
          set_addresses(pattern, 1);
          lookup_.config = config(per_pixel, 15, type.value);
          lookup_.live = live;
          lookup_.exec = pattern & 1 ? 0xffff : 0xfeff;
          Lanes out[4];
          const auto before = snapshot();
          ASSERT_EQ(unit_.general(lookup_, out), static_cast<int>(type.words));
          EXPECT_EQ(snapshot(), before);
          for (uint32_t k = 0; k < type.words; ++k)
            for (int i = 0; i < kLanes; ++i) {
              uint32_t expected = 0;
              if ((expected_active() >> i) & 1) {
                const GpuAddr at = component(lookup_.address[i] / type.bytes * type.bytes, k);
                memcpy(&expected, gpu_.memory().host(at), type.bytes);
                if (type.is_signed && type.bytes == 1)
                  expected = static_cast<uint32_t>(int32_t{static_cast<int8_t>(expected)});
                if (type.is_signed && type.bytes == 2)
                  expected = static_cast<uint32_t>(static_cast<int16_t>(expected));
              }
              ASSERT_EQ(out[k][i], expected) << "type " << type.value << " lane " << i << " word " << k;
            }
        }
}

TEST_P(General, StoresOfEveryTypeHighestLaneWins) {
  for (const Type& type : kTypes)
    for (uint8_t num_data = 1; num_data <= 4; ++num_data)
      for (LaneMask live : kMasks)
        for (int pattern = 0; pattern < 5; ++pattern) {
          set_addresses(pattern, 1);
          lookup_.config = config(live & 1, 15, type.value);
          lookup_.num_data = num_data;
          lookup_.live = live;
          auto expected = snapshot();
          for (uint32_t k = 0; k < std::min<uint32_t>(num_data, type.words); ++k)
            for (int i = 0; i < kLanes; ++i) {
              if (!((expected_active() >> i) & 1)) continue;
              const GpuAddr at = component(lookup_.address[i] / type.bytes * type.bytes, k);
              const uint32_t word = lookup_.data[k][i];
              memcpy(&expected[at - kBase], &word, type.bytes);
            }
          Lanes out[4];
          ASSERT_EQ(unit_.general(lookup_, out), 0);
          ASSERT_EQ(snapshot(), expected) << "type " << type.value << " data " << int{num_data};
        }
}

uint32_t expected_atomic(uint32_t op, bool data, uint32_t old, uint32_t a, uint32_t b) {
  const auto s = [](uint32_t v) { return static_cast<int32_t>(v); };
  switch (op) {
    case 0:
      return old + a;
    case 1:
      return old - a;
    case 2:
      return a;
    case 3:
      return old == a ? b : old;
    case 4:
      return std::min(old, a);
    case 5:
      return std::max(old, a);
    case 6:
      return s(old) < s(a) ? old : a;
    case 7:
      return s(old) > s(a) ? old : a;
    case 8:
      return data ? old & a : old + 1;
    case 9:
      return data ? old | a : old - 1;
    default:
      return data ? old ^ a : ~old;
  }
}

TEST_P(General, AtomicsInLaneOrder) {
  for (uint32_t op = 0; op <= 10; ++op)
    for (bool data : {true, false}) {
      if (!data && op < 8) continue;
      for (LaneMask live : kMasks)
        for (int pattern = 0; pattern < 5; ++pattern) {
          set_addresses(pattern, 4);
          lookup_.config = config(true, op, op == 3 ? 2 : 7);
          lookup_.num_data = data ? (op == 3 ? 2 : 1) : 0;
          lookup_.live = live;
          for (int i = 0; i < kLanes; i += 2)  // make some exchanges succeed
            lookup_.data[0][i] =
                op == 3 ? gpu_.memory().load<uint32_t>(lookup_.address[i]) : lookup_.data[0][i];
          auto expected = snapshot();
          Lanes old{};
          for (int i = 0; i < kLanes; ++i) {
            if (!((live >> i) & 1)) continue;
            uint32_t word;
            memcpy(&word, &expected[lookup_.address[i] - kBase], 4);
            old[i] = word;
            word = expected_atomic(op, data, word, lookup_.data[0][i], lookup_.data[1][i]);
            memcpy(&expected[lookup_.address[i] - kBase], &word, 4);
          }
          Lanes out[4];
          ASSERT_EQ(unit_.general(lookup_, out), 1);
          for (int i = 0; i < kLanes; ++i) ASSERT_EQ(out[0][i], old[i]) << "op " << op << " lane " << i;
          ASSERT_EQ(snapshot(), expected) << "op " << op;
        }
    }
}

TEST_P(General, CacheOperationsDoNothing) {
  set_addresses(0, 4);
  for (uint32_t op : {0u, 1u, 2u, 3u, 4u, 5u, 11u, 14u}) {
    lookup_.config = config(true, op, 7);
    const auto before = snapshot();
    Lanes out[4];
    EXPECT_EQ(unit_.general(lookup_, out), 0);
    EXPECT_EQ(snapshot(), before);
  }
}

TEST_P(General, MaskedLanesTouchNoMemory) {
  set_addresses(0, 4);
  for (int i = 0; i < kLanes; i += 2) lookup_.address[i] = 0xfff00000u + 4096u * static_cast<uint32_t>(i);
  lookup_.live = 0xaaaa;
  Lanes out[4];
  unit_.general(lookup_, out);
  lookup_.num_data = 1;
  unit_.general(lookup_, out);
  lookup_.config = config(true, 0, 7);
  unit_.general(lookup_, out);
  EXPECT_EQ(gpu_.take_faults(), 0u);
}

TEST_P(General, UnmappedAddressesReadZeroAndTheJobGoesOn) {
  for (int i = 0; i < kLanes; ++i)
    lookup_.address[i] = 0xf0000000u - 4096u * static_cast<uint32_t>(i * i * 977);
  Lanes out[4];
  lookup_.config = config(true, 15, 4);
  EXPECT_EQ(unit_.general(lookup_, out), 4);
  for (const Lanes& word : out)
    for (int i = 0; i < kLanes; ++i) EXPECT_EQ(word[i], 0u);
  EXPECT_EQ(gpu_.take_faults(), 16u);
}

TEST_P(General, AtomicsOfTwoWorkersDoNotLoseUpdates) {
  constexpr int kRounds = 2000;
  const auto work = [&](uint32_t op, uint8_t num_data) {
    Unit unit(gpu_.memory(), GetParam());
    GeneralLookup lookup;
    lookup.config = config(true, op, 7);
    lookup.num_data = num_data;
    lookup.data[0] = splat(3u);
    lookup.address = splat(kBase);
    Lanes out[4];
    for (int i = 0; i < kRounds; ++i) unit.general(lookup, out);
  };
  gpu_.memory().store<uint32_t>(kBase, 0);
  std::thread other([&] { work(0, 1); });
  work(8, 0);
  other.join();
  EXPECT_EQ(gpu_.memory().load<uint32_t>(kBase), 16u * kRounds * 4);
}

INSTANTIATE_TEST_SUITE_P(Chips, General, testing::Values(chip::Generation::k71, chip::Generation::k42));

}  // namespace
}  // namespace v3d::tmu
