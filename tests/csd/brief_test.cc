#include "gpu/csd/brief.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "gpu/chip/profile.h"
#include "gpu/mmu/address_space.h"
#include "gpu/qpu/isa/assembler.h"

namespace v3d::csd {
namespace {

constexpr GpuAddr kCode = 0x10000;
constexpr uint32_t kSingleSegment = 2;
const std::string kEnd = "thrsw\nthrsw\nnop\nnop\nthrsw\nnop\nnop\n";

class Brief : public testing::Test {
 protected:
  void SetUp() override {
    auto space = mmu::AddressSpace::create();
    ASSERT_TRUE(space.ok() && (*space)->map_zeros(kCode, mmu::kPageSize).ok());
    space_ = *std::move(space);
  }
  /// Of a program that stands `before` the end of the mapped page, if that is not 0.
  bool brief(const std::string& text, uint32_t batches = 1, uint32_t flags = 0, uint32_t before = 0) {
    const qpu::Assembly assembly = qpu::assemble(chip::Generation::k71, text);
    EXPECT_TRUE(assembly.errors.empty());
    const GpuAddr at = before ? kCode + mmu::kPageSize - before : kCode;
    space_->memory().write(at, assembly.words.data(), assembly.words.size() * 8);
    const bool result = is_brief(*space_, *chip::find_profile("rpi5"),
                                 {1 << 16, 1 << 16, 1 << 16, 16, batches, at | flags, 0});
    EXPECT_EQ(space_->take_faults().count, 0u);
    return result;
  }

  std::unique_ptr<mmu::AddressSpace> space_;
};

TEST_F(Brief, ShortProgramsThatOnlyGoOn) {
  EXPECT_TRUE(brief("nop\n" + kEnd));
  EXPECT_TRUE(brief("nop\n" + kEnd + "here: b here\nnop\nnop\nnop\n"));  // beyond its end
  EXPECT_TRUE(brief("thrsw\nnop\nnop\n", 1, kSingleSegment));
  EXPECT_TRUE(brief("nop\n" + kEnd, kBriefBatches));
}

TEST_F(Brief, BranchesThatLeadOn) {
  const std::string delay = "nop\nnop\nnop\n";
  EXPECT_TRUE(brief("b.anya over\n" + delay + "nop\nover: " + kEnd));
  EXPECT_TRUE(brief("b over\n" + delay + "b over\n" + delay + "over: " + kEnd));
  EXPECT_TRUE(brief("b over\nhere: nop\nnop\nnop\nb here\n" + delay + "over: " + kEnd));  // never comes there
  // Ends in the delay slots, on both ways.
  EXPECT_TRUE(brief("thrsw\nthrsw\nnop\nnop\nthrsw\nb.anya 0\nnop\n"));
}

TEST_F(Brief, NoWayBack) {
  const std::string delay = "nop\nnop\nnop\n";
  EXPECT_FALSE(brief("here: nop\nb.anya here\n" + delay + kEnd));
  EXPECT_FALSE(brief("b.anya over\nhere: nop\nnop\nnop\n" + kEnd + "over: b here\n" + delay));
  EXPECT_FALSE(brief("b -8\n" + delay + kEnd));  // to its own last delay slot
  EXPECT_FALSE(brief("b lri\n" + delay + kEnd));
  EXPECT_FALSE(
      brief("b.anya over\n" + delay + kEnd + "over: nop\n", 1, 0, 12 * 8));  // goes on where nothing is
  EXPECT_FALSE(brief("b 4096\n" + delay + kEnd));                            // too far
}

TEST_F(Brief, NothingElse) {
  EXPECT_FALSE(brief("nop\n" + kEnd, kBriefBatches + 1));
  EXPECT_FALSE(brief("here: b here\nnop\nnop\nnop\n" + kEnd));
  EXPECT_FALSE(brief("thrsw\nnop\nnop\nhere: b here\nnop\nnop\nnop\n" + kEnd));  // one switch ends nothing
  std::string longer;
  for (uint32_t n = 0; n < kBriefInstructions; ++n) longer += "nop\n";
  EXPECT_FALSE(brief(longer + kEnd));
}

TEST_F(Brief, WhatGoesOnWhereNothingIsMapped) { EXPECT_FALSE(brief("nop\nnop\n", 1, 0, 16)); }

}  // namespace
TEST_F(Brief, LooksAtTheProgramThatIsThereNow) {
  const std::string delay = "nop\nnop\nnop\n";
  EXPECT_TRUE(brief("nop\nnop\n" + kEnd));
  EXPECT_TRUE(brief("nop\nnop\n" + kEnd));
  EXPECT_FALSE(brief("here: nop\nb.anya here\n" + delay + kEnd));
  EXPECT_TRUE(brief("nop\nnop\n" + kEnd));
  EXPECT_TRUE(brief("thrsw\nnop\nnop\n", 1, kSingleSegment));
  EXPECT_FALSE(brief("thrsw\nnop\nnop\n" + std::string("here: b here\n") + delay));
}

}  // namespace v3d::csd
