#include "gpu/qpu/flow/flow.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <random>
#include <set>
#include <string>

#include "gpu/mmu/address_space.h"
#include "gpu/qpu/flow/tlb.h"
#include "gpu/qpu/flow/tmu.h"
#include "gpu/qpu/isa/assembler.h"
#include "gpu/qpu/run/program_cache.h"
#include "tests/qpu/assembly.h"
#include "tests/qpu/compiled_programs.h"
#include "tests/qpu/fake_tmu.h"
#include "tests/qpu/flow_watch.h"
#include "tests/qpu/random_words.h"
#include "tests/qpu/stage_room.h"

namespace v3d::qpu {
namespace {

using flow::Exit;
using flow::Flow;
using flow::kDynamic;
using flow::kNowhere;

Flow flow_of(const std::string& text, chip::Generation generation = chip::Generation::k71,
             bool final_section = true) {
  const Assembly assembly = assemble(generation, text);
  EXPECT_TRUE(assembly.errors.empty()) << to_string(assembly.errors.at(0));
  return flow::analyse({generation, final_section, {}}, assembly.words);
}

// The offsets that the node of an instruction reads its uniforms at; of the first node with the index.
std::vector<int32_t> offsets(const Flow& flow, int32_t index) {
  for (uint32_t n = 0; n < flow.nodes.size(); ++n) {
    if (flow.nodes[n].index != index) continue;
    std::vector<int32_t> found;
    for (const auto& read : flow.uniforms_of(n)) found.push_back(read.offset);
    return found;
  }
  return {};
}

const flow::Block& block_at(const Flow& flow, int32_t index) {
  for (const flow::Block& b : flow.blocks)
    if (flow.nodes[b.first].index == index) return b;
  ADD_FAILURE() << "no block at " << index;
  return flow.blocks[0];
}

TEST(Flow, ThreadEndsTwoInstructionsBehindThrsw) {
  const Flow flow = flow_of("add rf1, rf2, rf3\nnop ; nop ; thrsw\nnop\nnop\nadd rf9, rf9, 1");
  EXPECT_TRUE(flow.complete);
  ASSERT_EQ(flow.blocks.size(), 1u);
  EXPECT_EQ(flow.blocks[0].count, 4u);
  EXPECT_EQ(flow.blocks[0].exit.kind, Exit::Kind::kEnd);
  EXPECT_EQ(flow.first_index, 0);
  EXPECT_EQ(flow.end_index, 4);  // what stands after is no part of it
}

TEST(Flow, SwitchDividesBlocks) {
  const Flow flow = flow_of("nop ; nop ; thrsw\nnop\nnop\nnop\nend", chip::Generation::k71, false);
  const flow::Block& first = flow.blocks[flow.entry];
  EXPECT_EQ(first.count, 3u);
  EXPECT_TRUE(first.exit.switches);
  EXPECT_FALSE(first.exit.may_wait);
  EXPECT_FALSE(first.resumes);
  EXPECT_TRUE(flow.blocks[first.exit.next].resumes);
  EXPECT_TRUE(flow.complete);
}

// The pair is one switch, counted from the first; the thrsw after it ends the thread.
TEST(Flow, PairBeginsLastSection) {
  const Flow flow = flow_of("end", chip::Generation::k71, false);
  ASSERT_EQ(flow.blocks.size(), 2u);
  EXPECT_EQ(flow.blocks[0].count, 3u);
  EXPECT_TRUE(flow.blocks[0].exit.switches);
  EXPECT_EQ(flow.blocks[1].count, 4u);
  EXPECT_EQ(flow.blocks[1].exit.kind, Exit::Kind::kEnd);
  EXPECT_EQ(flow.end_index, 7);
}

TEST(Flow, BarrierWaitsAtTheNextSwitch) {
  const Flow flow = flow_of("barrierid syncb ; nop ; thrsw\nnop\nnop\nnop ; nop ; thrsw\nnop\nnop\nend",
                            chip::Generation::k71, false);
  EXPECT_TRUE(flow.blocks[0].exit.may_wait);
  EXPECT_FALSE(flow.blocks[1].exit.may_wait);
  EXPECT_TRUE(flow.blocks[1].exit.switches);
}

TEST(Flow, BranchHasDelaySlotsOnBothWays) {
  const Flow flow = flow_of("b.alla there\nadd rf1, rf1, 1\nnop\nnop\nnop\nthere:\nend");
  const flow::Block& first = flow.blocks[flow.entry];
  EXPECT_EQ(first.exit.kind, Exit::Kind::kBranch);
  const flow::Block& taken = flow.blocks[first.exit.taken];
  EXPECT_EQ(flow.nodes[taken.first].index, 1);
  EXPECT_EQ(taken.count, 3u);
  EXPECT_EQ(taken.exit.kind, Exit::Kind::kJump);
  EXPECT_EQ(flow.nodes[flow.blocks[taken.exit.next].first].index, 5);
  const flow::Block& other = flow.blocks[first.exit.next];
  EXPECT_EQ(flow.nodes[other.first].index, 1);
  EXPECT_EQ(other.count, 4u);
  EXPECT_EQ(other.exit.kind, Exit::Kind::kNext);
}

TEST(Flow, BranchThatIsAlwaysTakenHasOneWay) {
  const Flow flow = flow_of("b there\nnop\nnop\nnop\nadd rf1, rf1, 1\nthere:\nend");
  EXPECT_EQ(flow.blocks[flow.entry].exit.next, kNowhere);
  for (const flow::Node& n : flow.nodes) EXPECT_NE(n.index, 4);
}

// The interpreter's rule for what no hardware defines: a branch taken in a delay slot replaces the one
// before.
TEST(Flow, BranchInSlotReplacesTheOtherWhenTaken) {
  const Flow flow = flow_of("b first\nb.alla second\nnop\nnop\nnop\nfirst:\nnop\nsecond:\nend");
  const flow::Block& slot = flow.blocks[flow.blocks[flow.entry].exit.taken];
  EXPECT_EQ(slot.count, 1u);
  EXPECT_EQ(slot.exit.kind, Exit::Kind::kBranch);
  EXPECT_EQ(flow.blocks[slot.exit.taken].count, 3u);
  EXPECT_EQ(flow.blocks[slot.exit.next].count, 2u);
  EXPECT_EQ(flow.nodes[flow.blocks[flow.blocks[slot.exit.next].exit.next].first].index, 5);
}

TEST(Flow, SaysWhatItCannotKnow) {
  EXPECT_EQ(block_at(flow_of("b rf3\nnop\nnop\nnop\nend"), 1).exit.gap, Exit::Gap::kComputed);
  EXPECT_EQ(block_at(flow_of("b lri\nnop\nnop\nnop\nend"), 1).exit.gap, Exit::Gap::kComputed);
  EXPECT_EQ(flow_of("nop\n.word 0").blocks.back().exit.gap, Exit::Gap::kInvalid);
  const Flow off = flow_of("nop\nnop");
  EXPECT_EQ(off.blocks.back().exit.gap, Exit::Gap::kUnreadable);
  EXPECT_EQ(off.end_index, 2);
  EXPECT_FALSE(off.complete);
}

// Who has others wait follows no more of a program than is asked for.
TEST(Flow, EndsAtTheMostNodes) {
  constexpr size_t kMost = 20;
  std::string text;
  for (int n = 0; n < 100; ++n) text += "nop\n";
  const Assembly code = assemble(chip::Generation::k71, text + "end");
  const Flow flow = flow::analyse({chip::Generation::k71, true, {}, kMost}, code.words);
  EXPECT_FALSE(flow.complete);
  EXPECT_EQ(flow.nodes.size(), kMost + 1) << "who asks sees that there were more";
  EXPECT_EQ(flow.blocks.back().exit.gap, Exit::Gap::kTooLarge);
  EXPECT_TRUE(flow::analyse({chip::Generation::k71, true, {}}, code.words).complete);
}

TEST(Flow, AbsoluteBranchesNeedTheEntry) {
  const Assembly code = assemble(chip::Generation::k71, "b zero_addr+0x1020\nnop\nnop\nnop\nend");
  const Flow flow = flow::analyse({chip::Generation::k71, true, 0x1000}, code.words);
  EXPECT_TRUE(flow.position_dependent);
  EXPECT_TRUE(flow.complete);
  EXPECT_EQ(block_at(flow::analyse({chip::Generation::k71, true, {}}, code.words), 1).exit.gap,
            Exit::Gap::kComputed);
}

TEST(Flow, ProgramMayBeginBehindItsFirstWord) {
  const Assembly code = assemble(chip::Generation::k71, "end\nentry:\nb entry\nnop\nnop\nnop\n");
  std::vector<int32_t> read;
  const Flow flow =
      flow::analyse({chip::Generation::k71, true, {}}, [&](int32_t index) -> std::optional<uint64_t> {
        read.push_back(index);
        if (index < -8 || index > 3) return {};
        Instruction back;
        back.is_branch = true;
        back.branch.offset = static_cast<uint32_t>(-12 * 8);
        return index == 0 ? *encode(chip::Generation::k71, back) : code.words[static_cast<size_t>(index) + 8];
      });
  EXPECT_EQ(flow.first_index, -8);
  EXPECT_EQ(flow.end_index, 4);
  EXPECT_TRUE(flow.complete);
  EXPECT_EQ(std::set(read.begin(), read.end()).size(), read.size());  // each word once
}

TEST(Flow, UniformsInOrder) {
  const Flow flow = flow_of("nop ; nop ; ldunif\nmov tmuau, rf0 ; nop\nnop ; nop ; wrtmuc\nend");
  EXPECT_EQ(offsets(flow, 0), (std::vector<int32_t>{0}));
  EXPECT_EQ(offsets(flow, 1), (std::vector<int32_t>{4}));
  EXPECT_EQ(offsets(flow, 2), (std::vector<int32_t>{8}));
}

// Two consumers in one word: the signal is first.
TEST(Flow, UniformsOfOneWord) {
  const Flow flow = flow_of("mov tmuau, rf1 ; mov tlbu, rf2 ; ldunif\nend");
  EXPECT_EQ(offsets(flow, 0), (std::vector<int32_t>{0, 4, 8}));
}

// A loop as Mesa writes it: the word of the branch leads back to the uniforms of the target.
TEST(Flow, LoopWithUniforms) {
  const Flow flow = flow_of(
      "nop ; nop ; ldunifrf.rf1\n"
      "loop:\n"
      "nop ; nop ; ldunifrf.rf2\n"
      "bu.anya loop\nnop\nnop\nnop\n"
      "nop ; nop ; ldunifrf.rf3\nend");
  EXPECT_EQ(offsets(flow, 1), (std::vector<int32_t>{4}));
  EXPECT_EQ(offsets(flow, 2), (std::vector<int32_t>{8}));
  EXPECT_EQ(offsets(flow, 6), (std::vector<int32_t>{12}));
  ASSERT_EQ(flow.uniform_jumps.size(), 1u);
  EXPECT_EQ(flow.uniform_jumps[0].offset, 8);
  EXPECT_EQ(flow.uniform_jumps[0].distance, 4 - 12);
  EXPECT_EQ(block_at(flow, 1).loops, 1);
  EXPECT_EQ(block_at(flow, 0).loops, 0);
}

// The other half of an if, which only a branch leads to: its uniforms are taken to stand in order.
TEST(Flow, ElseWithUniforms) {
  const Flow flow = flow_of(
      "bu.alla else\nnop\nnop\nnop\n"
      "nop ; nop ; ldunifrf.rf1\n"
      "bu after\nnop\nnop\nnop\n"
      "else:\n"
      "nop ; nop ; ldunifrf.rf2\n"
      "after:\n"
      "nop ; nop ; ldunifrf.rf3\nend");
  EXPECT_EQ(offsets(flow, 4), (std::vector<int32_t>{4}));
  EXPECT_EQ(offsets(flow, 9), (std::vector<int32_t>{12}));
  EXPECT_EQ(offsets(flow, 10), (std::vector<int32_t>{16}));
  ASSERT_EQ(flow.uniform_jumps.size(), 2u);
  for (const flow::UniformJump& jump : flow.uniform_jumps) EXPECT_EQ(jump.distance, jump.offset == 0 ? 8 : 4);
}

// Without a word to tell, ways with different numbers of uniforms leave the offset open.
TEST(Flow, UniformsThatDependOnTheWay) {
  const Flow flow =
      flow_of("b.alla there\nnop\nnop\nnop\nnop ; nop ; ldunifrf.rf1\nthere:\nnop ; nop ; ldunifrf.rf2\nend");
  EXPECT_EQ(offsets(flow, 4), (std::vector<int32_t>{0}));
  EXPECT_EQ(offsets(flow, 5), (std::vector<int32_t>{kDynamic}));
}

TEST(Flow, UniformsAtAnAddressAreDynamic) {
  EXPECT_EQ(offsets(flow_of("bu there, a:unif\nnop\nnop\nnop\nthere:\nnop ; nop ; ldunif\nend"), 4),
            (std::vector<int32_t>{kDynamic}));
  EXPECT_EQ(offsets(flow_of("nop ; nop ; ldunifa\nend"), 0), (std::vector<int32_t>{kDynamic}));
}

TEST(Flow, LivenessSeesLandings) {
  // C of the ldvary arrives before instruction 2: rf0 is not live at the start, and rf5 is.
  const Flow flow = flow_of("nop ; nop ; ldvary.rf4\nnop\nfadd tmud, rf0, rf5\nend");
  const RegisterSet live = flow.blocks[flow.entry].live.registers;
  EXPECT_TRUE(live.has(5));
  EXPECT_FALSE(live.has(0));
  EXPECT_FALSE(live.has(4));
}

TEST(Flow, ConditionalWriteDoesNotEndLife) {
  const Flow flow = flow_of("mov.ifa rf1, rf2 ; nop\nmov tmud, rf1 ; nop\nend");
  const flow::Resources& live = flow.blocks[flow.entry].live;
  EXPECT_TRUE(live.registers.has(1));
  EXPECT_TRUE(live.state & flow::kFlagA);
  const Flow whole = flow_of("mov rf1, rf2 ; nop\nmov tmud, rf1 ; nop\nend");
  EXPECT_FALSE(whole.blocks[whole.entry].live.registers.has(1));
}

TEST(Flow, UsesInLoopsWeighSixteenTimes) {
  const Flow flow = flow_of("mov rf1, 0 ; nop\nloop:\nadd rf1, rf1, rf2\nb.anya loop\nnop\nnop\nnop\nend");
  EXPECT_EQ(flow.registers[1].reads, 1u);
  EXPECT_EQ(flow.registers[1].writes, 2u);
  EXPECT_EQ(flow.registers[1].weight, 1u + 2 * 16);
  EXPECT_EQ(flow.registers[2].weight, 16u);
  EXPECT_GT(flow.registers[3].first, flow.registers[3].last);
}

TEST(Flow, LoopsNest) {
  const Flow flow =
      flow_of("outer:\nnop\ninner:\nnop\nb.anya inner\nnop\nnop\nnop\nb.alla outer\nnop\nnop\nnop\nend");
  EXPECT_EQ(block_at(flow, 0).loops, 1);
  EXPECT_EQ(block_at(flow, 1).loops, 2);
  EXPECT_EQ(flow.blocks[flow.entry].loops, 1);
}

// ---- What a driver compiles: everything is known, and uniforms stand in the order of instructions.

class FlowOfVersion : public testing::TestWithParam<chip::Generation> {};
INSTANTIATE_TEST_SUITE_P(Versions, FlowOfVersion,
                         testing::Values(chip::Generation::k71, chip::Generation::k42));

TEST_P(FlowOfVersion, CompiledProgramsAreWhollyKnown) {
  for (const CompiledProgram& program : compiled_programs(GetParam())) {
    const Flow flow = flow::analyse({GetParam(), program.final_section, {}}, program.words);
    SCOPED_TRACE(program.stage);
    EXPECT_TRUE(flow.complete);
    EXPECT_EQ(flow.first_index, 0);
    EXPECT_EQ(flow.end_index, static_cast<int32_t>(program.words.size()));
    EXPECT_EQ(flow.instructions.size(), program.words.size());
    std::map<int32_t, std::set<int32_t>> offsets_of;  // by instruction
    for (const flow::UniformRead& read : flow.uniforms)
      if (read.stream == Stream::kMain) offsets_of[flow.nodes[read.node].index].insert(read.offset);
    int32_t next = 0;
    for (const auto& [index, offsets] : offsets_of) {
      for (const int32_t offset : offsets) {
        EXPECT_EQ(offset, next) << "instruction " << index;
        next += 4;
      }
    }
  }
}

// ---- TMU and TLB

using flow::GeneralConfig;

TEST(FlowTmu, LookupHasItsWritesAndWords) {
  const Flow flow =
      flow_of("mov tmud, rf1 ; nop\nmov tmua, rf2 ; nop\nmov tmua, rf3 ; nop\nnop ; nop ; ldtmu.rf4\nend");
  const flow::TmuFlow tmu = follow_tmu(flow);
  ASSERT_EQ(tmu.lookups.size(), 2u);
  EXPECT_EQ(tmu.lookups[0].data, 1);  // a store: nothing comes back
  EXPECT_EQ(tmu.lookups[1].data, 0);
  ASSERT_EQ(tmu.pops.size(), 1u);
  EXPECT_EQ(tmu.pops[0].lookup, 1u);
  EXPECT_TRUE(tmu.complete);
}

// How many words a texture lookup returns stands in its uniforms: with two of them the code does not tell.
TEST(FlowTmu, SaysWhichLookupItCannotTell) {
  const Flow flow = flow_of(
      "mov tmus, rf1 ; nop ; wrtmuc\nmov tmus, rf2 ; nop ; wrtmuc\nnop ; nop ; ldtmu.rf3\nnop ; nop ; "
      "ldtmu.rf4\nend");
  const flow::TmuFlow by_code = follow_tmu(flow);
  EXPECT_FALSE(by_code.complete);
  EXPECT_EQ(by_code.pops.at(1).lookup, kNowhere);
  const flow::TmuFlow told = follow_tmu(flow, [](const flow::Lookup&) { return 1; });
  EXPECT_TRUE(told.complete);
  EXPECT_EQ(told.pops.at(0).lookup, 0u);
  EXPECT_EQ(told.pops.at(1).lookup, 1u);
  EXPECT_EQ(told.lookups.at(1).configs.size(), 1u);
}

TEST(FlowTmu, ConfigurationGivesOneByteToEachLookup) {
  const Flow flow = flow_of(
      "mov tmuau, rf1 ; nop\nmov tmua, rf1 ; nop\nmov tmua, rf1 ; nop\nmov tmua, rf1 ; nop\nmov tmua, rf1 ; "
      "nop\nend");
  const flow::TmuFlow tmu = follow_tmu(flow);
  ASSERT_EQ(tmu.lookups.size(), 5u);
  for (uint8_t n = 0; n < 4; ++n) {
    EXPECT_EQ(tmu.lookups[n].config.from, GeneralConfig::From::kUniform);
    EXPECT_EQ(tmu.lookups[n].config.byte, n);
  }
  EXPECT_EQ(tmu.lookups[4].config.from, GeneralConfig::From::kStart);
}

// A lookup that is taken after a loop, which starts none.
TEST(FlowTmu, WordsWaitAcrossLoops) {
  const Flow flow = flow_of(
      "mov tmua, rf1 ; nop\nloop:\nsub.pushz rf2, rf2, 1\nb.anyna loop\nnop\nnop\nnop\nnop ; nop ; "
      "ldtmu.rf3\nend");
  EXPECT_TRUE(follow_tmu(flow).complete);
}

TEST(FlowTlb, SequencesByTheirSpecifiers) {
  const Flow flow =
      flow_of("mov tlb, rf1 ; nop\nmov tlb, rf2 ; nop\nmov tlb, rf3 ; nop\nmov tlbu, rf4 ; nop\nend");
  const flow::TlbFlow tlb = follow_tlb(flow);
  ASSERT_EQ(tlb.sequences.size(), 3u);
  EXPECT_EQ(tlb.words[1].sequence, 0u);
  EXPECT_EQ(tlb.words[1].word, 1);
  EXPECT_EQ(tlb.words[2].sequence, 1u);
  EXPECT_EQ(tlb.words[3].sequence, 2u);
  EXPECT_EQ(tlb.sequences[2].specifier.from, flow::TlbSpecifier::From::kUniform);
  EXPECT_TRUE(tlb.complete);
}

TEST(FlowTlb, LengthOfASequenceStandsInTheUniform) {
  const Flow flow = flow_of("mov tlbu, rf1 ; nop\nmov tlb, rf2 ; nop\nend");
  EXPECT_FALSE(follow_tlb(flow).complete);
  const flow::TlbFlow told = follow_tlb(flow, [](const flow::TlbSpecifier&) { return 1; });
  EXPECT_TRUE(told.complete);
  EXPECT_EQ(told.words[1].sequence, 1u);
  EXPECT_EQ(told.sequences[1].specifier.byte, 1);
}

// ---- Against the interpreter

class FlowRuns : public testing::TestWithParam<chip::Generation> {
 protected:
  static constexpr GpuAddr kCode = 0x10000, kUniforms = 0x20000;

