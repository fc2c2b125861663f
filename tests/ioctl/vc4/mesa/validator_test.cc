// Random programs and jobs through these checks and through Mesa's copy of the kernel's. What is kept out of
// them is where the two are meant to differ: where the kernel's checks have holes (program.h, binning.h,
// texture.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ioctl/vc4/binning.h"
#include "tests/ioctl/vc4/job_source.h"
#include "tests/ioctl/vc4/mesa/mesa_validator.h"
#include "tests/ioctl/vc4/words.h"

namespace v3d::ioctl::vc4::test {
namespace {

using Words = std::vector<uint64_t>;
using MesaProgram = std::unique_ptr<mesa_program, decltype(&mesa_free_program)>;

MesaProgram mesa_analyse(const Words& words) {
  return {mesa_analyse_program(words.data(), words.size()), mesa_free_program};
}

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(engine_() % limit); }
  bool one_of(uint32_t n) { return below(n) == 0; }
  template <typename T, size_t N>
  T any(const T (&values)[N]) {
    return values[below(N)];
  }

 private:
  std::mt19937 engine_;
};

/// The kernel indexes its table of registers with whatever address is read.
uint64_t keep_register(uint64_t word) {
  const uint32_t mux = word >> 9 & 7, read = mux == kMuxA ? word >> 18 & 63 : word >> 12 & 63;
  return mux >= kMuxA && read >= 32 ? word & ~(uint64_t{7} << 9) : word;
}

uint64_t random_instruction(Random& random) {
  Instruction word{.sig = random.any({1u, 1u, 1u, 1u, 10u, 13u, 2u, 5u, 8u, 4u, 11u})};
  if (random.one_of(300)) word.sig = random.below(14);
  word.cond_add = random.one_of(4) ? random.below(8) : 1;
  word.cond_mul = random.one_of(4) ? random.below(8) : 1;
  word.ws = random.one_of(4);
  word.pm = random.one_of(8);
  word.pack = random.one_of(8) ? random.below(16) : 0;
  word.waddr_add = random.any({39u, 39u, 0u, 1u, 32u, 33u, 34u, 35u, 15u, random.below(16)});
  word.waddr_mul = random.any({39u, 39u, 39u, 0u, 1u, 32u, 33u, random.below(16)});
  if (random.one_of(200)) (random.one_of(2) ? word.waddr_add : word.waddr_mul) = random.below(64);
  if (word.waddr_add == 40 || word.waddr_mul == 40) word.sig = 1;  // beside other signals Linux allows more
  word.op_add = random.any({12u, 18u, 19u, random.below(32)});
  word.raddr_a = random.any({39u, 39u, 0u, 1u, 32u, random.below(random.one_of(50) ? 64 : 16)});
  word.raddr_b = random.any({39u, 39u, 0u, 1u, random.below(random.one_of(50) ? 64 : 16)});
  word.add_a = random.below(8);
  word.add_b = random.below(8);
  return keep_register(word.word());
}

Words random_program(Random& random) {
  Words words;
  const auto add = [&](const Words& more) { words.insert(words.end(), more.begin(), more.end()); };
  const uint32_t pieces = random.below(12);
  for (uint32_t piece = 0; piece < pieces; ++piece) {
    switch (random.below(9)) {
      case 0:
        add({write(kTmu0T), write(kTmu0S)});
        break;
      case 1:
        add({write(kTmu1S + 3), write(kTmu1S + 1), write(kTmu1S)});
        break;
      case 2:
        add({at_least_zero(33), at_most_uniform(34, 1), add_uniform(random.one_of(3) ? kTmu1S : kTmu0S, 2)});
        break;
      case 3:
        if (words.size() > 2) add({branch(static_cast<int32_t>(random.below(24)) - 12), nop(), nop(), nop()});
        break;
      case 4:
        // With a guess of the offset, right sometimes.
        add({load_immediate(33, 4 * random.below(8)), add_uniform(40, 1)});
        break;
      case 5:
        add({signal(2), nop(), nop()});
        break;
      case 6:
        add({read_uniform()});
        break;
      default:
        add({random_instruction(random)});
    }
  }
  return program(words);
}

void expect_equal(const Program& program, const mesa_program& mesa) {
  EXPECT_EQ(program.uniform_bytes, mesa.uniform_bytes);
  EXPECT_EQ(program.threaded, mesa.threaded != 0);
  ASSERT_EQ(program.samples.size(), mesa.num_samples);
  for (size_t i = 0; i < program.samples.size(); ++i) {
    const uint32_t* sample = mesa.samples + 5 * i;
    EXPECT_EQ(program.samples[i].direct, sample[0] != 0);
    for (size_t p = 0; p < 4; ++p) EXPECT_EQ(program.samples[i].parameters[p], sample[1 + p]);
  }
  ASSERT_EQ(program.stream_addresses.size(), mesa.num_stream_addresses);
  for (size_t i = 0; i < program.stream_addresses.size(); ++i)
    EXPECT_EQ(program.stream_addresses[i], 4 * mesa.stream_addresses[i]);
}

