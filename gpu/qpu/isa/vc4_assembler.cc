#include "gpu/qpu/isa/vc4_assembler.h"

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gpu/qpu/isa/assembly_reader.h"
#include "gpu/qpu/isa/text_cursor.h"
#include "gpu/qpu/isa/vc4.h"

namespace v3d::qpu::vc4 {
namespace {

// What others call signals (vc4-qpu.md 8.2).
struct Alias {
  std::string_view name;
  Signal signal;
};
constexpr Alias kSignalAliases[] = {
    {"thrsw", Signal::kSwitch},          {"lthrsw", Signal::kLastSwitch}, {"thrend", Signal::kEnd},
    {"sbwait", Signal::kWaitScoreboard}, {"sbdone", Signal::kUnlock},     {"loadc", Signal::kColorLoad},
    {"ldtmu0", Signal::kLoadTmu0},       {"ldtmu1", Signal::kLoadTmu1},   {"bkpt", Signal::kBreakpoint},
};

std::optional<Signal> find_signal(std::string_view name) {
  for (const Alias& alias : kSignalAliases)
    if (alias.name == name) return alias.signal;
  for (int code = 0; code < static_cast<int>(Signal::kLoadImmediate); ++code) {
    const Signal signal = static_cast<Signal>(code);
    if (signal != Signal::kNone && text(signal) == name) return signal;
  }
  return {};
}

std::optional<Op> find_op(std::string_view name) {
  for (int n = 0; n < kNumOps; ++n)
    if (info(static_cast<Op>(n)).text == name) return static_cast<Op>(n);
  return {};
}

struct Destination {
  uint8_t waddr;
  uint8_t files;  ///< columns in which the address is what was named
};
std::optional<Destination> find_destination(std::string_view name) {
  if (const auto n = find_register(name, "ra", 32)) return Destination{*n, kFileA};
  if (const auto n = find_register(name, "rb", 32)) return Destination{*n, kFileB};
  if (name == "r5rep") return Destination{37, kFileB};
  if (name == "rev_flag") return Destination{42, kFileB};
  for (uint8_t address = kFirstPort; address < 64; ++address) {
    const WriteAddress &a = write_address(kFileA, address), &b = write_address(kFileB, address);
    if (a.text && name == a.text) return Destination{address, a.port == b.port ? kFiles : kFileA};
    if (b.text && name == b.text) return Destination{address, kFileB};
  }
  return {};
}

std::optional<Destination> find_read_port(std::string_view name) {
  for (uint8_t address = kFirstPort; address < 64; ++address) {
    const ReadAddress &a = read_address(kFileA, address), &b = read_address(kFileB, address);
    if (a.text && name == a.text) return Destination{address, a.port == b.port ? kFiles : kFileA};
    if (b.text && name == b.text) return Destination{address, kFileB};
  }
  return {};
}

std::optional<uint8_t> find_small_immediate(uint32_t value) {
  for (uint8_t code = 0; code < kRotateByR5; ++code)
    if (small_immediate(code) == value) return code;
  return {};
}

// An operand as it is written; where it is read is decided when all of a word are known.
struct Operand {
  enum class Kind : uint8_t { kAccumulator, kAddress, kImmediate } kind = Kind::kAccumulator;
  uint8_t value = 0;  // mux, address or code
  uint8_t files = kFiles;
  uint8_t unpack = 0;
  std::optional<uint8_t> rotate;  // code
  size_t column = 0;
};

struct Half {
  Op op = Op::kNop;
  bool move = false, sf = false;
  Cond cond = Cond::kAlways;
  Destination to = {kAddressNop, kFiles};
  uint8_t pack = 0;
  std::array<Operand, 2> operands{};
  size_t column = 0, pack_column = 0;
  bool is_empty() const { return op == Op::kNop && !move; }
};

class Parser : public AssemblyReader {
 private:
  void emit(const Instruction& i) { AssemblyReader::emit(encode(i)); }

