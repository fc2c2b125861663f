/// Functions for batches of dispatches leave in memory what the interpreter leaves, of random programs: also
/// where batches find what those before stored, and where there is no memory.
#include "gpu/csd/batch_function.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/base/job_control.h"
#include "gpu/chip/profile.h"
#include "gpu/csd/dispatch.h"
#include "gpu/mmu/address_space.h"
#include "gpu/perf/counters.h"
#include "gpu/qpu/isa/assembler.h"
#include "gpu/qpu/isa/isa.h"
#include "gpu/qpu/jit/jit.h"
#include "gpu/qpu/run/program_cache.h"
#include "gpu/tmu/lookup/atomic.h"
#include "tests/qpu/each_target.h"
#include "tests/tmu/test_texture.h"

namespace v3d::csd {
namespace {

using qpu::jit::Target;

constexpr GpuAddr kCode = 0x10000, kUniforms = 0x12000, kData = 0x20000, kTextures = 0x100000;
/// Programs reach more: behind this there is no memory.
constexpr uint32_t kBytes = 0x3000;
constexpr uint32_t kTextureBytes = 0x40000;

/// What a dispatch left.
struct Left {
  std::vector<uint32_t> words;
  std::string error;
  uint64_t faults = 0, instructions = 0;
  bool operator==(const Left&) const = default;
};

struct Dispatch {
  std::vector<uint64_t> code;
  std::vector<uint32_t> uniforms;
  uint32_t workgroups = 20, wg_size = 64;
  std::vector<tmu::TextureSpec> textures;  ///< from kTextures on, kTextureBytes each
  uint64_t limit = kNoInstructionLimit;    ///< of instructions of a batch
};

class BatchFunctions : public qpu::OnTarget<std::tuple<Target, const char*>> {
 protected:
  void SetUp() override {
    use(std::get<0>(GetParam()));
    profile = chip::find_profile(std::get<1>(GetParam()));
  }
  chip::Generation generation() const { return profile->generation; }
  uint32_t rounds(uint32_t most) const { return qpu::scenes_for(std::get<0>(GetParam()), most, most / 4); }
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random() % n); }
  bool one_in(uint32_t n) { return below(n) == 0; }
  template <size_t N>
  const char* any(const char* const (&of)[N]) {
    return of[below(N)];
  }

  std::vector<uint64_t> words(const std::string& text) const {
    const qpu::Assembly assembly = qpu::assemble(generation(), text);
    EXPECT_TRUE(assembly.errors.empty()) << to_string(assembly.errors.at(0)) << "\n" << text;
    return assembly.words;
  }
  GpuAddr texture_at(size_t n) const { return kTextures + static_cast<uint32_t>(n) * kTextureBytes; }
  uint64_t functions() const { return compiler->statistics().batches.functions; }

  /// On one host thread.
  Left run(const Dispatch& what, qpu::Compiler* with) {
    auto space = mmu::AddressSpace::create();
    EXPECT_TRUE(space.ok() && (*space)->map_zeros(kCode, 0x8000).ok() &&
                (*space)->map_zeros(kData, kBytes).ok());
    qpu::ProgramCache programs(generation(), with);
    ThreadPool pool(0);
    perf::JobCounts counts;
    JobError error;
    const std::atomic<bool> cancel{false};
    JobControl control;
    control.set_counted(false);
    const JobContext job{.memory = (*space)->memory(),
                         .profile = profile,
                         .pool = &pool,
                         .programs = &programs,
                         .counts = &counts,
                         .error = &error,
                         .cancel = &cancel,
                         .instruction_limit = what.limit,
                         .control = &control};
    job.memory.write(kCode, what.code.data(), what.code.size() * sizeof(uint64_t));
    job.memory.write(kUniforms, what.uniforms.data(), what.uniforms.size() * sizeof(uint32_t));
    std::mt19937 contents(1);
    for (uint32_t n = 0; n < kBytes; n += 4)
      job.memory.store(kData + n, static_cast<uint32_t>(contents() & 0xbfffffff));
    for (size_t n = 0; n < what.textures.size(); ++n) {
      EXPECT_TRUE((*space)->map_zeros(texture_at(n), kTextureBytes).ok());
      tmu::TestTexture(job.memory, what.textures[n], texture_at(n)).fill_random(static_cast<uint32_t>(n));
    }
    const uint32_t per_group = (what.wg_size + 15) / 16;
    const bool done = dispatch(
        job,
        {what.workgroups << 16, 1 << 16, 1 << 16, (what.wg_size & 0xff) | 1 << 8 | (per_group - 1) << 12,
         (per_group * what.workgroups) - (profile->csd_batches_exact() ? 0 : 1), kCode, kUniforms},
        false, space->get());
    Left left;
    if (!done) left.error = error.message();
    left.faults = (*space)->take_faults().count;
    left.instructions = counts.total()[perf::kQpuActive];
    const auto keep = [&](GpuAddr at, uint32_t bytes) {
      const size_t before = left.words.size();
      left.words.resize(before + bytes / 4);
      job.memory.read(at, left.words.data() + before, bytes);
    };
    keep(kData, kBytes);
    for (size_t n = 0; n < what.textures.size(); ++n) keep(texture_at(n), kTextureBytes);
    return left;
  }
  void compare(const Dispatch& what, const std::string& text) {
    const Left expected = run(what, nullptr), got = run(what, compiler.get());
    EXPECT_EQ(expected.error + got.error, "") << text;
    EXPECT_EQ(got.instructions, expected.instructions) << text;
    EXPECT_EQ(got.faults, expected.faults) << text;
    for (size_t n = 0; n < expected.words.size(); ++n)
      ASSERT_EQ(got.words[n], expected.words[n]) << "word " << n << " of\n" << text;
  }