TEST(MesaValidator, AgreesAboutPrograms) {
  Random random(1);
  int accepted = 0, with_samples = 0, with_resets = 0;
  constexpr int kPrograms = 30000;
  for (int i = 0; i < kPrograms && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    const Words words = random_program(random);
    const auto ours = analyse_program(words);
    const MesaProgram mesa = mesa_analyse(words);
    ASSERT_EQ(ours.ok(), mesa != nullptr) << ours.status();
    if (!ours.ok()) continue;
    ++accepted;
    with_samples += mesa->num_samples != 0;
    with_resets += mesa->num_stream_addresses != 0;
    expect_equal(*ours, *mesa);
  }
  // Enough of each to say something.
  EXPECT_GT(accepted, kPrograms / 5);
  EXPECT_LT(accepted, kPrograms * 4 / 5);
  EXPECT_GT(with_samples, kPrograms / 20);
  EXPECT_GT(with_resets, kPrograms / 200);
}

/// BOs and programs for jobs: the same for both.
class Jobs {
 public:
  Jobs() {
    for (const uint32_t pages : {1, 4, 64, 512}) add_bo(pages * 4096, nullptr);
    for (const Words& words :
         {program({}), program({signal(2)}), program({write(kTmu0T), write(kTmu0S)}),
          program({write(kTmu0T), write(kTmu0S + 2), write(kTmu0B), write(kTmu0S), read_uniform()}),
          program({at_least_zero(33), at_most_uniform(34, 1), add_uniform(kTmu0S, 2)}),
          program({read_uniform(), nop(), nop(), branch(-5), nop(), nop(), nop()})})
      add_bo(4096, &words);
  }

  void run(Random& random) {
    const Bytes records = random_records(random);
    const Bytes list = random_list(random);
    Bytes uniforms = random_uniforms(random);
    const uint32_t declared = static_cast<uint32_t>(uniforms.size());
    // The kernel compares with the whole size each time, and reads on.
    uniforms.zeros(4096);
    const uint32_t num_records = random.one_of(8) ? random.below(3) : 8;
    const auto whole = check_binning({list, records, std::span(uniforms).first(declared), num_records}, bos_,
                                     kAddress, false);
    const BinningLayout layout = layout_of(list.size(), records.size(), declared);
    std::vector<uint8_t> copy(layout.size + 8192);
    mesa_job job = {mesa_bos_.data(),
                    static_cast<uint32_t>(mesa_bos_.size()),
                    list.data(),
                    records.data(),
                    uniforms.data(),
                    static_cast<uint32_t>(list.size()),
                    static_cast<uint32_t>(records.size()),
                    num_records,
                    declared,
                    kAddress,
                    copy.data(),
                    static_cast<uint32_t>(layout.records),
                    static_cast<uint32_t>(layout.uniforms),
                    0};
    const bool mesa = mesa_check_binning(&job) == 0;
    if (!whole.ok() &&
        std::string(whole.status().message()).find("its uniforms are not all there") != std::string::npos)
      return;
    ++compared;
    ASSERT_EQ(whole.ok(), mesa) << whole.status();
    if (!mesa) return;
    ++accepted;
    relocated += !std::equal(whole->bytes.begin() + static_cast<ptrdiff_t>(layout.uniforms),
                             whole->bytes.end(), uniforms.begin());
    ASSERT_EQ(whole->list_bytes, job.copied_list_bytes);
    // Where tiles are kept is what each says for itself.
    std::memset(copy.data() + 1, 0, 12);
    for (size_t i = 0; i < whole->list_bytes; ++i) ASSERT_EQ(whole->bytes[i], copy[i]) << "list, byte " << i;
    for (size_t i = layout.records; i < layout.size; ++i)
      ASSERT_EQ(whole->bytes[i], copy[i])
          << "byte " << i << ", records at " << layout.records << ", uniforms at " << layout.uniforms;
  }

  int compared = 0, accepted = 0;
  int relocated = 0;  ///< accepted with something to relocate among the uniforms

 private:
  static constexpr uint32_t kAddress = 0x70000000;
  static constexpr uint32_t kPlain = 4, kShaders = 6;  // so many of each, in this order

