#include "gpu/vpm/attribute_fetch.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "gpu/base/float16.h"
#include "tests/vpm/test_job.h"

namespace v3d::vpm {
namespace {

/// One component of an element by the text of cle-and-tiles.md 3.2, scalar.
uint32_t expected_component(Memory memory, const draw::Attribute& a, GpuAddr element, uint32_t c) {
  const auto bits = [](float f) { return std::bit_cast<uint32_t>(f); };
  uint32_t raw = 0;
  int width = 32;
  switch (a.type) {
    case 1:
      return bits(half_to_float(memory.load<uint16_t>(element + 2 * c)));
    case 2:
      return memory.load<uint32_t>(element + 4 * c);
    case 3:
      return bits(static_cast<float>(memory.load<int32_t>(element + 4 * c)) / 65536.0f);
    case 4:
      raw = memory.load<uint8_t>(element + c);
      width = 8;
      break;
    case 5:
      raw = memory.load<uint16_t>(element + 2 * c);
      width = 16;
      break;
    case 6:
      raw = memory.load<uint32_t>(element + 4 * c);
      break;
    default:
      width = c == 3 ? 2 : 10;
      raw = (memory.load<uint32_t>(element) >> (10 * c)) & ((1u << width) - 1);
      break;
  }
  int64_t value = raw;
  if (a.is_signed && ((raw >> (width - 1)) & 1)) value -= int64_t{1} << width;
  if (a.read_as_int) return static_cast<uint32_t>(value);
  if (!a.normalized) return bits(static_cast<float>(value));
  const auto max = static_cast<double>((int64_t{1} << (a.is_signed ? width - 1 : width)) - 1);
  return bits(std::max(static_cast<float>(value) / static_cast<float>(max), -1.0f));
}

TEST(AttributeFetch, EveryTypeMatchesTheScalarFormula) {
  TestJob test;
  std::mt19937 random(1);
  std::vector<uint32_t> words(1024);
  for (uint32_t& w : words) w = random();
  const GpuAddr buffer = test.put(words);
  for (int type = 1; type <= 7; ++type) {
    for (int vec_size = 1; vec_size <= 4; ++vec_size) {
      for (int flags = 0; flags < 8; ++flags) {
        draw::ShaderRecord record;
        record.num_attributes = 1;
        draw::Attribute& a = record.attributes[0];
        a.address = buffer + 4 * (random() % 4) + (type == 4 ? 1 : 0);
        a.vec_size = static_cast<uint8_t>(vec_size);
        a.type = static_cast<uint8_t>(type);
        a.is_signed = flags & 1;
        a.normalized = flags & 2;
        a.read_as_int = flags & 4;
        a.cs_words = 4;
        a.vs_words = static_cast<uint8_t>(1 + random() % 6);
        a.stride = 16 + random() % 5;
        a.max_index = 100;
        BatchRefs refs{};
        for (int i = 0; i < kLanes; ++i) refs.index[i] = random() % 128;
        for (const bool coordinate : {true, false}) {
          const AttributeFetcher fetcher(record, coordinate);
          const uint32_t rows = coordinate ? 4 : a.vs_words;
          ASSERT_EQ(fetcher.rows(), rows);
          std::vector<Lanes> out(rows);
          fetcher.fetch(test.memory(), refs, out.data());
          for (uint32_t c = 0; c < rows; ++c) {
            for (int lane = 0; lane < kLanes; ++lane) {
              const GpuAddr element = a.address + a.stride * std::min(refs.index[lane], a.max_index);
              const uint32_t one = a.read_as_int ? 1 : 0x3f800000;
              const uint32_t want = c < a.vec_size ? expected_component(test.memory(), a, element, c)
                                    : c == 3       ? one
                                                   : 0;
              ASSERT_EQ(out[c][lane], want) << "type " << type << " size " << vec_size << " flags " << flags
                                            << " component " << c << " lane " << lane;
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(test.space().take_faults().count, 0u);
}

TEST(AttributeFetch, ReadsNothingBehindTheLastElement) {
  TestJob test;
  for (const int type : {1, 2, 4, 5, 6, 7}) {
    constexpr uint32_t kBytes[] = {0, 2, 4, 4, 1, 2, 4, 4};
    for (uint8_t size = 1; size <= 4; ++size) {
      draw::ShaderRecord record;
      record.num_attributes = 1;
      draw::Attribute& a = record.attributes[0];
      a.type = static_cast<uint8_t>(type);
      a.vec_size = size;
      a.cs_words = 4;
      a.address = TestJob::end() - (type == 7 ? 4 : kBytes[type] * size);
      const AttributeFetcher fetcher(record, true);
      Lanes rows[4];
      fetcher.fetch(test.memory(), BatchRefs{}, rows);
    }
  }
  EXPECT_EQ(test.space().take_faults().count, 0u);
}

TEST(AttributeFetch, BuiltInsComeFirstAndDivisorsCountInstances) {
  TestJob test;
  std::vector<uint32_t> data(64);
  for (uint32_t i = 0; i < data.size(); ++i) data[i] = 1000 + i;
  const GpuAddr buffer = test.put(data);
  draw::ShaderRecord record;
  record.cs_vertex_id = record.cs_instance_id = record.cs_base_instance = true;
  record.num_attributes = 3;
  for (draw::Attribute& a : record.attributes)
    a = {.address = buffer, .vec_size = 1, .type = 6, .read_as_int = true, .stride = 4, .max_index = 63};
  record.attributes[0].cs_words = 1;
  record.attributes[1].vs_words = 1;  // not the coordinate program's
  record.attributes[2].cs_words = 1;
  record.attributes[2].divisor = 3;
  BatchRefs refs{};
  refs.index = kLaneIndex * 2u;
  refs.instance = kLaneIndex + 5u;
  refs.base_instance = 7;
  const AttributeFetcher fetcher(record, true);
  ASSERT_EQ(fetcher.rows(), 5u);
  Lanes rows[5];
  fetcher.fetch(test.memory(), refs, rows);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(rows[0][lane], lane + 5);
    EXPECT_EQ(rows[1][lane], 7u);
    EXPECT_EQ(rows[2][lane], lane * 2);
    EXPECT_EQ(rows[3][lane], 1000 + lane * 2);
    EXPECT_EQ(rows[4][lane], 1000 + 7 + (lane + 5) / 3);
  }
}

TEST(AttributeFetch, Version42TakesDefaultsFromMemory) {
  TestJob test(profile_42());
  draw::ShaderRecord record;
  record.default_attributes = test.put<uint32_t>({1, 2, 3, 4, 11, 12, 13, 14});
  record.num_attributes = 2;
  record.attributes[1] = {.address = test.put<uint32_t>({77}), .vec_size = 1, .type = 2, .cs_words = 4};
  Lanes rows[4];
  AttributeFetcher(record, true).fetch(test.memory(), BatchRefs{}, rows);
  EXPECT_EQ(rows[0][0], 77u);
  for (uint32_t c = 1; c < 4; ++c) EXPECT_EQ(rows[c][15], 11 + c);
}

TEST(AttributeFetch, UnknownTypeIsNamed) {
  draw::ShaderRecord record;
  record.num_attributes = 1;
  record.attributes[0].type = 0;
  record.attributes[0].cs_words = 1;
  EXPECT_NE(AttributeFetcher(record, true).error().find("type 0"), std::string::npos);
  EXPECT_TRUE(AttributeFetcher(record, false).error().empty());  // not loaded there
}

}  // namespace
}  // namespace v3d::vpm
