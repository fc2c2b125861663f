// copy_from_user and copy_to_user over the segments of a request.
#include "daemon/client_memory.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace v3d::daemon {
namespace {

struct Part {
  uint64_t address;
  uint32_t flags;
  std::vector<uint8_t> bytes;
};

std::vector<uint8_t> encode(const std::vector<Part>& parts) {
  std::vector<uint8_t> payload;
  for (const Part& part : parts) {
    const wire::Segment segment = {part.address, static_cast<uint32_t>(part.bytes.size()), part.flags};
    const auto* raw = reinterpret_cast<const uint8_t*>(&segment);
    payload.insert(payload.end(), raw, raw + sizeof segment);
    if (part.flags & wire::kIn) payload.insert(payload.end(), part.bytes.begin(), part.bytes.end());
  }
  return payload;
}

TEST(SegmentMemory, ReadsAcrossNeighbours) {
  const auto payload = encode({{104, wire::kIn, {5, 6, 7, 8}}, {100, wire::kIn, {1, 2, 3, 4}}});
  PayloadReader reader(payload);
  SegmentMemory memory;
  ASSERT_TRUE(memory.parse(reader, 2));
  EXPECT_TRUE(reader.empty());
  uint8_t bytes[8];
  EXPECT_TRUE(memory.read(100, bytes, 8));
  EXPECT_EQ(bytes[3], 4);
  EXPECT_EQ(bytes[4], 5);
  EXPECT_TRUE(memory.read(103, bytes, 2));
  EXPECT_EQ(bytes[0], 4);
  EXPECT_FALSE(memory.read(99, bytes, 2));
  EXPECT_FALSE(memory.read(105, bytes, 4));
  EXPECT_FALSE(memory.read(~uint64_t{0}, bytes, 2));
  EXPECT_TRUE(memory.read(0, bytes, 0));
}

TEST(SegmentMemory, DirectionsAreKept) {
  const auto payload = encode(
      {{100, wire::kIn, {1, 2}}, {200, wire::kOut, {0, 0, 0, 0}}, {300, wire::kIn | wire::kOut, {9, 9}}});
  PayloadReader reader(payload);
  SegmentMemory memory;
  ASSERT_TRUE(memory.parse(reader, 3));
  uint8_t bytes[4] = {1, 2, 3, 4};
  EXPECT_FALSE(memory.read(200, bytes, 1));
  EXPECT_FALSE(memory.write(100, bytes, 1));
  EXPECT_FALSE(memory.write(202, bytes, 3));
  EXPECT_EQ(memory.num_writes(), 0u);
  EXPECT_TRUE(memory.write(201, bytes, 3));
  EXPECT_TRUE(memory.write(300, bytes, 2));
  EXPECT_EQ(memory.num_writes(), 2u);
  EXPECT_EQ(memory.writes().size(), 2 * sizeof(wire::Segment) + 5);
}

TEST(SegmentMemory, BadPayloads) {
  const auto payload = encode({{100, wire::kIn, {1, 2, 3, 4}}});
  for (size_t cut = 0; cut < payload.size(); ++cut) {
    PayloadReader reader(std::span<const uint8_t>(payload).first(cut));
    SegmentMemory memory;
    EXPECT_FALSE(memory.parse(reader, 1)) << cut;
  }
  PayloadReader reader(payload);
  SegmentMemory memory;
  EXPECT_FALSE(memory.parse(reader, 2));
  // One that wraps around the end of the address space is as good as absent.
  const auto wrapping = encode({{~uint64_t{0} - 1, wire::kIn, {1, 2, 3, 4}}});
  PayloadReader again(wrapping);
  SegmentMemory empty;
  ASSERT_TRUE(empty.parse(again, 1));
  uint8_t byte;
  EXPECT_FALSE(empty.read(~uint64_t{0} - 1, &byte, 1));
}

TEST(SegmentMemory, NestedSegmentsAreOnePiece) {
  std::vector<Part> parts;
  for (uint64_t i = 0; i < 500; ++i) {
    parts.push_back({1000 + i, wire::kIn, std::vector<uint8_t>(1000 - 2 * i, 7)});
    parts.push_back({5000 + i, wire::kOut, std::vector<uint8_t>(1000 - i)});
  }
  const auto payload = encode(parts);
  PayloadReader reader(payload);
  SegmentMemory memory;
  ASSERT_TRUE(memory.parse(reader, 1000));
  EXPECT_EQ(memory.num_pieces(wire::kIn), 1u);
  EXPECT_EQ(memory.num_pieces(wire::kOut), 1u);
  uint8_t bytes[1000] = {};
  EXPECT_TRUE(memory.read(1000, bytes, 1000));
  EXPECT_EQ(bytes[999], 7);
  EXPECT_TRUE(memory.write(5000, bytes, 1000));
}

TEST(SegmentMemory, TooManySegments) {
  const std::vector<uint8_t> payload((kMaxSegments + 1) * sizeof(wire::Segment));
  for (const bool too_many : {false, true}) {
    PayloadReader reader(payload);
    SegmentMemory memory;
    EXPECT_EQ(memory.parse(reader, kMaxSegments + too_many), !too_many);
  }
}

TEST(SegmentMemory, OverlapsAgainstAByteMap) {
  std::mt19937 random(11);
  for (int round = 0; round < 50; ++round) {
    std::vector<Part> parts;
    std::map<uint64_t, uint8_t> expected;
    for (int i = 0; i < 12; ++i) {
      Part part = {random() % 64, wire::kIn, {}};
      part.bytes.resize(random() % 24);
      // Overlapping segments are copies of the same memory.
      for (size_t b = 0; b < part.bytes.size(); ++b)
        expected[part.address + b] = part.bytes[b] = static_cast<uint8_t>((part.address + b) * 37);
      parts.push_back(part);
    }
    const auto payload = encode(parts);
    PayloadReader reader(payload);
    SegmentMemory memory;
    ASSERT_TRUE(memory.parse(reader, 12));
    for (uint64_t at = 0; at < 100; ++at) {
      for (const uint64_t count : {1, 3, 17}) {
        std::vector<uint8_t> bytes(count);
        bool readable = true;
        for (uint64_t b = 0; b < count; ++b) readable = readable && expected.contains(at + b);
        ASSERT_EQ(memory.read(at, bytes.data(), count), readable);
        for (uint64_t b = 0; readable && b < count; ++b) ASSERT_EQ(bytes[b], expected[at + b]);
      }
    }
  }
}

}  // namespace
}  // namespace v3d::daemon
