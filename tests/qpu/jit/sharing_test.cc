/// Programs that are compiled once for all who have the same words.

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gpu/mmu/address_space.h"
#include "gpu/qpu/isa/assembler.h"
#include "gpu/qpu/jit/beside.h"
#include "gpu/qpu/jit/jit.h"
#include "gpu/qpu/run/interpreter.h"
#include "gpu/qpu/run/program_cache.h"
#include "tests/qpu/jit/twins.h"

namespace v3d::qpu {
namespace {

constexpr GpuAddr kCode = 0x10000;
constexpr uint32_t kBytes = 0x4000;

std::vector<uint64_t> words_of(const std::string& text) {
  const Assembly assembly = assemble(chip::Generation::k71, text);
  EXPECT_TRUE(assembly.errors.empty()) << to_string(assembly.errors.at(0));
  return assembly.words;
}

/// An address space with its programs.
class Client {
 public:
  explicit Client(Compiler& compiler) : programs_(chip::Generation::k71, &compiler) {
    auto created = mmu::AddressSpace::create();
    if (!created.ok() || !(*created)->map_zeros(kCode, kBytes).ok()) std::abort();
    space_ = *std::move(created);
  }
  void upload(GpuAddr at, const std::vector<uint64_t>& words) {
    space_->memory().write(at, words.data(), words.size() * 8);
  }
  /// A thread of its own job. @return what it leaves in rf1
  uint32_t run(GpuAddr at) {
    const auto program = programs_.get(space_->memory(), at);
    const auto thread = std::make_unique<Thread>();
    thread->reset();
    thread->memory = space_->memory();
    thread->pc = at;
    thread->final_section = true;
    thread->msf = splat(1u);
    EXPECT_EQ(qpu::run(*program, *thread), Stop::kEnd);
    return thread->rf[1][0];
  }
  uint64_t faults() { return space_->take_faults().count; }

 private:
  std::unique_ptr<mmu::AddressSpace> space_;
  ProgramCache programs_;
};

class Sharing : public testing::TestWithParam<jit::Target> {
 protected:
  void SetUp() override {
    if (!jit::can_compile(GetParam())) GTEST_SKIP() << "the processor has no " << jit::name(GetParam());
  }
  uint64_t compiled() const {
    return compiler.statistics().programs[static_cast<size_t>(jit::Outcome::kCompiled)];
  }
  uint64_t found() const { return compiler.statistics().cache.hits; }

