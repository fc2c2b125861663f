// Text of V3D 2.1, the same as of Mesa's vc4_qpu_disasm.c: vc4-qpu.md 8.1.
#include <bit>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gpu/qpu/isa/vc4.h"

namespace v3d::qpu::vc4 {
namespace {

constexpr const char* kReservedText = "???";
const char* or_reserved(const char* text) { return text ? text : kReservedText; }

char letter(Files file) { return file == kFileA ? 'a' : 'b'; }

void append_destination(std::string& out, const Instruction& i, bool mul) {
  const Files to = column(i, mul);
  const uint8_t waddr = mul ? i.waddr_mul : i.waddr_add;
  const char* name = waddr < kFirstPort ? nullptr : write_address(to, waddr).text;
  if (name)
    out += name;
  else if (waddr < kFirstPort)
    absl::StrAppendFormat(&out, "r%c%d", letter(to), waddr);
  else
    absl::StrAppendFormat(&out, "%c%d?", letter(to), waddr);
  if (mul && i.pm)
    out += or_reserved(pack_text(i.pack, true));
  else if (to == kFileA && !i.pm)
    out += or_reserved(pack_text(i.pack, false));
}

void append_immediate(std::string& out, uint8_t code) {
  if (code < 32)
    absl::StrAppendFormat(&out, "%d", static_cast<int32_t>(small_immediate(code)));
  else if (code < 40)
    absl::StrAppendFormat(&out, "%.1f", std::bit_cast<float>(small_immediate(code)));
  else if (code < kRotateByR5)
    absl::StrAppendFormat(&out, "%f", std::bit_cast<float>(small_immediate(code)));
  else
    absl::StrAppendFormat(&out, "<bad imm %d>", code);
}

void append_source(std::string& out, const Instruction& i, uint8_t mux, bool mul) {
  const bool has_immediate = i.signal == Signal::kSmallImmediate;
  const Files file = mux == kMuxB ? kFileB : kFileA;
  const uint8_t raddr = mux == kMuxB ? i.raddr_b : i.raddr_a;
  if (mux <= kMuxR5) {
    absl::StrAppendFormat(&out, "r%d", mux);
    if (mul && has_immediate && i.raddr_b > kRotateByR5)
      absl::StrAppendFormat(&out, "+%d", i.raddr_b - kRotateByR5);
  } else if (mux == kMuxB && has_immediate) {
    append_immediate(out, raddr);
  } else if (raddr < kFirstPort) {
    absl::StrAppendFormat(&out, "r%c%d", letter(file), raddr);
  } else {
    out += or_reserved(read_address(file, raddr).text);
  }
  if (i.pm ? mux == kMuxR4 : mux == kMuxA) out += unpack_text(i.unpack);
}

void append_half(std::string& out, const Instruction& i, bool mul) {
  const Op op = mul ? mul_op(i.op_mul) : add_op(i.op_add);
  const bool move = is_move(i, mul);
  out += move ? "mov" : op == Op::kReserved ? kReservedText : info(op).text;
  if (i.sf && (mul ? add_op(i.op_add) == Op::kNop : op != Op::kNop)) out += ".sf";
  if (op != Op::kNop) out += text(mul ? i.cond_mul : i.cond_add);
  out += ' ';
  append_destination(out, i, mul);
  out += ", ";
  append_source(out, i, mul ? i.mul_a : i.add_a, mul);
  if (move) return;
  out += ", ";
  append_source(out, i, mul ? i.mul_b : i.add_b, mul);
}

void append_loaded(std::string& out, const Instruction& i, bool mul) {
  append_destination(out, i, mul);
  if ((mul ? i.waddr_mul : i.waddr_add) != kAddressNop) out += text(mul ? i.cond_mul : i.cond_add);
  out += ", ";
}

}  // namespace

std::string disassemble(uint64_t word) {
  const Instruction i = decode(word);
  std::string out;
  switch (i.form()) {
    case Form::kBranch:
      return absl::StrCat("branch", or_reserved(text(i.branch_cond)), " ", static_cast<int32_t>(i.immediate));
    case Form::kLoadImmediate:
    case Form::kSemaphore:
      out = "load_imm ";
      append_loaded(out, i, false);
      append_loaded(out, i, true);
      absl::StrAppendFormat(&out, "0x%08x (%f)", i.immediate, std::bit_cast<float>(i.immediate));
      return out;
    case Form::kAlu:
      break;
  }
  if (i.signal != Signal::kNone) absl::StrAppend(&out, text(i.signal), " ");
  append_half(out, i, false);
  out += " ; ";
  append_half(out, i, true);
  return out;
}

}  // namespace v3d::qpu::vc4
