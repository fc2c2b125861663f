#include "ioctl/vc4/program.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace v3d::ioctl::vc4 {
namespace {

enum Signal : uint8_t {
  kNone = 1,
  kThreadSwitch = 2,
  kProgramEnd = 3,
  kWaitForScoreboard = 4,
  kScoreboardUnlock = 5,
  kLastThreadSwitch = 6,
  kColorLoad = 8,
  kLoadTmu0 = 10,
  kLoadTmu1 = 11,
  kSmallImmediate = 13,
  kLoadImmediate = 14,
  kBranch = 15,
};
constexpr uint32_t bit_of(Signal signal) { return 1u << signal; }
/// Of instructions with both ALUs that may be used.
constexpr uint32_t kAluSignals = bit_of(kNone) | bit_of(kThreadSwitch) | bit_of(kProgramEnd) |
                                 bit_of(kWaitForScoreboard) | bit_of(kScoreboardUnlock) |
                                 bit_of(kLastThreadSwitch) | bit_of(kColorLoad) | bit_of(kLoadTmu0) |
                                 bit_of(kLoadTmu1) | bit_of(kSmallImmediate);
/// Of those that may set the address of the uniform stream.
constexpr uint32_t kResetSignals =
    bit_of(kNone) | bit_of(kScoreboardUnlock) | bit_of(kColorLoad) | bit_of(kLoadTmu0) | bit_of(kLoadTmu1);

/// Addresses that writes and reads name.
enum WriteAddress : uint32_t {
  kFirstAccumulator = 32,
  kLastAccumulator = 35,
  kTmuNoSwap = 36,
  kHostInterrupt = 38,
  kNop = 39,
  kUniformsAddress = 40,
  kTlbAlphaMask = 47,
  kVpmAddress = 50,
  kMutexRelease = 51,
  kTmu0S = 56,
  kTmu1S = 60,
};
constexpr uint32_t kReadUniform = 32;
constexpr uint32_t kMuxA = 6, kMuxB = 7;
constexpr uint32_t kAdd = 12, kMin = 18, kMax = 19;
constexpr uint32_t kAlways = 1;

/// An instruction as this analysis looks at it.
class Word {
 public:
  explicit constexpr Word(uint64_t bits) : bits_(bits) {}

  constexpr uint32_t signal() const { return field(63, 60); }
  constexpr bool has(uint32_t signals) const { return signals >> signal() & 1; }
  constexpr bool pm() const { return field(56, 56); }
  constexpr uint32_t pack() const { return field(55, 52); }
  constexpr uint32_t condition(bool mul) const { return mul ? field(48, 46) : field(51, 49); }
  constexpr bool swaps_files() const { return field(44, 44); }
  constexpr uint32_t write_address(bool mul) const { return mul ? field(37, 32) : field(43, 38); }
  constexpr uint32_t add_operation() const { return field(28, 24); }
  constexpr uint32_t read_a() const { return field(23, 18); }
  constexpr uint32_t read_b() const { return field(17, 12); }
  constexpr uint32_t add_a() const { return field(11, 9); }
  constexpr uint32_t add_b() const { return field(8, 6); }
  constexpr uint32_t immediate() const { return field(31, 0); }
  constexpr bool branches_relative() const { return field(51, 51); }
  constexpr bool branches_by_register() const { return field(50, 50); }

  constexpr bool has_small_immediate() const { return signal() == kSmallImmediate; }
  constexpr bool reads_uniform() const {
    return read_a() == kReadUniform || (!has_small_immediate() && read_b() == kReadUniform);
  }
  /// Whether the second operand of the ADD unit is a uniform.
  constexpr bool adds_uniform() const {
    return (add_b() == kMuxA && read_a() == kReadUniform) ||
           (add_b() == kMuxB && read_b() == kReadUniform && !has_small_immediate());
  }

