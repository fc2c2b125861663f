/// Twins are two threads with the same program, inputs and memory: one interpreted, one compiled. Whatever
/// the program does, they must not differ.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "gpu/chip/generation.h"
#include "gpu/mmu/address_space.h"
#include "gpu/mmu/fault_place.h"
#include "gpu/qpu/jit/jit.h"
#include "gpu/qpu/run/interpreter.h"
#include "gpu/qpu/run/program_cache.h"
#include "gpu/qpu/run/program_scope.h"
#include "tests/qpu/stage_room.h"

namespace v3d::qpu {

inline bool same(Lanes a, Lanes b) { return nonzero(a ^ b) == 0; }

/// A T in memory that is aligned as its type asks, and no further: what allocators give is so now and then.
template <typename T>
class BarelyAligned {
 public:
  T& operator*() { return *at_; }
  T* operator->() { return at_.get(); }

 private:
  static constexpr auto kTwice = std::align_val_t{2 * alignof(T)};
  struct Delete {
    void operator()(T* at) const {
      at->~T();
      ::operator delete(reinterpret_cast<std::byte*>(at) - alignof(T), kTwice);
    }
  };
  static T* make() {
    auto* const room = static_cast<std::byte*>(::operator new(alignof(T) + sizeof(T), kTwice));
    return new (room + alignof(T)) T{};
  }

  const std::unique_ptr<T, Delete> at_{make()};
};

/// A thread with everything around it.
class Twin {
 public:
  /// The code where no special value points: a program that writes over itself means what was read of it
  /// before.
  static constexpr GpuAddr kCode = 0x5a0000, kUniforms = 0x20000, kData = 0x40000;
  static constexpr uint32_t kBytes = 0x4000;  ///< of each

  /// @param compiler  null for the interpreted one
  /// @param generation  of the chip
  /// @param code_bytes  of memory that there is for code
  Twin(Compiler* compiler, chip::Generation generation, uint32_t code_bytes = kBytes)
      : compiler_(compiler), generation_(generation) {
    auto created = mmu::AddressSpace::create();
    if (!created.ok()) std::abort();
    space_ = *std::move(created);
    if (!space_->map_zeros(kCode, code_bytes).ok()) std::abort();
    for (const GpuAddr at : {kUniforms, kData})
      if (!space_->map_zeros(at, kBytes).ok()) std::abort();
    unit_ = std::make_unique<tmu::Unit>(space_->memory(), generation_);
    forget_programs();
  }

  Memory memory() const { return space_->memory(); }
  Thread& t() { return *thread_; }
  StageRoom& room() { return *room_; }
  void forget_programs() { cache_ = std::make_unique<ProgramCache>(generation_, compiler_); }
  /// At thread start; registers of the last thread stay.
  void start() {
    thread_->restart();
    thread_->memory = memory();
    thread_->tmu = unit_.get();
    thread_->pc = kCode;
    thread_->uniforms = kUniforms;
    unit_->begin_job();
  }
  std::shared_ptr<const Program> program() { return cache_->get(memory(), kCode); }
  /// What accesses of unmapped pages cost is given back: only compiled code pays for it from its budget.
  Stop run() {
    for (;;) {
      const uint64_t before = thread_->instructions + thread_->budget;
      const Stop stop = run_and_pay();
      const uint64_t paid = before - thread_->instructions - thread_->budget;
      thread_->budget += paid;
      if (stop != Stop::kBudget || paid == 0) return stop;
    }
  }
  Stop run_and_pay() {
    const ProgramScope scope("test", kCode, *thread_);
    return qpu::run(*program(), *thread_);
  }
  uint64_t faults() { return space_->take_faults().count; }
  /// Of the first one.
  mmu::FaultPlace fault_place() { return mmu::take_fault_place(*space_); }

 private:
  Compiler* const compiler_;
  const chip::Generation generation_;
  std::unique_ptr<mmu::AddressSpace> space_;
  std::unique_ptr<tmu::Unit> unit_;
  BarelyAligned<StageRoom> room_;
  BarelyAligned<Thread> thread_;
  std::unique_ptr<ProgramCache> cache_;
};

class Twins : public testing::Test {
 protected:
  explicit Twins(jit::Target target, chip::Generation of_generation = chip::Generation::k71)
      : generation(of_generation), compiler(target, 0), target_(target) {}
  void SetUp() override {
    if (!jit::can_compile(target_)) GTEST_SKIP() << "the processor has no " << jit::name(target_);
  }

  template <typename Fn>
  void both(const Fn& fn) {
    fn(plain);
    fn(compiled);
  }
  void load(const std::vector<uint64_t>& words) {
    both([&](Twin& twin) {
      std::memset(twin.memory().host(Twin::kCode), 0, Twin::kBytes);
      twin.memory().write(Twin::kCode, words.data(), words.size() * 8);
      twin.forget_programs();
    });
  }

  /// Runs both from stop to stop. @return the last stop
  Stop run_both(int most_stops = 1000) {
    Stop stop = Stop::kSwitch;
    for (int n = 0; n < most_stops; ++n) {
      const uint64_t budget = plain.t().budget;
      stop = plain.run();
      const Stop other = compiled.run();
      EXPECT_EQ(stop, other);
      compare(stop);
      executed += budget - plain.t().budget;
      if (HasFailure() || (stop != Stop::kSwitch && stop != Stop::kBarrier && stop != Stop::kMeeting)) break;
    }
    compare_memory();
    return stop;
  }