  // ---- Programs. Registers: rf10 to rf19 values, rf20 the number of the invocation, rf21 an address

  static constexpr int kFirst = 10, kValues = 10;
  std::string value() { return absl::StrFormat("rf%d", kFirst + static_cast<int>(below(kValues))); }

  /// The number of the invocation in the grid, which has a row, and values of it.
  std::string prologue() const {
    const qpu::IsaProperties& isa = qpu::isa(generation());
    std::string text = absl::StrFormat(
        "ldunifrf.rf9\nldunifrf.rf8\nadd rf7, rf%d, 0\nadd rf6, rf%d, 0\nldunifrf.rf5\nshr rf6, rf6, rf5\n"
        "ldunifrf.rf5\nand rf7, rf7, rf5\nldunifrf.rf5\numul24 rf7, rf7, rf5\nadd rf20, rf6, rf7\n",
        isa.workgroup_xy, isa.workgroup_z_index);
    for (int n = 0; n < kValues; ++n)
      text += n % 2 == 0 ? absl::StrFormat("add rf%d, rf20, %d\n", kFirst + n, n)
                         : absl::StrFormat("ldunifrf.rf%d\n", kFirst + n);
    return text;
  }
  std::vector<uint32_t> uniforms_for(const Dispatch& of) {
    const uint32_t shift = of.wg_size <= 64 ? 26 : of.wg_size <= 128 ? 25 : 24;
    std::vector<uint32_t> uniforms = {kData, 0xfff, shift, 0xffff, of.wg_size};
    for (int n = 1; n < kValues; n += 2)
      uniforms.push_back(one_in(2) ? 0x3f800000u + below(0x800000) : static_cast<uint32_t>(random()));
    return uniforms;
  }

  /// rf21: of words side by side, or anywhere in reach.
  std::string address(bool far) {
    std::string text =
        one_in(3) ? absl::StrFormat("and rf21, %s, rf8\n", value())
                  : absl::StrFormat("add rf21, rf20, %d\nand rf21, rf21, rf8\n", static_cast<int>(below(16)));
    if (!far) text += "shr rf21, rf21, 1\n";
    return text + "shl rf21, rf21, 2\nadd rf21, rf21, rf9\n";
  }
  const char* condition() { return any({"", "", "", ".ifa", ".ifna", ".ifb"}); }
  std::string operation() {
    switch (below(8)) {
      case 0:
        return absl::StrFormat("sub%s -, %s, %s\n", any({".pushz", ".pushn", ".pushc"}), value(), value());
      case 1:
        return absl::StrFormat("%s %s, %s, %s\n", any({"fadd", "fsub", "fmin"}), value(), value(), value());
      case 2:
        return absl::StrFormat("fmul %s, %s, %s\n", value(), value(), value());
      default:
        return absl::StrFormat("%s%s %s, %s, %s\n",
                               any({"add", "sub", "and", "or", "xor", "shl", "shr", "min", "max"}),
                               condition(), value(), value(), value());
    }
  }
  std::string load(bool far) {
    return address(far) +
           absl::StrFormat("or%s tmua, rf21, rf21 ; thrsw\nnop\nnop\nnop\nldtmu.%s\n", condition(), value());
  }
  std::string store(bool far) {
    return absl::StrFormat("or tmud, %s, rf%d\n", value(), kFirst) + address(far) +
           absl::StrFormat("or%s tmua, rf21, rf21\ntmuwt -\n", condition());
  }
  std::string body(bool far, bool branches) {
    std::string text;
    for (uint32_t n = 4 + below(12); n > 0; --n) text += operation();
    if (branches)
      text += absl::StrFormat("sub.pushn -, rf20, rf%d\nb.%s over\nnop\nnop\nnop\n", kFirst + 1,
                              any({"allna", "alla"}));
    for (uint32_t n = 1 + below(4); n > 0; --n) text += load(far) + operation() + operation();
    for (uint32_t n = 1 + below(3); n > 0; --n) text += operation() + store(far);
    if (one_in(2)) text += load(far) + operation() + store(far);
    return text + "over:\n";
  }

