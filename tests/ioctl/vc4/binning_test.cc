// The binning list and its shader records: vc4-abi.md 3.1, 3.3, 3.4.
#include "ioctl/vc4/binning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "ioctl/vc4/shader_record.h"
#include "tests/ioctl/vc4/job_source.h"
#include "tests/ioctl/vc4/words.h"

namespace v3d::ioctl::vc4::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kAddress = 0x40000000;
enum Index : uint32_t { kPlain, kFlat, kTextured, kThreaded, kLoop, kSmall, kNumBos };

class BinningTest : public ::testing::Test {
 protected:
  BinningTest() {
    bos_[kPlain] = {.address = 0x10000, .size = 65536};
    bos_[kFlat] = {.address = 0x30000, .size = 4096, .program = &flat_};
    bos_[kTextured] = {.address = 0x40000, .size = 4096, .program = &textured_};
    bos_[kThreaded] = {.address = 0x50000, .size = 4096, .program = &threaded_};
    bos_[kLoop] = {.address = 0x60000, .size = 4096, .program = &loop_};
    bos_[kSmall] = {.address = 0x70000, .size = 4096};
  }

  absl::StatusOr<Binning> check(const Bytes& list, uint32_t num_records = 64) {
    return check_binning({list, records_, uniforms_, num_records}, bos_, kAddress, refuse_too_many_tiles_);
  }
  std::string refusal(const Bytes& list, uint32_t num_records = 64) {
    const auto binning = check(list, num_records);
    return binning.ok() ? "" : std::string(binning.status().message());
  }
  /// One draw with this record.
  std::string refusal_of(const Record& record, uint32_t max_index = 0) {
    records_ = record.bytes();
    return refusal(list(shader_state(record.bits()).append(draw_arrays(1, max_index))));
  }
  /// Of textured_: a texture of 16 by 16 bytes.
  static Bytes luminance_uniforms(uint32_t bo) {
    return Bytes().u32(bo).u32(5 << 4).u32(16 << 8 | 16 << 20).u32(0);
  }
  static Record plain_record() {
    return {.fragment = kFlat, .vertex = kFlat, .coordinate = kFlat, .attributes = {{kPlain, 0, 4, 4}}};
  }

  const Program flat_ = *analyse_program(program({}));
  const Program textured_ = *analyse_program(program({write(kTmu0T), write(kTmu0S), read_uniform()}));
  const Program threaded_ = *analyse_program(program({signal(2)}));
  const Program loop_ =
      *analyse_program(program({read_uniform(), nop(), nop(), branch(-5), nop(), nop(), nop()}));
  std::array<JobBo, kNumBos> bos_;
  Bytes records_, uniforms_;
  bool refuse_too_many_tiles_ = true;
};

TEST_F(BinningTest, TakesTheShortestList) {
  const auto binning = check(list({}));
  ASSERT_TRUE(binning.ok()) << binning.status();
  EXPECT_EQ(binning->list_bytes, 19u);
  EXPECT_EQ(binning->tiles_x, 2);
  EXPECT_EQ(binning->tiles_y, 2);
  EXPECT_TRUE(binning->reads.empty());
}

TEST_F(BinningTest, KnowsThePacketsAndTheirSizes) {
  // Those without a rule, with their bytes.
  const std::map<uint32_t, size_t> plain = {{1, 1},   {5, 1},   {56, 2},  {96, 4},  {97, 5},
                                            {98, 5},  {99, 5},  {100, 3}, {101, 5}, {102, 9},
                                            {103, 5}, {105, 9}, {106, 9}};
  const std::set<uint32_t> with_rules = {0, 4, 6, 7, 32, 33, 64, 112, 254};
  for (uint32_t opcode = 0; opcode < 256; ++opcode) {
    if (with_rules.count(opcode)) continue;
    const auto known = plain.find(opcode);
    if (known == plain.end()) {
      EXPECT_THAT(refusal(list(Bytes().u8(opcode).zeros(20))), HasSubstr("may not be used")) << opcode;
      continue;
    }
    const auto binning = check(list(Bytes().u8(opcode).zeros(known->second - 1)));
    ASSERT_TRUE(binning.ok()) << opcode << " " << binning.status();
    EXPECT_EQ(binning->list_bytes, 19 + known->second);
    EXPECT_EQ(binning->bytes[17], opcode);
  }
}

TEST_F(BinningTest, RefusesACutPacket) {
  EXPECT_THAT(refusal(start().u8(99).zeros(3)), HasSubstr("LINE_WIDTH is not all there"));
}

