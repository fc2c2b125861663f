#include "gpu/qpu/trace/trace.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/qpu/run/alu.h"
#include "gpu/qpu/run/ports.h"
#include "gpu/qpu/trace/trace_text.h"

namespace v3d::qpu {
namespace {

LaneMask exec_lanes(const AluHalf& half, const Thread& t) {
  const LaneMask lanes = lanes_of(half.cond, t);
  return info(half.op).traits & kActiveLanes ? lanes & active_lanes(t) : lanes;
}

// The register behind a write address, or null if it is a port.
const Lanes* destination_register(chip::Generation generation, const Thread& t, bool magic, uint8_t waddr) {
  const WaddrInfo& w = waddr_info(generation, waddr);
  const Register r = magic ? (starts_sfu(w.effect) ? kNoRegister : w.reg) : waddr;
  return r < kNumRegisters ? &t.at(r) : nullptr;
}

std::string destination_name(chip::Generation generation, bool magic, uint8_t waddr) {
  if (!magic) return absl::StrFormat("rf%d", waddr);
  const char* name = waddr_info(generation, waddr).name;
  return name ? name : absl::StrFormat("address %d", waddr);
}

std::string register_name(Register r) {
  return r < kFirstAccumulator ? absl::StrFormat("rf%d", r) : absl::StrFormat("r%d", r - kFirstAccumulator);
}

bool on_floats(const AluHalf& half) {
  const OpInfo& op = info(half.op);
  return op.input == Input::kFloat || op.input == Input::kFloatMove || op.flags == FlagClass::kFloat;
}

}  // namespace

// One instruction: the state before and after it, and the text that becomes of it.
struct ThreadTrace::Paragraph : TraceText {
  const chip::Generation generation;
  const Thread& before;
  const Thread& after;
  const Instruction& i;

  void operand(const char* unit, const Operand& o, bool floats) {
    const Register r = o.reg();
    if (r >= kNumRegisters) return;  // immediates stand in the text
    // Packed halves and integers are not what a float of the register would say.
    const bool as_float =
        floats && (o.unpack == Unpack::kNone || o.unpack == Unpack::kAbs || o.unpack == Unpack::kSat ||
                   o.unpack == Unpack::kNsat || o.unpack == Unpack::kMax0);
    values(absl::StrFormat("%s %s", unit, register_name(r)), before.at(r), kAllLanes, as_float);
  }

  static Lanes source(const Thread& t, const Operand& o) {
    if (o.reg() < kNumRegisters) return t.at(o.reg());
    return o.kind == Operand::Kind::kImmediate ? splat(small_immediate(o.index)) : Lanes{};
  }

  // What goes to a port is nowhere to be seen afterwards, so it is computed again.
  Lanes sent(const AluHalf& half, LaneMask exec) {
    const auto scratch = std::make_unique<Thread>(before);
    scratch->nn_mode = after.nn_mode;  // a dot sees the mode that its word sets
    const AluFn function = find_alu(half.op, half.a.unpack, half.b.unpack);
    const Lanes v = function(*scratch, source(before, half.a), source(before, half.b), exec);
    return half.pack == Pack::kNone ? v : packed(half.pack, v, Lanes{});
  }

  void half(const char* unit, const AluHalf& h) {
    const OpInfo& op = info(h.op);
    if (h.op == Op::kNop) return;
    const bool takes_floats =
        op.input == Input::kFloat || op.input == Input::kFloatMove || (op.traits & kSfu);
    operand(unit, h.a, takes_floats && !(op.traits & kReadsThread));
    operand(unit, h.b, takes_floats && op.input == Input::kFloat);
    const LaneMask exec = exec_lanes(h, before);
    if (sets_nn_mode(h.op) && exec == kAllLanes) return;
    if (!op.has_destination) return line(unit, absl::StrFormat("lanes %04x", exec));
    const std::string label =
        absl::StrFormat("  -> %s%s", destination_name(generation, h.magic, h.waddr), suffix(h.pack));
    const bool floats = on_floats(h) && op.flags == FlagClass::kFloat && h.pack == Pack::kNone;
    if (const Lanes* written = destination_register(generation, after, h.magic, h.waddr))
      return values(label, *written, exec, floats);
    const bool is_flags_only = h.magic && h.waddr == kWaddrNop;
    if ((is_flags_only && h.flags == FlagWrite::kNone) || (i.signals & kRotate) || (op.traits & kUnknown))
      return;
    values(h.op == Op::kSetmsf ? "  -> msf"
           : is_flags_only     ? "  -> flags"
                               : label,
           sent(h, exec), exec, floats);
  }

