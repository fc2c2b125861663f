#include "tools/inspect/history_json.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

namespace v3d::inspect {
namespace {

using Access = PixelEvent::Access;

/// What is said of the words that a program writes to a target.
std::string written(tlb::ColorType type, Access::Form form, std::vector<uint32_t> words,
                    bool is_depth = false) {
  tlb::Config config;
  config.targets[2].type = type;
  Access access;
  access.target = 2;
  access.form = form;
  access.words = std::move(words);
  access.is_depth = is_depth;
  PixelEvent event;
  event.runs.push_back({.accesses = {access}});
  return history_json(config, nullptr, event, 0)["runs"][0]["accesses"][0]["written"].dump();
}

TEST(HistoryJson, ValuesHaveTheTypeOfTheirTarget) {
  using tlb::ColorType;
  const uint32_t half = std::bit_cast<uint32_t>(0.5f);
  EXPECT_EQ(written(ColorType::k8, Access::Form::kWhole, {half}), "[0.5]");
  EXPECT_EQ(written(ColorType::k16F, Access::Form::kHalves, {0xc0003800}), "[0.5,-2.0]");
  EXPECT_EQ(written(ColorType::k32Ui, Access::Form::kWhole, {0xfffffffe}), "[4294967294.0]");
  EXPECT_EQ(written(ColorType::k32I, Access::Form::kWhole, {0xfffffffe}), "[-2.0]");
  EXPECT_EQ(written(ColorType::k16Ui, Access::Form::kHalves, {0xfffe0001}), "[1.0,65534.0]");
  EXPECT_EQ(written(ColorType::k8I, Access::Form::kHalves, {0xfffe0001}), "[1.0,-2.0]");
  // Depth is a float, whatever the colours are.
  EXPECT_EQ(written(ColorType::k32I, Access::Form::kWhole, {half}, true), "[0.5]");
}

// Colours of VideoCore IV are rgba8, and depth has 24 bits.
TEST(HistoryJson, ValuesOfVideoCoreIv) {
  EXPECT_EQ(written(tlb::ColorType::k8, Access::Form::kFixed, {0xff003300}), "[0.0,0.2,0.0,1.0]");
  EXPECT_EQ(written(tlb::ColorType::k8, Access::Form::kFixed, {0xffffff}, true), "[1.0]");
}

TEST(HistoryJson, TestsFailForTheSampleThatIsFollowed) {
  draw::BinResult bin;
  bin.draws.resize(1);
  PixelEvent event;
  event.tests_early = true;
  event.coverage = 0b0011;
  event.passed_early = 0b0010;
  const auto fails = [&](uint32_t sample) {
    return history_json(tlb::Config(), &bin, event, sample).contains("failed");
  };
  EXPECT_TRUE(fails(0));
  EXPECT_FALSE(fails(1));
  EXPECT_FALSE(fails(2)) << "it does not cover it";
}

}  // namespace
}  // namespace v3d::inspect
