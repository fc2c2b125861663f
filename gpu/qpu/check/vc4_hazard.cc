#include "gpu/qpu/check/vc4_hazard.h"

#include <algorithm>
#include <initializer_list>

#include "absl/strings/str_format.h"
#include "gpu/qpu/isa/vc4_access.h"

namespace v3d::qpu::vc4 {
namespace {

constexpr HazardInfo kRows[] = {
#define V3D_VC4_HAZARD(name, kind, tag, mesa, rule) {HazardKind::kind, tag, mesa, rule},
#include "gpu/qpu/check/vc4_hazard.def"
};

constexpr uint64_t kNop = 0x100009e7009e7000;
constexpr size_t kNever = SIZE_MAX;

bool has_mux(const Instruction& i, uint8_t mux) {
  return i.form() == Form::kAlu && (i.add_a == mux || i.add_b == mux || i.mul_a == mux || i.mul_b == mux);
}
// As operands; an address that no multiplexer chooses is not looked at.
bool reads_a(const Instruction& i, uint8_t address) { return has_mux(i, kMuxA) && i.raddr_a == address; }
bool reads_b(const Instruction& i, uint8_t address) {
  return has_mux(i, kMuxB) && i.signal != Signal::kSmallImmediate && i.raddr_b == address;
}
bool reads(const Instruction& i, uint8_t address) { return reads_a(i, address) || reads_b(i, address); }
bool reads(const Instruction& i, ReadPort port) { return reads(i, address_of(port)); }

bool is_tlb(const Instruction& i) {
  // Mesa looks at the addresses of branches too.
  const auto tlb = [](uint8_t waddr) {
    return waddr >= kFirstPort && write_address(kFileA, waddr).unit == Unit::kTlb;
  };
  return tlb(i.waddr_add) || tlb(i.waddr_mul) || i.signal == Signal::kColorLoad ||
         i.signal == Signal::kWaitScoreboard;
}
bool writes_sfu(const Instruction& i) {
  const auto sfu = [](uint8_t waddr) {
    return waddr >= kFirstPort && write_address(kFileA, waddr).unit == Unit::kSfu;
  };
  return sfu(i.waddr_add) || sfu(i.waddr_mul);
}
bool is_switch(const Instruction& i) {
  return i.signal == Signal::kSwitch || i.signal == Signal::kLastSwitch;
}
bool loads_tmu(const Instruction& i) {
  return i.signal == Signal::kLoadTmu0 || i.signal == Signal::kLoadTmu1;
}
bool starts_lookup(const Instruction& i) {
  return writes(i, WritePort::kTmu0S) || writes(i, WritePort::kTmu1S);
}

class Checker {
 public:
  explicit Checker(std::span<const uint64_t> words) : count_(words.size()) {
    // Words before the first and after the last one, which rules look at.
    all_.push_back(decode(kNop));
    for (const uint64_t word : words) all_.push_back(decode(word));
    for (int n = 0; n < 2; ++n) all_.push_back(decode(kNop));
  }

  std::vector<HazardReport> run() {
    if (count_ == 0) return {};
    end();
    scoreboard();
    noswap();
    files();
    r4();
    rotations();
    masks();
    accesses();
    uniforms();
    threads();
    // In no order of Mesa's.
    const size_t mesa = found_.size();
    single_words();
    end_of_program();
    sfu_results();
    branches();
    vpm();
    parameters();
    std::stable_sort(found_.begin() + static_cast<std::ptrdiff_t>(mesa), found_.end());
    return std::move(found_);
  }

 private:
  /// @param n  -1 .. count_ + 1
  const Instruction& at(size_t n) const { return all_[n + 1]; }
  void check(bool broken, size_t n, Hazard hazard) {
    if (broken) found_.push_back({n, hazard});
  }
  static bool within(size_t n, size_t last, size_t distance) {
    return last != kNever && n - last <= distance;
  }

  static bool uses_ports(const Instruction& i) {
    return writes(i, WritePort::kVpm) || reads(i, ReadPort::kVarying) || reads(i, ReadPort::kUniform) ||
           reads(i, ReadPort::kVpm);
  }
  static bool uses_14(const Instruction& i) { return writes(i, uint8_t{14}) || reads(i, uint8_t{14}); }

