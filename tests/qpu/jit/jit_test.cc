/// Compiled programs against interpreted ones: every operation with its modifiers, random programs of every
/// stage, programs of a driver, and each way between host code and interpreter.

#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "gpu/qpu/flow/flow.h"
#include "tests/qpu/assembly.h"
#include "tests/qpu/compiled_programs.h"
#include "tests/qpu/jit/twins.h"
#include "tests/qpu/random_words.h"
#include "tests/qpu/special_words.h"

namespace v3d::qpu {
namespace {

using namespace assembly;

class Jit : public Twins {
 protected:
  using Twins::Twins;
  uint32_t special() {
    return random() % 3 ? kSpecialWords[random() % std::size(kSpecialWords)]
                        : static_cast<uint32_t>(random());
  }
  Lanes any_lanes() {
    Lanes v;
    for (int i = 0; i < kLanes; ++i) v[i] = special();
    return v;
  }

  /// Both threads at the start, with the same arbitrary contents everywhere.
  void start(bool final_section) {
    const uint64_t seed = random();
    both([&](Twin& twin) {
      random.seed(seed);
      Thread& t = twin.t();
      t.reset();
      twin.start();
      for (Lanes& r : t.rf) r = any_lanes();
      for (Lanes& r : t.acc) r = any_lanes();
      for (Lanes* v : {&t.rtop, &t.pixel_x, &t.pixel_y, &t.sample_id, &t.gs_invocation}) *v = any_lanes();
      t.sample_x = as_float(any_lanes());
      t.sample_y = as_float(any_lanes());
      t.msf = kLaneIndex & static_cast<uint32_t>(random() % 16 | (random() % 4 ? 1 : 0));
      t.flag_a = static_cast<LaneMask>(random());
      t.flag_b = static_cast<LaneMask>(random());
      t.back_facing = static_cast<LaneMask>(random());
      t.tidx = static_cast<uint32_t>(random() % 64);
      t.link = static_cast<uint32_t>(Twin::kCode + random() % 8 * 8);
      t.unifa = Twin::kData;
      t.final_section = final_section;
      t.budget = 3000;
      StageRoom& room = twin.room();
      for (Lanes& v : room.vpm_in) v = any_lanes();
      for (Lanes& v : room.vpm_out) v = any_lanes();
      for (Lanes& v : room.gs_in) v = any_lanes();
      for (Varying& v : room.components()) v = {any_lanes(), any_lanes()};
      room.give_to(t, random() % 2);
      for (uint32_t n = 0; n < Twin::kBytes; n += 4) {
        twin.memory().store<uint32_t>(Twin::kUniforms + n, uniform());
        twin.memory().store<uint32_t>(Twin::kData + n, special());
      }
    });
  }
  virtual uint32_t uniform() {
    switch (random() % 4) {
      case 0:
        return special();
      case 1:
        return Twin::kData + static_cast<uint32_t>(random() % 0x1000) * 4;
      case 2:
        return 0xffffff00 | static_cast<uint32_t>(0x80 * (random() % 2) + 0x78 + random() % 8);
      default:
        return static_cast<uint32_t>(random()) % 64 * 4;
    }
  }

