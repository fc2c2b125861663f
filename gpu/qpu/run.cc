/// The interpreter. Facts: qpu.md 3.3 (order inside an instruction), 3.4 (latencies), 7 (control flow).
///
/// Most instructions are "fast" steps: they write registers and flags and load at most one word. They run in
/// the inner loop. Everything else, and every instruction while a delayed effect is under way (thread switch,
/// branch, C coefficient of ldvary), takes run_step(), which keeps the exact order of commits.

#include "gpu/base/log.h"
#include "gpu/qpu/code.h"
#include "gpu/qpu/ports.h"
#include "gpu/qpu/program.h"
#include "gpu/qpu/step.h"

namespace v3d::qpu {
namespace {

using Target = Half::Target;
using Events = Thread::Pending::Events;

inline const Lanes& source(const Thread& t, Source s) {
  const char* const bases[2] = {reinterpret_cast<const char*>(&t),
                                reinterpret_cast<const char*>(kImmediateLanes)};
  return *reinterpret_cast<const Lanes*>(bases[s.immediate] + s.offset);
}

inline Lanes& at_offset(Thread& t, uint16_t offset) {
  return *reinterpret_cast<Lanes*>(reinterpret_cast<char*>(&t) + offset);
}

// The flags as they were before the instruction.
struct Flags {
  LaneMask a, b;
};

inline LaneMask lanes_where(Cond cond, Flags flags) {
  switch (cond) {
    case Cond::kNone:
      return kAllLanes;
    case Cond::kIfa:
      return flags.a;
    case Cond::kIfb:
      return flags.b;
    case Cond::kIfna:
      return static_cast<LaneMask>(~flags.a);
    case Cond::kIfnb:
      return static_cast<LaneMask>(~flags.b);
  }
  return 0;
}

// Push: B = A, A = x. andx: A & x, andnx: A & !x, norx: !(A | x), nornx: !(A | !x).
inline void write_flags(Thread& t, FlagWrite write, Flags old, LaneMask x) {
  uint32_t a = 0;
  switch (write) {
    case FlagWrite::kNone:
      return;
    case FlagWrite::kPushz:
    case FlagWrite::kPushn:
    case FlagWrite::kPushc:
      t.flag_b = old.a;
      t.flag_a = x;
      return;
    case FlagWrite::kAndz:
    case FlagWrite::kAndn:
    case FlagWrite::kAndc:
      a = old.a & x;
      break;
    case FlagWrite::kAndnz:
    case FlagWrite::kAndnn:
    case FlagWrite::kAndnc:
      a = old.a & ~x;
      break;
    case FlagWrite::kNorz:
    case FlagWrite::kNorn:
    case FlagWrite::kNorc:
      a = ~(old.a | x);
      break;
    case FlagWrite::kNornz:
    case FlagWrite::kNornn:
    case FlagWrite::kNornc:
      a = ~old.a & x;
      break;
  }
  t.flag_a = static_cast<LaneMask>(a);
}

// What a half computed and has not written yet.
struct Result {
  Lanes value;
  LaneMask exec, flag;
};

inline Result compute(const Half& half, Thread& t, Flags flags, Lanes a, Lanes b) {
  Result result;
  result.exec = lanes_where(half.cond, flags);
  if (half.active_lanes) result.exec &= active_lanes(t);
  result.value = half.alu(t, a, b, result.exec);
  result.flag = half.flag ? half.flag(a, b, result.value) : 0;
  return result;
}

inline void store_register(const Half& half, Thread& t, Lanes value, LaneMask exec) {
  Lanes& destination = at_offset(t, half.offset);
  if (half.pack != Pack::kNone) value = packed(half.pack, value, destination);
  if (half.target == Target::kQuad) value = replicate_quads(value);
  if (half.target == Target::kRep) value = splat(uint32_t{value[0]});
  destination = exec == kAllLanes ? value : select(exec, value, destination);
}

// ---- Fast steps

// The halves are in an order in which the second may run after the first has written its register.
inline LaneMask run_fast_half(const Half& half, Thread& t, Flags flags) {
  const Lanes& a = source(t, half.a);
  const Lanes& b = source(t, half.b);
  if (half.plain) [[likely]] {
    at_offset(t, half.offset) = half.alu(t, a, b, kAllLanes);
    return 0;
  }
  const Result result = compute(half, t, flags, a, b);
  if (half.target != Target::kNone) store_register(half, t, result.value, result.exec);
  return result.flag;
}

inline bool run_fast(const Step& step, Thread& t) {
  const Flags flags = {t.flag_a, t.flag_b};
  if (step.first.alu) {
    const LaneMask first = run_fast_half(step.first, t, flags);
    LaneMask second = 0;
    if (step.second.alu) second = run_fast_half(step.second, t, flags);
    write_flags(t, step.first.write, flags, first);
    write_flags(t, step.second.write, flags, second);
  }
  switch (step.load) {
    case Step::Load::kNone:
      return true;
    case Step::Load::kUniform:
      at_offset(t, step.load_offset) = splat(next_uniform(t));
      return true;
    case Step::Load::kUnifa:
      at_offset(t, step.load_offset) = splat(next_unifa(t));
      return true;
    case Step::Load::kTmu:
      return pop_tmu(t, at_offset(t, step.load_offset));
  }
  return true;
}

// ---- General steps

// 4.2 with `rot`: accumulators rotate through all lanes, registers inside their quads.
Lanes rotated(const Step& step, const Thread& t, Source from) {
  const Lanes v = source(t, from);
  const uint32_t count = step.rotate ? small_immediate(step.rotate) : uint32_t{t.acc[5][0]};
  if (from.immediate) return v;
  if (from.offset >= acc_offset(0)) return __builtin_shuffle(v, (kLaneIndex - count) & 15u);
  return __builtin_shuffle(v, (kLaneIndex & 12u) | ((kLaneIndex - count) & 3u));
}

// The SFU of 4.2 behind magic addresses: the result is in r4 for the second next instruction.
bool start_sfu(Thread& t, uint8_t waddr, Lanes value) {
  static constexpr Op kOps[] = {Op::kRecip, Op::kRsqrt, Op::kExp, Op::kLog, Op::kSin, Op::kRsqrt2};
  if (waddr < kWaddrRecip || waddr > kWaddrRsqrt2) return false;
  Thread::Pending& p = t.pending;
  const AluFn function = find_alu(kOps[waddr - kWaddrRecip], Unpack::kNone, Unpack::kNone);
  p.sfu_result[(p.sfu_oldest + (p.events.sfu & 1)) & 1] = function(t, value, value, kAllLanes);
  p.events.sfu |= 2;
  return true;
}

// A write to a register or port; the value is whole.
const char* write_magic(int version, Thread& t, uint8_t waddr, Lanes value, LaneMask exec) {
  Lanes& replicated = version == 42 ? t.acc[5] : t.rf[0];
  Lanes* destination = &replicated;
  if (waddr == kWaddrNop) return nullptr;
  if (waddr == kWaddrR5) {
    value = replicate_quads(value);
  } else if (waddr == kWaddrRep) {
    value = splat(uint32_t{value[0]});
  } else if (version == 42 && waddr < kWaddrR5) {
    destination = &t.acc[waddr];
  } else if (version == 42 && start_sfu(t, waddr, value)) {
    return nullptr;
  } else {
    return write_port(version, t, waddr, value, exec);
  }
  *destination = select(exec, value, *destination);
  return nullptr;
}

const char* commit(int version, const Half& half, Thread& t, const Result& result) {
  if (half.target == Target::kNone) return nullptr;
  if (half.target != Target::kPort) {
    store_register(half, t, result.value, result.exec);
    return nullptr;
  }
  Lanes value = result.value;
  if (half.pack != Pack::kNone) value = packed(half.pack, value, Lanes{});
  return write_magic(version, t, half.waddr, value, result.exec);
}

// Effects of earlier instructions that this one sees: qpu.md 3.3, step 1.
void land_delayed_writes(int version, Thread& t) {
  Thread::Pending& p = t.pending;
  if (p.events.vary & 1) {
    (version == 42 ? t.acc[5] : t.rf[0]) = p.vary_c[p.vary_oldest];
    p.vary_oldest ^= 1;
  }
  p.events.vary >>= 1;
  if (p.events.sfu & 1) {
    t.acc[4] = p.sfu_result[p.sfu_oldest];
    p.sfu_oldest ^= 1;
  }
  p.events.sfu >>= 1;
}

// One ALU word. Returns nullptr, or why the thread hangs.
const char* run_alu(int version, const Step& step, Thread& t) {
  const Flags flags = {t.flag_a, t.flag_b};
  const Half& add = step.first;
  const Half& mul = step.second;
  Result add_result = {}, mul_result = {};
  if (add.alu) add_result = compute(add, t, flags, source(t, add.a), source(t, add.b));
  if (mul.rotate && mul.alu)
    mul_result = compute(mul, t, flags, rotated(step, t, mul.a), rotated(step, t, mul.b));
  else if (mul.alu)
    mul_result = compute(mul, t, flags, source(t, mul.a), source(t, mul.b));

  // Signals fetch their values. wrtmuc belongs to a lookup that this word starts.
  const uint16_t signals = step.signals;
  Lanes loaded = Lanes{}, implicit = Lanes{};
  if (signals & (kLdtmu) && !pop_tmu(t, loaded)) return "ldtmu without an outstanding lookup";
  if (signals & kLdvary) loaded = next_varying(t);
  if (signals & (kLdtlb | kLdtlbu)) loaded = read_tlb(t, signals & kLdtlbu);
  if (signals & kLdunifrf) loaded = splat(next_uniform(t));
  if (signals & kLdunifarf) loaded = splat(next_unifa(t));
  if (signals & kLdunif) implicit = splat(next_uniform(t));
  if (signals & kLdunifa) implicit = splat(next_unifa(t));
  if (signals & kWrtmuc) write_texture_config(t);

  const bool setmsf = step.kind == Step::Kind::kSetmsf;
  const char* error = nullptr;
  if (add.alu && !setmsf) error = commit(version, add, t, add_result);
  if (mul.alu && !error) error = commit(version, mul, t, mul_result);
  if (signals & (kLdunif | kLdunifa)) (version == 42 ? t.acc[5] : t.rf[0]) = implicit;
  if ((signals & kSignalsWithAddress) && !error) {
    if (!step.signal_magic)
      t.rf[step.signal_waddr] = loaded;
    else
      error = write_magic(version, t, step.signal_waddr, loaded, kAllLanes);
  }
  write_flags(t, add.write, flags, add_result.flag);
  write_flags(t, mul.write, flags, mul_result.flag);
  if (setmsf && add.alu) commit(version, add, t, add_result);
  return error;
}

bool branch_taken(const Branch& b, const Thread& t) {
  if (b.cond == BranchCond::kA0 || b.cond == BranchCond::kNa0)
    return (t.flag_a & 1) == (b.cond == BranchCond::kA0);
  uint32_t lanes = kAllLanes;
  if (b.msfign != Msfign::kNone) lanes = nonzero(t.msf);
  if (b.msfign == Msfign::kQ) lanes = ((lanes | lanes >> 1 | lanes >> 2 | lanes >> 3) & 0x1111) * 15;
  switch (b.cond) {
    case BranchCond::kAlla:
      return (lanes & ~t.flag_a) == 0;
    case BranchCond::kAnyna:
      return (lanes & ~t.flag_a) != 0;
    case BranchCond::kAnya:
      return (lanes & t.flag_a) != 0;
    case BranchCond::kAllna:
      return (lanes & t.flag_a) == 0;
    default:
      return true;
  }
}

// Sets the branch under way. Its uniform word is consumed whether it is taken or not.
const char* run_branch(const Branch& b, Thread& t) {
  Thread::Pending& p = t.pending;
  GpuAddr uniforms = t.uniforms;
  if (b.uniforms) {
    switch (b.uniform_target) {
      case static_cast<int>(BranchTarget::kAbsolute):
        uniforms = next_uniform(t);
        break;
      case static_cast<int>(BranchTarget::kRelative): {
        const uint32_t distance = next_uniform(t);
        uniforms = t.uniforms + distance;
        break;
      }
      case static_cast<int>(BranchTarget::kLink):
        uniforms = t.link;
        break;
      case static_cast<int>(BranchTarget::kRegister):
        uniforms = t.rf[b.raddr][1] & ~7u;
        break;
      default:
        return "undefined source of the uniform address in a branch";
    }
  }
  if (!branch_taken(b, t)) return nullptr;
  const GpuAddr behind = t.pc + 32;
  switch (b.target) {
    case BranchTarget::kAbsolute:
      p.branch_target = b.offset;
      break;
    case BranchTarget::kRelative:
      p.branch_target = behind + b.offset;
      break;
    case BranchTarget::kLink:
      p.branch_target = t.link;
      break;
    case BranchTarget::kRegister:
      p.branch_target = t.rf[b.raddr][0];
      break;
  }
  p.branch_target &= ~7u;
  p.branch_moves_uniforms = b.uniforms;
  p.branch_uniforms = uniforms;
  if (b.set_link) t.link = behind;
  // Counts down at the end of this instruction too.
  p.events.branch_in = 4;
  return nullptr;
}

bool counts_down(uint8_t& counter) { return counter != 0 && --counter == 0; }

enum class After { kNext, kJump, kSwitch, kEnd };

// What happens behind an instruction: qpu.md 7.2.
After finish_instruction(uint16_t signals, Thread& t) {
  Thread::Pending& p = t.pending;
  Events& e = p.events;
  const bool switches = counts_down(e.switch_in), ends = counts_down(e.end_in);
  const bool jumps = counts_down(e.branch_in);
  const bool thrsw = signals & kThrsw;
  if (thrsw) {
    if (e.previous_was_thrsw)
      p.last_section = true;
    else if (p.last_section || t.final_section)
      e.end_in = 2;
    else
      e.switch_in = 2;
  }
  e.previous_was_thrsw = thrsw;

  t.pc += 8;
  if (jumps) {
    t.pc = p.branch_target;
    if (p.branch_moves_uniforms) t.uniforms = p.branch_uniforms;
  }
  if (ends) return After::kEnd;
  if (switches) return After::kSwitch;
  return jumps ? After::kJump : After::kNext;
}

[[gnu::cold, gnu::noinline]] Stop hang(const Thread& t, const Chunk* chunk, const char* why) {
  if (chunk)
    log_error("qpu: %s at pc 0x%08x, word 0x%016x", why, t.pc,
              chunk->words[t.pc % Chunk::kBytes / sizeof(uint64_t)]);
  else
    log_error("qpu: %s at pc 0x%08x", why, t.pc);
  return Stop::kHang;
}

// ---- Trace

void trace_register(const char* name, uint32_t index, const Lanes& v) {
  std::string text = absl::StrFormat("    %s%u =", name, index);
  for (int i = 0; i < kLanes; ++i) absl::StrAppendFormat(&text, " %08x", uint32_t{v[i]});
  log_line("qpu", text);
}

void trace_instruction(int version, const Chunk& chunk, const Thread& t) {
  const uint32_t index = t.pc % Chunk::kBytes / sizeof(uint64_t);
  const std::string text = chunk.steps[index].kind == Step::Kind::kInvalid
                               ? absl::StrFormat("invalid %016x", chunk.words[index])
                               : disassemble(version, chunk.instructions[index]);
  log_line("qpu",
           absl::StrFormat("thread %u  %08x  a=%04x b=%04x  %s", t.tidx, t.pc, t.flag_a, t.flag_b, text));
}

// The registers that an instruction may have changed.
void trace_results(const Instruction& i, const Thread& t, bool rf0_or_r5) {
  for (const AluHalf* half : {&i.add, &i.mul})
    if (info(half->op).has_destination && !half->magic) trace_register("rf", half->waddr, t.rf[half->waddr]);
  if ((i.signals & kSignalsWithAddress) && !i.signal_magic)
    trace_register("rf", i.signal_waddr, t.rf[i.signal_waddr]);
  if (rf0_or_r5) trace_register("rf", 0, t.rf[0]);
}

// ---- The loop

// One instruction with everything that can happen.
template <bool trace>
const char* run_step(int version, const Chunk& chunk, const Step& step, Thread& t) {
  if constexpr (trace) trace_instruction(version, chunk, t);
  const uint32_t index = t.pc % Chunk::kBytes / sizeof(uint64_t);
  land_delayed_writes(version, t);
  const char* error = nullptr;
  switch (step.kind) {
    case Step::Kind::kFast:
      if (!run_fast(step, t)) error = "ldtmu without an outstanding lookup";
      break;
    case Step::Kind::kGeneral:
    case Step::Kind::kSetmsf:
      error = run_alu(version, step, t);
      break;
    case Step::Kind::kBranch:
      error = run_branch(chunk.instructions[index].branch, t);
      break;
    default:
      error = "invalid instruction";
      break;
  }
  if constexpr (trace)
    if (!chunk.instructions[index].is_branch)
      trace_results(chunk.instructions[index], t,
                    version >= 71 && (chunk.instructions[index].signals & (kLdunif | kLdunifa)));
  return error;
}

template <bool trace>
Stop execute(const Program& program, Thread& t) {
  const int version = program.version();
  const uint64_t budget = t.budget;
  uint64_t left = budget;
  const auto stop = [&](Stop why) {
    t.budget = left;
    t.instructions += budget - left;
    return why;
  };

  t.pc &= ~7u;
  const Chunk* chunk = nullptr;
  const Step* step = nullptr;
  const auto enter = [&] {
    chunk = program.chunk(t.memory, t.pc);
    if (chunk) step = &chunk->steps[t.pc % Chunk::kBytes / sizeof(uint64_t)];
    return chunk != nullptr;
  };
  const auto pc_of_step = [&] { return chunk->address + static_cast<uint32_t>(step - chunk->steps) * 8; };
  constexpr const char* kTooLarge = "program of more than 64 Ki instructions";

  if (!enter()) return stop(hang(t, nullptr, kTooLarge));
  bool busy = trace || t.pending.events != Events{};
  for (;;) {
    if (step->kind == Step::Kind::kFast && !busy) [[likely]] {
      if (left == 0) break;
      --left;
      if (!run_fast(*step, t)) {
        t.pc = pc_of_step();
        return stop(hang(t, chunk, "ldtmu without an outstanding lookup"));
      }
      ++step;
      continue;
    }
    t.pc = pc_of_step();
    if (step->kind == Step::Kind::kEnd) {
      if (!enter()) return stop(hang(t, nullptr, kTooLarge));
      continue;
    }
    if (left == 0) break;
    --left;
    if (const char* error = run_step<trace>(version, *chunk, *step, t)) return stop(hang(t, chunk, error));
    const After after = finish_instruction(step->signals, t);
    busy = trace || t.pending.events != Events{};
    if (after == After::kNext) {
      ++step;
      continue;
    }
    if (after == After::kEnd) return stop(Stop::kEnd);
    if (after == After::kSwitch) {
      if (t.pending.barrier) {
        t.pending.barrier = false;
        return stop(Stop::kBarrier);
      }
      if (t.stop_at_switch) return stop(Stop::kSwitch);
    }
    if (!enter()) return stop(hang(t, nullptr, kTooLarge));
  }
  t.pc = pc_of_step();
  return stop(Stop::kBudget);
}

}  // namespace

Stop run(const Program& program, Thread& thread) {
  return debug_on(Debug::kQpu) ? execute<true>(program, thread) : execute<false>(program, thread);
}

}  // namespace v3d::qpu