  // ---- Those of Mesa

  void end() {
    bool locked = false;
    for (size_t n = 0; n < count_; ++n) {
      const Instruction& i = at(n);
      if (i.signal != Signal::kEnd) {
        locked |= is_tlb(i);
        continue;
      }
      check(i.waddr_add < kFirstPort || i.waddr_mul < kFirstPort, n, Hazard::kEndFile);
      check(is_tlb(i) && !locked, n, Hazard::kEndScoreboard);
      for (size_t slot = n; slot < n + 2; ++slot) {
        check(uses_ports(at(slot)), slot, Hazard::kEndPorts);
        check(uses_14(at(slot)), slot, Hazard::kEndR14);
      }
      if (n + 2 < count_ + 2) check(writes(at(n + 2), WritePort::kTlbZ), n + 2, Hazard::kEndZ);
    }
  }

  void scoreboard() {
    for (size_t n = 0; n < 2; ++n) check(is_tlb(at(n)), n, Hazard::kScoreboardEarly);
  }

  void noswap() {
    size_t last = kNever;
    for (size_t n = 0; n < count_; ++n) {
      check(within(n, last, 3) && starts_lookup(at(n)), n, Hazard::kNoswapEarly);
      if (writes(at(n), WritePort::kTmuNoswap)) last = n;
    }
  }

  void files() {
    for (size_t n = 0; n + 1 < count_; ++n) {
      const Instruction& i = at(n);
      const uint8_t a = i.ws ? i.waddr_mul : i.waddr_add, b = i.ws ? i.waddr_add : i.waddr_mul;
      check((a < kFirstPort && reads_a(at(n + 1), a)) || (b < kFirstPort && reads_b(at(n + 1), b)), n + 1,
            Hazard::kFileEarly);
    }
  }

  void r4() {
    size_t last = kNever;
    for (size_t n = 0; n + 1 < count_; ++n) {
      const Instruction& i = at(n);
      check(within(n, last, 2) && (writes_sfu(i) || loads_tmu(i) || i.signal == Signal::kColorLoad), n,
            Hazard::kR4Clash);
      if (writes_sfu(i)) last = n;
    }
  }

  void rotations() {
    for (size_t n = 0; n + 1 < count_; ++n) {
      const Instruction &i = at(n), &before = at(n - 1);
      if (!rotates(i)) continue;
      check(i.mul_a >= kMuxR4 || i.mul_b >= kMuxR4, n, Hazard::kRotateInput);
      check(i.raddr_b == kRotateByR5 && writes(before, WritePort::kR5Quads), n, Hazard::kRotateCount);
      const auto written = [&](uint8_t mux) {
        return mux < kMuxR4 && writes(before, static_cast<uint8_t>(kFirstPort + mux));
      };
      check(written(i.mul_a) || written(i.mul_b), n, Hazard::kRotateEarly);
    }
  }

  void masks() {
    const uint8_t flags = address_of(ReadPort::kMsFlags);
    for (size_t n = 0; n + 1 < count_; ++n)
      check(writes(at(n), WritePort::kTlbZ) && (reads_a(at(n + 1), flags) || reads_a(at(n + 2), flags)), n,
            Hazard::kMsAfterZ);
  }

  void accesses() {
    for (size_t n = 0; n + 1 < count_; ++n) {
      const Instruction& i = at(n);
      int count = 0;
      for (const uint8_t waddr : {i.waddr_add, i.waddr_mul})
        count += waddr >= kFirstPort && write_address(kFileA, waddr).unit != Unit::kNone;
      // Mesa takes the low bits of other words for addresses.
      const Instruction fields = as_alu_word(i);
      count += fields.raddr_a == address_of(ReadPort::kMutex);
      count += fields.raddr_b == address_of(ReadPort::kMutex) && i.signal != Signal::kSmallImmediate;
      count += loads_tmu(i) || i.signal == Signal::kColorLoad || i.signal == Signal::kColorLoadEnd;
      check(count > 1, n, Hazard::kAccesses);
    }
  }
  static Instruction as_alu_word(const Instruction& i) {
    constexpr uint64_t kSignal = uint64_t{0xf} << 60;
    return decode((encode(i) & ~kSignal) | (kNop & kSignal));
  }

