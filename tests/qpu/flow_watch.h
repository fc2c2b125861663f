/// A FlowWatch compares every fact of a Flow with what the interpreter does, instruction by instruction.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/flow/tlb.h"
#include "gpu/qpu/flow/tmu.h"
#include "gpu/qpu/run/observer.h"
#include "gpu/qpu/run/ports.h"
#include "gpu/qpu/run/thread.h"
#include "tests/qpu/fake_tmu.h"

namespace v3d::qpu {

class FlowWatch : public Observer {
 public:
  /// @param memory, uniforms  what the thread will see
  FlowWatch(const flow::Flow& flow, Memory memory, GpuAddr uniforms)
      : flow_(flow), cursor_(flow), memory_(memory), first_uniform_(uniforms) {
    tmu_ = flow::follow_tmu(flow, [](const flow::Lookup& l) { return return_words(l); });
    tlb_ = flow::follow_tlb(flow, [this](const flow::TlbSpecifier& s) { return sequence_words(s); });
  }

  /// Instructions that were compared; the others came after a gap.
  uint64_t compared() const { return compared_; }
  /// ... of them uniforms at a fixed offset, ldtmu with a known lookup, and TLB words of a known sequence.
  uint64_t fixed_uniforms() const { return fixed_uniforms_; }
  uint64_t known_pops() const { return known_pops_; }
  uint64_t known_tlb_words() const { return known_tlb_words_; }
  /// The first instruction at each start of a block changes what is not live there.
  void spoil_dead_registers(uint32_t seed) { spoil_ = seed; }

  void before(const Thread& t, uint64_t word, const Instruction* instruction) override {
    if (!start_)
      start_ = std::make_unique<Start>(Start{t.pc, t.uniforms, t.pending.last_section || t.final_section});
    node_ = cursor_.node();
    if (lost_ || node_ == flow::kNowhere) {
      lost_ = true;
      return;
    }
    ++compared_;
    const flow::Node& n = flow_.nodes[node_];
    ASSERT_EQ(t.pc, start_->pc + static_cast<uint32_t>(n.index) * 8);
    Instruction decoded;
    if (n.instruction == flow::kNowhere) {
      const auto gap = flow_.blocks[n.block].exit.gap;
      ASSERT_TRUE(gap == flow::Exit::Gap::kTooLarge || gap == flow::Exit::Gap::kUnreadable || !instruction);
      lost_ = true;
      return;
    }
    ASSERT_GE(n.index, flow_.first_index);
    ASSERT_LT(n.index, flow_.end_index);
    ASSERT_TRUE(instruction) << std::hex << word;
    ASSERT_EQ(*instruction, *flow_.instruction(n));
    compare_in_flight(t, n.in_flight);
    compare_landings(t, n);
    compare_uniforms(t);
    before_ = state_of(t);
    instruction_ = instruction;
    generals_ = fake_tmu().generals.size();
    textures_ = fake_tmu().textures.size();
    if (spoil_ != 0 && flow_.blocks[n.block].first == node_) spoil(const_cast<Thread&>(t));
  }

  void after(const Thread& t, const char* error) override {
    if (lost_) return;
    const flow::Node& n = flow_.nodes[node_];
    if (error) {
      lost_ = true;
      return;
    }
    const flow::Access& access = flow_.access(n);
    compare_changes(t, access.writes, "written by");
    after_ = state_of(t);
    uint32_t words = 0, pops = 0, varyings = 0;
    for (const flow::Event& e : access.events()) {
      words += e.stream == Stream::kMain;
      pops += e.kind == flow::Event::Kind::kLdtmu;
      varyings += e.kind == flow::Event::Kind::kLdvary;
    }
    EXPECT_EQ((t.uniforms - uniforms_) / 4, words) << text();
    EXPECT_EQ(t.pending.fifo_head - fifo_head_, pops) << text();
    EXPECT_EQ((t.pending.events.vary & 2) != 0, varyings != 0) << text();
    EXPECT_EQ((t.pending.events.sfu & 2) != 0, access.sfu) << text();
    compare_tmu(access);
    compare_tlb(t, access);
    taken_ = instruction_->is_branch && t.pending.events.branch_in == 4;
  }