  void statement(TextCursor& at) override {
    const TextCursor start = at;
    const std::string_view keyword = at.word();
    if (keyword == "branch" || keyword == "brr") return branch(at, true);
    if (keyword == "bra") return branch(at, false);
    if (keyword == "load_imm" || keyword == "ldi") return load_immediate(at, kImmediate32);
    if (keyword == "load_imm_s") return load_immediate(at, kImmediateSigned);
    if (keyword == "load_imm_u") return load_immediate(at, kImmediateUnsigned);
    if (keyword == "sacq") return semaphore(at, 16);
    if (keyword == "srel") return semaphore(at, 0);
    if (keyword == "end") return end_of_program();
    alu_word(at = start);
  }

  void end_of_program() {
    Instruction i;
    i.signal = Signal::kEnd;
    emit(i);
    emit({});
    emit({});
  }

  bool is_target(std::string_view name) const override { return find_register(name, "ra", 32).has_value(); }

  uint64_t resolve(uint64_t branch, uint32_t distance) const override {
    Instruction i = decode(branch);
    i.immediate += distance;
    return encode(i);
  }

  static bool take_separator(TextCursor& at, std::string_view separator) {
    return !at.at_end() && at.take(separator);
  }

  static uint32_t number32(TextCursor& at) {
    at.at_end();
    const size_t column = at.column();
    if (!at.number_here()) at.fail(absl::StrCat(at.here(), " is no number"));
    const auto bits = at.number().bits();
    if (!bits) TextCursor::fail_at(column, "a number of at most 32 bits is expected");
    return *bits;
  }

  // ---- ALU words

  void alu_word(TextCursor& at) {
    Instruction i;
    std::array<Half, 2> halves;
    int count = 0;
    bool pm = false;
    for (;;) {
      at.at_end();
      const TextCursor start = at;
      const std::string_view name = at.word();
      if (const auto signal = find_signal(name)) {
        if (i.signal != Signal::kNone && i.signal != *signal) start.fail("a word has one signal");
        i.signal = *signal;
        TextCursor behind = at;
        if (take_separator(behind, ";")) {
          at = behind;
          continue;
        }
        if (!at.at_end()) continue;  // the operation follows
        break;
      }
      if (name == "pm") {
        pm = true;
      } else {
        at = start;
        if (count == 2) start.fail("a word has two operations, of the add and the mul ALU");
        halves[static_cast<size_t>(count++)] = operation(at);
      }
      if (!take_separator(at, ";")) break;
    }
    if (count == 1 && info(halves[0].op).add == kNoCode && !halves[0].move) std::swap(halves[0], halves[1]);
    place(halves, pm, i);
    emit(i);
  }

  static Half operation(TextCursor& at) {
    Half half;
    half.column = at.column();
    const std::string_view name = at.word();
    half.move = name == "mov";
    const auto op = half.move ? Op::kOr : find_op(name);
    if (!op) TextCursor::fail_at(half.column, absl::StrCat("there is no operation ", std::string(name)));
    half.op = *op;
    suffixes(at, half);
    TextCursor behind = at;
    if (half.op == Op::kNop && (behind.at_end() || behind.peek() == ';')) return half;
    destination(at, half);
    const int operands = half.move ? 1 : 2;
    for (int n = 0; n < operands; ++n) {
      if (!take_separator(at, ",")) {
        if (n == 1 && info(half.op).operands == 1) break;
        at.fail("a comma and an operand are expected");
      }
      half.operands[static_cast<size_t>(n)] = operand(at);
    }
    if (half.move || info(half.op).operands == 1)
      if (half.operands[1].column == 0) half.operands[1] = half.operands[0];
    return half;
  }

  static void suffixes(TextCursor& at, Half& half) {
    while (at.peek() == '.') {
      const size_t column = at.column();
      at.take(".");
      const std::string suffix = absl::StrCat(".", std::string(at.word()));
      if (suffix == ".sf" || suffix == ".setf") {
        half.sf = true;
        continue;
      }
      const auto cond = find_cond(suffix);
      if (!cond) TextCursor::fail_at(column, absl::StrCat("there is no condition ", suffix));
      half.cond = *cond;
    }
  }

  static std::optional<Cond> find_cond(std::string_view suffix) {
    for (int code = 0; code < 8; ++code)
      if (code != static_cast<int>(Cond::kAlways) && text(static_cast<Cond>(code)) == suffix)
        return static_cast<Cond>(code);
    return {};
  }