  void add_bo(uint32_t bytes, const Words* words) {
    const uint32_t address = 0x100000 * static_cast<uint32_t>(mesa_bos_.size() + 1);
    bos_.push_back({address, bytes, nullptr});
    mesa_bos_.push_back({address, bytes, nullptr});
    if (!words) return;
    programs_.push_back(std::make_unique<Program>(*analyse_program(*words)));
    mesa_programs_.push_back(mesa_analyse(*words));
    bos_.back().program = programs_.back().get();
    mesa_bos_.back().program = mesa_programs_.back().get();
  }

  uint32_t any_bo(Random& random) { return random.one_of(40) ? random.below(12) : random.below(kPlain); }
  uint32_t any_shader(Random& random) {
    // No plain one, and none after the list: the kernel reads what is not there.
    return random.one_of(30) ? 99 : kPlain + random.below(kShaders);
  }

  Record random_record(Random& random) {
    Record record;
    record.fragment = any_shader(random);
    record.vertex = any_shader(random);
    record.coordinate = any_shader(random);
    if (record.vertex == kPlain + 1) record.vertex = kPlain;  // threaded
    if (record.coordinate == kPlain + 1 && !random.one_of(10)) record.coordinate = kPlain;
    record.flags = (record.fragment == kPlain + 1) == random.one_of(20) ? 1 : 0;
    record.code_offset = random.one_of(30) ? 8 : 0;
    record.extended = bits_ & 8;
    const uint32_t attributes = bits_ & 7 ? bits_ & 7 : 8;
    for (uint32_t i = 0; i < attributes; ++i)
      record.attributes.push_back({any_bo(random), random.one_of(10) ? random.below(8192) : random.below(64),
                                   random.below(256) + 1, random.any({0u, 4u, 16u, 255u, 0x200u})});
    return record;
  }

  Bytes random_records(Random& random) {
    bits_ = random.below(16);
    Bytes records;
    for (uint32_t i = random.below(3); i > 0; --i) records.append(random_record(random).bytes());
    if (random.one_of(20))
      records.resize(records.size() - std::min<size_t>(records.size(), random.below(40)));
    return records;
  }

  Bytes random_list(Random& random) {
    Bytes list;
    if (!random.one_of(30))
      list.append(binning_mode(random.below(40), random.below(40), random.below(256) & ~0x82u));
    if (!random.one_of(30)) list.u8(6);
    for (uint32_t i = random.below(6); i > 0; --i) {
      switch (random.below(6)) {
        case 0:
          list.append(gem_handles(any_bo(random)));
          break;
        case 1:
          list.append(shader_state(random.one_of(30) ? random.below(64) : bits_));
          break;
        case 2:
          list.append(draw_arrays(random.below(64), random.below(64)));
          break;
        case 3:
          list.append(
              draw_indices(random.below(2), random.below(4096), random.below(4096), random.below(128)));
          break;
        case 4:
          list.u8(102).zeros(8);
          break;
        default:
          list.u8(random.one_of(8) ? random.below(256) : 1);
      }
    }
    if (!random.one_of(30)) list.u8(7);
    if (!random.one_of(30)) list.u8(4);
    return list;
  }

  /// Words that are texture parameters now and then; powers of two, as the kernel counts levels of others too
  /// small, and no strides that wrap.
  static Bytes random_uniforms(Random& random) {
    Bytes uniforms;
    for (uint32_t i = random.below(40); i > 0; --i) {
      const auto side = [&] { return 1u << random.below(10); };
      switch (random.below(4)) {
        case 0:
          uniforms.u32(random.below(kPlain));
          break;
        case 1:
          uniforms.u32(random.below(64) << 12 | random.below(2) << 9 | random.below(16) << 4 |
                       random.below(6));
          break;
        case 2:
          uniforms.u32((random.one_of(16) ? 1u << 31 : 0) | side() << 20 | side() << 8);
          break;
        default:
          uniforms.u32(1u << 30 | random.below(8) << 12);
      }
    }
    return uniforms;
  }

  std::vector<JobBo> bos_;
  std::vector<mesa_bo> mesa_bos_;
  std::vector<std::unique_ptr<Program>> programs_;
  std::vector<MesaProgram> mesa_programs_;
  uint32_t bits_ = 0;  // of the records of this job
};

TEST(MesaValidator, AgreesAboutJobs) {
  Random random(2);
  Jobs jobs;
  constexpr int kJobs = 40000;
  for (int i = 0; i < kJobs && !testing::Test::HasFatalFailure(); ++i) {
    SCOPED_TRACE(i);
    jobs.run(random);
  }
  EXPECT_GT(jobs.compared, kJobs / 2);
  EXPECT_GT(jobs.accepted, kJobs / 20);
  EXPECT_GT(jobs.relocated, kJobs / 200);
}

}  // namespace
}  // namespace v3d::ioctl::vc4::test
