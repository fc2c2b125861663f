#include "gpu/qpu/isa/assembler.h"

#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/qpu/isa/assembly_reader.h"
#include "gpu/qpu/isa/encode_error.h"
#include "gpu/qpu/isa/instruction.h"
#include "gpu/qpu/isa/text_cursor.h"
#include "gpu/qpu/isa/vc4_assembler.h"

namespace v3d::qpu {
namespace {

using Kind = Operand::Kind;

// The value of an enum whose suffix(), without the dot, is `name`.
template <typename Enum>
std::optional<Enum> find_suffix(std::string_view name, size_t count) {
  for (size_t i = 1; i < count; ++i)
    if (suffix(static_cast<Enum>(i)) + 1 == name) return static_cast<Enum>(i);
  return {};
}

std::optional<Op> find_op(std::string_view name) {
  if (name == "umul24_rtop0") return Op::kUmul24;  // Mesa's name for one without a MULTOP before it
  for (int i = 0; i < kNumOps; ++i)
    if (kOpInfo[i].mnemonic == name) return static_cast<Op>(i);
  return {};
}

std::optional<uint16_t> find_signal(chip::Generation generation, std::string_view name) {
  for (const SignalInfo& s : kSignalInfo)
    if (name == s.name && (s.generations & set_of(generation))) return s.signal;
  return {};
}

// "b" or "bu", then "l" to set the link register, then "p" or "q" when no condition follows.
std::optional<Branch> find_branch(std::string_view name) {
  Branch b;
  const auto take = [&](char c) {
    if (!name.starts_with(c)) return false;
    name.remove_prefix(1);
    return true;
  };
  if (!take('b')) return {};
  b.uniforms = take('u');
  b.set_link = take('l');
  b.msfign = take('p') ? Msfign::kP : take('q') ? Msfign::kQ : Msfign::kNone;
  if (!name.empty()) return {};
  return b;
}

class Parser : public AssemblyReader {
 public:
  explicit Parser(chip::Generation generation) : generation_(generation) {}

 private:
  // An ALU word while it is read, with the columns of its parts.
  struct Word {
    Instruction i;
    int halves = 0;
    std::array<size_t, 2> half_column{};
    size_t signal_column = 0;
    bool has_address = false;
  };

  void statement(TextCursor& at) override {
    const TextCursor start = at;
    const std::string_view name = at.word();
    if (const auto branch = find_branch(name)) return parse_branch(at, *branch);
    if (name == "end") return end_of_program();
    alu_word(at = start);
  }

  void end_of_program() {
    const uint64_t nop = *encode(generation_, {});
    Instruction i;
    i.signals = kThrsw;
    const uint64_t thrsw = *encode(generation_, i);
    for (const uint64_t word : {thrsw, thrsw, nop, nop, thrsw, nop, nop, nop}) emit(word);
  }

  bool is_target(std::string_view name) const override {
    return name == "lri" || name == "zero_addr" || find_register(name, "rf", 64).has_value();
  }

  uint64_t resolve(uint64_t branch, uint32_t distance) const override {
    Instruction i;
    decode(generation_, branch, i);
    i.branch.offset += distance;
    return *encode(generation_, i);
  }

  // ---- ALU words

  void alu_word(TextCursor& at) {
    Word word;
    const size_t start = at.column();
    do {
      part(at, word);
    } while (!at.at_end() && at.take(";"));
    if (!at.at_end()) at.fail("\";\" or the end of the line is expected, not " + at.here());
    place_single(word);
    if (const auto code = encode(generation_, word.i)) return emit(*code);
    const EncodeError error = explain(generation_, word.i);
    TextCursor::fail_at(error.where == EncodeError::Where::kAdd       ? word.half_column[0]
                        : error.where == EncodeError::Where::kMul     ? word.half_column[1]
                        : error.where == EncodeError::Where::kSignals ? word.signal_column
                                                                      : start,
                        error.message);
  }

  // A single operation that only the mul ALU has.
  void place_single(Word& word) const {
    if (word.halves != 1 || has_form(generation_, Alu::kAdd, word.i.add) ||
        !has_form(generation_, Alu::kMul, word.i.add))
      return;
    std::swap(word.i.add, word.i.mul);
    std::swap(word.half_column[0], word.half_column[1]);
  }

  void part(TextCursor& at, Word& word) {
    if (at.at_end()) at.fail("an operation or a signal is expected");
    const size_t column = at.column();
    const std::string_view name = at.word();
    if (const auto signal = find_signal(generation_, name)) return parse_signal(at, column, *signal, word);
    const auto op = find_op(name);
    if (!op) {
      const std::string what = name.empty() ? at.here() : absl::StrFormat("\"%s\"", std::string(name));
      TextCursor::fail_at(column, what + " is no operation, signal or branch");
    }
    if (word.halves == 2) TextCursor::fail_at(column, "a word has two operations only");
    word.half_column[static_cast<size_t>(word.halves)] = column;
    parse_half(at, *op, word.halves++ == 0 ? word.i.add : word.i.mul);
  }