  void SetUp() override {
    auto created = mmu::AddressSpace::create();
    ASSERT_TRUE(created.ok());
    space = std::move(*created);
    ASSERT_TRUE(space->map_zeros(kCode, 1 << 13).ok());
    ASSERT_TRUE(space->map_zeros(kUniforms, 1 << 13).ok());
  }

  struct Outcome {
    Stop stop;
    uint64_t instructions, compared, fixed_uniforms, known_pops, known_tlb_words;
    GpuAddr pc, uniforms;
    std::vector<uint32_t> sent;  // to the TMU and the VPM
    bool operator==(const Outcome&) const = default;
  };

  void push(std::vector<uint32_t>& to, const Lanes& v) {
    for (int n = 0; n < kLanes; ++n) to.push_back(v[n]);
  }

  // Runs the words with a watch. @param spoil  0, or the seed of what dead registers get
  Outcome run_watched(const std::vector<uint64_t>& words, bool final_section, bool with_tlb, uint32_t spoil) {
    for (uint32_t n = 0; n < words.size(); ++n) space->memory().store<uint64_t>(kCode + n * 8, words[n]);
    const Flow flow = flow::analyse({GetParam(), final_section, kCode}, words);
    fake_tmu() = {};
    fake_tmu().words = words_returned;
    FlowWatch watch(flow, space->memory(), kUniforms);
    watch.spoil_dead_registers(spoil);
    StageRoom room;
    const auto thread = std::make_unique<Thread>();
    Thread& t = *thread;
    t.reset();
    t.memory = space->memory();
    t.pc = kCode;
    t.uniforms = kUniforms;
    t.unifa = kUniforms + 0x1000;
    t.msf = splat(1u);
    for (Register r = 0; r < kNumRegisters; ++r) t.at(r) = kLaneIndex * 3u + r;
    tmu::Unit unit{Memory(), GetParam()};
    t.tmu = &unit;
    room.give_to(t, with_tlb);
    t.final_section = final_section;
    t.budget = 2000;
    t.observer = &watch;
    ProgramCache cache(GetParam());
    Outcome o{};
    o.stop = run_through(*cache.get(t.memory, kCode), t);
    o.instructions = t.instructions;
    o.compared = watch.compared();
    o.fixed_uniforms = watch.fixed_uniforms();
    o.known_pops = watch.known_pops();
    o.known_tlb_words = watch.known_tlb_words();
    o.pc = t.pc;
    o.uniforms = t.uniforms;
    for (const auto& lookup : fake_tmu().generals) {
      o.sent.push_back(lookup.config);
      o.sent.push_back(lookup.exec | uint32_t{lookup.live} << 16);
      push(o.sent, lookup.address);
      for (int n = 0; n < lookup.num_data; ++n) push(o.sent, lookup.data[n]);
    }
    for (const auto& lookup : fake_tmu().textures) {
      o.sent.push_back(lookup.p0);
      o.sent.push_back(lookup.exec | uint32_t{lookup.live} << 16);
      push(o.sent, lookup.s);
    }
    for (const Lanes& row : room.vpm_out) push(o.sent, row);
    return o;
  }