  void signal() {
    const Register implicit = isa(generation).implicit;
    if (i.signals & kSignalsImplicit)
      values(absl::StrFormat("%s -> %s", i.signals & kLdunif ? "ldunif" : "ldunifa", register_name(implicit)),
             after.at(implicit));
    const auto with_address = static_cast<uint16_t>(i.signals & kSignalsWithAddress);
    if (!with_address) return;
    const auto label = absl::StrFormat("%s -> %s", signal_name(static_cast<Signal>(with_address)),
                                       destination_name(generation, i.signal_magic, i.signal_waddr));
    if (const Lanes* written = destination_register(generation, after, i.signal_magic, i.signal_waddr))
      values(label, *written);
    else if (with_address == kLdtmu && before.pending.fifo_head != before.pending.fifo_tail)
      values(label, before.pending.fifo[before.pending.fifo_head % kTmuFifo]);
    else if (with_address != kLdunifrf && with_address != kLdunifarf)
      line(label.c_str(), "");
    if (with_address == kLdvary)
      values(absl::StrFormat("  C for %s, in 2", register_name(implicit)), after.varying_c(0));
  }

  // The words of the uniform streams, which the instruction took.
  void uniforms() {
    Thread copy = before;
    for (int n = 0; copy.uniforms != after.uniforms && n < 4; ++n) {
      const GpuAddr address = copy.uniforms;
      line("uniform", absl::StrFormat("0x%08x: %s", address, scalar(next_uniform(copy))));
    }
    if (i.signals & (kLdunifa | kLdunifarf)) {
      const GpuAddr address = copy.unifa;
      line("unifa", absl::StrFormat("0x%08x: %s", address, scalar(next_unifa(copy))));
    }
  }

  void tmu() {
    uint8_t launcher = 0;
    LaneMask exec = kAllLanes;
    const auto look = [&](bool magic, uint8_t waddr, LaneMask lanes) {
      if (!magic || !starts_lookup(waddr_info(generation, waddr).effect)) return;
      launcher = waddr;
      exec = lanes;
    };
    for (const AluHalf* h : {&i.add, &i.mul}) look(h->magic, h->waddr, exec_lanes(*h, before));
    if (i.signals & kSignalsWithAddress) look(i.signal_magic, i.signal_waddr, kAllLanes);
    if (!launcher) return;
    const LaneMask live = nonzero(before.msf);
    if (waddr_info(generation, launcher).effect == Effect::kGeneral)
      general(launcher, exec, live);
    else
      texture(launcher, exec, live);
    const Thread::Pending& p = after.pending;
    uint32_t taken = p.fifo_tail;
    for (uint32_t n = before.pending.fifo_tail; n != taken; ++n)
      values(absl::StrFormat("  returns word %d", n - before.pending.fifo_tail), p.fifo[n % kTmuFifo]);
    if (before.pending.fifo_tail == taken) line("  returns", "nothing");
  }

  void general(uint8_t launcher, LaneMask exec, LaneMask live) {
    static constexpr const char* kTypes[] = {"i8", "i16", "vec2", "vec3", "vec4", "u8", "u16", "32 bit"};
    Thread copy = before;
    const uint32_t config =
        waddr_info(generation, launcher).takes_uniform ? next_uniform(copy) : before.tmu_config;
    const uint32_t op = config >> 3 & 15;
    const int data = before.pending.texture.num_data;
    const std::string kind = op == 15 ? data ? "store" : "load" : absl::StrFormat("operation %d", op);
    line("tmu",
         absl::StrFormat("%s of %s, config %02x per %s, condition %04x, live %04x", kind, kTypes[config & 7],
                         config & 255, config & 128 ? "pixel" : "quad", exec, live));
    data_rows(data);
  }

  void data_rows(int count) {
    for (int n = 0; n < count; ++n) values(absl::StrFormat("  data %d", n), before.pending.texture.data[n]);
  }