  jit::JitCompiler compiler{GetParam(), 0};
  Client a{compiler}, b{compiler};
};

INSTANTIATE_TEST_SUITE_P(Targets, Sharing, kTargets, kNameOfTarget);

const char* const kText = "mov rf1, 3\nnop\nadd rf1, rf1, rf1\nnop\nadd rf1, rf1, 1\nend";
constexpr uint32_t kResult = 7;

/// So that it is found by the words of long programs too.
std::string longer(const std::string& text) {
  std::string whole;
  for (int n = 0; n < 20; ++n) whole += "nop\n";
  return whole + text;
}

TEST_P(Sharing, AcrossClientsAndAddresses) {
  for (const std::string& text : {std::string(kText), longer(kText)}) {
    const uint64_t before = compiled();
    a.upload(kCode, words_of(text));
    EXPECT_EQ(a.run(kCode), kResult);
    b.upload(kCode + 0x208, words_of(text));
    EXPECT_EQ(b.run(kCode + 0x208), kResult);
    a.upload(kCode + 0x1010, words_of(text));
    EXPECT_EQ(a.run(kCode + 0x1010), kResult);
    EXPECT_EQ(compiled(), before + 1);
  }
  EXPECT_EQ(found(), 4u);
}

TEST_P(Sharing, AnUploadBehindInvalidatesNothing) {
  a.upload(kCode, words_of(kText));
  EXPECT_EQ(a.run(kCode), kResult);
  const auto behind = static_cast<GpuAddr>(kCode + words_of(kText).size() * 8);
  a.upload(behind, words_of("mov rf1, 2\nend"));
  EXPECT_EQ(a.run(behind), 2u);
  EXPECT_EQ(a.run(kCode), kResult);
  EXPECT_EQ(compiled(), 2u);
}

TEST_P(Sharing, EveryWordCounts) {
  const auto words = words_of(longer(kText));
  a.upload(kCode, words);
  EXPECT_EQ(a.run(kCode), kResult);
  b.upload(kCode, words_of(longer("mov rf1, 3\nnop\nadd rf1, rf1, rf1\nnop\nadd rf1, rf1, 2\nend")));
  EXPECT_EQ(b.run(kCode), kResult + 1);
  EXPECT_EQ(compiled(), 2u);
  EXPECT_EQ(found(), 0u);
  // ... at the same place too, when the program is written anew.
  b.upload(kCode, words);
  EXPECT_EQ(b.run(kCode), kResult);
  EXPECT_EQ(compiled(), 2u);
}

// What `bl` leaves is an address.
TEST_P(Sharing, AddressesAreThoseOfThePlace) {
  const auto words = words_of("bl next\nnop\nnop\nnop\nnext:\nlr rf1\nend");
  for (const GpuAddr at : {kCode, kCode + 0x800}) {
    a.upload(at, words);
    EXPECT_EQ(a.run(at), at + 32);
  }
  EXPECT_EQ(compiled(), 1u);
}

TEST_P(Sharing, AbsoluteBranchesBelongToTheirPlace) {
  const auto words = words_of("b zero_addr+0x10040\nnop\nnop\nnop\nmov rf1, 5\nend");
  const auto target = words_of("mov rf1, 6\nend");
  a.upload(kCode, words);
  a.upload(0x10040, target);
  EXPECT_EQ(a.run(kCode), 6u);
  a.upload(kCode + 0x1000, words);
  a.upload(kCode + 0x1040, words_of("mov rf1, 4\nend"));
  EXPECT_EQ(a.run(kCode + 0x1000), 6u);  // and not what stands as far after it
  EXPECT_EQ(compiled(), 2u);
}

// A program that goes on in another page is not compared beyond the page that execution comes to.
TEST_P(Sharing, PagesThatDoNotExecuteAreNotRead) {
  const std::string text = "b.a0 zero_addr+0x5000\nnop\nnop\nnop\nnop\nmov rf1, 1\nend";
  const auto words = words_of(text);
  const auto last = static_cast<GpuAddr>(kCode + kBytes - words.size() * 8);
  a.upload(kCode, words);
  EXPECT_EQ(a.run(kCode), 1u);
  b.upload(last, words);
  EXPECT_EQ(b.run(last), 1u);
  EXPECT_EQ(a.faults() + b.faults(), 0u);
}

TEST_P(Sharing, WhoHasMostGivesFirst) {
  const int owners[2] = {};
  const auto code_of = [&](uint64_t number, size_t words) {
    jit::CodeContent content;
    content.words.assign(words, number);
    content.stretches.push_back({0, 0, static_cast<uint32_t>(words)});
    static jit::LeaveCounts leaves{};
    const uint8_t ret = 0xc3;
    auto memory = jit::CodeMemory::copy_of({&ret, 1});
    return std::make_shared<jit::ProgramCode>(content, *std::move(memory), jit::CodeTables(), true, leaves,
                                              nullptr);
  };
  const size_t each = code_of(0, 100)->bytes();
  jit::CodeCache cache(10 * each);
  for (uint64_t n = 0; n < 3; ++n) cache.add(code_of(n, 100), &owners[0]);
  for (uint64_t n = 10; n < 100; ++n) cache.add(code_of(n, 100), &owners[1]);
  EXPECT_EQ(cache.figures().programs, 10u);
  EXPECT_LE(cache.figures().bytes, 10 * each);
  for (uint64_t n = 0; n < 3; ++n) EXPECT_TRUE(cache.find(code_of(n, 100)->content())) << n;
  EXPECT_FALSE(cache.find(code_of(10, 100)->content()));
  EXPECT_TRUE(cache.find(code_of(99, 100)->content()));
  EXPECT_EQ(cache.figures().hits, 4u);
}

// Programs that begin alike do not make each other slow to find.
TEST_P(Sharing, FewThatBeginAlikeAreKept) {
  for (int n = 0; n < 40; ++n) {
    std::string text = "mov rf1, 1\nnop\nnop\nnop\n";
    for (int bit = 0; bit < 6; ++bit) text += n >> bit & 1 ? "add rf1, rf1, 1\n" : "nop\n";
    a.upload(kCode, words_of(text + "end"));
    a.run(kCode);
  }
  EXPECT_EQ(compiled(), 40u);
  EXPECT_EQ(compiler.statistics().cache.programs, jit::CodeCache::kMostAlike);
}

// A branch far away does not make a program large.
TEST_P(Sharing, FarBranchesTakeNoMemory) {
  a.upload(kCode, words_of("b.a0 zero_addr+0x7fff000\nnop\nnop\nnop\nmov rf1, 1\nend"));
  EXPECT_EQ(a.run(kCode), 1u);
  EXPECT_EQ(compiled(), 1u);
  EXPECT_LT(compiler.statistics().cache.bytes, 32768u);
}

// Nobody drives out the programs of another by many that begin as they do.
TEST_P(Sharing, OfThoseThatBeginAlikeWhoHasMostGives) {
  const int owners[2] = {};
  const auto code_of = [&](uint64_t number) {
    jit::CodeContent content;
    content.words.assign(20, 7);
    content.words.back() = number;
    content.stretches.push_back({0, 0, static_cast<uint32_t>(content.words.size())});
    static jit::LeaveCounts leaves{};
    const uint8_t ret = 0xc3;
    auto memory = jit::CodeMemory::copy_of({&ret, 1});
    return std::make_shared<jit::ProgramCode>(content, *std::move(memory), jit::CodeTables(), true, leaves,
                                              nullptr);
  };
  jit::CodeCache cache;
  for (uint64_t n = 0; n < 3; ++n) cache.add(code_of(n), &owners[0]);
  for (uint64_t n = 10; n < 100; ++n) cache.add(code_of(n), &owners[1]);
  EXPECT_EQ(cache.figures().programs, jit::CodeCache::kMostAlike);
  for (uint64_t n = 0; n < 3; ++n) EXPECT_TRUE(cache.find(code_of(n)->content())) << n;
  EXPECT_TRUE(cache.find(code_of(99)->content()));

  // One who has none of it yet makes room where all have one.
  const int many[jit::CodeCache::kMostAlike + 1] = {};
  jit::CodeCache of_many;
  for (uint64_t n = 0; n < std::size(many); ++n) of_many.add(code_of(n), &many[n]);
  EXPECT_EQ(of_many.figures().programs, jit::CodeCache::kMostAlike);
  EXPECT_FALSE(of_many.find(code_of(0)->content()));
  EXPECT_TRUE(of_many.find(code_of(1)->content()));
}

// One of more words than a thread compiles that others wait for.
TEST_P(Sharing, LargeProgramsAreCompiledBeside) {
  jit::JitCompiler patient(GetParam(), 1);
  Client client(patient);
  std::string text = "mov rf1, 0\nnop\n";
  const int adds = 2 * static_cast<int>(jit::JitCompiler::kMaxWordsAtOnce) - 20;
  for (int n = 0; n < adds; ++n) text += "add rf1, rf1, 1\n";
  client.upload(kCode, words_of(text + "nop\nend"));
  const auto statistics = [&] { return patient.statistics(); };
  const auto expected = static_cast<uint32_t>(adds);
  EXPECT_EQ(client.run(kCode), expected);
  EXPECT_EQ(client.run(kCode), expected);  // asks for code
  EXPECT_EQ(statistics().executed.compiled, 0u);
  patient.finish();
  EXPECT_EQ(statistics().programs[static_cast<size_t>(jit::Outcome::kCompiled)], 1u);
  for (int n = 0; n < 8 && statistics().executed.compiled == 0; ++n) EXPECT_EQ(client.run(kCode), expected);
  EXPECT_GT(statistics().executed.compiled, 0u);
  EXPECT_EQ(statistics().programs[static_cast<size_t>(jit::Outcome::kCompiled)], 1u);
}

// The work of one client does not keep that of others waiting, and is bounded.
TEST(CompilerThread, TakesTurnsAmongOwners) {
  const int owners[2] = {};
  std::vector<int> order;
  std::mutex gate;
  {
    jit::CompilerThread thread;
    gate.lock();
    thread.add({&owners[0], 0, false}, [&] { const std::lock_guard wait(gate); });
    for (uint32_t n = 1; n < 20; ++n)
      thread.add({&owners[0], n * 8, false}, [&order] { order.push_back(0); });
    for (uint32_t n = 1; n < 3; ++n) {
      thread.add({&owners[1], n * 8, false}, [&order] { order.push_back(1); });
      thread.add({&owners[1], n * 8, false}, [&order] { order.push_back(2); });  // the same again
    }
    gate.unlock();
    thread.finish();
  }
  // The first may have begun, or wait with the others when these come.
  ASSERT_GE(order.size(), jit::CompilerThread::kMostOfOwner + 1);
  ASSERT_LE(order.size(), jit::CompilerThread::kMostOfOwner + 2);
  EXPECT_EQ(order[0], 1);
  EXPECT_EQ(order[1], 0);
  EXPECT_EQ(order[2], 1);
}

}  // namespace
}  // namespace v3d::qpu
