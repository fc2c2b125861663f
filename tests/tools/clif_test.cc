#include "tools/cli/captures/clif.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>

#include "gpu/chip/generation.h"

namespace v3d::tools {
namespace {

using testing::HasSubstr;

constexpr const char kBegin[] =
    "what the program prints\n"
    "@createbuf_aligned 4096 CL_0x1000\n"
    "@createbuf_aligned 4096 data_0x3000\n"
    "\n"
    "@buffer CL_0x1000\n"
    "@format ctrllist  /* [CL_0x1000+0x00000000] */\n"
    "NUMBER_OF_LAYERS\n"
    "  /*               Number of Layers: */ 2\n";
constexpr const char kEnd[] =
    "@add_bin 0\n  [CL_0x1000+0x00000000] /* 0x00001000 */\n  [CL_0x1000+0x0000000b] /* 0x0000100b */\n"
    "  [null]\n  4096\n  [data_0x3000+0x00000004] /* 0x00003004 */\n@wait_bin_all_cores\n"
    "@add_render 0\n  [CL_0x1000+0x00000002] /* 0x00001002 */\n  [CL_0x1000+0x0000000b] /* 0x0000100b */\n"
    "  [null]\n@wait_render_all_cores\n";

std::string dump(const std::string& list) {
  return kBegin + list +
         "\n@buffer data_0x3000\n@format binary /* [data_0x3000+0x00000000] */\n0x11223344 0x55 \n"
         "\n@format blank 4091 /* [data_0x3000+0x00000005..0x00000fff] */\n\n" +
         kEnd;
}

TEST(Clif, BuffersAndJobs) {
  const auto clif =
      parse_clif(dump("CLIPPER_XY\n"
                      "  /* Viewport Half-Width in 1/64th of pixel: */ 1.000000\n"
                      "  /* Viewport Half-Height in 1/64th of pixel: */ -2.000000\n"));
  ASSERT_TRUE(clif.ok()) << clif.status();
  EXPECT_EQ(clif->generation, chip::Generation::k71);
  ASSERT_EQ(clif->dumps.size(), 1u);
  const ClifDump& one = clif->dumps[0];
  ASSERT_EQ(one.buffers.size(), 2u);
  EXPECT_EQ(one.buffers[0].address, 0x1000u);
  ASSERT_EQ(one.buffers[0].parts.size(), 1u);
  EXPECT_EQ(one.buffers[0].parts[0].second, std::string("\x77\x01\x6e\0\0\x80\x3f\0\0\0\xc0", 11));
  EXPECT_EQ(one.buffers[1].size, 4096u);
  EXPECT_EQ(one.buffers[1].parts[0].second, "\x44\x33\x22\x11\x55");
  EXPECT_EQ(one.job.bcl_start, 0x1000u);
  EXPECT_EQ(one.job.bcl_end, 0x100bu);
  EXPECT_EQ(one.job.qms, 4096u);
  EXPECT_EQ(one.job.qts, 0x3004u);
  EXPECT_EQ(one.job.rcl_start, 0x1002u);
}

// Names of fields tell the chips apart.
TEST(Clif, OfThePi4) {
  const auto clif =
      parse_clif(dump("CLIPPER_XY\n"
                      "  /* Viewport Half-Width in 1/256th of pixel: */ 1.000000\n"
                      "  /* Viewport Half-Height in 1/256th of pixel: */ 1.000000\n"));
  ASSERT_TRUE(clif.ok()) << clif.status();
  EXPECT_EQ(clif->generation, chip::Generation::k42);
}

TEST(Clif, WhatIsWrongIsNamedByItsLine) {
  for (const auto& [list, message] :
       {std::pair{"STRANGE\n", "line 9: V3D 7.1 has no packet STRANGE"},
        std::pair{"LINE_WIDTH\n", "line 10: a field of Line width is expected"},
        std::pair{"LINE_WIDTH\n  /* Line width: */ thin\n", "line 10: \"thin\" is no number"},
        std::pair{"LINE_WIDTH\n  /* Width: */ 1.0\n", "line 10: Line width has no field Width in V3D 7.1"},
        std::pair{"BRANCH\n  /* address: */ 17\n", "line 10: \"17\" is no address"},
        std::pair{"@format blank many\n", "line 9: \"many\" is no number of bytes"},
        std::pair{"@format binary\n0x1234 nothing\n", "line 10: \"nothing\" is no address"},
        std::pair{"@format ctrllist /* [CL_0x1000+0x00000077] */\n", "line 9: what stands before comes to"},
        std::pair{"@format blank 4294967295\n", "line 9: a buffer ends beyond 4 GiB"},
        std::pair{"@buffer nameless\n", "line 9: the name of the buffer nameless has no address"}}) {
    const auto clif = parse_clif(dump(list));
    ASSERT_FALSE(clif.ok()) << list;
    EXPECT_THAT(std::string(clif.status().message()), HasSubstr(message));
  }
  EXPECT_THAT(std::string(parse_clif(kBegin).status().message()), HasSubstr("a dump ends before its job"));
  EXPECT_FALSE(is_clif("@buffer x\n"));
  EXPECT_TRUE(is_clif(dump("")));
}

// Whatever stands in a file, it is read or refused.
TEST(Clif, AnyText) {
  const std::string whole = dump(
      "BLEND_CCOLOR\n  /* Red (F16): */ 1\n  /* Green (F16): */ 2\n  /* Blue (F16): */ 3\n"
      "  /* Alpha (F16): */ 4\nPOINT_SIZE\n  /* Point Size: */ 1.5\n");
  ASSERT_TRUE(parse_clif(whole).ok()) << parse_clif(whole).status();
  std::minstd_rand random(1);
  const auto below = [&random](size_t end) { return static_cast<size_t>(random()) % end; };
  int refused = 0;
  for (int n = 0; n < 3000; ++n) {
    std::string text = whole;
    for (size_t changes = 1 + below(4); changes > 0; --changes) {
      const size_t at = below(text.size()), length = below(12);
      if (below(2) == 0)
        text.replace(at, length, whole.substr(below(whole.size()), below(40)));
      else
        text[at] = static_cast<char>(below(256));
    }
    const auto clif = parse_clif(text);
    refused += !clif.ok();
    const std::string message = clif.ok() ? "line " : std::string(clif.status().message());
    EXPECT_THAT(message, testing::StartsWith("line "));
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace v3d::tools
