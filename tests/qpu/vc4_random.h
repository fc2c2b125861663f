/// Random programs of V3D 2.1, and what they leave behind, for tests of who executes them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpu/mmu/address_space.h"
#include "gpu/qpu/isa/vc4.h"
#include "gpu/qpu/run/program_room.h"
#include "gpu/qpu/run/vc4_interpreter.h"
#include "gpu/qpu/run/vc4_program.h"

namespace v3d::qpu::vc4 {

/// Whose thread executes instructions one by one.
class Watcher : public Observer {
 public:
  void before(const Thread&, uint64_t) override {}
  void after(const Thread&, uint64_t, const char*) override {}
};

/// Both remember what they were given.
class Ports : public Tlb, public Tmu {
 public:
  Lanes load_color(Thread& t) override { return add("load", t.ms_flags, kAllLanes) + 7u; }
  void write_color(Thread& t, const Lanes& color, LaneMask exec, bool all) override {
    add(all ? "all" : "ms", color ^ t.ms_flags, exec);
  }
  void write_z(Thread& t, const Lanes& z, LaneMask exec) override {
    add("z", z, exec);
    t.ms_flags &= z >> 3;
  }
  void set_stencil(Thread&, uint32_t setup) override { add("stencil", splat(setup), 0); }
  Lanes texture(Thread&, const Lookup& lookup) override {
    told += std::to_string(lookup.has_t | lookup.has_r << 1 | lookup.has_b << 2) + " with " +
            std::to_string(lookup.parameters) + " ";
    add("parameters", lookup.t ^ lookup.r ^ lookup.b, lookup.unit);
    for (const uint32_t p : lookup.p) told += std::to_string(p) + " ";
    return add("texture", lookup.s ^ lookup.p[0] ^ lookup.t, lookup.unit);
  }

  std::string told;

 private:
  Lanes add(const char* what, const Lanes& value, LaneMask exec) {
    told += what;
    for (int lane = 0; lane < kLanes; ++lane) told += " " + std::to_string(value[lane]);
    told += " in " + std::to_string(exec) + "\n";
    return value;
  }
};

class RandomPrograms : public testing::Test {
 protected:
  static constexpr GpuAddr kCode = 0x10000, kData = 0x80000;
  static constexpr size_t kPages = 2 * 4096;
  static constexpr uint32_t kWords = 150;  // of three chunks

  struct Side {
    std::unique_ptr<Thread> thread = std::make_unique<Thread>();
    Ports ports;
    Shared shared;
    AlignedLanes rows[kVpmRows];
    std::vector<uint8_t> data = std::vector<uint8_t>(kPages);
    Stop stop = Stop::kEnd;
  };

  uint32_t word() { return static_cast<uint32_t>(random()); }
  /// Small numbers and floats around 1 more often than by chance.
  uint32_t any_word() {
    return random() % 4 == 0 ? word() % 32 : random() % 3 == 0 ? 0x3f000000 + word() % 0x1000000 : word();
  }
  /// Infinities, what is no number, denormals, the least and the largest floats, 0 and 1.
  uint32_t special_word() {
    constexpr uint32_t kSpecials[] = {0x7f800000, 0x7fc00001, 0x7f800001, 0x00000001, 0x007fffff, 0x00800000,
                                      0x7f7fffff, 0x7f7ffffe, 0,          0x3f800000, 0x7fffffff, 0x4f000000};
    return kSpecials[random() % std::size(kSpecials)] | (random() % 2 ? 0x80000000 : 0);
  }
  /// @param specials  in 16 words
  Lanes any_lanes(uint32_t specials = 0) {
    Lanes v;
    for (int lane = 0; lane < kLanes; ++lane)
      v[lane] = random() % 16 < specials ? special_word() : any_word();
    return v;
  }

  static bool reaches_memory(uint8_t waddr) { return waddr == 40 || waddr == 50 || waddr >= 56; }

  uint64_t any_instruction(bool touches_units) {
    for (;;) {
      const uint64_t bits = random();
      Instruction i = decode(bits);
      i.raddr_a = random() % 4 ? i.raddr_a % 32 : i.raddr_a;
      if (i.form() == Form::kBranch) {
        if (touches_units || random() % 4) continue;
        i.relative = i.with_register = false;
        i.immediate = kCode + word() % kWords * 8;
      }
      if (random() % 2) i.cond_add = Cond::kAlways;
      if (random() % 2) i.cond_mul = Cond::kAlways;
      if (random() % 2) i.unpack = i.form() == Form::kAlu ? 0 : i.unpack;
      if (random() % 2) i.pack = 0;
      if (random() % 2) i.sf = false;
      const bool loads = i.signal == Signal::kLoadTmu0 || i.signal == Signal::kLoadTmu1;
      if (!touches_units && (loads || reaches_memory(i.waddr_add) || reaches_memory(i.waddr_mul))) continue;
      if (i.signal == Signal::kEnd && random() % 8) continue;
      if (!flaw(i)) return encode(i);
    }
  }