  void finished(const Thread& t, Next next) override {
    if (lost_) return;
    const flow::Exit& exit = flow_.blocks[flow_.nodes[node_].block].exit;
    const bool last = flow_.is_last(node_);
    EXPECT_EQ(next == Next::kEnd, last && exit.kind == flow::Exit::Kind::kEnd) << text();
    EXPECT_EQ(next == Next::kSwitch || next == Next::kBarrier, last && exit.switches) << text();
    if (next == Next::kBarrier) {
      EXPECT_TRUE(exit.may_wait) << text();
    }
    if (next == Next::kJump) {
      EXPECT_TRUE(last && exit.kind != flow::Exit::Kind::kNext && exit.kind != flow::Exit::Kind::kEnd)
          << text();
    }
    if (next == Next::kEnd) {
      lost_ = true;
      return;
    }
    check_jump(t);
    cursor_.advance(taken_);
    if (cursor_.node() == flow::kNowhere) {
      EXPECT_EQ(exit.gap, flow::Exit::Gap::kComputed) << text();
    }
  }

 private:
  struct Start {
    GpuAddr pc, uniforms;
    bool final_section;
  };
  struct State {
    Lanes registers[kNumRegisters], rtop, msf;
    LaneMask flag_a, flag_b;
    NnMode nn_mode;
    uint32_t link;
  };

  static std::unique_ptr<State> state_of(const Thread& t) {
    auto s = std::make_unique<State>();
    for (Register r = 0; r < kNumRegisters; ++r) s->registers[r] = t.at(r);
    s->rtop = t.rtop;
    s->msf = t.msf;
    s->flag_a = t.flag_a;
    s->flag_b = t.flag_b;
    s->nn_mode = t.nn_mode;
    s->link = t.link;
    return s;
  }

  static bool differ(Lanes a, Lanes b) { return nonzero(a ^ b) != 0; }

  std::string text() const {
    return instruction_ ? disassemble(flow_.setting.generation, *instruction_) + " at " +
                              std::to_string(flow_.nodes[node_].index)
                        : "";
  }

  void compare_in_flight(const Thread& t, const flow::InFlight& c) {
    const auto& e = t.pending.events;
    EXPECT_EQ(e.switch_in, c.switch_in);
    EXPECT_EQ(e.end_in, c.end_in);
    EXPECT_EQ(e.branch_in, c.branch_in);
    EXPECT_EQ(e.previous_was_thrsw, c.previous_was_thrsw);
    EXPECT_EQ(e.vary, c.vary >> 1);  // what is due has landed
    EXPECT_EQ(e.sfu, c.sfu >> 1);
    EXPECT_EQ(t.pending.last_section || t.final_section, c.last_section);
    if (t.pending.sync != Thread::Pending::Sync::kNone) {
      EXPECT_TRUE(c.barrier);
    }
  }

  // Between two instructions only what lands changes.
  void compare_landings(const Thread& t, const flow::Node& n) {
    if (!after_) return;
    flow::Resources landed;
    if (n.in_flight.vary & 1) landed.registers.add(isa(flow_.setting.generation).implicit);
    if (n.in_flight.sfu & 1) landed.registers.add(kSfuResult);
    compare_changes(*after_, t, landed, "landed before");
  }

  void compare_changes(const Thread& t, const flow::Resources& allowed, const char* what) {
    compare_changes(*before_, t, allowed, what);
  }
  void compare_changes(const State& old, const Thread& t, const flow::Resources& allowed, const char* what) {
    for (Register r = 0; r < kNumRegisters; ++r)
      if (differ(old.registers[r], t.at(r))) {
        EXPECT_TRUE(allowed.registers.has(r)) << int{r} << " " << what << " " << text();
      }
    const auto check = [&](bool changed, flow::State state) {
      if (changed) {
        EXPECT_TRUE(allowed.state & state) << "state " << int{state} << " " << what << " " << text();
      }
    };
    check(differ(old.rtop, t.rtop), flow::kRtop);
    check(differ(old.msf, t.msf), flow::kMsf);
    check(old.flag_a != t.flag_a, flow::kFlagA);
    check(old.flag_b != t.flag_b, flow::kFlagB);
    check(old.nn_mode != t.nn_mode, flow::kNnMode);
    check(old.link != t.link, flow::kLink);
  }

