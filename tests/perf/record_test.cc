/// What the recorder keeps of lookups and batches.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "gpu/perf/record/recorder.h"
#include "gpu/perf/record/shape.h"
#include "gpu/qpu/isa/assembler.h"
#include "gpu/qpu/run/thread.h"
#include "tests/qpu/machine.h"

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

/// The kinds of what a batch of the text did, without instructions.
std::vector<Event::Kind> kinds_of(int version, const std::string& text) {
  const qpu::Assembly assembly = qpu::assemble(version, text + "\nthrsw\nnop\nnop\n");
  EXPECT_TRUE(assembly.errors.empty()) << text;
  qpu::Machine machine(version);
  std::memcpy(machine.memory().host(qpu::Machine::kCode), assembly.words.data(), assembly.words.size() * 8);
  tmu::Unit unit(machine.memory(), version);
  machine.t().tmu = &unit;
  Recorder recorder({.version = version, .code = qpu::Machine::kCode});
  recorder.start("compute", machine.t());
  EXPECT_EQ(machine.resume(), qpu::Stop::kEnd);
  EXPECT_EQ(recorder.failure(), "");
  const Dispatch dispatch = recorder.take();
  std::vector<Event::Kind> kinds;
  for (const Event event : dispatch.paths.at(dispatch.batches.at(0).path))
    if (event.kind() != Event::Kind::kIssue) kinds.push_back(event.kind());
  return kinds;
}

TEST(Recorder, SeesASpreadValueUsedAtOnce) {
  using enum Event::Kind;
  EXPECT_EQ(kinds_of(71, "mov rep, rf3\nadd rf1, rf0, rf2"), (std::vector{kRep, kEnd}));
  EXPECT_EQ(kinds_of(71, "mov rep, rf3\nnop\nadd rf1, rf0, rf2"), (std::vector{kEnd}));
  EXPECT_EQ(kinds_of(71, "mov rep, rf3\nadd rf1, rf2, rf2"), (std::vector{kEnd}));
  EXPECT_EQ(kinds_of(42, "nop ; mov r5rep, r0\nadd r1, r5, r0"), (std::vector{kRep, kEnd}));
}

/// An instruction that asks the TMU and takes from it waits behind what it asked.
TEST(Recorder, ALookupDoesNotWaitForTheLoadBesideIt) {
  using enum Event::Kind;
  const auto kinds = kinds_of(71, "mov tmua, rf1\nmov tmua, rf1 ; nop ; ldtmu.rf2\nnop ; nop ; ldtmu.rf2");
  EXPECT_EQ(kinds, (std::vector{kLookup, kLookup, kRead, kRead, kEnd}));
}

}  // namespace
}  // namespace v3d::timing