  std::mt19937_64 random{2024};
};

// ---- Operations

/// All modifiers that an operation can have in an ALU.
const std::vector<AluHalf>& forms_of(chip::Generation generation, Op op, Alu alu) {
  static std::map<std::tuple<chip::Generation, Op, Alu>, std::vector<AluHalf>> known;
  const auto [found, fresh] = known.try_emplace({generation, op, alu});
  std::vector<AluHalf>& forms = found->second;
  if (!fresh) return forms;
  const OpInfo& row = info(op);
  for (int ua = 0; ua < (row.operands > 0 ? kNumUnpacks : 1); ++ua)
    for (int ub = 0; ub < (row.operands > 1 ? kNumUnpacks : 1); ++ub)
      for (int pack = 0; pack < kNumPacks; ++pack) {
        AluHalf h = half(op, row.has_destination ? to(40) : Dst{kWaddrNop, true});
        if (row.operands > 0) h.a = rf(1, static_cast<Unpack>(ua));
        if (row.operands > 1) h.b = rf(2, static_cast<Unpack>(ub));
        h.pack = static_cast<Pack>(pack);
        Instruction i;
        (alu == Alu::kAdd ? i.add : i.mul) = h;
        if (encode(generation, i)) forms.push_back(h);
      }
  return forms;
}

using TargetGenerationAndOp = std::tuple<jit::Target, chip::Generation, int>;

class JitOperations : public Jit, public testing::WithParamInterface<TargetGenerationAndOp> {
 protected:
  JitOperations() : Jit(std::get<0>(GetParam()), std::get<1>(GetParam())) {}
  // Registers 0 to 39 mostly stay as they are.
  Operand source(Unpack unpack) {
    if (generation == chip::Generation::k42 && random() % 2)
      return acc(static_cast<int>(random() % 6), unpack);
    if (random() % 8 == 0)
      return {Operand::Kind::kRegister, static_cast<uint8_t>(40 + random() % 24), unpack};
    return rf(static_cast<int>(random() % 40), unpack);
  }
  void vary(AluHalf& h) {
    if (info(h.op).operands > 0) h.a = source(h.a.unpack);
    if (info(h.op).operands > 1) h.b = source(h.b.unpack);
    if (info(h.op).has_destination) {
      const Dst dsts[] = {to(40 + static_cast<int>(random() % 24)), to(h.a.index), to(kWaddrRep),
                          to(kWaddrQuad), to(kWaddrNop)};
      Dst d = dsts[random() % 16 < 11 ? 0 : random() % 5];
      if (generation == chip::Generation::k42 && random() % 3 == 0)
        d = {static_cast<uint8_t>(random() % 6), true};
      h.magic = d.magic;
      h.waddr = d.waddr;
    }
    if (random() % 3 == 0)
      h.cond = static_cast<Cond>(random() % 5);
    else if (random() % 2)
      h.flags = static_cast<FlagWrite>(random() % 16);
  }
};
std::string name_of_operation(const testing::TestParamInfo<TargetGenerationAndOp>& p) {
  const auto [target, generation, op] = p.param;
  return std::string(jit::name(target)) + "_" + kOpInfo[op].mnemonic + "_" +
         std::to_string(version_number(generation));
}
INSTANTIATE_TEST_SUITE_P(Ops, JitOperations,
                         testing::Combine(kTargets,
                                          testing::Values(chip::Generation::k71, chip::Generation::k42),
                                          testing::Range(0, kNumOps)),
                         name_of_operation);

// Each form of the operation alone and beside another one, with conditions, flags, all kinds of destinations
// and small immediates.
TEST_P(JitOperations, GiveTheSameBits) {
  const auto op = static_cast<Op>(std::get<2>(GetParam()));
  for (const Alu alu : {Alu::kAdd, Alu::kMul}) {
    const auto& forms = forms_of(generation, op, alu);
    for (int round = 0; !forms.empty() && round < 12; ++round) {
      std::vector<Instruction> program;
      while (program.size() < 150) {
        Instruction i;
        AluHalf& h = alu == Alu::kAdd ? i.add : i.mul;
        AluHalf& other = alu == Alu::kAdd ? i.mul : i.add;
        h = forms[random() % forms.size()];
        vary(h);
        if (random() % 2) {
          static constexpr Op kOthers[] = {Op::kAdd, Op::kFmul, Op::kMov, Op::kFmov, Op::kSub, Op::kFadd};
          const auto& others = forms_of(generation, kOthers[random() % std::size(kOthers)],
                                        alu == Alu::kAdd ? Alu::kMul : Alu::kAdd);
          if (!others.empty()) {
            other = others[random() % others.size()];
            vary(other);
          }
        } else if (info(op).operands > 1 && random() % 3 == 0 && h.b.unpack == Unpack::kNone) {
          h.b = {Operand::Kind::kImmediate, static_cast<uint8_t>(random() % kSmallImmediates), Unpack::kNone};
        } else if (info(op).operands > 0 && random() % 8 == 0) {
          h.a = {Operand::Kind::kImmediate, static_cast<uint8_t>(random() % kSmallImmediates), h.a.unpack};
        }
        if (!encode(generation, i)) continue;
        program.push_back(i);
      }
      append_end(program);
      load(assemble(generation, program));
      start(true);
      EXPECT_EQ(run_both(), Stop::kEnd);
      ASSERT_FALSE(HasFailure()) << "round " << round;
    }
  }
  const bool exists =
      !forms_of(generation, op, Alu::kAdd).empty() || !forms_of(generation, op, Alu::kMul).empty();
  EXPECT_EQ(executed != 0, exists);
  EXPECT_TRUE(exists || generation == chip::Generation::k42 ||
              op == Op::kVpmsetup);  // which 7.1 does not have
}

// Which operations of 7.1 have no code of their own in the AVX-512 back end: all others are computed inline.
using TargetAndGeneration = std::tuple<jit::Target, chip::Generation>;

class JitPrograms : public Jit, public testing::WithParamInterface<TargetAndGeneration> {
 protected:
  JitPrograms() : Jit(std::get<0>(GetParam()), std::get<1>(GetParam())) {}
  std::vector<uint64_t> random_program(size_t size) {
    std::vector<uint64_t> words;
    const auto launches = [&](const AluHalf& h) {
      return h.magic && starts_lookup(waddr_info(generation, h.waddr).effect);
    };
    while (words.size() < size) {
      if (random() % 6 == 0) lookup(words);
      if (random() % 12 == 0) words.push_back(*encode(generation, I().sig(kLdvary, to(any_register()))));
      Instruction i;
      const uint64_t word = source.next();
      if (!decode(generation, word, i) || i.is_branch) continue;
      if ((i.signals & kThrsw) && random() % 8 != 0) continue;
      const bool tmu = (i.signals & kLdtmu) || launches(i.add) || launches(i.mul);
      if (tmu && random() % 16 != 0) continue;
      words.push_back(random() % 10 == 0 ? branch(words.size(), size) : word);
    }
    return words;
  }
  int any_register() { return static_cast<int>(random() % 64); }