  void compare(Stop stop) {
    const Thread &a = plain.t(), &b = compiled.t();
    EXPECT_EQ(a.pc, b.pc);
    EXPECT_EQ(a.instructions, b.instructions);
    EXPECT_EQ(a.budget, b.budget);
    if (stop == Stop::kHang) return;  // it cannot go on
    for (Register r = 0; r < kNumRegisters; ++r) EXPECT_TRUE(same(a.at(r), b.at(r))) << "register " << int{r};
    EXPECT_TRUE(same(a.rtop, b.rtop));
    EXPECT_TRUE(same(a.msf, b.msf));
    EXPECT_EQ(a.flag_a, b.flag_a);
    EXPECT_EQ(a.flag_b, b.flag_b);
    EXPECT_EQ(a.nn_mode, b.nn_mode);
    EXPECT_EQ(a.link, b.link);
    EXPECT_EQ(a.uniforms, b.uniforms);
    EXPECT_EQ(a.unifa, b.unifa);
    EXPECT_EQ(a.tmu_config, b.tmu_config);
    EXPECT_EQ(a.tlb_config, b.tlb_config);
    EXPECT_EQ(a.back_facing, b.back_facing);
    EXPECT_EQ(a.meeting.threads, b.meeting.threads);
    EXPECT_EQ(a.meeting.object, b.meeting.object);
    if (stop != Stop::kEnd) compare_coming(a.pending, b.pending);
    compare_pending(a, b);
  }

  /// What takes effect at one of the next instructions.
  void compare_coming(const Thread::Pending& a, const Thread::Pending& b) {
    EXPECT_EQ(a.events, b.events);
    if (a.events.branch_in) {
      EXPECT_EQ(a.branch_target, b.branch_target);
      EXPECT_EQ(a.branch_moves_uniforms, b.branch_moves_uniforms);
      if (a.branch_moves_uniforms) {
        EXPECT_EQ(a.branch_uniforms, b.branch_uniforms);
      }
    }
  }

  void compare_pending(const Thread& ta, const Thread& tb) {
    const Thread::Pending &a = ta.pending, &b = tb.pending;
    EXPECT_EQ(a.last_section || ta.final_section, b.last_section || tb.final_section);
    EXPECT_EQ(a.sync, b.sync);
    EXPECT_EQ(a.next_varying, b.next_varying);
    for (int n = 0; n < std::popcount(a.events.sfu); ++n)
      EXPECT_TRUE(same(a.sfu_result[a.sfu_oldest ^ n], b.sfu_result[b.sfu_oldest ^ n]));
    compare_tmu(a, b);
    EXPECT_EQ(a.tlb_have, b.tlb_have);
    EXPECT_EQ(a.tlb_need, b.tlb_need);
    for (int n = 0; n < a.tlb_have && n < 16; ++n) EXPECT_TRUE(same(a.tlb_words[n], b.tlb_words[n]));
    if (a.tlb_have) {
      EXPECT_EQ(a.tlb_exec, b.tlb_exec);
    }
  }

  void compare_tmu(const Thread::Pending& a, const Thread::Pending& b) {
    EXPECT_EQ(a.num_config, b.num_config);
    if (a.num_config > 0) {
      EXPECT_EQ(a.texture.p0, b.texture.p0);
    }
    if (a.num_config > 1) {
      EXPECT_EQ(a.texture.p1, b.texture.p1);
    }
    if (a.num_config > 2) {
      EXPECT_EQ(a.texture.p2, b.texture.p2);
    }
    EXPECT_EQ(a.texture.written, b.texture.written);
    ASSERT_EQ(a.texture.num_data, b.texture.num_data);
    for (int n = 0; n < a.texture.num_data; ++n) EXPECT_TRUE(same(a.texture.data[n], b.texture.data[n]));
    if (a.texture.written & tmu::kT) {
      EXPECT_TRUE(same(a.texture.t, b.texture.t));
    }
    if (a.texture.written & tmu::kOff) {
      EXPECT_TRUE(same(a.texture.off, b.texture.off));
    }
    ASSERT_EQ(a.fifo_tail - a.fifo_head, b.fifo_tail - b.fifo_head);
    for (uint32_t n = 0; n < a.fifo_tail - a.fifo_head; ++n)
      EXPECT_TRUE(same(a.fifo[(a.fifo_head + n) % kTmuFifo], b.fifo[(b.fifo_head + n) % kTmuFifo])) << n;
  }

  void compare_memory() {
    for (const GpuAddr at : {Twin::kUniforms, Twin::kData})
      EXPECT_EQ(std::memcmp(plain.memory().host(at), compiled.memory().host(at), Twin::kBytes), 0);
    for (size_t n = 0; n < std::size(plain.room().vpm_out); ++n)
      EXPECT_TRUE(same(plain.room().vpm_out[n], compiled.room().vpm_out[n])) << n;
    const uint64_t faults = plain.faults();
    EXPECT_EQ(faults, compiled.faults());
    const mmu::FaultPlace place = plain.fault_place(), other = compiled.fault_place();
    EXPECT_EQ(place.stage != nullptr, other.stage != nullptr);
    if (faults != 0) {
      EXPECT_EQ(place.instruction, other.instruction);
    }
  }

  const chip::Generation generation;
  jit::JitCompiler compiler;
  Twin plain{nullptr, generation}, compiled{&compiler, generation};
  uint64_t executed = 0;

 private:
  const jit::Target target_;
};

/// Each test is run for each target.
class TwinsOfTargets : public Twins, public testing::WithParamInterface<jit::Target> {
 protected:
  TwinsOfTargets() : Twins(GetParam()) {}
};
inline const auto kTargets = testing::ValuesIn(jit::kAllTargets);
inline const auto kNameOfTarget = [](const auto& p) { return std::string(jit::name(p.param)); };

}  // namespace v3d::qpu