  static void destination(TextCursor& at, Half& half) {
    at.at_end();
    const size_t column = at.column();
    const std::string here = at.here();
    const std::string_view name = at.word();
    const auto to = find_destination(name);
    if (!to) TextCursor::fail_at(column, absl::StrCat(here, " is no destination"));
    half.to = *to;
    half.pack_column = at.column();
    std::string suffix;
    TextCursor behind = at;
    while (behind.take(".")) absl::StrAppend(&suffix, ".", std::string(behind.word()));
    for (uint8_t code = 1; code < 16 && !suffix.empty(); ++code) {
      if (suffix != pack_text(code, false)) continue;
      half.pack = code;
      at = behind;
      return;
    }
  }

  static Operand operand(TextCursor& at) {
    at.at_end();
    Operand o;
    o.column = at.column() + 1;
    const std::string here = at.here();
    if (at.number_here()) {
      const auto code = find_small_immediate(number32(at));
      if (!code)
        TextCursor::fail_at(o.column - 1,
                            "small immediates are -16..15 and powers of two from 1/256 to 128 with a point");
      o.kind = Operand::Kind::kImmediate;
      o.value = *code;
      return o;
    }
    const std::string_view name = at.word();
    if (const auto r = find_register(name, "r", 6)) {
      o.value = *r;
    } else {
      o.kind = Operand::Kind::kAddress;
      const auto ra = find_register(name, "ra", 32), rb = find_register(name, "rb", 32);
      const auto port = ra ? Destination{*ra, kFileA} : rb ? Destination{*rb, kFileB} : find_read_port(name);
      if (!port) TextCursor::fail_at(o.column - 1, absl::StrCat(here, " is no register, port or number"));
      o.value = port->waddr;
      o.files = port->files;
    }
    if (at.peek() == '.') unpack(at, o);
    if (at.take("+")) rotation(at, o);
    return o;
  }

  static void unpack(TextCursor& at, Operand& o) {
    const size_t column = at.column();
    at.take(".");
    const std::string suffix = absl::StrCat(".", std::string(at.word()));
    for (uint8_t code = 1; code < 8; ++code)
      if (suffix == unpack_text(code)) o.unpack = code;
    if (o.unpack == 0) TextCursor::fail_at(column, absl::StrCat("there is no conversion ", suffix));
    if (o.kind == Operand::Kind::kAccumulator && o.value != kMuxR4)
      TextCursor::fail_at(column, "conversions are of file A and of r4");
    if (o.kind == Operand::Kind::kAddress && !(o.files & kFileA))
      TextCursor::fail_at(column, "conversions are of file A and of r4");
    if (o.kind == Operand::Kind::kAddress) o.files = kFileA;
  }

  static void rotation(TextCursor& at, Operand& o) {
    const size_t column = at.column();
    if (at.take("r5")) {
      o.rotate = kRotateByR5;
      return;
    }
    const uint32_t count = number32(at);
    if (count < 1 || count > 15) TextCursor::fail_at(column, "rotations are by r5 or 1 to 15");
    o.rotate = static_cast<uint8_t>(kRotateByR5 + count);
  }

  // ---- Where the parts of a word go

  static void place(const std::array<Half, 2>& halves, bool pm, Instruction& i) {
    place_operations(halves, i);
    place_columns(halves, i);
    place_conversions(halves, pm, i);
    place_operands(halves, i);
  }

  static void place_operations(const std::array<Half, 2>& halves, Instruction& i) {
    const Half &add = halves[0], &mul = halves[1];
    if (info(add.op).add == kNoCode)
      TextCursor::fail_at(add.column, absl::StrCat("the add ALU has no ", info(add.op).text));
    const Op mul_op = mul.move ? Op::kV8min : mul.op;
    if (info(mul_op).mul == kNoCode)
      TextCursor::fail_at(mul.column, absl::StrCat("the mul ALU has no ", info(mul_op).text));
    i.op_add = info(add.op).add;
    i.op_mul = info(mul_op).mul;
    i.cond_add = add.is_empty() ? Cond::kNever : add.cond;
    i.cond_mul = mul.is_empty() ? Cond::kNever : mul.cond;
    i.waddr_add = add.to.waddr;
    i.waddr_mul = mul.to.waddr;
    i.sf = add.sf || mul.sf;
    if (mul.sf && !add.is_empty())
      TextCursor::fail_at(mul.column, "the add ALU sets the flags, if it does anything");
  }