  // ---- Programs that are cut

  static std::string barrier() { return "barrierid syncb ; thrsw\nnop\nnop\n"; }
  /// Around some of a program.
  std::string loop(Dispatch& of, const std::string& of_what) {
    const int n = labels_++;
    const char* goes_on = any({"anyna", "na0"});
    std::string text;
    switch (below(3)) {
      case 0:  // nobody knows how often
        of.uniforms.push_back(1 + below(5));
        text = "ldunifrf.rf24\n";
        break;
      case 1:
        text = absl::StrFormat("and rf24, rf24, 0\nadd rf24, rf24, %d\n", static_cast<int>(1 + below(5)));
        break;
      default:  // each batch on its own
        text = "and rf24, rf20, 3\nadd rf24, rf24, 1\n";
        goes_on = "na0";
    }
    return text + absl::StrFormat("loop%d:\n", n) + of_what +
           absl::StrFormat("sub.pushz rf24, rf24, 1\nb.%s loop%d\nnop\nnop\nnop\n", goes_on, n);
  }
  /// Over what some lanes do, or whole batches.
  std::string skip(const std::string& of_what) {
    const int n = labels_++;
    return absl::StrFormat("sub%s -, rf20, %s\nb.%s over%d\nnop\nnop\nnop\n", any({".pushn", ".pushc"}),
                           value(), any({"allna", "alla", "anya", "anyna", "a0", "na0"}), n) +
           of_what + absl::StrFormat("over%d:\n", n);
  }
  /// Its results come a turn later.
  std::string pipelined(Dispatch& of) {
    const std::string look = address(false) + "or tmua, rf21, rf21 ; thrsw\nnop\nnop\n";
    return look + loop(of, look + absl::StrFormat("ldtmu.%s\n", value()) + operation()) +
           absl::StrFormat("ldtmu.%s\n", value());
  }
  std::string indirect() {
    return address(false) + "or unifa, rf21, rf21\nnop\nnop\nnop\n" +
           absl::StrFormat("ldunifarf.%s\nldunifarf.%s\n", value(), value());
  }
  static uint32_t general(uint32_t operation) { return 0xffffff87 | operation << tmu::kGeneralOpShift; }
  /// An atomic operation, not of two words. Those that can be without data, may be.
  std::string update(Dispatch& of, uint32_t most, bool far) {
    uint32_t operation = below(most + 1);
    if (operation == tmu::kCmpXchg) operation = tmu::kXchg;
    of.uniforms.push_back(general(operation) & (one_in(2) ? ~0u : ~0x80u));
    const bool has_data = operation < tmu::kAndOrInc || one_in(2);
    return (has_data ? absl::StrFormat("or tmud, %s, rf%d\n", value(), kFirst) : "") + address(far) +
           absl::StrFormat("or%s tmuau, rf21, rf21 ; thrsw\nnop\nnop\n", condition()) +
           (one_in(3) ? "ldtmu.-\n" : absl::StrFormat("ldtmu.%s\n", value()));
  }
  std::string piece() {
    switch (below(5)) {
      case 0:
        return load(false);
      case 1:
        return store(false);
      case 2:
        return indirect();
      default:
        return operation() + operation();
    }
  }
  std::string pieces() {
    std::string text;
    for (uint32_t n = 1 + below(4); n > 0; --n) text += piece();
    return text;
  }
  std::string cut_body(Dispatch& of) {
    std::string text;
    for (uint32_t n = 2 + below(4); n > 0; --n) {
      switch (below(6)) {
        case 0:
          text += barrier();
          break;
        case 4:
          text += update(of, tmu::kXorOrNot, false);
          break;
        case 1:
          text += loop(of, pieces() + (one_in(2) ? skip(pieces()) : "") + pieces());
          break;
        case 2:
          text += skip(pieces());
          break;
        case 3:
          text += pipelined(of);
          break;
        default:
          text += pieces() + barrier() + pieces();
      }
    }
    return text + operation() + store(false);
  }

