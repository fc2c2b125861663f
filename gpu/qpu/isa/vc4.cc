#include "gpu/qpu/isa/vc4.h"

#include <array>

namespace v3d::qpu::vc4 {
namespace {

constexpr OpInfo kOps[] = {
#define V3D_VC4_OP(op, text, add, mul, operands, floats) {text, add, mul, operands, floats},
#include "gpu/qpu/isa/vc4.def"
};

template <size_t kCodes>
constexpr std::array<Op, kCodes> ops_of(uint8_t OpInfo::*code) {
  std::array<Op, kCodes> ops;
  ops.fill(Op::kReserved);
  for (int n = 0; n < kNumOps; ++n)
    if (kOps[n].*code != kNoCode) ops[kOps[n].*code] = static_cast<Op>(n);
  return ops;
}
constexpr std::array<Op, 32> kAddOps = ops_of<32>(&OpInfo::add);
constexpr std::array<Op, 8> kMulOps = ops_of<8>(&OpInfo::mul);

template <size_t kCodes>
using Texts = std::array<const char*, kCodes>;
constexpr Texts<16> kSignalTexts = [] {
  Texts<16> texts{};
#define V3D_VC4_SIGNAL(signal, code, text) texts[code] = text;
#include "gpu/qpu/isa/vc4.def"
  return texts;
}();
constexpr Texts<8> kCondTexts = [] {
  Texts<8> texts{};
#define V3D_VC4_COND(cond, code, text) texts[code] = text;
#include "gpu/qpu/isa/vc4.def"
  return texts;
}();
constexpr Texts<16> kBranchCondTexts = [] {
  Texts<16> texts{};
#define V3D_VC4_BRANCH_COND(cond, code, text) texts[code] = text;
#include "gpu/qpu/isa/vc4.def"
  return texts;
}();
constexpr Texts<8> kUnpackTexts = [] {
  Texts<8> texts{};
#define V3D_VC4_UNPACK(unpack, code, text) texts[code] = text;
#include "gpu/qpu/isa/vc4.def"
  return texts;
}();
constexpr Texts<16> kPackTextsA = [] {
  Texts<16> texts{};
#define V3D_VC4_PACK_A(pack, code, text) texts[code] = text;
#include "gpu/qpu/isa/vc4.def"
  return texts;
}();
constexpr Texts<16> kPackTextsMul = [] {
  Texts<16> texts{};
#define V3D_VC4_PACK_MUL(code, text) texts[code] = text;
#include "gpu/qpu/isa/vc4.def"
  return texts;
}();

template <typename Address>
using Addresses = std::array<std::array<Address, 32>, 2>;
constexpr Addresses<ReadAddress> kReadAddresses = [] {
  Addresses<ReadAddress> all{};
  const auto set = [&](int address, int files, ReadAddress row) {
    for (int file = 0; file < 2; ++file)
      if (files >> file & 1) all[file][address - kFirstPort] = row;
  };
#define V3D_VC4_READ(address, file, port, text) set(address, file, {ReadPort::k##port, text});
#include "gpu/qpu/isa/vc4.def"
  return all;
}();
constexpr Addresses<WriteAddress> kWriteAddresses = [] {
  Addresses<WriteAddress> all{};
  const auto set = [&](int address, int files, WriteAddress row) {
    for (int file = 0; file < 2; ++file)
      if (files >> file & 1) all[file][address - kFirstPort] = row;
  };
#define V3D_VC4_WRITE(address, file, port, text, unit) \
  set(address, file, {WritePort::k##port, text, Unit::k##unit});
#include "gpu/qpu/isa/vc4.def"
  return all;
}();

// ---- Where the fields stand

struct Field {
  int at, bits;
};
constexpr Field kSignal{60, 4}, kUnpack{57, 3}, kPm{56, 1}, kPack{52, 4}, kCondAdd{49, 3}, kCondMul{46, 3},
    kSf{45, 1}, kWs{44, 1}, kWaddrAdd{38, 6}, kWaddrMul{32, 6};
constexpr Field kOpMul{29, 3}, kOpAdd{24, 5}, kRaddrA{18, 6}, kRaddrB{12, 6}, kAddA{9, 3}, kAddB{6, 3},
    kMulA{3, 3}, kMulB{0, 3};
constexpr Field kImmediate{0, 32};
constexpr Field kBranchCond{52, 4}, kRelative{51, 1}, kRegister{50, 1}, kBranchRaddr{45, 5};

constexpr uint64_t mask(Field field) { return (uint64_t{1} << field.bits) - 1; }

// Reads fields of a word, or puts them into one: so that each stands once.
struct Reader {
  uint64_t word;
  template <typename T>
  void operator()(Field field, T& value) {
    value = static_cast<T>(word >> field.at & mask(field));
  }
};
struct Writer {
  uint64_t word = 0;
  template <typename T>
  void operator()(Field field, const T& value) {
    word |= (static_cast<uint64_t>(value) & mask(field)) << field.at;
  }
};

template <typename Visitor, typename I>
void visit(Visitor& visitor, I& i) {
  visitor(kSignal, i.signal);
  visitor(kUnpack, i.unpack);
  visitor(kPm, i.pm);
  visitor(kWs, i.ws);
  visitor(kWaddrAdd, i.waddr_add);
  visitor(kWaddrMul, i.waddr_mul);
  if (i.signal == Signal::kBranch) {
    visitor(kBranchCond, i.branch_cond);
    visitor(kRelative, i.relative);
    visitor(kRegister, i.with_register);
    visitor(kBranchRaddr, i.raddr_a);
    visitor(kImmediate, i.immediate);
    return;
  }
  visitor(kPack, i.pack);
  visitor(kCondAdd, i.cond_add);
  visitor(kCondMul, i.cond_mul);
  visitor(kSf, i.sf);
  if (i.signal == Signal::kLoadImmediate) {
    visitor(kImmediate, i.immediate);
    return;
  }
  visitor(kOpMul, i.op_mul);
  visitor(kOpAdd, i.op_add);
  visitor(kRaddrA, i.raddr_a);
  visitor(kRaddrB, i.raddr_b);
  visitor(kAddA, i.add_a);
  visitor(kAddB, i.add_b);
  visitor(kMulA, i.mul_a);
  visitor(kMulB, i.mul_b);
}

const char* flaw_of_write(const Instruction& i, bool mul) {
  const uint8_t waddr = mul ? i.waddr_mul : i.waddr_add;
  if (waddr < kFirstPort) return nullptr;
  switch (write_address(column(i, mul), waddr).port) {
    case WritePort::kTlbAlphaMask:
      return "the alpha mask belongs to OpenVG and is not known";
    case WritePort::kUniformsRel:
      return "uniforms_addr through column B is not known";
    default:
      return nullptr;
  }
}

const char* flaw_of_alu(const Instruction& i) {
  switch (i.signal) {
    case Signal::kBreakpoint:
      return "a breakpoint stops the QPU for a debugger";
    case Signal::kCoverageLoad:
    case Signal::kAlphaLoad:
      return "the load belongs to OpenVG and is not known";
    default:
      break;
  }
  if (add_op(i.op_add) == Op::kReserved) return "reserved operation of the add ALU";
  return nullptr;
}

}  // namespace

const OpInfo& info(Op op) { return kOps[static_cast<int>(op)]; }
Op add_op(uint8_t code) { return kAddOps[code & 31]; }
Op mul_op(uint8_t code) { return kMulOps[code & 7]; }

const ReadAddress& read_address(Files file, uint8_t address) {
  return kReadAddresses[file == kFileB][address & 31];
}
const WriteAddress& write_address(Files file, uint8_t address) {
  return kWriteAddresses[file == kFileB][address & 31];
}

const char* text(Cond cond) { return kCondTexts[static_cast<int>(cond)]; }
const char* text(BranchCond cond) { return kBranchCondTexts[static_cast<int>(cond)]; }
const char* text(Signal signal) { return kSignalTexts[static_cast<int>(signal)]; }
const char* unpack_text(uint8_t unpack) { return kUnpackTexts[unpack & 7]; }
const char* pack_text(uint8_t pack, bool pm) { return (pm ? kPackTextsMul : kPackTextsA)[pack & 15]; }

Instruction decode(uint64_t word) {
  Instruction i;
  i.raddr_a = i.raddr_b = 0;
  Reader reader{word};
  visit(reader, i);
  if (i.signal == Signal::kBranch) i.sf = i.raddr_a & 1;
  return i;
}

uint64_t encode(const Instruction& instruction) {
  Writer writer;
  visit(writer, instruction);
  return writer.word;
}

const char* flaw(const Instruction& i) {
  for (const bool mul : {false, true})
    if (const char* why = flaw_of_write(i, mul)) return why;
  switch (i.form()) {
    case Form::kBranch:
      return text(i.branch_cond) ? nullptr : "reserved condition of a branch";
    case Form::kSemaphore:
      break;
    case Form::kLoadImmediate:
      if (i.unpack != kImmediate32 && i.unpack != kImmediateSigned && i.unpack != kImmediateUnsigned)
        return "reserved mode of an immediate";
      break;
    case Form::kAlu:
      if (const char* why = flaw_of_alu(i)) return why;
      break;
  }
  return pack_text(i.pack, i.pm) ? nullptr : "reserved pack mode of the mul ALU";
}

}  // namespace v3d::qpu::vc4