  // A general access with a configuration and addresses that may make sense.
  void lookup(std::vector<uint64_t>& words) {
    const auto push = [&](const Instruction& i) { words.push_back(*encode(generation, i)); };
    const Operand uniform = generation == chip::Generation::k42 ? acc(5) : rf(0);
    const int address = any_register();
    if (random() % 2) {  // base + lane * stride
      push(I().add(Op::kEidx, to(address)));
      push(I().add(Op::kShl, to(address), rf(address), imm(random() % 2 ? 2 : 4)));
      push(I().sig(kLdunif));
      push(I().add(Op::kAdd, to(address), rf(address), uniform));
    }
    for (uint64_t n = random() % 4 ? 0 : random() % 5; n > 0; --n)
      push(I().add(Op::kOr, to(kWaddrTmud), rf(any_register()), rf(any_register())));
    push(I().mul(Op::kMov, to(random() % 2 ? kWaddrTmua : kWaddrTmuau), rf(address))
             .mul_if(random() % 3 ? Cond::kNone : static_cast<Cond>(random() % 5)));
    for (uint64_t n = random() % 3; n > 0; --n) push(I().sig(kLdtmu, to(any_register())));
  }

  uint64_t branch(size_t at, size_t size) {
    Instruction i;
    i.is_branch = true;
    Branch& b = i.branch;
    b.cond = static_cast<BranchCond>(random() % 8);
    b.msfign = static_cast<Msfign>(random() % 3);
    b.set_link = random() % 4 == 0;
    b.uniforms = random() % 4 == 0;
    b.uniform_target = b.uniforms ? static_cast<uint8_t>(random() % 3) : 0;
    const auto target = static_cast<uint32_t>(random() % size);
    b.offset = (target - static_cast<uint32_t>(at) - 4) * 8;
    if (random() % 8 == 0) b.target = random() % 2 ? BranchTarget::kLink : BranchTarget::kRegister;
    if (random() % 8 == 0) b.target = BranchTarget::kAbsolute, b.offset = Twin::kCode + target * 8;
    return *encode(generation, i);
  }