  void texture(uint8_t launcher, LaneMask exec, LaneMask live) {
    const tmu::TextureLookup& lookup = after.pending.texture;
    line("tmu",
         absl::StrFormat("texture lookup by %s, p0 %08x p1 %08x p2 %08x, condition %04x, live %04x",
                         waddr_info(generation, launcher).name, lookup.p0, lookup.p1, lookup.p2, exec, live));
    const struct {
      tmu::Parameter bit;
      const char* name;
      const Lanes& value;
    } parameters[] = {{tmu::kT, "  t", lookup.t},          {tmu::kR, "  r", lookup.r},
                      {tmu::kI, "  i", lookup.i},          {tmu::kB, "  b", lookup.b},
                      {tmu::kDref, "  dref", lookup.dref}, {tmu::kOff, "  off", lookup.off}};
    for (const auto& p : parameters)
      if (before.pending.texture.written & p.bit) values(p.name, p.value);
    data_rows(before.pending.texture.num_data);
  }

  void branch() {
    const Branch& b = i.branch;
    LaneMask lanes = kAllLanes;
    if (b.msfign != Msfign::kNone) lanes = nonzero(before.msf);
    if (b.msfign == Msfign::kQ) lanes = whole_quads(lanes);
    const bool taken = after.pending.events.branch_in == 4;
    line("branch",
         taken ? absl::StrFormat("taken, to 0x%08x after three more instructions; A %04x of lanes %04x",
                                 after.pending.branch_target, before.flag_a, lanes)
               : absl::StrFormat("not taken; A %04x of lanes %04x", before.flag_a, lanes));
    if (taken && after.pending.branch_moves_uniforms)
      line("", absl::StrFormat("uniforms continue at 0x%08x", after.pending.branch_uniforms));
  }

  void flags() {
    if (before.flag_a != after.flag_a || before.flag_b != after.flag_b || i.add.flags != FlagWrite::kNone ||
        i.mul.flags != FlagWrite::kNone)
      line("flags", absl::StrFormat("A %04x -> %04x  B %04x -> %04x", before.flag_a, after.flag_a,
                                    before.flag_b, after.flag_b));
  }

  void nn_mode() {
    if (sets_nn_mode(i.add.op))
      line("nn mode", absl::StrFormat("%s -> %s", name(before.nn_mode), name(after.nn_mode)));
    else if (i.mul.op == Op::kV8dot)
      line("nn mode", name(after.nn_mode));
  }

  void print() {
    if (i.is_branch) {
      uniforms();
      return branch();
    }
    half("add", i.add);
    nn_mode();
    half("mul", i.mul);
    signal();
    uniforms();
    tmu();
    flags();
  }
};

ThreadTrace::ThreadTrace(chip::Generation generation, const TraceSelection& selection, const Thread& thread,
                         std::string title)
    : generation_(generation),
      selection_(selection),
      entry_(thread.pc & ~7u),
      before_(std::make_unique<Thread>(thread)),
      text_(std::move(title)) {
  text_ += '\n';
}

void ThreadTrace::before(const Thread& thread, uint64_t word, const Instruction* instruction) {
  shown_ = selection_.instructions.contains(executed_++);
  if (!shown_) return;
  *before_ = thread;
  word_ = word;
  instruction_ = instruction;
}

void ThreadTrace::after(const Thread& thread, const char* error) {
  complete_ = complete_ || error || executed_ > selection_.instructions.last;
  if (!shown_) return;
  const std::string words = instruction_ ? disassemble(generation_, *instruction_)
                                         : absl::StrFormat(".word 0x%016x  (no instruction)", word_);
  const auto index = static_cast<int32_t>(before_->pc - entry_) / 8;
  absl::StrAppendFormat(&text_, "\n%4d  0x%08x  %s\n", index, before_->pc, words);
  absl::StrAppendFormat(&text_, "    %-22s A %04x  B %04x  msf %04x\n", "state", before_->flag_a,
                        before_->flag_b, nonzero(before_->msf));
  if (instruction_) Paragraph{{selection_, text_}, generation_, *before_, thread, *instruction_}.print();
  if (error) absl::StrAppendFormat(&text_, "    %-22s %s\n", "hangs", error);
}

void ThreadTrace::finished(const Thread& thread, Next next) {
  complete_ = complete_ || next == Next::kEnd;
  if (!shown_) return;
  if (next == Next::kJump) absl::StrAppendFormat(&text_, "    %-22s 0x%08x\n", "continues at", thread.pc);
  if (next == Next::kSwitch) text_ += "    thread switch\n";
  if (next == Next::kBarrier) text_ += "    thread switch, waits at the barrier\n";
  if (next == Next::kEnd)
    text_ += "    the thread ends\n";
  else if (complete_)
    text_ += "\n      (the selection ends here)\n";
}

}  // namespace v3d::qpu
