#include "gpu/qpu/trace/vc4_trace.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gpu/qpu/isa/vc4_access.h"
#include "gpu/qpu/run/vc4_action.h"
#include "gpu/qpu/run/vc4_alu.h"
#include "gpu/qpu/run/vc4_step.h"
#include "gpu/qpu/trace/trace_text.h"

namespace v3d::qpu::vc4 {
namespace {

using Target = StepTarget::Target;

std::string source_name(const Instruction& i, uint8_t mux) {
  if (mux <= kMuxR5) return absl::StrFormat("r%d", mux);
  const Files file = mux == kMuxA ? kFileA : kFileB;
  const uint8_t raddr = mux == kMuxA ? i.raddr_a : i.raddr_b;
  if (raddr < kFirstPort) return absl::StrFormat("r%c%d", mux == kMuxA ? 'a' : 'b', raddr);
  const char* text = read_address(file, raddr).text;
  return text ? text : absl::StrFormat("address %d", raddr);
}

std::string destination_name(const Instruction& i, bool mul) {
  const Files to = column(i, mul);
  const uint8_t waddr = mul ? i.waddr_mul : i.waddr_add;
  if (waddr < kFirstPort) return absl::StrFormat("r%c%d", to == kFileA ? 'a' : 'b', waddr);
  const char* text = write_address(to, waddr).text;
  return text ? text : absl::StrFormat("address %d", waddr);
}

Lanes at_offset(const Thread& t, uint16_t offset) { return t.registers[offset / sizeof(Lanes)]; }

// One instruction: the state before and after it, and the text that becomes of it.
struct Paragraph : TraceText {
  const Thread& before;
  const Thread& after;
  const Instruction& i;
  const Step& step;

  // Ports hold what the instruction took from them, which is seen after it.
  Lanes source(const Source& s) const {
    if (s.immediate) return kImmediates[s.offset / sizeof(Lanes)];
    const bool is_port = s.offset >= register_offset(Thread::kPortA);
    return at_offset(is_port ? after : before, s.offset);
  }

  void operand(const char* unit, uint8_t mux, const Source& s, bool floats) {
    if (s.immediate) return;  // stands in the text
    values(absl::StrFormat("%s %s", unit, source_name(i, mux)), source(s), kAllLanes,
           floats && s.unpack == 0);
  }

  Lanes rotated(const Source& s, const Lanes& v) const {
    const uint32_t count =
        step.rotate_code == kRotateByR5 ? uint32_t{before.r(5)[0]} : step.rotate_code - kRotateByR5;
    return rotated_operand(v, s.from_accumulator, count & 15u);
  }

  // What goes to a port is nowhere to be seen afterwards, so it is computed again.
  Lanes sent(const Half& half, bool mul) const {
    const auto value = [&](const Source& s) {
      const Lanes v = source(s);
      const Lanes converted = s.unpack == 0 ? v : unpacked(s.unpack, s.to_float, v);
      return mul && step.rotates ? rotated(s, converted) : converted;
    };
    const Lanes result = half.alu(value(half.a), value(half.b));
    return half.pack == Half::Pack::kToUnorm8 ? packed_to_unorm8(half.pack_mode, result, Lanes{}) : result;
  }

  void half(const char* unit, const Half& h, bool mul) {
    if (!h.alu) return;
    const OpInfo& op = info(h.op);
    const bool is_copy = i.form() != Form::kAlu || is_move(i, mul);
    if (i.form() == Form::kAlu) {
      const bool floats = (op.floats & kTakesFloats) != 0;
      const uint8_t a = mul ? i.mul_a : i.add_a, b = mul ? i.mul_b : i.add_b;
      operand(unit, a, h.a, floats);
      if (op.operands == 2 && !is_copy && a != b) operand(unit, b, h.b, floats);
    }
    const LaneMask exec = lanes_where(h.condition, before);
    if (h.to.target == Target::kNone) return values("  -> flags", sent(h, mul));
    std::string label = absl::StrCat("  -> ", destination_name(i, mul));
    if (h.pack != Half::Pack::kNone)
      absl::StrAppend(&label, pack_text(i.pack, h.pack == Half::Pack::kToUnorm8));
    const bool is_port = h.to.target == Target::kPort;
    const Lanes value = is_port ? sent(h, mul) : at_offset(after, h.to.offset);
    // A quad of r5 takes one lane's value.
    const LaneMask written = h.to.target == Target::kRegister || is_port ? exec : kAllLanes;
    if (is_copy && written == kAllLanes)
      values(label, value);  // whose type nobody says
    else
      values(label, value, written, (op.floats & kGivesFloats) && h.pack == Half::Pack::kNone);
  }

  void signal() {
    switch (i.signal) {
      case Signal::kLoadTmu0:
      case Signal::kLoadTmu1:
      case Signal::kColorLoad:
      case Signal::kColorLoadEnd:
        return values(absl::StrCat(text_of(i.signal), " -> r4"), after.r(4));
      default:
        return;
    }
  }
  static const char* text_of(Signal signal) { return vc4::text(signal); }

