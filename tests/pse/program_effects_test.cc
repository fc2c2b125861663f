#include "gpu/pse/program_effects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "gpu/qpu/isa/assembler.h"
#include "gpu/qpu/run/program_cache.h"
#include "tests/vpm/test_job.h"

namespace v3d::pse {
namespace {

constexpr const char* kColor = "vfpack tlb, rf10, rf11 ; nop\nvfpack tlb, rf12, rf13 ; nop\n";

struct Found {
  bool harmless, replaces;
  bool operator==(const Found&) const = default;
};
std::ostream& operator<<(std::ostream& out, Found found) {
  return out << (found.harmless ? "harmless" : "harmful") << (found.replaces ? ", replaces" : "");
}
constexpr Found kReplaces = {true, true}, kHarmless = {true, false}, kHarmful = {false, false};

Found effects(const std::string& text, const std::vector<uint32_t>& uniforms = {},
              chip::Generation generation = chip::Generation::k71, bool final_section = true) {
  TestJob test;
  const qpu::Assembly assembly = qpu::assemble(generation, text + "end");
  EXPECT_TRUE(assembly.errors.empty()) << text << to_string(assembly.errors.at(0));
  qpu::ProgramCache programs(generation);
  const auto program = programs.get(test.memory(), test.put(assembly.words));
  const ProgramEffects found(test.memory(), *program, final_section);
  const bool harmless = found.is_harmless(test.memory(), uniforms.empty() ? 0 : test.put(uniforms));
  return {harmless, harmless && found.replaces()};
}

TEST(ProgramEffects, WholePixelsReplaceWhatIsBelow) {
  EXPECT_EQ(effects(kColor), kReplaces);
  EXPECT_EQ(effects(kColor, {}, chip::Generation::k42), kReplaces);
  EXPECT_EQ(effects(std::string("nop ; nop ; thrsw\nnop\nnop\n") + kColor, {}, chip::Generation::k71, false),
            kReplaces);
}

TEST(ProgramEffects, WhatLeavesOldColorsReplacesNothing) {
  EXPECT_EQ(effects(""), kHarmless);
  EXPECT_EQ(effects("vfpack tlb, rf10, rf11 ; nop\n"), kHarmless) << "half a pixel";
  EXPECT_EQ(effects(std::string("nop ; nop ; ldtlb.rf10\nnop ; nop ; ldtlb.rf11\n") + kColor), kHarmless)
      << "what it reads may be what it writes";
  EXPECT_EQ(effects(std::string("setmsf -, rf1 ; nop\n") + kColor), kHarmless) << "a discard";
  EXPECT_EQ(effects(std::string("setmsf.ifa -, 0 ; nop\n") + kColor), kHarmless) << "a discard of some";
  EXPECT_EQ(effects("vfpack.ifa tlb, rf10, rf11 ; nop\nvfpack.ifa tlb, rf12, rf13 ; nop\n"), kHarmless);
  EXPECT_EQ(effects("mov tlbu, rf1 ; nop\nmov tlb, rf2 ; nop\n", {0xffffffff}), kHarmless)
      << "the uniform decides where it goes";
  EXPECT_EQ(effects(std::string("b.anya 32\nnop\nnop\nnop\nnop\n") + kColor), kHarmless) << "a branch";
}

TEST(ProgramEffects, LoadsAreHarmless) {
  EXPECT_EQ(effects(std::string("mov tmua, rf1 ; nop\nnop ; nop ; ldtmu.rf2\n") + kColor), kReplaces);
  EXPECT_EQ(effects(std::string("mov tmuau, rf1 ; nop\nnop ; nop ; ldtmu.rf2\n") + kColor, {0xffffff7c}),
            kReplaces);
  EXPECT_EQ(effects(std::string("nop ; nop ; wrtmuc\nmov tmut, rf1 ; nop ; wrtmuc\nmov tmus, rf2 ; nop\n") +
                        "nop ; nop ; ldtmu.rf2\n" + kColor,
                    {0, 0}),
            kReplaces);
  EXPECT_EQ(effects("nop ; nop ; wrtmuc\nnop ; nop ; wrtmuc\nnop ; nop ; wrtmuc\nmov tmus, rf2 ; nop\n",
                    {0, 0, 0x00f00000}),
            kHarmless);
}

TEST(ProgramEffects, WhatWritesMemoryIsNot) {
  EXPECT_EQ(effects(std::string("mov tmud, rf3 ; nop\nmov tmua, rf1 ; nop\n") + kColor), kHarmful);
  EXPECT_EQ(effects(std::string("mov tmuau, rf1 ; nop\n") + kColor, {0xffffff47}), kHarmful)
      << "an increment";
  EXPECT_EQ(effects(std::string("mov tmuc, rf1 ; nop\nmov tmua, rf1 ; nop\n") + kColor), kHarmful)
      << "not known what";
  EXPECT_EQ(effects(std::string("mov tmua, rf1 ; nop\nmov tmuau, rf1 ; nop\nmov tmua, rf1 ; nop\n") + kColor,
                    {0xffff477c}),
            kHarmful)
      << "the second byte of the configuration";
  EXPECT_EQ(effects("mov tmud, rf3 ; nop\nnop ; nop ; wrtmuc\nmov tmus, rf2 ; nop\n", {0}), kHarmful)
      << "a store to an image";
  EXPECT_EQ(effects("nop ; nop ; wrtmuc\nnop ; nop ; wrtmuc\nnop ; nop ; wrtmuc\nmov tmus, rf2 ; nop\n",
                    {0, 0, 0x00800000}),
            kHarmful)
      << "an increment of an image";
}

TEST(ProgramEffects, WhatMayHangIsNot) {
  EXPECT_EQ(effects(std::string("b -32\nnop\nnop\nnop\n") + kColor), kHarmful);
  EXPECT_EQ(effects(std::string("mov syncb, rf1 ; nop\nnop ; nop ; thrsw\nnop\nnop\n") + kColor), kHarmful);
  EXPECT_EQ(effects(std::string("b lri\nnop\nnop\nnop\n") + kColor), kHarmful);
}

TEST(ProgramEffects, NothingIsFoundOutOfLongPrograms) {
  std::string text;
  for (int i = 0; i < 1100; ++i) text += "nop\n";
  EXPECT_EQ(effects(text + kColor), kHarmful);
}

}  // namespace
}  // namespace v3d::pse