  void uniforms() {
    size_t last = kNever;
    for (size_t n = 0; n < count_; ++n) {
      check(within(n, last, 2) && reads(at(n), ReadPort::kUniform), n, Hazard::kUniformEarly);
      if (writes(at(n), WritePort::kUniforms)) last = n;
    }
  }

  void threads() {
    bool threaded = false;
    for (size_t n = 0; n < count_; ++n) threaded |= is_switch(at(n));
    if (!threaded) return;
    bool last = false, locked = false;
    int before_switch = 0, outstanding = 0;
    size_t effect = kNever;
    for (size_t n = 0; n < count_; ++n) {
      const Instruction& i = at(n);
      if (n == effect) {
        check(before_switch != 0, n, Hazard::kSwitchLeftover);
        before_switch = outstanding;
        outstanding = 0;
      }
      locked |= is_tlb(i);
      if (is_switch(i)) {
        check(locked, n, Hazard::kSwitchLocked);
        check(last, n, Hazard::kSwitchAfterLast);
        last |= i.signal == Signal::kLastSwitch;
        check(effect != kNever && n < effect, n, Hazard::kSwitchInSlot);
        effect = n + 3;
      } else if (loads_tmu(i)) {
        check(before_switch == 0, n, Hazard::kLoadBeforeSwitch);
        --before_switch;
      }
      outstanding += starts_lookup(i);
    }
  }

  // ---- The others

  void single_words() {
    for (size_t n = 0; n < count_; ++n) {
      const Instruction& i = at(n);
      check(flaw(i) != nullptr, n, Hazard::kFlaw);
      if (i.form() == Form::kBranch) continue;
      check(same_destination(i), n, Hazard::kTwoWrites);
      check(fetches(i, ReadPort::kVarying) && writes(i, WritePort::kR5Quads), n, Hazard::kVaryR5);
      check(i.form() == Form::kSemaphore &&
                (writes_unit(i, Unit::kTmu) || writes_unit(i, Unit::kTlb) || writes_unit(i, Unit::kSfu)),
            n, Hazard::kSemaphoreBeside);
      check(operand_of_nothing(i), n, Hazard::kNopOperand);
    }
  }
  static bool writes_half(const Instruction& i, bool mul) {
    if (i.form() != Form::kAlu) return (mul ? i.cond_mul : i.cond_add) != Cond::kNever;
    return mul ? mul_op(i.op_mul) != Op::kNop : add_op(i.op_add) != Op::kNop;
  }
  // Conditions may tell the lanes of registers apart.
  static bool same_destination(const Instruction& i) {
    if (i.waddr_add != i.waddr_mul || i.waddr_add == kAddressNop) return false;
    if (!writes_half(i, false) || !writes_half(i, true) || i.waddr_add < kFirstPort) return false;
    if (write_address(kFileA, i.waddr_add).port != write_address(kFileB, i.waddr_add).port) return false;
    const int add = static_cast<int>(i.cond_add), mul = static_cast<int>(i.cond_mul);
    const bool exclusive = (add ^ mul) == 1;
    return !exclusive || i.waddr_add >= address_of(WritePort::kTmuNoswap);
  }
  static bool operand_of_nothing(const Instruction& i) {
    if (i.form() != Form::kAlu) return false;
    const auto nothing = [&](uint8_t mux) {
      return (mux == kMuxA && i.raddr_a == kAddressNop) ||
             (mux == kMuxB && i.signal != Signal::kSmallImmediate && i.raddr_b == kAddressNop);
    };
    // A mov to where the value does not count is how ports are triggered.
    const auto counts = [](uint8_t waddr) {
      return waddr != kAddressNop && waddr != address_of(WritePort::kMutexRelease);
    };
    const Op add = add_op(i.op_add);
    return (add != Op::kNop && add != Op::kReserved && counts(i.waddr_add) &&
            (nothing(i.add_a) || (vc4::info(add).operands == 2 && nothing(i.add_b)))) ||
           (mul_op(i.op_mul) != Op::kNop && counts(i.waddr_mul) && (nothing(i.mul_a) || nothing(i.mul_b)));
  }