  void parse_signal(TextCursor& at, size_t column, uint16_t signal, Word& word) {
    if (word.i.signals & signal) TextCursor::fail_at(column, "the same signal twice");
    if (!word.i.signals) word.signal_column = column;
    word.i.signals |= signal;
    if (signal == kRotate && at.take(".")) {
      const size_t count_column = at.column();
      const auto count = at.number_here() ? at.number().bits() : std::nullopt;
      const auto code = count ? find_immediate(*count) : std::nullopt;
      if (!code || *code == 0 || *code >= 32)
        TextCursor::fail_at(count_column, "a rotation is by 1..15, -16..-1, or by r5 when no count is given");
      word.i.rotate = *code;
    }
    if (!(signal & kSignalsWithAddress)) return;
    if (word.has_address) TextCursor::fail_at(column, "two signals with a destination");
    word.has_address = true;
    if (!at.take(".")) at.fail("a destination is expected, such as .rf1");
    destination(at, word.i.signal_magic, word.i.signal_waddr);
  }

  void parse_half(TextCursor& at, Op op, AluHalf& half) {
    half.op = op;
    while (at.take(".")) {
      const size_t column = at.column();
      const std::string_view name = at.word();
      const auto cond = find_suffix<Cond>(name, std::size(kCondInfo));
      const auto flags = find_suffix<FlagWrite>(name, std::size(kFlagWriteInfo));
      if (!cond && !flags)
        TextCursor::fail_at(column,
                            absl::StrFormat("there is no condition or flag write .%s", std::string(name)));
      if (cond ? half.cond != Cond::kNone : half.flags != FlagWrite::kNone)
        TextCursor::fail_at(column, cond ? "two conditions" : "two flag writes");
      if (cond)
        half.cond = *cond;
      else
        half.flags = *flags;
    }
    const OpInfo& op_info = info(op);
    bool first = true;
    const auto separate = [&] {
      const bool end = at.at_end();
      if (!first && !at.take(","))
        at.fail(absl::StrFormat("%s has %d operands", op_info.mnemonic, op_info.operands));
      first = false;
      if (!end) at.at_end();
    };
    if (op_info.has_destination) {
      separate();
      destination(at, half.magic, half.waddr);
      if (at.take(".")) {
        const size_t column = at.column();
        const auto pack = find_suffix<Pack>(at.word(), kNumPacks);
        if (!pack) TextCursor::fail_at(column, "a destination has the forms .l and .h only");
        half.pack = *pack;
      }
    }
    for (Operand* operand : {&half.a, &half.b}) {
      if (operand == &half.a ? op_info.operands < 1 : op_info.operands < 2) break;
      separate();
      parse_operand(at, *operand);
    }
    if (!at.at_end() && at.peek() == ',')
      at.fail(absl::StrFormat("%s has %d operands", op_info.mnemonic, op_info.operands));
  }

  void destination(TextCursor& at, bool& magic, uint8_t& waddr) const {
    const size_t column = at.column();
    magic = true;
    if (at.take("-")) {
      waddr = kWaddrNop;
      return;
    }
    if (at.take("waddr UNKNOWN ") || at.take("UNKNOWN")) {  // reserved addresses, as Mesa prints them
      const auto number = at.digit() ? at.number().value() : 64;
      if (number > 63) TextCursor::fail_at(column, "write addresses are 0..63");
      waddr = static_cast<uint8_t>(number);
      return;
    }
    const std::string here = at.here();
    const std::string_view name = at.word();
    if (const auto index = find_register(name, "rf", 64)) {
      magic = false;
      waddr = *index;
      return;
    }
    for (uint8_t i = 0; i < 64; ++i) {
      const char* known = waddr_info(generation_, i).name;
      if (!known || name != known) continue;
      waddr = i;
      return;
    }
    TextCursor::fail_at(column, here + " is no register or write address");
  }

  static std::optional<uint8_t> find_immediate(uint32_t bits) {
    for (uint8_t code = 0; code < kSmallImmediates; ++code)
      if (small_immediate(code) == bits) return code;
    return {};
  }