 private:
  constexpr uint32_t field(int high, int low) const {
    return static_cast<uint32_t>(bits_ >> low & ((uint64_t{2} << (high - low)) - 1));
  }
  uint64_t bits_;
};

/// Registers that can be followed: files A and B, then r0 to r3.
constexpr uint32_t kFileB = 32, kAccumulators = 64, kNumRegisters = 68;

std::optional<uint32_t> written_register(const Word& word, bool mul) {
  const uint32_t address = word.write_address(mul);
  if (address < 32) return (mul != word.swaps_files() ? kFileB : 0) + address;
  if (address <= kLastAccumulator) return kAccumulators + address - kFirstAccumulator;
  return std::nullopt;
}

/// The first operand of the ADD unit.
std::optional<uint32_t> first_operand(const Word& word) {
  if (word.add_a() == kMuxA && word.read_a() < 32) return word.read_a();
  if (word.add_a() == kMuxB && !word.has_small_immediate() && word.read_b() < 32)
    return kFileB + word.read_b();
  if (word.add_a() <= 3) return kAccumulators + word.add_a();
  return std::nullopt;
}

constexpr bool is_upper_half(uint32_t reg) { return reg < kAccumulators && (reg & 16); }
constexpr bool is_tmu(uint32_t address) { return address >= kTmu0S; }

absl::Status refuse(size_t word, const char* rule) {
  return absl::InvalidArgumentError(absl::StrFormat("word %d: %s", word, rule));
}

/// The walk over the words of a program in their order, whatever the control flow.
class Analysis {
 public:
  explicit Analysis(std::span<const uint64_t> words) : words_(words), is_target_(words.size()) {}

  absl::StatusOr<Program> run() {
    if (auto status = find_branches(); !status.ok()) return status;
    size_t end = end_;
    bool ended = false;
    for (at_ = 0; at_ < end; ++at_) {
      const Word word(words_[at_]);
      if (auto status = enter(); !status.ok()) return status;
      if (auto status = look_at(word); !status.ok()) return status;
      if (word.signal() == kProgramEnd) {
        ended = true;
        end = at_ + 3;  // its delay slots are executed
        if (end > words_.size()) return refuse(at_, "the program ends beyond its BO");
      }
    }
    if (!ended) return refuse(at_, "the program does not end");
    if (program_.threaded && uses_upper_half_)
      return absl::InvalidArgumentError("a threaded program uses registers 16 to 31");
    // The target of a branch back may set the address of the stream.
    if (loop_needs_address_) {
      program_.stream_addresses.push_back(program_.uniform_bytes);
      program_.uniform_bytes += sizeof(uint32_t);
    }
    program_.checked_words = static_cast<uint32_t>(end);
    return std::move(program_);
  }

 private:
  struct Register {
    uint32_t clamp = TextureSample::kAbsent;  ///< place in the stream of the uniform it is at most
    bool at_least_zero = false;
    std::optional<uint32_t> immediate;
  };
  struct Tmu {
    TextureSample sample;
    uint32_t writes = 0;
  };

  /// Where branches lead, up to the end of the program.
  absl::Status find_branches() {
    end_ = words_.size();
    std::optional<size_t> last;
    size_t highest = 0;
    for (size_t at = 0; at < end_; ++at) {
      const Word word(words_[at]);
      if (word.signal() == kProgramEnd) end_ = std::min(at + 3, words_.size());
      if (word.signal() != kBranch) continue;
      if (at < 2) return refuse(at, "a branch in the first two words");
      if (last && at - *last < 4) return refuse(at, "a branch in the delay slots of a branch");
      last = at;
      if (word.branches_by_register()) return refuse(at, "a branch to where a register says");
      if (!word.branches_relative()) return refuse(at, "a branch that is not relative");
      const auto offset = std::bit_cast<int32_t>(word.immediate());
      if (offset % 8 != 0) return refuse(at, "a branch that leads between two words");
      const size_t behind = at + 4;
      const int64_t target = static_cast<int64_t>(behind) + offset / 8;
      if (target < 0 || target >= static_cast<int64_t>(end_))
        return refuse(at, "a branch that leads out of the program");
      if (behind >= end_) return refuse(at, "a branch that goes on after the program");
      is_target_[static_cast<size_t>(target)] = is_target_[behind] = true;
      highest = std::max(highest, behind);
    }
    if (highest + 3 > end_) return refuse(highest, "a branch goes on beyond the end of the program");
    return absl::OkStatus();
  }