  void end_of_program() {
    size_t end = kNever;
    for (size_t n = 0; n < count_ && end == kNever; ++n)
      if (at(n).signal == Signal::kEnd || at(n).signal == Signal::kColorLoadEnd) end = n;
    check(end == kNever || end + 2 >= count_, count_ - 1, Hazard::kNoEnd);
    if (end != kNever && end + 2 < count_)
      check(uses_ports(at(end + 2)) || uses_14(at(end + 2)), end + 2, Hazard::kEndLast);
  }

  void sfu_results() {
    size_t last = kNever;
    for (size_t n = 0; n < count_; ++n) {
      check(within(n, last, 2) && reads_r4(at(n)), n, Hazard::kSfuR4);
      if (writes_unit(at(n), Unit::kSfu)) last = n;
    }
  }
  static bool reads_r4(const Instruction& i) {
    if (i.form() != Form::kAlu) return false;
    const bool add = add_op(i.op_add) != Op::kNop && (i.add_a == kMuxR4 || i.add_b == kMuxR4);
    return add || (mul_op(i.op_mul) != Op::kNop && (i.mul_a == kMuxR4 || i.mul_b == kMuxR4));
  }

  void branches() {
    size_t last = kNever;
    for (size_t n = 0; n < count_; ++n) {
      const Instruction& i = at(n);
      check(within(n, last, 2) && i.form() == Form::kBranch, n, Hazard::kBranchInSlot);
      check(within(n, last, 3) && (is_switch(i) || i.signal == Signal::kEnd), n, Hazard::kSwitchInBranch);
      if (i.form() == Form::kBranch) last = n;
    }
  }

  // Only where the set-up words are immediates, as in what compilers make.
  void vpm() {
    std::vector<uint32_t> queue;
    bool known = true;
    for (size_t n = 0; n < count_ && known; ++n) {
      const Instruction& i = at(n);
      known = i.form() != Form::kBranch;
      if (fetches(i, ReadPort::kVpm)) {
        check(queue.empty(), n, Hazard::kVpmBeyond);
        if (!queue.empty() && --queue.front() == 0) queue.erase(queue.begin());
      }
      const uint8_t in_a = i.ws ? i.waddr_mul : i.waddr_add;
      if (in_a != address_of(WritePort::kVpmReadSetup) || i.form() == Form::kBranch) continue;
      known = i.form() == Form::kLoadImmediate && i.unpack == kImmediate32;
      if (i.immediate >> 30 != 0) continue;
      check(queue.size() >= 2, n, Hazard::kVpmQueue);
      const uint32_t vectors = i.immediate >> 20 & 15;
      queue.push_back(vectors == 0 ? 16 : vectors);
    }
  }

  void parameters() {
    LookupWrites lookups;
    size_t last = kNever;
    for (size_t n = 0; n < count_; ++n) {
      const Instruction& i = at(n);
      const bool takes_uniform = lookups.step(i).uniforms != 0;
      check(takes_uniform && fetches(i, ReadPort::kUniform), n, Hazard::kUniformBeside);
      check(takes_uniform && within(n, last, 2), n, Hazard::kParameterEarly);
      if (writes(i, WritePort::kUniforms)) last = n;
    }
  }

  const size_t count_;
  std::vector<Instruction> all_;
  std::vector<HazardReport> found_;
};

}  // namespace

const HazardInfo& info(Hazard hazard) { return kRows[static_cast<int>(hazard)]; }

std::vector<HazardReport> check_program(std::span<const uint64_t> words) { return Checker(words).run(); }

std::string to_string(const HazardReport& report, uint64_t word) {
  const HazardInfo& row = info(report.hazard);
  return absl::StrFormat("%s: %s: instruction %d, \"%s\": %s", name(row.kind), row.tag, report.index,
                         disassemble(word), row.rule);
}

}  // namespace v3d::qpu::vc4