  void compare_uniforms(const Thread& t) {
    uniforms_ = t.uniforms;
    fifo_head_ = t.pending.fifo_head;
    for (const flow::UniformRead& read : flow_.uniforms_of(node_)) {
      if (read.stream != Stream::kMain) continue;
      if (read.offset != flow::kDynamic && uniforms_hold_) {
        ++fixed_uniforms_;
        EXPECT_EQ(t.uniforms, start_->uniforms + static_cast<uint32_t>(read.offset)) << text();
      }
      return;  // the others follow it
    }
  }

  // Offsets hold while the words of branches are those that they rest on.
  void check_jump(const Thread& t) {
    for (const flow::UniformJump& jump : flow_.uniform_jumps) {
      if (jump.node != node_ || (instruction_->is_branch && taken_)) continue;
      const GpuAddr word = start_->uniforms + static_cast<uint32_t>(jump.offset);
      if (uniforms_hold_ && t.uniforms != word + 4 + static_cast<uint32_t>(jump.distance))
        uniforms_hold_ = false;
    }
  }

  // As the fake TMU answers.
  static int return_words(const flow::Lookup& lookup) {
    if (starts_texture(lookup.effect)) return fake_tmu().words;
    return !lookup.writes_known ? -1 : lookup.data ? 0 : fake_tmu().words;
  }

  std::optional<uint32_t> uniform(flow::EventOf at) const {
    for (const flow::UniformRead& read : flow_.uniforms_of(at.node))
      if (read.event == at.event && read.offset != flow::kDynamic)
        return memory_.load<uint32_t>(first_uniform_ + static_cast<uint32_t>(read.offset));
    return {};
  }

  int sequence_words(const flow::TlbSpecifier& specifier) const {
    using From = flow::TlbSpecifier::From;
    uint32_t word = 0xff;
    if (specifier.from == From::kUnknown) return 0;
    if (specifier.from == From::kUniform) {
      const auto found = uniform(specifier.event);
      if (!found) return 0;
      word = *found >> (8 * specifier.byte);
    }
    const TlbSpec spec = decode_tlb_spec(static_cast<uint8_t>(word));
    return spec.words * (spec.per_sample ? 4 : 1);
  }

  // The owners of the words in the return queue, and what each lookup is told to be.
  void compare_tmu(const flow::Access& access) {
    const auto events = access.events();
    for (uint8_t e = 0; e < events.size(); ++e) {
      const flow::EventOf at{node_, e};
      if (events[e].kind == flow::Event::Kind::kLdtmu) pop();
      if (!starts_lookup(events[e].effect)) continue;
      const auto found = std::lower_bound(tmu_.lookups.begin(), tmu_.lookups.end(), at,
                                          [](const flow::Lookup& l, flow::EventOf a) { return l.start < a; });
      ASSERT_TRUE(found != tmu_.lookups.end() && found->start == at) << text();
      const bool general = events[e].effect == Effect::kGeneral;
      int words = fake_tmu().words;
      if (general) {
        const tmu::GeneralLookup& made = fake_tmu().generals.at(generals_++);
        if (made.num_data) words = 0;
        if (found->writes_known) {
          EXPECT_EQ(int{made.num_data}, int{found->data}) << text();
        }
        if (found->config.from == flow::GeneralConfig::From::kStart) {
          EXPECT_EQ(made.config, 0xff) << text();
        }
        const auto word = uniform(found->config.event);
        if (found->config.from == flow::GeneralConfig::From::kUniform && word && uniforms_hold_) {
          EXPECT_EQ(made.config, *word >> (8 * found->config.byte) & 0xff) << text();
        }
      } else {
        const tmu::TextureLookup& made = fake_tmu().textures.at(textures_++);
        if (found->writes_known) {
          EXPECT_EQ(int{made.num_data}, int{found->data}) << text();
        }
        const auto p0 =
            found->configs_known && !found->configs.empty() ? uniform(found->configs[0]) : std::nullopt;
        if (p0 && uniforms_hold_) {
          EXPECT_EQ(made.p0, *p0) << text();
        }
      }
      for (int n = 0; n < words; ++n) queue_.push_back({at, static_cast<uint8_t>(n)});
    }
  }

