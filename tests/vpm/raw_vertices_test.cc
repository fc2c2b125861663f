/// @file Vertices of VideoCore IV: attributes as raw bytes in, positions with Xs and Ys in one word out
/// (vc4-graphics.md 2.1, 2.2).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "gpu/base/raw_vector.h"
#include "gpu/vpm/attribute_fetch.h"
#include "gpu/vpm/packed_positions.h"
#include "tests/vpm/test_job.h"

namespace v3d::vpm {
namespace {

using testing::HasSubstr;

class RawAttributes : public testing::Test {
 protected:
  RawAttributes() : bytes_(4096) {
    for (uint8_t& b : bytes_) b = static_cast<uint8_t>(random_());
    buffer_ = test_.put(bytes_);
    record_.raw_attributes = true;
  }

  draw::Attribute& add(uint32_t offset_in_buffer, uint32_t stride, uint16_t bytes, uint8_t vpm_offset) {
    draw::Attribute& a = record_.attributes[record_.num_attributes++];
    a.address = buffer_ + offset_in_buffer;
    a.stride = stride;
    a.vs_bytes = bytes;
    a.vs_offset = vpm_offset;
    return a;
  }
  RawVector<Lanes> fetch(const BatchRefs& refs) {
    const AttributeFetcher fetcher(record_, false);
    EXPECT_EQ(fetcher.error(), "");
    RawVector<Lanes> rows;
    rows.assign(fetcher.rows(), splat(0xccccccccu));
    fetcher.fetch(test_.memory(), refs, rows.data());
    return rows;
  }
  static uint8_t byte_of(const RawVector<Lanes>& rows, uint32_t byte, int lane) {
    return static_cast<uint8_t>(rows[byte / 4][lane] >> (8 * (byte % 4)));
  }

  TestJob test_;
  std::mt19937 random_{1};
  std::vector<uint8_t> bytes_;
  GpuAddr buffer_ = 0;
  draw::ShaderRecord record_;
  BatchRefs refs_{.index = kLaneIndex, .instance = Lanes{}};
};

TEST_F(RawAttributes, EverySizeAndAlignmentArrivesByteByByte) {
  for (uint16_t size = 1; size <= 16; ++size)
    for (const uint32_t stride : {0u, 3u, 16u, 255u}) {
      record_.num_attributes = 0;
      add(size, stride, size, 0);
      const RawVector<Lanes> rows = fetch(refs_);
      ASSERT_EQ(rows.size(), (size + 3u) / 4);
      for (int lane = 0; lane < kLanes; ++lane)
        for (uint32_t b = 0; b < 4 * rows.size(); ++b)
          ASSERT_EQ(byte_of(rows, b, lane),
                    b < size ? bytes_[size + stride * static_cast<uint32_t>(lane) + b] : 0)
              << size << " " << stride << " " << lane << " " << b;
    }
}

TEST_F(RawAttributes, RowsLieWhereEachStageWantsThem) {
  add(0, 8, 8, 12);
  draw::Attribute& both = add(100, 4, 3, 4);
  both.cs_bytes = 3;
  both.cs_offset = 0;
  const RawVector<Lanes> rows = fetch(refs_);
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(uint32_t{rows[0][5]}, 0u);
  EXPECT_EQ(uint32_t{rows[2][5]}, 0u);
  EXPECT_EQ(byte_of(rows, 4, 5), bytes_[120]);
  EXPECT_EQ(byte_of(rows, 19, 5), bytes_[47]);
  const AttributeFetcher coordinate(record_, true);
  ASSERT_EQ(coordinate.rows(), 1u);
  Lanes row;
  coordinate.fetch(test_.memory(), refs_, &row);
  EXPECT_EQ(uint32_t{row[5]} & 0xff, bytes_[120]);
}

TEST_F(RawAttributes, IndicesBeyondTheLargestOneAreTakenForIt) {
  add(0, 4, 4, 0);
  refs_.max_index = 6;
  refs_.index[3] = 0xffffffff;
  const RawVector<Lanes> rows = fetch(refs_);
  EXPECT_EQ(byte_of(rows, 0, 3), bytes_[24]);
  EXPECT_EQ(byte_of(rows, 0, 5), bytes_[20]);
  EXPECT_EQ(byte_of(rows, 0, 7), bytes_[24]);
}

TEST_F(RawAttributes, NothingBehindTheLastByteIsRead) {
  draw::Attribute& a = add(0, 0, 3, 0);
  a.address = TestJob::end() - 3;
  fetch(refs_);
  EXPECT_EQ(test_.space().take_faults().count, 0u);
}

TEST_F(RawAttributes, OffsetsAreWholeRows) {
  add(0, 4, 4, 6);
  EXPECT_THAT(AttributeFetcher(record_, false).error(), HasSubstr("at byte 6"));
}

TEST(PackedPositions, BothHalvesAreSigned) {
  draw::ShaderRecord record;
  record.packed_positions = true;
  record.point_size_in_vertices = true;
  record.num_varyings = 3;
  Lanes packed[kVpmWindowRows];
  for (uint32_t row = 0; row < kVpmWindowRows; ++row) packed[row] = splat(1000 + row);
  packed[0][2] = 0x8000fff0;  // Ys -2048 px, Xs -1 px
  ASSERT_EQ(rows_with_positions(record, false), 8u);
  Lanes rows[8];
  unpack_positions(record, false, packed, rows);
  EXPECT_EQ(static_cast<int32_t>(rows[0][2]), -16);
  EXPECT_EQ(static_cast<int32_t>(rows[1][2]), -32768);
  for (uint32_t row = 2; row < 8; ++row)
    EXPECT_EQ(uint32_t{rows[row][2]}, 1000 + row - 1);  // Zs, 1/Wc, size, ..
}

TEST(PackedPositions, CoordinateProgramsHaveTheClipPositionInFront) {
  draw::ShaderRecord record;
  record.packed_positions = true;
  record.point_size_in_vertices = true;
  record.num_varyings = 3;
  Lanes packed[kVpmWindowRows];
  for (uint32_t row = 0; row < kVpmWindowRows; ++row) packed[row] = splat(1000 + row);
  packed[4] = splat(0x00207fffu);
  ASSERT_EQ(rows_with_positions(record, true), 7u);
  Lanes rows[7];
  unpack_positions(record, true, packed, rows);
  EXPECT_EQ(uint32_t{rows[3][0]}, 1003u);
  EXPECT_EQ(uint32_t{rows[4][0]}, 0x7fffu);
  EXPECT_EQ(uint32_t{rows[5][0]}, 0x20u);
  EXPECT_EQ(uint32_t{rows[6][0]}, 1007u);  // after Zs and 1/Wc
}

TEST(PackedPositions, MoreVaryingsThanThereAreRowsAreLeftOut) {
  draw::ShaderRecord record;
  record.packed_positions = true;
  record.num_varyings = 255;
  ASSERT_EQ(rows_with_positions(record, false), kVpmWindowRows + 1);
  Lanes packed[kVpmWindowRows];
  std::fill_n(packed, kVpmWindowRows, splat(7u));
  Lanes rows[kVpmWindowRows + 1];
  unpack_positions(record, false, packed, rows);
  EXPECT_EQ(uint32_t{rows[kVpmWindowRows][3]}, 7u);
}

}  // namespace
}  // namespace v3d::vpm