  /// In memory of its own, which both begin with alike.
  static void run_side(Side& side, std::span<const uint64_t> words, const Thread& begin, Observer* observer,
                       bool by_turns = false, RunCompiler* compiler = nullptr) {
    // qemu-user gives back no memory of a space, so that runs share one, until one of them stores where
    // nothing is mapped: the scratch pages there would keep it.
    static auto shared = mmu::AddressSpace::create();
    static bool has_faults = false;
    if (std::exchange(has_faults, false)) shared = mmu::AddressSpace::create();
    ASSERT_TRUE(shared.ok());
    mmu::AddressSpace& space = **shared;
    for (const GpuAddr pages : {kCode, kData}) {
      space.unmap(pages, kPages);
      ASSERT_TRUE(space.map_zeros(pages, kPages).ok());
    }
    const Memory memory = space.memory();
    memory.write(kCode, words.data(), words.size_bytes());
    std::memset(memory.host(kData), 0x11, kPages);
    *side.thread = begin;
    Thread& t = *side.thread;
    t.memory = memory;
    t.pc = kCode;
    t.uniforms = kData;
    t.tlb = &side.ports;
    t.tmu = &side.ports;
    t.shared = &side.shared;
    for (uint32_t n = 0; n < kVpmRows; ++n) side.rows[n] = kLaneIndex * n;
    t.vpm_in = t.vpm_out = {side.rows, kVpmRows};
    if (begin.vpm_in.count != 0) t.vpm_in.count = begin.vpm_in.count;
    if (begin.vpm_out.count != 0)  // apart, as vertex programs have them
      t.vpm_out = {side.rows + kVpmRows / 2, begin.vpm_out.count};
    t.observer = observer;
    const Program program(kCode, std::make_shared<ProgramRoom>(Program::kMaxChunks), compiler);
    // What is compiled is known to its end.
    for (GpuAddr at = kCode; compiler && at < kCode + kPages; at += Chunk::kBytes) program.chunk(memory, at);
    const UserThread alone[] = {{&t, &program}};
    size_t failed = 0;
    side.stop = by_turns ? run_by_turns(alone, failed) : run(program, t);
    memory.read(kData, side.data.data(), kPages);
    has_faults = space.take_faults().count != 0;
  }

  /// @param forgets  registers and flags are not known when a program has ended, as of host code
  static void expect_equal(const Side& a, const Side& b, bool forgets = false) {
    const Thread &x = *a.thread, &y = *b.thread;
    ASSERT_EQ(a.stop, b.stop);
    EXPECT_EQ(x.pc, y.pc);
    EXPECT_EQ(x.instructions, y.instructions);
    EXPECT_EQ(x.budget, y.budget);
    EXPECT_STREQ(x.hang, y.hang);
    EXPECT_EQ(a.ports.told, b.ports.told);
    EXPECT_EQ(a.data, b.data);
    if (a.stop == Stop::kHang) return;  // what else an instruction does that hangs nobody sees
    EXPECT_EQ(x.uniforms, y.uniforms);
    EXPECT_EQ(nonzero(x.ms_flags ^ y.ms_flags), 0);
    EXPECT_EQ(x.back_facing, y.back_facing);
    EXPECT_EQ(x.pending.next_varying, y.pending.next_varying);
    for (uint32_t n = 0; n < kVpmRows; ++n) EXPECT_EQ(nonzero(a.rows[n] ^ b.rows[n]), 0) << "row " << n;
    if (forgets && a.stop == Stop::kEnd) return;
    // The result of a special function may be there before its time.
    const bool r4_is_due = x.pending.events.sfu_in != 0 || y.pending.events.sfu_in != 0;
    for (int n = 0; n < Thread::kPortA; ++n) {
      if (r4_is_due && n == Thread::kAccumulators + 4) continue;
      EXPECT_EQ(nonzero(x.registers[n] ^ y.registers[n]), 0) << "register " << n;
    }
    EXPECT_EQ(std::memcmp(x.flags, y.flags, sizeof(x.flags)), 0);
  }

  std::mt19937_64 random{7};
};

}  // namespace v3d::qpu::vc4
