#include "tools/inspect/memory_snapshot.h"

#include <gtest/gtest.h>

namespace v3d::inspect {
namespace {

TEST(MemorySnapshot, BringsBackWhatWasThere) {
  auto space = mmu::AddressSpace::create();
  ASSERT_TRUE(space.ok());
  constexpr GpuAddr kFirst = 0x10000, kOther = 0x40000;
  ASSERT_TRUE((*space)->map_zeros(kFirst, 2 * mmu::kPageSize).ok());
  ASSERT_TRUE((*space)->map_zeros(kOther, mmu::kPageSize).ok());
  const Memory memory = (*space)->memory();
  memory.store<uint32_t>(kFirst + 8, 7);
  MemorySnapshot snapshot(**space);
  for (int round = 0; round < 2; ++round) {
    memory.store<uint32_t>(kFirst + 8, 9);
    memory.store<uint32_t>(kFirst + mmu::kPageSize, 1);  // of pages that were zero
    memory.store<uint32_t>(kOther, 2);
    snapshot.restore();
    EXPECT_EQ(memory.load<uint32_t>(kFirst + 8), 7u);
    EXPECT_EQ(memory.load<uint32_t>(kFirst + mmu::kPageSize), 0u);
    EXPECT_EQ(memory.load<uint32_t>(kOther), 0u);
  }
}

}  // namespace
}  // namespace v3d::inspect
