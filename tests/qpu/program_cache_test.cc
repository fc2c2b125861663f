#include "gpu/qpu/run/program_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "gpu/mmu/address_space.h"
#include "gpu/qpu/run/program.h"
#include "gpu/qpu/run/vc4_program.h"

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

/// Has so many bytes to give.
class Purse : public MemoryPayer {
 public:
  explicit Purse(uint64_t bytes) : left(bytes) {}
  bool take_memory(uint64_t bytes) override {
    if (bytes > left) return false;
    left -= bytes;
    return true;
  }
  void return_memory(uint64_t bytes) override { left += bytes; }
  uint64_t left;
};

TEST(ProgramCache, ItsClientPaysForWhatIsDecoded) {
  constexpr uint64_t kAll = 10 * ProgramRoom::kPieceBytes;
  const auto space = mmu::AddressSpace::create().value();
  ASSERT_TRUE(space->map_zeros(kCode, 2 * mmu::kPageSize).ok());
  for (const bool is_vc4 : {false, true}) {
    const auto purse = std::make_shared<Purse>(kAll);
    {
      ProgramCache cache(is_vc4 ? chip::Generation::k21 : chip::Generation::k71);
      cache.set_payer(purse);
      const auto program = is_vc4 ? nullptr : cache.get(space->memory(), kCode);
      const auto vc4_program = is_vc4 ? cache.get_vc4(space->memory(), kCode) : nullptr;
      const auto reach = [&](uint32_t chunk) {
        const GpuAddr address = kCode + chunk * Chunk::kBytes;
        return is_vc4 ? vc4_program->chunk(space->memory(), address) != nullptr
                      : program->chunk(space->memory(), address) != nullptr;
      };
      for (uint32_t chunk = 0; chunk < 10; ++chunk) EXPECT_TRUE(reach(chunk)) << chunk;
      EXPECT_EQ(purse->left, 0u);
      EXPECT_FALSE(reach(10));
      EXPECT_TRUE(reach(3));
      EXPECT_EQ(cache.chunks(), 10u);
    }
    EXPECT_EQ(purse->left, kAll);
  }
}

TEST(ProgramCache, ProgramsOfVideoCoreAreFoundAgainUntilTheyChange) {
  const auto space = mmu::AddressSpace::create().value();
  ASSERT_TRUE(space->map_zeros(kCode, mmu::kPageSize).ok());
  ProgramCache cache(chip::Generation::k21);
  const auto first = cache.get_vc4(space->memory(), kCode);
  ASSERT_TRUE(first->chunk(space->memory(), kCode));
  EXPECT_EQ(cache.get_vc4(space->memory(), kCode), first);
  space->memory().store<uint64_t>(kCode + 8, 1);
  EXPECT_NE(cache.get_vc4(space->memory(), kCode), first);
}

}  // namespace
}  // namespace v3d::qpu