  int labels_ = 0;
  const chip::Profile* profile = nullptr;
  std::mt19937 random{11};
};

std::vector<Target> targets() {
  std::vector<Target> all;
  for (const Target target : qpu::jit::kAllTargets)
    if (can_compile(target)) all.push_back(target);
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, BatchFunctions,
                         testing::Combine(testing::ValuesIn(targets()), testing::Values("rpi5", "rpi4")),
                         [](const auto& of) {
                           return std::string(qpu::jit::name(std::get<0>(of.param))) + "_" +
                                  std::get<1>(of.param);
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BatchFunctions);

TEST_P(BatchFunctions, LeaveWhatTheInterpreterLeaves) {
  constexpr uint32_t kSizes[] = {64, 64, 16, 256, 24, 8};
  for (uint32_t round = rounds(80); round > 0; --round) {
    Dispatch what;
    what.wg_size = kSizes[below(std::size(kSizes))];
    what.workgroups = 400 / what.wg_size + 20;
    what.uniforms = uniforms_for(what);
    const std::string text = prologue() + body(false, false) + "end";
    what.code = words(text);
    compare(what, text);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(functions(), rounds(60));
}

TEST_P(BatchFunctions, MeetNoMemoryAsTheInterpreterDoes) {
  for (uint32_t round = rounds(30); round > 0; --round) {
    Dispatch what;
    what.uniforms = uniforms_for(what);
    const std::string text = prologue() + body(true, false) + "end";
    what.code = words(text);
    compare(what, text);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(functions(), rounds(20));
}

// Batches that all lanes leave early are executed by threads.
TEST_P(BatchFunctions, LeaveOtherWaysToThreads) {
  for (uint32_t round = rounds(40); round > 0; --round) {
    Dispatch what;
    what.workgroups = 40;
    what.uniforms = uniforms_for(what);
    what.uniforms[5] = one_in(2) ? 2500 : below(2600);  // invocations on one side of the branch
    const std::string text = prologue() + body(false, true) + "end";
    what.code = words(text);
    compare(what, text);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(functions(), rounds(30));
}

// Of an image into another one, or into itself.
TEST_P(BatchFunctions, FetchAndStoreTexels) {
  constexpr struct { uint32_t type, cpp; } kFormats[] = {{4, 4}, {0, 1}, {2, 2}, {29, 4}, {18, 8}, {17, 4}};
  for (uint32_t round = rounds(60); round > 0; --round) {
    Dispatch what;
    const auto& format = kFormats[below(std::size(kFormats))];
    tmu::TextureSpec from{.type = format.type, .cpp = format.cpp};
    from.width = 1 + below(90);
    from.height = 1 + below(90);
    from.srgb = format.type == 4 && one_in(3) && generation() == chip::Generation::k42;
    from.rb_swap = one_in(4);
    from.strictly_uif = one_in(4);
    from.generation = generation();
    if (one_in(3))
      for (uint32_t& channel : from.swizzle) channel = below(6);
    tmu::TextureSpec to = from;
    to.type = 29;  // a word of 32 bits
    to.cpp = 4;
    to.srgb = false;
    what.textures = {from, to};
    what.uniforms = uniforms_for(what);
    const bool wide = one_in(2), same = format.cpp == 4 && one_in(4);
    std::string text = prologue();
    // Two fetches beside each other, in rows of 64; some are outside.
    text +=
        "and rf22, rf20, 15\nshl rf22, rf22, 2\nor rf22, rf22, rf10\nand rf22, rf20, rf22\n"
        "shr rf23, rf20, 5\n";
    const uint32_t p0 = wide ? 15 : 3, p1 = 4 | (wide ? 1 : 0);
    const auto lookup = [&](const std::string& s, uint32_t state, uint32_t mask, bool level) {
      what.uniforms.push_back(state | mask);
      what.uniforms.push_back(p1);
      return absl::StrFormat(
          "nop ; nop ; wrtmuc\nnop ; nop ; wrtmuc\nor tmut, rf23, rf23\n%s"
          "or tmusf, %s, %s ; thrsw\nnop\nnop\nnop\n",
          level ? "and tmub, rf23, 0\n" : "", s, s);
    };
    const auto results = [&](int first) {
      std::string loads;
      for (int n = 0; n < (wide ? 4 : 2); ++n) loads += absl::StrFormat("ldtmu.rf%d\n", first + n);
      return loads;
    };
    text += lookup("rf22", texture_at(0), p0, one_in(2)) + results(24) + "add rf32, rf22, 1\n" +
            lookup("rf32", texture_at(0), p0, false) + results(28);
    for (int n = 24; n < 32; ++n)
      if (n % 4 < (wide ? 4 : 2)) text += absl::StrFormat("xor rf24, rf24, rf%d\n", n);
    if (one_in(4)) text += "sub.pushn -, rf20, rf10\n";
    text += "or tmud, rf24, rf24\n" + lookup("rf22", texture_at(same ? 0 : 1), 0, false) + "tmuwt -\nend";
    what.code = words(text);
    compare(what, text);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(functions(), rounds(30));
}

// A word that a branch of uniforms or a lookup of memory reads changes under way.
TEST_P(BatchFunctions, FindUniformsThatBatchesBeforeChanged) {
  Dispatch what;
  what.uniforms = uniforms_for(what);
  what.uniforms.insert(what.uniforms.end(), {kData + 64});
  const std::string text = prologue() +
                           "ldunifrf.rf22\nor unifa, rf22, rf22\nnop\nnop\nnop\nldunifarf.rf23\n"
                           "add tmud, rf23, rf20\nor tmua, rf22, rf22\ntmuwt -\nend";
  what.code = words(text);
  compare(what, text);
  EXPECT_EQ(functions(), 1u);
}

// Programs that wait for others, or of which nobody knows how long loops are and which way lanes go.
TEST_P(BatchFunctions, RunFromCutToCut) {
  constexpr uint32_t kSizes[] = {64, 64, 16, 256, 24, 8};
  for (uint32_t round = rounds(120); round > 0; --round) {
    Dispatch what;
    what.wg_size = kSizes[below(std::size(kSizes))];
    what.workgroups = 400 / what.wg_size + 20;
    what.uniforms = uniforms_for(what);
    const std::string text = prologue() + cut_body(what) + "end";
    what.code = words(text);
    compare(what, text);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(functions(), rounds(80));
}

// Addresses that go on by the same step in all lanes, of words side by side and of others.
TEST_P(BatchFunctions, GoAlongRowsInLoops) {
  const std::string row =
      "or tmua, rf21, rf21 ; thrsw\nadd rf21, rf21, rf25\nor unifa, rf26, rf26\nldtmu.rf10\n"
      "add rf26, rf26, rf27\nnop\nldunifarf.rf22\nfmul rf10, rf22, rf10\nfadd rf12, rf12, rf10\n";
  const std::string text = prologue() +
                           "ldunifrf.rf24\nand rf21, rf20, rf24\nshl rf21, rf21, 2\nldunifrf.rf24\n"
                           "add rf21, rf21, rf24\n"
                           "add rf21, rf21, rf9\nadd rf26, rf9, 4\nldunifrf.rf25\nldunifrf.rf27\n"
                           "ldunifrf.rf24\nloop:\n" +
                           row + row + row + row +
                           "sub.pushz rf24, rf24, 1\nb.anyna loop\nnop\nnop\nnop\n"
                           "or tmud, rf12, rf12\nshl rf21, rf20, 2\nadd tmua, rf21, rf9\ntmuwt -\nend";
  for (const uint32_t mask : {0xfff, 0xffe, 0})
    for (const uint32_t first : {64, 65, 128})
      for (const uint32_t step : {4u, 64u, 6u, 0u - 4}) {
        Dispatch what;
        what.workgroups = 25;
        what.uniforms = uniforms_for(what);
        what.uniforms.insert(what.uniforms.end(), {mask, first, step, step + 4, 2 + first % 2});
        what.code = words(text);
        compare(what, absl::StrFormat("%x %d %d", mask, first, step));
        if (HasFatalFailure()) return;
      }
  EXPECT_GT(functions(), 0u);
}

// What they reach that is not there, they reach as often as threads.
TEST_P(BatchFunctions, MeetNoMemoryBetweenCuts) {
  for (uint32_t round = rounds(20); round > 0; --round) {
    Dispatch what;
    what.uniforms = uniforms_for(what);
    const std::string text = prologue() + barrier() + load(true) + store(true) + barrier() + load(true) +
                             operation() + store(true) + "end";
    what.code = words(text);
    compare(what, text);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(functions(), rounds(15));
}

// Workgroups that wait for what the last one stores have their turns, and let it have its.
TEST_P(BatchFunctions, WaitForOthersByTurns) {
  if (generation() == chip::Generation::k42)
    GTEST_SKIP() << "no dispatch with functions is resident as a whole";
  Dispatch what;
  what.wg_size = 16;
  what.workgroups = 20;
  what.uniforms = uniforms_for(what);
  what.uniforms.insert(what.uniforms.end(), {16 * 19, kData});
  what.limit = 10'000'000;  // not to wait for ever if they do not
  const std::string text =
      prologue() +
      "ldunifrf.rf24\nldunifrf.rf22\nsub.pushn -, rf20, rf24\nb.alla wait\nnop\nnop\nnop\n"
      "or tmud, rf24, rf24\nor tmua, rf22, rf22\ntmuwt -\n"
      "wait:\nor tmua, rf22, rf22 ; thrsw\nnop\nnop\nldtmu.rf23\n"
      "xor.pushz -, rf23, rf24\nb.anyna wait\nnop\nnop\nnop\n"
      "shl rf21, rf20, 2\nadd rf21, rf21, rf22\nor tmud, rf23, rf23\n"
      "add rf21, rf21, 15\nadd rf21, rf21, 1\nand tmua, rf21, rf21\ntmuwt -\nend";
  what.code = words(text);
  const Left expected = run(what, nullptr), got = run(what, compiler.get());
  EXPECT_EQ(expected.error + got.error, "");
  EXPECT_EQ(got.words, expected.words);
  EXPECT_EQ(functions(), 1u);
}

TEST_P(BatchFunctions, EndWhereTheLimitIs) {
  Dispatch what;
  what.uniforms = uniforms_for(what);
  what.uniforms.push_back(0);
  what.limit = 50'000;
  what.code = words(prologue() +
                    "ldunifrf.rf24\nloop:\nadd rf10, rf10, 1\nor.pushz -, rf24, rf24\nb.alla loop\n"
                    "nop\nnop\nnop\n" +
                    store(false) + "end");
  const std::string expected = run(what, nullptr).error, got = run(what, compiler.get()).error;
  EXPECT_NE(expected.find("does not end"), std::string::npos) << expected;
  EXPECT_NE(got.find("does not end"), std::string::npos) << got;
  EXPECT_NE(got.find("after 50000 instructions"), std::string::npos) << got;
  EXPECT_EQ(functions(), 1u);
}

TEST_P(BatchFunctions, UpdateMemory) {
  for (uint32_t round = rounds(60); round > 0; --round) {
    Dispatch what;
    what.uniforms = uniforms_for(what);
    std::string text = prologue();
    for (uint32_t n = 1 + below(4); n > 0; --n)
      text += operation() + update(what, tmu::kXorOrNot, one_in(5)) + (one_in(3) ? barrier() : load(false));
    what.code = words(text + store(false) + "end");
    compare(what, text);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(functions(), rounds(30));
}

// Those are for threads.
TEST_P(BatchFunctions, AreNoneOfProgramsThatCompareInMemory) {
  Dispatch what;
  what.uniforms = uniforms_for(what);
  what.uniforms.push_back(general(tmu::kCmpXchg));
  const std::string text = prologue() + barrier() + "or tmud, rf10, rf10\nor tmud, rf11, rf11\n" +
                           address(false) + "or tmuau, rf21, rf21\ntmuwt -\nend";
  what.code = words(text);
  compare(what, text);
  EXPECT_EQ(functions(), 0u);
  EXPECT_GT(compiler->statistics().batches.others, 0u);
}

}  // namespace
}  // namespace v3d::csd