TEST_F(BinningTest, StartsOnceAndBehindItsMode) {
  EXPECT_THAT(refusal(Bytes().u8(6).append(binning_mode(1, 1)).append(finish())), HasSubstr("before TILE"));
  EXPECT_THAT(refusal(list(Bytes().u8(6))), HasSubstr("the second one"));
  EXPECT_THAT(refusal(list(binning_mode(1, 1))), HasSubstr("the second one"));
  EXPECT_THAT(refusal(binning_mode(1, 1).append(finish())), HasSubstr("no START_TILE_BINNING"));
}

TEST_F(BinningTest, EndsWithSemaphoreAndFlush) {
  EXPECT_THAT(refusal(start()), HasSubstr("does not end with"));
  EXPECT_THAT(refusal(start().u8(4)), HasSubstr("does not end with"));
  EXPECT_THAT(refusal(start().u8(7).u8(1)), HasSubstr("does not end with"));
  EXPECT_THAT(refusal(start().u8(7)), HasSubstr("last but one"));
  EXPECT_THAT(refusal(start().u8(7).u8(1).u8(4)), HasSubstr("last but one"));
  EXPECT_THAT(refusal(start().u8(4).u8(7).u8(4)), HasSubstr("not at the end"));
  // HALT ends the walk, and the end is missing then.
  EXPECT_THAT(refusal(start().u8(0).append(finish())), HasSubstr("does not end with"));
}

TEST_F(BinningTest, WritesTheModeAnew) {
  const auto binning =
      check(Bytes().u8(112).u32(1).u32(2).u32(3).u8(9).u8(8).u8(0x79).u8(6).append(finish()));
  ASSERT_TRUE(binning.ok()) << binning.status();
  const std::vector<uint8_t> mode(binning->bytes.begin(), binning->bytes.begin() + 16);
  EXPECT_THAT(mode, ElementsAre(112, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 8, 0x45));
}

TEST_F(BinningTest, ChecksTheMode) {
  EXPECT_THAT(refusal(start(0, 1)), HasSubstr("no tiles"));
  EXPECT_THAT(refusal(start(1, 0)), HasSubstr("no tiles"));
  for (uint32_t bit = 0; bit < 8; ++bit)
    EXPECT_EQ(refusal(binning_mode(1, 1, 1u << bit).u8(6).append(finish())).empty(), bit != 1 && bit != 7)
        << bit;
  EXPECT_THAT(refusal(start(255, 43)), HasSubstr("more tiles"));  // 10965
  EXPECT_EQ(refusal(start(85, 127).append(finish())), "");        // 10795
  refuse_too_many_tiles_ = false;
  EXPECT_EQ(refusal(start(255, 255).append(finish())), "");
}

TEST_F(BinningTest, DrawsNeedAShaderState) {
  EXPECT_THAT(refusal(list(draw_arrays(3, 0))), HasSubstr("before GL_SHADER_STATE"));
  EXPECT_THAT(refusal(list(draw_indices(0, 3, 0, 0))), HasSubstr("before GL_SHADER_STATE"));
}

TEST_F(BinningTest, CountsShaderStates) {
  records_ = plain_record().bytes().append(plain_record().bytes());
  const Bytes two = list(shader_state(1).append(shader_state(1)));
  EXPECT_EQ(refusal(two, 2), "");
  EXPECT_THAT(refusal(two, 1), HasSubstr("more than there are shader records"));
  EXPECT_THAT(refusal(list(shader_state(16))), HasSubstr("number of attributes"));
}

TEST_F(BinningTest, RelocatesShaderStates) {
  records_ = plain_record().bytes().append(plain_record().bytes());
  const auto binning = check(list(shader_state(1).append(shader_state(1))));
  ASSERT_TRUE(binning.ok()) << binning.status();
  // The list has 29 bytes; a record has 44.
  EXPECT_EQ(get<uint32_t>(binning->bytes, 18), kAddress + 32 + 1);
  EXPECT_EQ(get<uint32_t>(binning->bytes, 23), kAddress + 32 + 48 + 1);
  const auto record = std::span(binning->bytes).subspan(32);
  for (const uint32_t stage : {4, 16, 28}) {
    EXPECT_EQ(get<uint32_t>(record, stage), bos_[kFlat].address);
    EXPECT_EQ(get<uint32_t>(record, stage + 4), kAddress + layout_of(29, records_.size(), 0).uniforms);
  }
  EXPECT_EQ(get<uint32_t>(record, 36), bos_[kPlain].address);
  EXPECT_THAT(binning->reads, ElementsAre(kPlain));
}