  void pop() {
    const auto found = std::lower_bound(tmu_.pops.begin(), tmu_.pops.end(), node_,
                                        [](const flow::Pop& p, uint32_t n) { return p.node < n; });
    ASSERT_TRUE(found != tmu_.pops.end() && found->node == node_) << text();
    ASSERT_FALSE(queue_.empty());
    const auto [start, word] = queue_.front();
    queue_.pop_front();
    if (found->lookup == flow::kNowhere) return;
    ++known_pops_;
    EXPECT_EQ(tmu_.lookups[found->lookup].start, start) << text();
    EXPECT_EQ(found->word, word) << text();
  }

  void compare_tlb(const Thread& t, const flow::Access& access) {
    if (!t.tlb || !uniforms_hold_) return;
    const flow::TlbWord* last = nullptr;
    for (const flow::TlbWord& w : tlb_.words)
      if (w.event.node == node_) last = &w;
    const auto is_word = [](const flow::Event& e) {
      return e.kind == flow::Event::Kind::kLdtlb || e.effect == Effect::kTlb;
    };
    ASSERT_EQ(last != nullptr, std::any_of(access.events().begin(), access.events().end(), is_word))
        << text();
    if (!last || last->sequence == flow::kNowhere) return;
    ++known_tlb_words_;
    const flow::TlbSequence& sequence = tlb_.sequences[last->sequence];
    if (sequence.words == 0) return;
    const bool complete = last->word + 1 == sequence.words;
    const int have = t.pending.tlb_have, need = t.pending.tlb_need;
    EXPECT_EQ(complete, have == need)
        << text() << " word " << int{last->word} << " of " << int{sequence.words};
    if (!complete) {
      EXPECT_EQ(have, last->word + 1) << text();
    }
    if (!complete) {
      EXPECT_EQ(need, sequence.words) << text();
    }
    if (!complete) {
      EXPECT_EQ(t.pending.tlb_reading, sequence.reads) << text();
    }
  }

  void spoil(Thread& t) {
    const flow::Resources live = flow_.blocks[flow_.nodes[node_].block].live;
    const auto any = [&] {
      spoil_ = spoil_ * 1664525 + 1013904223;
      return spoil_ >> 8;
    };
    // Before the node's landings, which have happened already: those are not live, and not to be touched.
    flow::Resources kept = live;
    if (flow_.nodes[node_].in_flight.vary & 1) kept.registers.add(isa(flow_.setting.generation).implicit);
    if (flow_.nodes[node_].in_flight.sfu & 1) kept.registers.add(kSfuResult);
    for (Register r = 0; r < kNumRegisters; ++r)
      if (!kept.registers.has(r)) t.at(r) = kLaneIndex * 77u + any();
    if (!(live.state & flow::kRtop)) t.rtop = splat(any());
    if (!(live.state & flow::kFlagA)) t.flag_a = static_cast<LaneMask>(any());
    if (!(live.state & flow::kFlagB)) t.flag_b = static_cast<LaneMask>(any());
    if (!(live.state & flow::kMsf)) t.msf = splat(any() & 1);
    if (!(live.state & flow::kNnMode)) t.nn_mode = static_cast<NnMode>(any() & 3);
    if (!(live.state & flow::kLink)) t.link = any();
    before_ = state_of(t);
  }

  const flow::Flow& flow_;
  flow::Cursor cursor_;
  const Memory memory_;
  const GpuAddr first_uniform_;
  flow::TmuFlow tmu_;
  flow::TlbFlow tlb_;
  std::deque<std::pair<flow::EventOf, uint8_t>> queue_;
  size_t generals_ = 0, textures_ = 0;
  std::unique_ptr<Start> start_;
  std::unique_ptr<State> before_, after_;
  const Instruction* instruction_ = nullptr;
  uint32_t node_ = flow::kNowhere;
  GpuAddr uniforms_ = 0;
  uint32_t fifo_head_ = 0;
  bool taken_ = false, lost_ = false, uniforms_hold_ = true;
  uint64_t compared_ = 0, fixed_uniforms_ = 0, known_pops_ = 0, known_tlb_words_ = 0;
  uint32_t spoil_ = 0;
};

}  // namespace v3d::qpu
