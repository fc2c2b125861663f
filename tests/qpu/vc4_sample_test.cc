// The program for V3D 2.1 that docs/qpu.md shows.
#include <gtest/gtest.h>

#include <bit>
#include <fstream>
#include <sstream>
#include <string>

#include "gpu/qpu/check/vc4_hazard.h"
#include "tests/qpu/vc4_machine.h"

namespace v3d::qpu::vc4 {
namespace {

std::string sample() {
  std::ifstream file(V3DEMU_SAMPLES "/qpu/vc4_double.qasm");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Vc4Sample, DoublesFloats) {
  constexpr GpuAddr kX = Machine::kData, kY = 0xb000;
  constexpr uint32_t kVectors = 5;
  Machine m(sample() + "\n.uniform 5, 0xa000, 0xb000\n");
  m.give_vpm();
  for (uint32_t n = 0; n < 16 * kVectors; ++n) m.memory().store(kX + 4 * n, static_cast<float>(n) - 7.5F);
  const Thread& thread = m.result();
  EXPECT_EQ(thread.host_interrupts, 1u);
  for (uint32_t n = 0; n < 16 * kVectors; ++n)
    ASSERT_EQ(m.memory().load<float>(kY + 4 * n), 2 * (static_cast<float>(n) - 7.5F)) << n;
  EXPECT_EQ(m.word(kY + 64 * kVectors), 0u);
}

TEST(Vc4Sample, BreaksNoRule) {
  const Assembly assembly = assemble(sample());
  ASSERT_TRUE(assembly.errors.empty());
  for (const HazardReport& report : check_program(assembly.words))
    ADD_FAILURE() << "line " << assembly.lines[report.index] << ": "
                  << to_string(report, assembly.words[report.index]);
}

}  // namespace
}  // namespace v3d::qpu::vc4