  // A program of words that mostly go on: branches inside it, thrsw, all kinds of ports, lookups that it
  // takes.
  std::vector<uint64_t> random_program(size_t size) {
    std::vector<uint64_t> words;
    const auto launches = [](const AluHalf& h, chip::Generation generation) {
      return h.magic && starts_lookup(waddr_info(generation, h.waddr).effect);
    };
    while (words.size() < size) {
      if (random() % 8 == 0) lookup(words);
      Instruction i;
      const uint64_t word = source.next();
      if (!decode(GetParam(), word, i)) continue;
      if (i.is_branch) continue;
      if ((i.signals & kThrsw) && random() % 8 != 0) continue;
      const bool tmu = (i.signals & kLdtmu) || launches(i.add, GetParam()) || launches(i.mul, GetParam());
      if (tmu && random() % 16 != 0) continue;
      words.push_back(random() % 10 == 0 ? branch(words.size(), size) : word);
    }
    return words;
  }

  void lookup(std::vector<uint64_t>& words) {
    using namespace assembly;
    const auto any = [&] { return static_cast<int>(random() % 32); };
    const bool texture = random() % 2;
    Instruction start = texture ? I().mul(Op::kMov, to(kWaddrTmus), rf(any())).sig(kWrtmuc)
                                : I().mul(Op::kMov, to(random() % 2 ? kWaddrTmua : kWaddrTmuau), rf(any()));
    words.push_back(*encode(GetParam(), start));
    for (int n = 0; n < words_returned; ++n) words.push_back(*encode(GetParam(), I().sig(kLdtmu, to(any()))));
  }