  RandomWords source{generation};
};

std::string name_of_programs(const testing::TestParamInfo<TargetAndGeneration>& p) {
  return std::string(jit::name(std::get<0>(p.param))) + "_" +
         std::to_string(version_number(std::get<1>(p.param)));
}
INSTANTIATE_TEST_SUITE_P(Targets, JitPrograms,
                         testing::Combine(kTargets,
                                          testing::Values(chip::Generation::k71, chip::Generation::k42)),
                         name_of_programs);

// Rotations of the mul half's operands by constants and by r5, and special functions behind write addresses,
// which arrive two instructions later, whatever happens meanwhile.
class JitPrograms42 : public JitPrograms {};
INSTANTIATE_TEST_SUITE_P(Targets, JitPrograms42,
                         testing::Combine(kTargets, testing::Values(chip::Generation::k42)),
                         name_of_programs);

TEST_P(JitPrograms42, RotationsAndSpecialFunctions) {
  const auto any_operand = [&](Unpack unpack) {
    return random() % 2 ? acc(static_cast<int>(random() % 6), unpack) : rf(any_register(), unpack);
  };
  const auto any_place = [&](bool sfu) {
    if (sfu) return to(static_cast<Waddr>(kWaddrRecip + random() % 6));
    if (random() % 6 == 0) return to(kWaddrR5rep);
    return random() % 2 ? to(any_register()) : Dst{static_cast<uint8_t>(random() % 6), true};
  };
  const auto fill_half = [&](AluHalf& h, Op op, Alu alu) {
    const auto& forms = forms_of(chip::Generation::k42, op, alu);
    h = forms[random() % forms.size()];
    if (info(op).operands > 0) h.a = any_operand(h.a.unpack);
    if (info(op).operands > 1) h.b = any_operand(h.b.unpack);
    const Dst d = any_place(random() % 4 == 0);
    h.magic = d.magic;
    h.waddr = d.waddr;
  };
  uint64_t rotations = 0, functions = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<uint64_t> words;
    while (words.size() < 60) {
      Instruction i;
      static constexpr Op kMul[] = {Op::kMov,    Op::kFmov,   Op::kFmul,  Op::kAdd, Op::kSub, Op::kUmul24,
                                    Op::kMultop, Op::kSmul24, Op::kVfmul, Op::kMov, Op::kMov, Op::kUmul24};
      static constexpr Op kAdd[] = {Op::kAdd, Op::kFadd, Op::kFmin, Op::kExp, Op::kOr, Op::kVfmin, Op::kClz};
      if (random() % 3) fill_half(i.mul, kMul[random() % std::size(kMul)], Alu::kMul);
      if (random() % 2) fill_half(i.add, kAdd[random() % std::size(kAdd)], Alu::kAdd);
      switch (random() % 6) {
        case 0:
          i.signals = kLdunif;
          break;
        case 1: {
          const Dst d = any_place(random() % 2);
          i.signals = kLdunifrf;
          i.signal_magic = d.magic;
          i.signal_waddr = d.waddr;
          break;
        }
        case 2:
          if (random() % 4 == 0) i.signals = kThrsw;
          break;
        default:
          i.signals = kRotate;
          i.rotate = random() % 3 ? static_cast<uint8_t>(random() % 32) : 0;
          break;
      }
      if (!(i.signals & kSignalsWithAddress)) {
        if (random() % 4 == 0) i.add.cond = static_cast<Cond>(random() % 5);
        if (random() % 4 == 0) i.mul.cond = static_cast<Cond>(random() % 5);
        if (random() % 4 == 0) i.mul.flags = static_cast<FlagWrite>(random() % 16);
      }
      const auto word = encode(chip::Generation::k42, i);
      Instruction decoded;
      if (!word || !decode(chip::Generation::k42, *word, decoded)) continue;
      rotations += (decoded.signals & kRotate) != 0;
      functions += flow::access_of(chip::Generation::k42, decoded).sfu;
      words.push_back(random() % 12 == 0 ? branch(words.size(), 60) : *word);
    }
    load(words);
    start(random() % 2);
    const bool stops = random() % 2;
    const uint64_t budget = random() % 4 ? 3000 : 1 + random() % 40;
    both([&](Twin& twin) {
      twin.t().stop_at_switch = stops;
      twin.t().budget = budget;
    });
    while (run_both() == Stop::kBudget && budget < 3000 && !HasFailure() && random() % 4)
      both([&](Twin& twin) { twin.t().budget = budget; });
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
  EXPECT_GT(rotations, 5'000u);
  EXPECT_GT(functions, 5'000u);
}

// Arguments of every magnitude, each with random bits after, and those of which sfu.h says more.
TEST_P(JitPrograms, SpecialFunctions) {
  std::vector<Instruction> program = {
      I().add(Op::kExp, to(11), rf(1)),   I().add(Op::kLog, to(12), rf(1)),
      I().add(Op::kSin, to(13), rf(1)),   I().add(Op::kRecip, to(14), rf(1)),
      I().add(Op::kRsqrt, to(15), rf(1)),
  };
  append_end(program);
  load(assemble(generation, program));
  start(true);
  Lanes argument = {0x3b429d37, 0xbcf3a937, 0x3b429d36, 0xbcf3a936, 0x43480000, 0xc3480000};
  for (uint32_t round = 0; round < 1 << 14; ++round) {
    both([&](Twin& twin) {
      twin.start();
      twin.t().final_section = true;
      twin.t().rf[1] = argument;
      EXPECT_EQ(twin.run(), Stop::kEnd);
    });
    for (int r = 11; r <= 15; ++r)
      ASSERT_TRUE(same(plain.t().rf[r], compiled.t().rf[r])) << "rf" << r << " round " << round;
    for (int i = 0; i < kLanes; ++i)
      argument[i] =
          (round * 16 + static_cast<uint32_t>(i)) << 23 | static_cast<uint32_t>(random() & 0x7fffff);
  }
}

/// Keeps what it gets.
class TlbRecord : public TlbPort {
 public:
  struct Write {
    TlbSpec spec;
    Lanes words[2];
    LaneMask exec;
  };
  void write_color(Thread&, const TlbSpec& spec, const Lanes* words, LaneMask exec) override {
    writes.push_back({spec, {words[0], words[spec.words > 1 ? 1 : 0]}, exec});
  }
  void write_depth(Thread&, const TlbSpec& spec, Lanes z, LaneMask exec) override {
    if (!drops_depth) writes.push_back({spec, {spec.invariant_depth ? Lanes{} : z, Lanes{}}, exec});
  }
  void read_color(Thread&, const TlbSpec&, Lanes*) override {}
  TlbBinding binding() const override {
    return {[](Thread& t, LaneMask exec) {
              t.tlb->write_color(t, decode_tlb_spec(kTlbHalves), t.pending.tlb_words, exec);
            },
            [](Thread& t, LaneMask exec) {
              t.tlb->write_depth(t, decode_tlb_spec(kTlbInvariantDepth), Lanes{}, exec);
            },
            drops_depth};
  }
  std::vector<Write> writes;
  bool drops_depth = false;
};

// MULTOP and UMUL24 of the same factors are one product, whatever stands around them.
TEST_P(JitPrograms, Products) {
  for (int round = 0; round < 300; ++round) {
    const auto any = [&] { return static_cast<int>(random() % 5); };
    const auto in = [&](int n) { return generation == chip::Generation::k42 ? acc(n) : rf(n); };
    const auto out = [&](int n) { return Dst{static_cast<uint8_t>(n), generation == chip::Generation::k42}; };
    const auto noise = [&](I i) -> I {
      switch (random() % 6) {
        case 0:
          return i.sig(kLdunifrf, out(any()));
        case 1:
          return i.sig(kLdunif);
        case 2:
          return i.add(Op::kAdd, out(any()), in(any()), in(any()));
        case 3:
          return i.sig(kLdvary, out(any()));
        case 4:
          i.rotate = static_cast<uint8_t>(random() % 32);
          return generation == chip::Generation::k42 ? i.sig(kRotate) : i;
        default:
          return i;
      }
    };
    std::vector<Instruction> program;
    for (int n = 0; n < 12; ++n) {
      const int a = any(), b = any();
      const bool swapped = random() % 2;
      const Dst nowhere = random() % 8 ? Dst{kWaddrNop, true} : out(any());
      program.push_back(noise(I().mul(Op::kMultop, nowhere, in(a), in(b))));
      if (random() % 6 == 0) program.push_back(noise(I()));
      const int c = random() % 8 ? b : any();
      I umul = I().mul(Op::kUmul24, out(any()), in(swapped ? c : a), in(swapped ? a : c));
      program.push_back(random() % 4 ? noise(umul) : umul.mul_if(static_cast<Cond>(random() % 5)));
      if (random() % 6 == 0) program.push_back(I().mul(Op::kUmul24, out(any()), in(a), in(b)));
    }
    append_end(program);
    load(assemble(generation, program));
    start(true);
    run_both();
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
}

TEST_P(JitPrograms, ColorsOfTwoWords) {
  for (int round = 0; round < 200; ++round) {
    std::vector<Instruction> program;
    for (int n = 0; n < 6; ++n) {
      I word = I().add(Op::kOr, to(random() % 6 ? kWaddrTlb : kWaddrTlbu), rf(1 + n), rf(7));
      if (random() % 3 == 0) word.add_if(static_cast<Cond>(random() % 5));
      if (random() % 8 == 0)
        word.mul(Op::kMov, to(kWaddrTlb), generation == chip::Generation::k42 ? acc(1) : rf(9));
      program.push_back(word);
      if (random() % 3 == 0) program.push_back(I().add(Op::kAdd, to(1 + n), rf(1 + n), rf(8)));
      if (random() % 12 == 0) program.push_back(I().sig(kLdtlb, to(10)));
    }
    append_end(program);
    load(assemble(generation, program));
    start(true);
    TlbRecord records[2];
    const bool present = random() % 8 != 0;
    plain.t().tlb = present ? &records[0] : nullptr;
    compiled.t().tlb = present ? &records[1] : nullptr;
    for (TlbRecord& record : records) record.drops_depth = round % 3 == 0;
    if (present && round % 2) compiled.t().tlb_binding = records[1].binding();
    for (GpuAddr n = 0; n < 6 && random() % 2; ++n)
      both([&, word = 0xffffff80u + random() % 16](Twin& twin) {
        twin.memory().store<uint32_t>(Twin::kUniforms + 4 * n, word);
      });
    run_both();
    ASSERT_FALSE(HasFailure()) << "round " << round;
    ASSERT_EQ(records[0].writes.size(), records[1].writes.size()) << "round " << round;
    for (size_t n = 0; n < records[0].writes.size(); ++n) {
      const TlbRecord::Write &a = records[0].writes[n], &b = records[1].writes[n];
      EXPECT_EQ(std::memcmp(&a.spec, &b.spec, sizeof(a.spec)), 0);
      EXPECT_TRUE(same(a.words[0], b.words[0]) && same(a.words[1], b.words[1]));
      EXPECT_EQ(a.exec, b.exec);
    }
  }
}

TEST_P(JitPrograms, RandomOnes) {
  for (int round = 0; round < 600; ++round) {
    load(random_program(10 + random() % 120));
    start(random() % 2);
    const bool stops = random() % 2;
    both([&](Twin& twin) { twin.t().stop_at_switch = stops; });
    run_both();
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
  EXPECT_GT(executed, 20'000u);
  EXPECT_GE(compiler.statistics().programs[static_cast<size_t>(jit::Outcome::kCompiled)], 600u);
}

// Of more instructions in a block than a part has, and of special functions, of which a graph has room for
// few.
TEST_P(JitPrograms, LongOnes) {
  for (int round = 0; round < 20; ++round) {
    std::vector<uint64_t> words;
    while (words.size() < 700) {
      Instruction i;
      const auto& forms = forms_of(generation, random() % 3 ? Op::kFmul : Op::kVfmul, Alu::kMul);
      i.mul = forms[random() % forms.size()];
      i.mul.a = rf(any_register(), i.mul.a.unpack);
      i.mul.b = rf(any_register(), i.mul.b.unpack);
      const Dst d = generation == chip::Generation::k42 && random() % 2
                        ? to(random() % 2 ? kWaddrExp : kWaddrLog)
                        : to(any_register());
      i.mul.magic = d.magic;
      i.mul.waddr = d.waddr;
      if (generation != chip::Generation::k42 && random() % 2)
        i.add = half(random() % 2 ? Op::kExp : Op::kLog, to(any_register()), rf(any_register()));
      if (const auto word = encode(generation, i)) words.push_back(*word);
    }
    load(words);
    start(random() % 2);
    run_both();
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
  EXPECT_GT(executed, 10'000u);
}

// Every operation and type of general accesses, at addresses and in lanes of all patterns.
TEST_P(JitPrograms, GeneralAccesses) {
  const auto lanes = [&](const auto& value) {
    Lanes v;
    for (int i = 0; i < kLanes; ++i) v[i] = static_cast<uint32_t>(value(static_cast<uint32_t>(i)));
    return v;
  };
  for (int round = 0; round < 1000; ++round) {
    const bool has_uniform = random() % 4 != 0;
    const auto words = static_cast<int>(random() % 3 ? random() % 2 : random() % 6);
    std::vector<Instruction> program;
    program.push_back(I().add(Op::kEidx, to(50)).add_flags(FlagWrite::kPushz));
    for (int n = 0; n < words; ++n) program.push_back(I().mul(Op::kMov, to(kWaddrTmud), rf(10 + n)));
    program.push_back(I().mul(Op::kMov, to(has_uniform ? kWaddrTmuau : kWaddrTmua), rf(1))
                          .mul_if(random() % 4 ? Cond::kNone : Cond::kIfna));
    for (int n = 0; n < (words == 0 ? 2 : 1); ++n) program.push_back(I().sig(kLdtmu, to(20 + n)));
    append_end(program);
    load(assemble(generation, program));
    start(true);
    const uint32_t base = Twin::kData + static_cast<uint32_t>(random() % 0x400),
                   stride = static_cast<uint32_t>(random() % 5 * 4), value = special();
    const uint64_t pattern = random() % 4, same_data = random() % 2, some_dead = random() % 8;
    const Lanes address = lanes([&](uint32_t i) {
      return pattern < 2 ? base + i * stride : pattern == 2 ? base + random() % 64 : base + i % 3 * 4;
    });
    const Lanes data = lanes([&](uint32_t) { return same_data ? value : random(); });
    const Lanes live = lanes([&](uint32_t) { return pattern % 2 ? 1 : random() % 2; });
    const auto config = static_cast<uint32_t>(random() % 2 ? random() : random() % 11 * 8 + 0x87);
    both([&](Twin& twin) {
      twin.t().at(1) = address;
      twin.t().at(10) = data;
      if (some_dead) twin.t().msf = live;
      twin.memory().store<uint32_t>(Twin::kUniforms, config | 0xffffff00);
    });
    run_both();
    ASSERT_FALSE(HasFailure()) << "round " << round << " config " << config << " data " << words;
  }
}

// In slices of every length: a thread stops anywhere and goes on.
TEST_P(JitPrograms, InSlices) {
  for (int round = 0; round < 300; ++round) {
    load(random_program(10 + random() % 60));
    start(random() % 2);
    const uint64_t slice = 1 + random() % 40;
    uint64_t left = 600;
    for (Stop stop = Stop::kBudget; stop == Stop::kBudget && left >= slice; left -= slice) {
      both([&](Twin& twin) { twin.t().budget = slice; });
      stop = run_both();
      ASSERT_FALSE(HasFailure()) << "round " << round << " slice " << slice << " left " << left;
    }
  }
}

// With uniforms from the snapshot of a dispatch, whose end is in the middle of them.
TEST_P(JitPrograms, UniformsOfASnapshot) {
  uint8_t snapshot[64];
  for (int round = 0; round < 200; ++round) {
    load(random_program(10 + random() % 120));
    start(random() % 2);
    for (uint8_t& byte : snapshot) byte = static_cast<uint8_t>(random());
    const uint32_t before = random() % 2 ? 0 : 16;
    both([&](Twin& twin) {
      twin.t().snapshot = snapshot;
      twin.t().snapshot_address = Twin::kUniforms + before;
      twin.t().snapshot_bytes = sizeof(snapshot);
    });
    run_both();
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
}

TEST_P(JitPrograms, OfADriver) {
  for (const CompiledProgram& program : compiled_programs(generation)) {
    SCOPED_TRACE(program.stage);
    for (int round = 0; round < 10; ++round) {
      load(program.words);
      start(program.final_section);
      const flow::Flow flow = flow::analyse({generation, program.final_section, Twin::kCode}, program.words);
      both([&](Twin& twin) {
        for (const flow::UniformJump& jump : flow.uniform_jumps)
          twin.memory().store<uint32_t>(Twin::kUniforms + static_cast<uint32_t>(jump.offset),
                                        static_cast<uint32_t>(jump.distance));
      });
      run_both();
      ASSERT_FALSE(HasFailure()) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace v3d::qpu