  /// The next word may be reached from elsewhere.
  absl::Status enter() {
    if (is_target_[at_]) {
      if (tmus_[0].writes || tmus_[1].writes) return refuse(at_, "a branch into the set-up of a lookup");
      for (Tmu& tmu : tmus_) tmu.sample.parameters.fill(TextureSample::kAbsent);
      registers_.fill(Register());
      needs_address_ = true;
    }
    if (last_switch_ && at_ == *last_switch_ + 3)
      std::fill(registers_.begin() + kAccumulators, registers_.end(), Register());
    return absl::OkStatus();
  }

  bool is_in_switch() const { return last_switch_ && at_ < *last_switch_ + 3; }

  absl::Status look_at(const Word& word) {
    if (word.signal() == kBranch) {
      if (std::bit_cast<int32_t>(word.immediate()) < 0) loop_needs_address_ = true;
      if (word.write_address(false) != kNop || word.write_address(true) != kNop)
        return refuse(at_, "a branch that writes a register");
      return is_in_switch() ? refuse(at_, "a branch in a thread switch") : absl::OkStatus();
    }
    const bool is_alu = word.has(kAluSignals);
    if (!is_alu && word.signal() != kLoadImmediate) return refuse(at_, "a signal that may not be used");
    if (auto status = look_at_writes(word); !status.ok()) return status;
    if (!is_alu) return absl::OkStatus();
    if (auto status = look_at_reads(word); !status.ok()) return status;
    if (!word.has(bit_of(kThreadSwitch) | bit_of(kLastThreadSwitch))) return absl::OkStatus();
    program_.threaded = true;
    if (is_in_switch()) return refuse(at_, "a thread switch in a thread switch");
    last_switch_ = at_;
    return absl::OkStatus();
  }

  absl::Status look_at_writes(const Word& word) {
    if (is_tmu(word.write_address(false)) && is_tmu(word.write_address(true)))
      return refuse(at_, "both ALUs set up lookups");
    for (const bool mul : {false, true})
      if (auto status = look_at_write(word, mul); !status.ok()) return status;
    follow_clamps(word);
    return absl::OkStatus();
  }

  absl::Status look_at_write(const Word& word, bool mul) {
    if (const auto reg = written_register(word, mul)) {
      registers_[*reg].immediate.reset();
      if (word.signal() == kLoadImmediate && word.pack() == 0 && word.condition(mul) == kAlways)
        registers_[*reg].immediate = word.immediate();
      if (is_upper_half(*reg)) uses_upper_half_ = true;
    }
    const uint32_t address = word.write_address(mul);
    switch (address) {
      case kUniformsAddress:
        if (mul != word.swaps_files())
          return refuse(at_, "a relative change of the uniform stream's address");
        return set_stream(word, mul);
      case kHostInterrupt:
      case kTmuNoSwap:
      case kTlbAlphaMask:
      case kMutexRelease:
        return refuse(at_, "a write to a register that may not be written");
      case kVpmAddress:
        return refuse(at_, "a transfer between the VPM and memory");
    }
    return is_tmu(address) ? set_up_lookup(word, mul, address) : absl::OkStatus();
  }

  /// `unif_addr = add(immediate, uniform)`, the uniform being the first one since the branch.
  absl::Status set_stream(const Word& word, bool mul) {
    if (!word.has(kResetSignals)) return refuse(at_, "the uniform stream is set beside another signal");
    if (mul || word.add_operation() != kAdd) return refuse(at_, "the uniform stream is not set by an ADD");
    if (word.condition(false) != kAlways) return refuse(at_, "the uniform stream is set under a condition");
    if (word.pack() != 0 && !word.pm()) return refuse(at_, "the uniform stream is set by a packed value");
    const auto reg = first_operand(word);
    if (!reg || registers_[*reg].immediate != program_.uniform_bytes + sizeof(uint32_t))
      return refuse(at_, "the uniform stream is not set to where the next uniform is");
    if (!word.adds_uniform()) return refuse(at_, "the uniform stream is not set by a uniform");
    needs_address_ = loop_needs_address_ = false;
    program_.stream_addresses.push_back(program_.uniform_bytes);
    return absl::OkStatus();
  }