  static void place_columns(const std::array<Half, 2>& halves, Instruction& i) {
    const bool plain = (halves[0].to.files & kFileA) && (halves[1].to.files & kFileB);
    const bool swapped = (halves[0].to.files & kFileB) && (halves[1].to.files & kFileA);
    if (!plain && !swapped)
      TextCursor::fail_at(halves[1].column, "the two operations of a word write to different files");
    i.ws = !plain;
  }

  static void place_conversions(const std::array<Half, 2>& halves, bool pm, Instruction& i) {
    uint8_t unpack = 0;
    bool of_r4 = pm, of_a = false;
    for (const Half& half : halves) {
      for (const Operand& o : half.operands) {
        if (o.unpack == 0) continue;
        if (unpack != 0 && unpack != o.unpack)
          TextCursor::fail_at(o.column - 1, "a word has one conversion of operands");
        unpack = o.unpack;
        (o.kind == Operand::Kind::kAccumulator ? of_r4 : of_a) = true;
      }
    }
    for (size_t n = 0; n < 2; ++n) {
      const Half& half = halves[n];
      if (half.pack == 0) continue;
      if (i.pack != 0) TextCursor::fail_at(half.pack_column, "a word has one conversion of results");
      i.pack = half.pack;
      const bool to_a = half.to.waddr < kFirstPort && half.to.files == kFileA;
      if (n == 0 && !to_a) TextCursor::fail_at(half.pack_column, "conversions of the add ALU go to file A");
      if (n == 1 && !to_a) of_r4 = true;
      if (n == 0 || !pack_text(half.pack, true)) of_a = true;
    }
    if (of_r4 && of_a)
      TextCursor::fail_at(halves[0].column,
                          "conversions of file A do not go with those of r4 and of the mul ALU");
    i.pm = of_r4;
    i.unpack = unpack;
  }

  static void place_operands(const std::array<Half, 2>& halves, Instruction& i) {
    const auto fail_operand = [](const Operand& o, const char* why) {
      TextCursor::fail_at(o.column - 1, why);
    };
    std::array<const Operand*, 4> operands = {&halves[0].operands[0], &halves[0].operands[1],
                                              &halves[1].operands[0], &halves[1].operands[1]};
    std::optional<uint8_t> in_a, in_b, immediate;
    const auto set_immediate = [&](const Operand& o, uint8_t code) {
      if (immediate && *immediate != code) fail_operand(o, "a word has one small immediate or rotation");
      immediate = code;
    };
    for (const Operand* o : operands) {
      if (o->kind == Operand::Kind::kImmediate) set_immediate(*o, o->value);
      if (o->rotate) set_immediate(*o, *o->rotate);
    }
    for (size_t n = 0; n < 2; ++n)
      if (operands[n]->rotate) fail_operand(*operands[n], "the mul ALU alone rotates");
    if (immediate) {
      if (i.signal != Signal::kNone && i.signal != Signal::kSmallImmediate)
        TextCursor::fail_at(halves[0].column, "a small immediate or rotation takes the place of signals");
      i.signal = Signal::kSmallImmediate;
      in_b = immediate;
    }
    // Those that one file alone has go first.
    for (const uint8_t wanted : {uint8_t{kFileA}, uint8_t{kFileB}, uint8_t{kFiles}}) {
      for (const Operand* o : operands) {
        if (o->kind != Operand::Kind::kAddress || o->files != wanted) continue;
        const bool fits_a = (o->files & kFileA) && (!in_a || *in_a == o->value);
        const bool fits_b = (o->files & kFileB) && !immediate && (!in_b || *in_b == o->value);
        const bool has_a = fits_a && in_a, has_b = fits_b && in_b;
        if (!fits_a && !fits_b)
          fail_operand(*o,
                       "a word reads one address of each file, and none of file B beside a small immediate");
        if (has_a || (!has_b && fits_a))
          in_a = o->value;
        else
          in_b = o->value;
      }
    }
    i.raddr_a = in_a.value_or(kAddressNop);
    i.raddr_b = in_b.value_or(kAddressNop);
    const auto mux_of = [&](const Operand& o) -> uint8_t {
      if (o.kind == Operand::Kind::kAccumulator) return o.value;
      if (o.kind == Operand::Kind::kImmediate) return kMuxB;
      return (o.files & kFileA) && in_a && *in_a == o.value ? kMuxA : kMuxB;
    };
    i.add_a = mux_of(*operands[0]);
    i.add_b = mux_of(*operands[1]);
    i.mul_a = mux_of(*operands[2]);
    i.mul_b = mux_of(*operands[3]);
  }