TEST_F(BinningTest, ChecksIndices) {
  records_ = plain_record().bytes();
  const auto draw = [&](const Bytes& packets) { return refusal(list(shader_state(1).append(packets))); };
  const auto indices_of = [&](uint32_t type, uint32_t count, uint32_t offset) {
    return draw(gem_handles(kSmall).append(draw_indices(type, count, offset, 0)));
  };
  EXPECT_EQ(indices_of(0, 4096, 0), "");
  EXPECT_NE(indices_of(0, 4097, 0), "");
  EXPECT_EQ(indices_of(1, 2048, 0), "");
  EXPECT_NE(indices_of(1, 2049, 0), "");
  EXPECT_EQ(indices_of(1, 2047, 1), "");
  EXPECT_NE(indices_of(1, 2048, 1), "");
  EXPECT_EQ(indices_of(0, 0, 4096), "");
  EXPECT_NE(indices_of(0, 0, 4097), "");
  EXPECT_NE(indices_of(1, 0x80000001, 0), "");
  EXPECT_EQ(draw(draw_indices(0, 65536, 0, 0)), "");  // the first BO, where no packet names one
  EXPECT_THAT(draw(gem_handles(kNumBos).append(draw_indices(0, 1, 0, 0))), HasSubstr("BO 6 of a list of 6"));
  EXPECT_THAT(draw(gem_handles(kFlat).append(draw_indices(0, 1, 0, 0))), HasSubstr("is a program"));
}

TEST_F(BinningTest, CopiesNoGemHandles) {
  records_ = plain_record().bytes();
  const auto binning =
      check(list(shader_state(1).append(gem_handles(kSmall)).append(draw_indices(1, 3, 16, 2))));
  ASSERT_TRUE(binning.ok()) << binning.status();
  EXPECT_EQ(binning->list_bytes, 19u + 5 + 14);
  EXPECT_EQ(get<uint32_t>(binning->bytes, 17 + 5 + 6), bos_[kSmall].address + 16);
  EXPECT_THAT(binning->reads, ElementsAre(kPlain, kSmall));
}

TEST_F(BinningTest, TheHighestIndexOfAllDrawsCounts) {
  Record record = plain_record();
  record.attributes = {{kSmall, 0, 4, 4}};  // 1024 of them
  records_ = record.bytes();
  const auto draw = [&](const Bytes& packets) { return refusal(list(shader_state(1).append(packets))); };
  EXPECT_EQ(draw(draw_arrays(1024, 0)), "");
  EXPECT_THAT(draw(draw_arrays(1024, 1)), HasSubstr("no value for index 1024"));
  EXPECT_NE(draw(draw_arrays(1024, 1).append(draw_arrays(1, 0))), "");
  EXPECT_EQ(draw(draw_indices(0, 1, 0, 1023)), "");
  EXPECT_NE(draw(draw_indices(0, 1, 0, 1024)), "");
  EXPECT_THAT(draw(draw_arrays(0, 0)), HasSubstr("4294967295"));
  EXPECT_THAT(draw(draw_arrays(2, UINT32_MAX - 1)), HasSubstr("wrap"));
  // Each record has its own.
  records_ = record.bytes().append(plain_record().bytes());
  EXPECT_EQ(draw(shader_state(1).append(draw_arrays(1, 5000))), "");
}

TEST_F(BinningTest, ChecksAttributes) {
  Record record = plain_record();
  const auto attribute = [&](uint32_t offset, uint32_t bytes, uint32_t stride, uint32_t max_index = 0) {
    record.attributes = {{kSmall, offset, bytes, stride}};
    return refusal_of(record, max_index);
  };
  EXPECT_EQ(attribute(4092, 4, 0), "");
  EXPECT_NE(attribute(4093, 4, 0), "");
  EXPECT_NE(attribute(UINT32_MAX, 4, 0), "");
  EXPECT_EQ(attribute(0, 256, 0, 1000000), "");  // the same for all
  EXPECT_EQ(attribute(96, 16, 16, 249), "");
  EXPECT_NE(attribute(96, 16, 16, 250), "");
  record.extended = true;
  EXPECT_EQ(attribute(0, 4, 0x200, 7), "");
  EXPECT_NE(attribute(0, 4, 0x200, 8), "");
  record.attributes = std::vector<Record::Attribute>(8, {kPlain, 0, 4, 4});
  EXPECT_EQ(record.bits(), 8u);
  EXPECT_EQ(refusal_of(record), "");
  record.attributes[7].bo = kFlat;
  EXPECT_THAT(refusal_of(record), HasSubstr("is a program"));
}