  // The words of the stream that the instruction took.
  void uniforms() {
    uint32_t taken = fetches(i, ReadPort::kUniform);
    if (!writes(i, WritePort::kUniforms)) taken = (after.uniforms - before.uniforms) / 4;
    for (uint32_t n = 0; n < taken && n < 4; ++n) {
      const GpuAddr address = before.uniforms + 4 * n;
      line("uniform", absl::StrFormat("0x%08x: %s", address, scalar(before.memory.load<uint32_t>(address))));
    }
    if (writes(i, WritePort::kUniforms))
      line("", absl::StrFormat("uniforms continue at 0x%08x", after.uniforms));
  }

  void lookups() {
    for (int n = 0; n < 2; ++n) {
      const Thread::Pending::Unit &was = before.pending.tmu[n], &is = after.pending.tmu[n];
      if (was.tail == is.tail) continue;
      const Lookup& l = was.lookup;
      if (l.parameters == 0) {
        line("tmu", absl::StrFormat("TMU %d loads words", n));
      } else {
        line("tmu", absl::StrFormat("TMU %d looks up a texture, p0 %08x p1 %08x p2 %08x, and the uniform", n,
                                    l.p[0], l.p[1], l.p[2]));
        if (l.has_t) values("  t", l.t);
        if (l.has_r) values("  r", l.r);
        if (l.has_b) values("  b", l.b);
      }
      for (uint32_t word = was.tail; word != is.tail; ++word)
        values(absl::StrFormat("  returns word %d", word - was.tail), is.results[word % kTmuResults]);
    }
  }

  void branch() {
    const bool taken = after.pending.events.branch_in == 3;
    line("branch", taken ? absl::StrFormat("taken, to 0x%08x after three more instructions",
                                           after.pending.branch_target)
                         : "not taken");
  }

  void state() {
    if (i.sf)
      line("flags",
           absl::StrFormat("Z %04x -> %04x  N %04x -> %04x  C %04x -> %04x", before.flags[Thread::kZ],
                           after.flags[Thread::kZ], before.flags[Thread::kN], after.flags[Thread::kN],
                           before.flags[Thread::kC], after.flags[Thread::kC]));
    bool same = true;
    for (int n = 0; n < kLanes; ++n) same = same && before.ms_flags[n] == after.ms_flags[n];
    if (!same) values("ms_flags", after.ms_flags, kAllLanes, false);
  }

  void print() {
    if (step.kind == Step::Kind::kInvalid) return;
    if (i.form() == Form::kBranch) return branch();
    half("add", step.add, false);
    half("mul", step.mul, true);
    signal();
    uniforms();
    lookups();
    state();
  }
};

}  // namespace

ThreadTrace::ThreadTrace(const TraceSelection& selection, const Thread& thread, std::string title)
    : selection_(selection),
      entry_(thread.pc & ~7u),
      before_(std::make_unique<Thread>(thread)),
      text_(std::move(title)) {
  text_ += '\n';
}

void ThreadTrace::before(const Thread& thread, uint64_t) {
  shown_ = selection_.instructions.contains(executed_++);
  if (shown_) *before_ = thread;
}

void ThreadTrace::after(const Thread& thread, uint64_t word, const char* error) {
  complete_ = complete_ || error || executed_ > selection_.instructions.last;
  if (!shown_) return;
  const Thread& b = *before_;
  const Instruction instruction = decode(word);
  const Step step = make_step(instruction);
  const char* const flaw = step.flaw;
  const auto index = static_cast<int32_t>(b.pc - entry_) / 8;
  absl::StrAppendFormat(&text_, "\n%4d  0x%08x  %s\n", index, b.pc,
                        flaw ? absl::StrFormat(".word 0x%016x  (%s)", word, flaw) : disassemble(word));
  absl::StrAppendFormat(&text_, "    %-22s Z %04x  N %04x  C %04x  pixels %04x\n", "state",
                        b.flags[Thread::kZ], b.flags[Thread::kN], b.flags[Thread::kC], nonzero(b.ms_flags));
  Paragraph{{selection_, text_}, b, thread, instruction, step}.print();
  if (error) absl::StrAppendFormat(&text_, "    %-22s %s\n", "hangs", error);
}

void ThreadTrace::finished(const Thread& thread, Next next) {
  complete_ = complete_ || next == Next::kEnd;
  if (!shown_) return;
  if (next == Next::kJump) absl::StrAppendFormat(&text_, "    %-22s 0x%08x\n", "continues at", thread.pc);
  if (next == Next::kEnd)
    text_ += "    the thread ends\n";
  else if (complete_)
    text_ += "\n      (the selection ends here)\n";
}

}  // namespace v3d::qpu::vc4