  void parse_operand(TextCursor& at, Operand& operand) const {
    const size_t column = at.column();
    if (at.number_here()) {
      const auto bits = at.number().bits();
      const auto code = bits ? find_immediate(*bits) : std::nullopt;
      if (!code)
        TextCursor::fail_at(column,
                            "no small immediate: those are -16..15 and powers of two 0.00390625..128.0");
      operand.kind = Kind::kImmediate;
      operand.index = *code;
    } else {
      const std::string here = at.here();
      const std::string_view name = at.word();
      if (const auto rf = find_register(name, "rf", 64)) {
        operand.kind = Kind::kRegister;
        operand.index = *rf;
      } else if (const auto r = find_register(name, "r", 6); r && isa(generation_).has_accumulators) {
        operand.kind = Kind::kAccumulator;
        operand.index = *r;
      } else {
        TextCursor::fail_at(column, here + " is no register or number");
      }
    }
    if (!at.take(".")) return;
    const size_t unpack_column = at.column();
    const std::string_view name = at.word();
    const auto unpack = find_suffix<Unpack>(name, kNumUnpacks);
    if (!unpack)
      TextCursor::fail_at(unpack_column, absl::StrFormat("there is no conversion .%s", std::string(name)));
    operand.unpack = *unpack;
  }

  // ---- Branches

  void parse_branch(TextCursor& at, Branch b) {
    if (at.take(".")) branch_condition(at, b);
    if (at.at_end()) at.fail("a branch target is expected");
    branch_target(at, b);
    if (b.uniforms) b.uniform_target = static_cast<uint8_t>(BranchTarget::kRelative);
    if (!at.at_end() && at.take(",")) uniform_target(at, b);
    Instruction i;
    i.is_branch = true;
    i.branch = b;
    emit(*encode(generation_, i));
  }

  static void branch_condition(TextCursor& at, Branch& b) {
    const size_t column = at.column();
    std::string_view name = at.word();
    if (b.msfign != Msfign::kNone) TextCursor::fail_at(column, "p and q stand after the condition");
    for (int shortened = 0; shortened < 2; ++shortened) {
      for (int i = static_cast<int>(BranchCond::kA0); i <= static_cast<int>(BranchCond::kAllna); ++i) {
        if (name != branch_cond_name(static_cast<BranchCond>(i))) continue;
        b.cond = static_cast<BranchCond>(i);
        return;
      }
      if (name.empty()) break;
      b.msfign = name.back() == 'p' ? Msfign::kP : name.back() == 'q' ? Msfign::kQ : Msfign::kNone;
      if (b.msfign == Msfign::kNone) break;
      name.remove_suffix(1);
    }
    TextCursor::fail_at(column,
                        "conditions of branches are a0, na0, alla, anyna, anya and allna, each with p or q");
  }

  void branch_target(TextCursor& at, Branch& b) {
    const size_t column = at.column();
    const auto aligned = [&](const TextCursor::Number& number) {
      const auto bits = number.bits();
      if (!bits || number.fraction || *bits % 8 != 0)
        TextCursor::fail_at(column, "a branch goes to a multiple of 8 bytes, in 32 bits");
      return *bits;
    };
    if (at.number_here()) {
      b.offset = aligned(at.number());
      return;
    }
    const std::string here = at.here();
    const std::string_view name = at.word();
    if (name == "zero_addr" && at.take("+")) {
      b.target = BranchTarget::kAbsolute;
      b.offset = aligned(at.number());
    } else if (name == "lri") {
      b.target = BranchTarget::kLink;
    } else if (const auto rf = find_register(name, "rf", 64)) {
      b.target = BranchTarget::kRegister;
      b.raddr = *rf;
    } else if (name.empty()) {
      TextCursor::fail_at(column, here + " is no branch target");
    } else {
      refer_to(name, column);
    }
  }

  static void uniform_target(TextCursor& at, Branch& b) {
    at.at_end();
    const size_t column = at.column();
    if (!b.uniforms) at.fail("only bu and bul move the uniform stream");
    const auto set = [&](BranchTarget target) { b.uniform_target = static_cast<uint8_t>(target); };
    if (at.take("a:unif")) return set(BranchTarget::kAbsolute);
    if (at.take("r:unif")) return set(BranchTarget::kRelative);
    if (at.take("lri")) return set(BranchTarget::kLink);
    const auto rf = find_register(at.word(), "rf", 64);
    if (!rf) TextCursor::fail_at(column, "uniform targets are a:unif, r:unif, lri and registers");
    if (b.target == BranchTarget::kRegister && *rf != b.raddr)
      TextCursor::fail_at(column, "a branch reads one register only");
    b.raddr = *rf;
    set(BranchTarget::kRegister);
  }

  const chip::Generation generation_;
};

}  // namespace

std::string to_string(const AssemblyError& error) {
  return absl::StrFormat("%d:%d: %s", error.line, error.column, error.message);
}

Assembly assemble(chip::Generation generation, std::string_view text) {
  return isa(generation).has_words ? Parser(generation).read(text) : vc4::assemble(text);
}

}  // namespace v3d::qpu