  // ---- The other words

  static void loaded_destination(TextCursor& at, Half& half) {
    destination(at, half);
    suffixes(at, half);
  }

  void load_immediate(TextCursor& at, ImmediateMode mode) {
    std::array<Half, 2> halves;
    loaded_destination(at, halves[0]);
    if (!take_separator(at, ",")) at.fail("a comma is expected");
    TextCursor behind = at;
    behind.at_end();
    if (!behind.number_here()) {
      loaded_destination(at, halves[1]);
      if (!take_separator(at, ",")) at.fail("a comma and a number are expected");
    }
    Instruction i;
    i.signal = Signal::kLoadImmediate;
    place_columns(halves, i);
    place_conversions(halves, false, i);
    i.unpack = mode;
    i.sf = halves[0].sf;
    i.cond_add = halves[0].cond;
    i.cond_mul = halves[1].cond;
    i.waddr_add = halves[0].to.waddr;
    i.waddr_mul = halves[1].to.waddr;
    i.immediate = number32(at);
    if (take_separator(at, "(")) {  // as a float, which the disassembler adds
      while (at.take("-") || at.take(".") || !at.word().empty()) {
      }
      at.take(std::string_view(std::array{at.peek()}.data(), 1));
      at.take(")");
    }
    emit(i);
  }

  void semaphore(TextCursor& at, uint32_t acquire) {
    at.at_end();
    const size_t column = at.column();
    const uint32_t number = number32(at);
    if (number > 15) TextCursor::fail_at(column, "there are 16 semaphores");
    Instruction i;
    i.signal = Signal::kLoadImmediate;
    i.unpack = kModeSemaphore;
    i.cond_add = i.cond_mul = Cond::kAlways;
    i.immediate = number | acquire;
    emit(i);
  }

  void branch(TextCursor& at, bool relative) {
    Instruction i;
    i.signal = Signal::kBranch;
    i.relative = relative;
    i.branch_cond = BranchCond::kAlways;
    i.raddr_a = 0;
    if (at.peek() == '.') i.branch_cond = branch_condition(at);
    do {
      at.at_end();
      const size_t column = at.column();
      if (at.number_here()) {
        i.immediate = number32(at);
        if (i.immediate % 8 != 0) TextCursor::fail_at(column, "a branch goes to a multiple of 8 bytes");
        continue;
      }
      const std::string here = at.here();
      const std::string_view name = at.word();
      if (name.empty()) TextCursor::fail_at(column, absl::StrCat(here, " is no branch target"));
      if (const auto ra = find_register(name, "ra", 32)) {
        i.with_register = true;
        i.raddr_a = *ra;
      } else {
        if (!relative) TextCursor::fail_at(column, "a label is at a distance, and bra goes to an address");
        refer_to(name, column);
      }
    } while (take_separator(at, ","));
    if (take_separator(at, "->")) {
      Half half;
      destination(at, half);
      i.waddr_add = half.to.waddr;
      i.ws = !(half.to.files & kFileA);
    }
    emit(i);
  }

  static BranchCond branch_condition(TextCursor& at) {
    const size_t column = at.column();
    at.take(".");
    const std::string suffix = absl::StrCat(".", std::string(at.word()));
    for (int code = 0; code < 16; ++code) {
      const char* name = text(static_cast<BranchCond>(code));
      if (name && suffix == name) return static_cast<BranchCond>(code);
    }
    TextCursor::fail_at(column, "conditions of branches are all_ or any_ with zs, zc, ns, nc, cs or cc");
  }
};

}  // namespace

Assembly assemble(std::string_view text) { return Parser().read(text); }

bool is_canonical(uint64_t word) {
  return flaw(decode(word)) == nullptr && assemble(disassemble(word)).words == std::vector<uint64_t>{word};
}

}  // namespace v3d::qpu::vc4
