/// What the recorder keeps of lookups and batches.
#include <gtest/gtest.h>

#include <vector>

#include "gpu/perf/record/recorder.h"
#include "gpu/perf/record/shape.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::timing {
namespace {

constexpr uint8_t kLoadWord = 0xff, kLoadFourWords = 0xfc;  // texture.md 2.4: a lane each, regular

tmu::GeneralLookup lookup_of(uint32_t first, uint32_t stride, uint8_t config = kLoadWord) {
  tmu::GeneralLookup lookup;
  lookup.config = config;
  lookup.address = splat(first) + kLaneIndex * stride;
  return lookup;
}

TEST(Shape, ARowOfWordsIsOneLine) {
  std::vector<uint32_t> lines;
  const Shape shape = shape_of(lookup_of(0x1000, 4), 1, &lines);
  EXPECT_EQ(shape.access, Shape::Access::kLoad);
  EXPECT_EQ(lines, (std::vector<uint32_t>{0x40}));
  EXPECT_TRUE(shape.one_line);
  EXPECT_EQ(shape.quads, 4);
  EXPECT_EQ(shape.quad_words, 4);
}

TEST(Shape, LanesFarApartHaveALineEach) {
  std::vector<uint32_t> lines;
  const Shape shape = shape_of(lookup_of(0x1000, 4096), 1, &lines);
  EXPECT_EQ(shape.num_lines, 16);
  EXPECT_EQ(lines.back(), 0x40u + 15 * 64);
  EXPECT_EQ(shape.quads, 16) << "four lines in each quad";
  EXPECT_EQ(shape.quad_words, 16);
  EXPECT_EQ(shape.lines.back(), 15 * 64) << "relative to the first";
}

TEST(Shape, VectorsReachOverTheEndOfALine) {
  std::vector<uint32_t> lines;
  const Shape shape = shape_of(lookup_of(0x1030, 64, kLoadFourWords), 4, &lines);
  EXPECT_EQ(lines.size(), 16u) << "16 bytes from the 48th on end with the line";
  const Shape shifted = shape_of(lookup_of(0x1034, 64, kLoadFourWords), 4, &lines);
  EXPECT_EQ(lines.size(), 17u) << "from the 52nd on they do not";
  EXPECT_EQ(shape.results, 4);
  EXPECT_EQ(shifted.quads, 4 * 5);
}

TEST(Shape, LanesThatTakeNoPartTouchNothing) {
  std::vector<uint32_t> lines;
  tmu::GeneralLookup lookup = lookup_of(0x1000, 4096);
  lookup.exec = 0x0003;
  const Shape shape = shape_of(lookup, 1, &lines);
  EXPECT_EQ(lines, (std::vector<uint32_t>{0x40, 0x80}));
  EXPECT_EQ(shape.quads, 2);
}

TEST(Shape, DataMakesAStore) {
  std::vector<uint32_t> lines;
  tmu::GeneralLookup lookup = lookup_of(0x1000, 4);
  lookup.num_data = 1;
  const Shape shape = shape_of(lookup, 0, &lines);
  EXPECT_EQ(shape.access, Shape::Access::kStore);
  EXPECT_EQ(shape.inputs, 2);
}

TEST(Recorder, KeepsNoMoreThanItsBytes) {
  Recorder recorder({.max_bytes = 2 * sizeof(Batch)});
  for (int batch = 0; batch < 2; ++batch) {
    qpu::Thread thread;
    recorder.start("compute", thread);
    EXPECT_NE(thread.observer, nullptr);
  }
  EXPECT_EQ(recorder.failure(), "");
  qpu::Thread one_more, another;
  recorder.start("compute", one_more);
  EXPECT_NE(recorder.failure().find("its events take more than"), std::string::npos) << recorder.failure();
  recorder.start("compute", another);
  EXPECT_EQ(another.observer, nullptr) << "nothing is watched for a record that is given up";
}

}  // namespace
}  // namespace v3d::timing