  absl::Status set_up_lookup(const Word& word, bool mul, uint32_t address) {
    Tmu& tmu = tmus_[address >= kTmu1S];
    const bool submits = address == kTmu0S || address == kTmu1S;
    const bool direct = submits && tmu.writes == 0;
    if (direct) {
      if (word.signal() == kLoadImmediate || word.has_small_immediate() || mul ||
          word.add_operation() != kAdd)
        return refuse(at_, "a direct read that is not an ADD of an offset and a uniform");
      const auto reg = first_operand(word);
      if (!reg || registers_[*reg].clamp == TextureSample::kAbsent)
        return refuse(at_, "a direct read whose offset is not clamped");
      tmu.sample.parameters[1] = registers_[*reg].clamp;
      if (!word.adds_uniform()) return refuse(at_, "a direct read that does not add a uniform");
      // It stays so for all lookups of this TMU that follow, as the kernel never takes it back (4.6).
      tmu.sample.direct = true;
    } else if (word.reads_uniform()) {
      return refuse(at_, "a uniform is read where a lookup is set up");
    }
    if (tmu.writes >= tmu.sample.parameters.size()) return refuse(at_, "a lookup with too many parameters");
    tmu.sample.parameters[tmu.writes++] = program_.uniform_bytes;
    if (!direct) {  // else the read counts it
      if (needs_address_) return refuse(at_, "a lookup before the uniform stream is set");
      program_.uniform_bytes += sizeof(uint32_t);
    }
    if (submits) {
      program_.samples.push_back(tmu.sample);
      tmu.sample.parameters.fill(TextureSample::kAbsent);
      tmu.writes = 0;
    }
    return absl::OkStatus();
  }

  /// Which registers hold max(something, 0), and which min(such a one, uniform).
  void follow_clamps(const Word& word) {
    const auto operand = first_operand(word);
    const bool operand_at_least_zero = operand && registers_[*operand].at_least_zero;
    const auto forget = [this](std::optional<uint32_t> reg) {
      if (!reg) return;
      registers_[*reg].clamp = TextureSample::kAbsent;
      registers_[*reg].at_least_zero = false;
    };
    const auto reg = written_register(word, false);
    forget(written_register(word, true));
    forget(reg);
    if (!reg || word.signal() == kLoadImmediate || word.condition(false) != kAlways) return;
    if (word.add_operation() == kMax) {
      registers_[*reg].at_least_zero = word.has_small_immediate() && word.read_b() == 0 &&
                                       (word.add_a() == kMuxB || word.add_b() == kMuxB);
    } else if (word.add_operation() == kMin && operand_at_least_zero && word.adds_uniform()) {
      registers_[*reg].clamp = program_.uniform_bytes;
    }
  }

  absl::Status look_at_reads(const Word& word) {
    if (word.reads_uniform()) {
      program_.uniform_bytes += sizeof(uint32_t);
      if (needs_address_) return refuse(at_, "a uniform is read before the uniform stream is set");
    }
    if ((word.read_a() & 48) == 16 || ((word.read_b() & 48) == 16 && !word.has_small_immediate()))
      uses_upper_half_ = true;
    return absl::OkStatus();
  }

  const std::span<const uint64_t> words_;
  std::vector<bool> is_target_;
  size_t end_ = 0;  // of what branches may lead to
  size_t at_ = 0;
  Program program_;
  std::array<Tmu, 2> tmus_;
  std::array<Register, kNumRegisters> registers_;
  std::optional<size_t> last_switch_;
  bool uses_upper_half_ = false;
  bool needs_address_ = false;       // since a branch target
  bool loop_needs_address_ = false;  // since a branch back
};

}  // namespace

absl::StatusOr<Program> analyse_program(std::span<const uint64_t> words) { return Analysis(words).run(); }

}  // namespace v3d::ioctl::vc4
