#include "gpu/qpu/run/program_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "gpu/mmu/address_space.h"
#include "gpu/qpu/run/program.h"

namespace v3d::qpu {
namespace {

constexpr GpuAddr kCode = 0x100000;
constexpr uint32_t kChunksOfProgram = 512;

/// An address space with programs of 512 chunks each, one after the other.
class Client {
 public:
  explicit Client(uint32_t programs) : space_(mmu::AddressSpace::create().value()) {
    EXPECT_TRUE(space_->map_zeros(kCode, uint64_t{programs} * kChunksOfProgram * Chunk::kBytes).ok());
  }
  /// Execution comes to all of it.
  std::shared_ptr<const Program> use(uint32_t number) {
    const GpuAddr entry = kCode + number * kChunksOfProgram * Chunk::kBytes;
    std::shared_ptr<const Program> program = cache_.get(space_->memory(), entry);
    for (uint32_t n = 0; n < kChunksOfProgram; ++n)
      if (!program->chunk(space_->memory(), entry + n * Chunk::kBytes)) return nullptr;
    return program;
  }
  size_t chunks() const { return cache_.chunks(); }

 private:
  std::unique_ptr<mmu::AddressSpace> space_;
  ProgramCache cache_{chip::Generation::k71};
};

TEST(ProgramCache, ManyAddressSpacesTogetherKeepNoMoreThanThereIs) {
  Client small(1);
  ASSERT_TRUE(small.use(0));
  std::vector<std::unique_ptr<Client>> clients;
  for (int n = 0; n < 7; ++n) {
    Client& client = *clients.emplace_back(std::make_unique<Client>(8));
    for (uint32_t program = 0; program < 8; ++program) ASSERT_TRUE(client.use(program));
    size_t chunks = small.chunks();
    for (const auto& other : clients) chunks += other->chunks();
    // What is being made is counted with the next one.
    EXPECT_LE(chunks, ProgramCache::kMaxChunksInAll + kChunksOfProgram) << n;
  }
  EXPECT_EQ(small.chunks(), kChunksOfProgram);  // who has most gave
}

TEST(ProgramCache, ProgramsInUseAreBounded) {
  Client client(20);
  std::vector<std::shared_ptr<const Program>> used;
  for (uint32_t n = 0; n < 20; ++n) {
    used.push_back(client.use(n));
    EXPECT_LE(client.chunks(), Program::kMaxTotal);
  }
  EXPECT_TRUE(used[Program::kMaxTotal / kChunksOfProgram - 1]);
  EXPECT_FALSE(used.back());
  used.clear();
  EXPECT_TRUE(client.use(0));  // there is room again
}

}  // namespace
}  // namespace v3d::qpu