TEST_F(BinningTest, ChecksPrograms) {
  for (uint32_t Record::*stage : {&Record::fragment, &Record::vertex, &Record::coordinate}) {
    Record record = plain_record();
    record.*stage = kPlain;
    EXPECT_THAT(refusal_of(record), HasSubstr("no shader BO"));
    record.*stage = kNumBos;
    EXPECT_THAT(refusal_of(record), HasSubstr("not in the list"));
    record.*stage = UINT32_MAX;
    EXPECT_THAT(refusal_of(record), HasSubstr("not in the list"));
  }
  Record record = plain_record();
  record.code_offset = 8;
  EXPECT_THAT(refusal_of(record), HasSubstr("does not begin"));
}

TEST_F(BinningTest, OnlyFragmentShadersHaveThreads) {
  Record record = plain_record();
  record.fragment = kThreaded;
  EXPECT_THAT(refusal_of(record), HasSubstr("do not agree"));
  record.flags = 0;
  EXPECT_EQ(refusal_of(record), "");
  record.vertex = kThreaded;
  EXPECT_THAT(refusal_of(record), HasSubstr("a threaded vertex"));
  record = plain_record();
  record.flags = 6;
  EXPECT_THAT(refusal_of(record), HasSubstr("do not agree"));
}

TEST_F(BinningTest, RefusesCutRecordsAndUniforms) {
  Record record = plain_record();
  record.coordinate = kTextured;
  const Bytes whole = record.bytes();
  const Bytes draw = list(shader_state(1).append(draw_arrays(1, 0)));
  uniforms_ = luminance_uniforms(kPlain);
  records_ = whole;
  EXPECT_EQ(refusal(draw), "");
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    records_.assign(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(bytes));
    EXPECT_THAT(refusal(draw), HasSubstr("not all there")) << bytes;
  }
  records_ = whole;
  uniforms_.pop_back();
  EXPECT_THAT(refusal(draw), HasSubstr("coordinate shader: shader record: its uniforms are not all there"));
}

// Linux compares with all uniforms each time, and reads beyond them.
TEST_F(BinningTest, UniformsAreUsedUp) {
  Record record = plain_record();
  record.coordinate = kTextured;
  records_ = record.bytes().append(record.bytes());
  const Bytes draw = list(shader_state(1).append(shader_state(1)));
  uniforms_ = luminance_uniforms(kPlain);
  EXPECT_THAT(refusal(draw), HasSubstr("uniforms are not all there"));
  uniforms_.append(Bytes(uniforms_));
  EXPECT_EQ(refusal(draw), "");
}

TEST_F(BinningTest, RelocatesTextures) {
  Record record = plain_record();
  record.fragment = kTextured;
  record.vertex = kLoop;
  records_ = record.bytes();
  // The fragment shader: its texture, then parameters and a uniform; the vertex shader's two words.
  uniforms_.u32(kSmall).u32(5 << 4).u32(16 << 8 | 16 << 20).u32(0xabcd).u32(0x1111).u32(0xd0d0d0d0);
  const auto binning = check(list(shader_state(1)));
  ASSERT_TRUE(binning.ok()) << binning.status();
  const uint64_t at = layout_of(24, records_.size(), 0).uniforms;
  const auto uniforms = std::span(binning->bytes).subspan(at);
  EXPECT_EQ(get<uint32_t>(uniforms, 0), bos_[kSmall].address + (5 << 4));
  EXPECT_EQ(get<uint32_t>(uniforms, 8), 0xabcdu);
  EXPECT_EQ(get<uint32_t>(uniforms, 12), 0x1111u);
  EXPECT_EQ(get<uint32_t>(uniforms, 16), kAddress + at + 12);  // of the vertex shader's stream
  const auto copied = std::span(binning->bytes).subspan(32);
  EXPECT_EQ(get<uint32_t>(copied, 8), kAddress + at);
  EXPECT_EQ(get<uint32_t>(copied, 20), kAddress + at + 12);
  EXPECT_EQ(get<uint32_t>(copied, 32), kAddress + at + 20);
  EXPECT_THAT(binning->reads, ElementsAre(kPlain));  // only the coordinate shader's textures are binned
}

TEST_F(BinningTest, CoordinateShadersReadTexturesWhenBinned) {
  Record record = plain_record();
  record.coordinate = kTextured;
  records_ = record.bytes();
  uniforms_ = luminance_uniforms(kSmall);
  EXPECT_THAT(check(list(shader_state(1)))->reads, ElementsAre(kPlain, kSmall));
  uniforms_ = luminance_uniforms(kTextured);
  EXPECT_THAT(refusal(list(shader_state(1))), HasSubstr("is a program"));
}

}  // namespace
}  // namespace v3d::ioctl::vc4::test