  uint64_t branch(size_t at, size_t size) {
    Instruction i;
    i.is_branch = true;
    Branch& b = i.branch;
    b.cond = static_cast<BranchCond>(random() % 8);
    b.msfign = static_cast<Msfign>(random() % 3);
    b.set_link = random() % 4 == 0;
    b.uniforms = random() % 2 == 0;
    if (b.uniforms && random() % 4 == 0) b.uniform_target = 1;
    b.uniform_target = b.uniforms ? static_cast<uint8_t>(random() % 2) : 0;
    const auto target = static_cast<uint32_t>(random() % size);
    switch (random() % 16) {
      case 0:
        b.target = BranchTarget::kLink;
        break;
      case 1:
        b.target = BranchTarget::kRegister;
        b.raddr = static_cast<uint8_t>(random() % 64);
        break;
      case 2:
      case 3:
        b.target = BranchTarget::kAbsolute;
        b.offset = kCode + target * 8;
        break;
      default:
        b.offset = (target - static_cast<uint32_t>(at) - 4) * 8;
        break;
    }
    return *encode(GetParam(), i);
  }

  int words_returned = 2;  // by each lookup that returns any
  std::mt19937_64 random{7};
  RandomWords source{GetParam()};
  std::unique_ptr<mmu::AddressSpace> space;
};
INSTANTIATE_TEST_SUITE_P(Versions, FlowRuns, testing::Values(chip::Generation::k71, chip::Generation::k42));

TEST_P(FlowRuns, RandomProgramsAreWalkedAsTheyRun) {
  uint64_t compared = 0, executed = 0, fixed = 0, pops = 0, tlb_words = 0;
  for (int round = 0; round < 300 && !HasFailure(); ++round) {
    const auto words = random_program(10 + random() % 80);
    for (uint32_t n = 0; n < 0x2000; n += 4)
      space->memory().store<uint32_t>(kUniforms + n, static_cast<uint32_t>(random()) % 64 * 4);
    const bool final_section = random() % 2;
    const Outcome plain = run_watched(words, final_section, round % 3 == 0, 0);
    compared += plain.compared;
    executed += plain.instructions;
    fixed += plain.fixed_uniforms;
    pops += plain.known_pops;
    tlb_words += plain.known_tlb_words;
    const Outcome spoiled =
        run_watched(words, final_section, round % 3 == 0, static_cast<uint32_t>(round + 1));
    EXPECT_EQ(plain, spoiled) << "round " << round;
  }
  RecordProperty("compared", std::to_string(compared));
  EXPECT_GT(compared, 5000u);
  EXPECT_GT(compared, executed / 4);
  EXPECT_GT(fixed, 200u);
  EXPECT_GT(pops, 50u);
  EXPECT_GT(tlb_words, 50u);
}

// The words of branches are those that the offsets rest on; the rest is arbitrary.
TEST_P(FlowRuns, CompiledPrograms) {
  int ends = 0;
  uint64_t pops = 0;
  for (const CompiledProgram& program : compiled_programs(GetParam())) {
    SCOPED_TRACE(program.stage);
    for (uint32_t n = 0; n < 0x2000; n += 4)
      space->memory().store<uint32_t>(kUniforms + n, 0x3f800000 + n % 7);
    const Flow flow = flow::analyse({GetParam(), program.final_section, kCode}, program.words);
    for (const flow::UniformJump& jump : flow.uniform_jumps)
      space->memory().store<uint32_t>(kUniforms + static_cast<uint32_t>(jump.offset),
                                      static_cast<uint32_t>(jump.distance));
    const bool with_tlb = program.stage == std::string("fragment");
    for (const int count : {1, 2, 4}) {
      words_returned = count;
      const Outcome plain = run_watched(program.words, program.final_section, with_tlb, 0);
      EXPECT_EQ(plain.compared, plain.instructions);
      EXPECT_EQ(plain, run_watched(program.words, program.final_section, with_tlb, 1));
      ends += plain.stop == Stop::kEnd;
      pops += plain.known_pops;
    }
  }
  EXPECT_GT(ends, 5);
  EXPECT_GT(pops, 5u);
}

}  // namespace
}  // namespace v3d::qpu
