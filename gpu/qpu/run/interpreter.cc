/// The interpreter. Facts: qpu.md 3.3 (order inside an instruction), 3.4 (latencies), 7 (control flow).
///
/// Most instructions are plain or masked steps: they write registers and flags and load at most one word.
/// They run in the inner loop. Everything else, and every instruction while a thread switch, a branch or the
/// end is under way, takes run_step(), which keeps the exact order of commits.

#include "gpu/qpu/run/interpreter.h"

#include <optional>
#include <utility>

#include "gpu/base/host_time.h"
#include "gpu/base/qpu_place.h"
#include "gpu/qpu/run/compiled.h"
#include "gpu/qpu/run/observer.h"
#include "gpu/qpu/run/ports.h"
#include "gpu/qpu/run/program.h"
#include "gpu/qpu/run/step.h"
#include "gpu/qpu/run/step_cursor.h"

namespace v3d::qpu {
namespace {

// Why a thread hangs.
constexpr const char* kEmptyQueue = "ldtmu without an outstanding lookup";

using Target = StepTarget::Target;
using Events = Thread::Pending::Events;
using Sync = Thread::Pending::Sync;

// What Source::immediate selects.
struct Bases {
  const char* base[2];
  explicit Bases(const Thread& t)
      : base{reinterpret_cast<const char*>(&t), reinterpret_cast<const char*>(kImmediateLanes)} {}
  const Lanes& operator[](Source s) const {
    return *reinterpret_cast<const Lanes*>(base[s.immediate] + s.offset);
  }
};

inline Lanes& at_offset(Thread& t, uint16_t offset) {
  return *reinterpret_cast<Lanes*>(reinterpret_cast<char*>(&t) + offset);
}

inline Lanes blend(LaneMask mask, Lanes a, Lanes b) {
#ifdef __AVX512F__
  typedef int Native __attribute__((vector_size(64)));
  return reinterpret_cast<Lanes>(
      __builtin_ia32_blendmd_512_mask(reinterpret_cast<Native>(b), reinterpret_cast<Native>(a), mask));
#else
  return select(mask, a, b);
#endif
}

// The flags as they were before the instruction.
struct Flags {
  LaneMask of[2];
  explicit Flags(const Thread& t) : of{t.flag_a, t.flag_b} {}
};

inline LaneMask lanes_where(const Condition& c, const Flags& flags) {
  return static_cast<LaneMask>((flags.of[c.flag] ^ c.invert) | c.always);
}

inline void write_flags(const FlagUpdate& update, Thread& t, const Flags& old, LaneMask x) {
  const uint32_t a = old.of[0], b = old.of[1];
  t.flag_a = static_cast<LaneMask>(((a ^ update.invert_a) | update.push) & (x ^ update.invert_x));
  t.flag_b = static_cast<LaneMask>((a & update.push) | (b & ~update.push));
}

// What a half computed and has not written yet.
struct Result {
  Lanes value;
  LaneMask exec, x;
};

inline Result compute(const Half& half, Thread& t, const Flags& flags, Lanes a, Lanes b) {
  Result result;
  result.exec = lanes_where(half.condition, flags);
  if (half.active_lanes) result.exec &= active_lanes(t);
  result.value = half.alu(t, a, b, result.exec);
  result.x = half.flags.x ? half.flags.x(a, b, result.value) : 0;
  return result;
}

inline void store_register(const StepTarget& to, Pack pack, Thread& t, Lanes value, LaneMask exec) {
  Lanes& destination = at_offset(t, to.offset);
  if (pack != Pack::kNone) value = packed(pack, value, destination);
  if (to.target == Target::kQuad) value = replicate_quads(value);
  if (to.target == Target::kRep) value = splat(uint32_t{value[0]});
  destination = blend(exec, value, destination);
}

// ---- Plain and masked steps. Their halves are in an order in which the second may run after the first has
// written its register.

inline void run_plain_half(const Half& half, Thread& t, const Bases& bases) {
  at_offset(t, half.to.offset) = half.alu(t, bases[half.a], bases[half.b], kAllLanes);
}

inline void run_plain(const Step& step, Thread& t, const Bases& bases) {
  if (!step.first.alu) return;
  run_plain_half(step.first, t, bases);
  if (step.second.alu) run_plain_half(step.second, t, bases);
}

inline LaneMask run_masked_half(const Half& half, Thread& t, const Flags& flags, const Bases& bases) {
  const Result result = compute(half, t, flags, bases[half.a], bases[half.b]);
  if (half.to.target != Target::kNone) store_register(half.to, half.pack, t, result.value, result.exec);
  return result.x;
}

inline void run_masked(const Step& step, Thread& t, const Bases& bases) {
  const Flags flags(t);
  const LaneMask x = run_masked_half(step.first, t, flags, bases);
  if (step.second.alu) {
    const LaneMask second_x = run_masked_half(step.second, t, flags, bases);
    if (step.second.flags.x) write_flags(step.second.flags, t, flags, second_x);
  }
  if (step.first.flags.x) write_flags(step.first.flags, t, flags, x);
}

// False: ldtmu with nothing outstanding.
inline bool run_load(const Step& step, Thread& t) {
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
    case Step::Load::kVary:
      at_offset(t, step.load_offset) = next_varying(t);
      return true;
  }
  return true;
}

// The C coefficient of a ldvary two instructions ago.
inline void land_varying(uint16_t implicit, Thread& t) {
  Thread::Pending& p = t.pending;
  const bool lands = p.events.vary & 1;
  p.events.vary >>= 1;
  if (lands) at_offset(t, implicit) = t.varying_c(p.events.vary);
}

// ---- General steps

// 4.2 with `rot`: accumulators rotate through all lanes, registers inside their quads.
Lanes rotated(const Step& step, const Thread& t, Source from) {
  const Lanes v = Bases(t)[from];
  const uint32_t count = step.rotate ? small_immediate(step.rotate) : uint32_t{t.acc[5][0]};
  if (from.immediate) return v;
  if (from.offset >= register_offset(kFirstAccumulator)) return permute(v, (kLaneIndex - count) & 15u);
  return permute(v, (kLaneIndex & 12u) | ((kLaneIndex - count) & 3u));
}

const char* commit(const StepTarget& to, Pack pack, Thread& t, Lanes value, LaneMask exec) {
  if (to.target == Target::kNone) return nullptr;
  if (to.target != Target::kPort) {
    store_register(to, pack, t, value, exec);
    return nullptr;
  }
  if (pack != Pack::kNone) value = packed(pack, value, Lanes{});
  return write_port(t, to.port, value, exec);
}
const char* commit(const Half& half, Thread& t, const Result& result) {
  return commit(half.to, half.pack, t, result.value, result.exec);
}

// Effects of earlier instructions that this one sees: qpu.md 3.3, step 1.
void land_delayed_writes(uint16_t implicit, Thread& t) {
  land_varying(implicit, t);
  Thread::Pending& p = t.pending;
  if (p.events.sfu & 1) {
    t.at(kSfuResult) = p.sfu_result[p.sfu_oldest];
    p.sfu_oldest ^= 1;
  }
  p.events.sfu >>= 1;
}

// One ALU word. Returns nullptr, or why the thread hangs.
const char* run_alu(uint16_t implicit, const Step& step, Thread& t, const Bases& bases) {
  const Flags flags(t);
  const Half& add = step.first;
  const Half& mul = step.second;
  Result add_result = {}, mul_result = {};
  if (add.alu) add_result = compute(add, t, flags, bases[add.a], bases[add.b]);
  if (mul.alu) {
    const bool rotate = step.signals & kRotate;
    const Lanes a = rotate ? rotated(step, t, mul.a) : bases[mul.a];
    const Lanes b = rotate ? rotated(step, t, mul.b) : bases[mul.b];
    mul_result = compute(mul, t, flags, a, b);
  }

  // Signals fetch their values. wrtmuc belongs to a lookup that this word starts.
  const uint16_t signals = step.signals;
  Lanes loaded = Lanes{}, implicitly = Lanes{};
  if ((signals & kLdtmu) && !pop_tmu(t, loaded)) return kEmptyQueue;
  if (signals & kLdvary) loaded = next_varying(t);
  if (signals & (kLdtlb | kLdtlbu)) loaded = read_tlb(t, signals & kLdtlbu);
  if (signals & kLdunifrf) loaded = splat(next_uniform(t));
  if (signals & kLdunifarf) loaded = splat(next_unifa(t));
  if (signals & kLdunif) implicitly = splat(next_uniform(t));
  if (signals & kLdunifa) implicitly = splat(next_unifa(t));
  if (signals & kWrtmuc) write_texture_config(t);

  const char* error = nullptr;
  if (add.alu && !step.setmsf) error = commit(add, t, add_result);
  if (mul.alu && !error) error = commit(mul, t, mul_result);
  if (signals & kSignalsImplicit) at_offset(t, implicit) = implicitly;
  if ((signals & kSignalsWithAddress) && !error)
    error = commit(step.signal_to, Pack::kNone, t, loaded, kAllLanes);
  if (add.flags.x) write_flags(add.flags, t, flags, add_result.x);
  if (mul.flags.x) write_flags(mul.flags, t, flags, mul_result.x);
  if (step.setmsf) commit(add, t, add_result);
  return error;
}

bool branch_taken(const Branch& b, const Thread& t) {
  if (b.cond == BranchCond::kA0 || b.cond == BranchCond::kNa0)
    return (t.flag_a & 1) == (b.cond == BranchCond::kA0);
  LaneMask lanes = kAllLanes;
  if (b.msfign != Msfign::kNone) lanes = nonzero(t.msf);
  if (b.msfign == Msfign::kQ) lanes = whole_quads(lanes);
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

// What happens after an instruction: qpu.md 7.2.
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

[[gnu::cold, gnu::noinline]] Stop hang(Thread& t, const char* why) {
  t.hang = why;
  return Stop::kHang;
}

// ---- The loop

// One instruction with everything that can happen. Returns nullptr, or why the thread hangs.
template <bool observed>
const char* run_step(uint16_t implicit, const Chunk& chunk, const Step& step, Thread& t, const Bases& bases) {
  land_delayed_writes(implicit, t);
  if constexpr (observed)
    t.observer->before(t, chunk.words[step.index],
                       step.kind == Step::Kind::kInvalid ? nullptr : &chunk.instructions[step.index]);
  const char* error = nullptr;
  switch (step.kind) {
    case Step::Kind::kPlain:
      run_plain(step, t, bases);
      if (!run_load(step, t)) error = kEmptyQueue;
      break;
    case Step::Kind::kMasked:
      run_masked(step, t, bases);
      if (!run_load(step, t)) error = kEmptyQueue;
      break;
    case Step::Kind::kGeneral:
      error = run_alu(implicit, step, t, bases);
      break;
    case Step::Kind::kBranch:
      error = run_branch(chunk.instructions[step.index].branch, t);
      break;
    default:
      error = "invalid instruction";
      break;
  }
  if constexpr (observed) t.observer->after(t, error);
  return error;
}

// Events that the inner loop does not look at.
bool needs_care(const Events& e) {
  return e.switch_in | e.end_in | e.branch_in | e.sfu | e.previous_was_thrsw;
}

Observer::Next next_of(After after, const Thread& t) {
  switch (after) {
    case After::kNext:
      return Observer::Next::kContinue;
    case After::kJump:
      return Observer::Next::kJump;
    case After::kSwitch:
      return t.pending.sync != Sync::kNone ? Observer::Next::kBarrier : Observer::Next::kSwitch;
    case After::kEnd:
      return Observer::Next::kEnd;
  }
  return Observer::Next::kContinue;
}

// What a thread does after a switch that took effect: empty if it goes on.
std::optional<Stop> stop_at_switch(Thread& t) {
  if (t.pending.sync != Sync::kNone) {
    const bool barrier = std::exchange(t.pending.sync, Sync::kNone) == Sync::kBarrier;
    return barrier ? Stop::kBarrier : Stop::kMeeting;
  }
  return t.stop_at_switch ? std::optional(Stop::kSwitch) : std::nullopt;
}

enum class Mode {
  kToStop,
  kToBlock,   ///< ... or until a branch or a thread switch took effect: then the result is empty
  kObserved,  ///< with calls of thread.observer, until a block at which it rests: then the result is empty
};

template <Mode mode>
std::optional<Stop> execute(const Program& program, Thread& t) {
  constexpr bool kIsObserved = mode == Mode::kObserved;
  const uint16_t implicit = register_offset(isa(program.generation()).implicit);
  const Bases bases(t);
  StepCursor<Program, Chunk, Thread> cursor(program, t);
  const auto stop = [&](std::optional<Stop> why) { return cursor.stop(why); };

  if (!cursor.enter()) return stop(hang(t, kProgramTooLarge));
  bool careful = kIsObserved || needs_care(t.pending.events);
  for (;;) {
    const Step& step = cursor.step();
    if (step.kind <= Step::Kind::kMasked && !careful) [[likely]] {
      if (cursor.spent()) break;
      cursor.charge();
      if (t.pending.events.vary) land_varying(implicit, t);
      if (step.kind == Step::Kind::kPlain)
        run_plain(step, t, bases);
      else
        run_masked(step, t, bases);
      if (step.load != Step::Load::kNone) {
        cursor.set_pc();  // for who finds that there is no memory
        if (!run_load(step, t)) return stop(hang(t, kEmptyQueue));
        if (t_fault_cost != 0) [[unlikely]]
          cursor.pay(std::exchange(t_fault_cost, 0));
      }
      cursor.advance();
      continue;
    }
    cursor.set_pc();
    if (step.kind == Step::Kind::kEnd) {
      if (!cursor.enter()) return stop(hang(t, kProgramTooLarge));
      continue;
    }
    if (cursor.spent()) break;
    cursor.charge();
    if (const char* error = run_step<kIsObserved>(implicit, cursor.chunk(), step, t, bases))
      return stop(hang(t, error));
    if (t_fault_cost != 0) [[unlikely]]
      cursor.pay(std::exchange(t_fault_cost, 0));
    const After after = finish_instruction(step.signals, t);
    if constexpr (kIsObserved) t.observer->finished(t, next_of(after, t));
    careful = kIsObserved || needs_care(t.pending.events);
    if (after == After::kNext) {
      cursor.advance();
      continue;
    }
    if (after == After::kEnd) return stop(Stop::kEnd);
    if (after == After::kSwitch) {
      if (const auto why = stop_at_switch(t)) return stop(*why);
    }
    if constexpr (mode == Mode::kToBlock) return stop(std::nullopt);
    if constexpr (kIsObserved)
      if (t.observer->rests) return stop(std::nullopt);
    if (!cursor.enter()) return stop(hang(t, kProgramTooLarge));
  }
  cursor.set_pc();
  return stop(Stop::kBudget);
}

// Host code and interpreter take turns: the latter runs what the former leaves to it, up to the next block.
/// @param leave  how the thread left the code before
/// @param before  Thread::instructions when it began
/// @param interpreted  how many instructions
Stop go_on(const Program& program, const HostProgram& code, HostProgram::Leave leave, Thread& t,
           uint64_t before, uint64_t& interpreted) {
  using Why = HostProgram::Leave::Why;
  for (;; leave = code.run(t, program.entry())) {
    std::optional<Stop> stop;
    switch (leave.why) {
      case Why::kEnd:
        return Stop::kEnd;
      case Why::kHang:
        return hang(t, leave.error);
      case Why::kSwitch:
        stop = stop_at_switch(t);
        break;
      case Why::kBudget:
        if (t.stop_at_block) {
          if (t.instructions != before) return Stop::kBudget;
          t.budget = leave.needed;
          break;
        }
        [[fallthrough]];
      case Why::kElsewhere: {
        const uint64_t executed = t.instructions;
        stop = execute<Mode::kToBlock>(program, t);
        interpreted += t.instructions - executed;
        break;
      }
    }
    if (stop) return *stop;
  }
}

// Runs code in which the thread is not seen. @return  empty: it is to be seen on
std::optional<Stop> run_unseen(const Program& program, const HostProgram& code, Thread& t) {
  using Why = HostProgram::Leave::Why;
  const uint64_t before = t.instructions;
  for (;;) {
    const HostProgram::Leave leave = code.run(t, program.entry());
    switch (leave.why) {
      case Why::kEnd:
        t.observer->finished(t, Observer::Next::kEnd);
        return Stop::kEnd;
      case Why::kHang:
        t.observer->finished(t, Observer::Next::kEnd);
        return hang(t, leave.error);
      case Why::kSwitch:
        if (const auto stop = stop_at_switch(t)) return stop;
        break;
      case Why::kBudget:
        if (t.stop_at_block && t.instructions != before) return Stop::kBudget;
        return std::nullopt;
      case Why::kElsewhere:
        return std::nullopt;
    }
  }
}

// Where the observer rests, code runs in the interpreter's place.
Stop run_observed(const Program& program, Thread& t) {
  for (;;) {
    const HostProgram* const code = t.observer->rests ? t.observer->host_code(program, t) : nullptr;
    if (code) {
      if (const auto stop = run_unseen(program, *code, t)) return *stop;
      t.observer->left_host_code();
    }
    if (const auto stop = execute<Mode::kObserved>(program, t)) return *stop;
  }
}

void count(const Program& program, const Thread& thread, const Executions::Counts& counts) {
  program.count(thread, counts);
  if (host_time::g_on) [[unlikely]]
    host_time::add_interpreted(counts.interpreted);
}

}  // namespace

Stop run(const Program& program, Thread& thread) {
  thread.pc &= ~7u;
  if (thread.observer) return run_observed(program, thread);
  const uint64_t before = thread.instructions;
  if (const HostProgram* const code = program.compiled(thread)) {
    uint64_t interpreted = 0;
    const Stop stop = go_on(program, *code, code->run(thread, program.entry()), thread, before, interpreted);
    count(program, thread, {thread.instructions - before - interpreted, interpreted});
    return stop;
  }
  const Stop stop = *execute<Mode::kToStop>(program, thread);
  count(program, thread, {0, thread.instructions - before});
  return stop;
}

/// A thread that is watched, or for which there was no code when the series began.
Stop Series::run_outside(Thread& thread) {
  const HostProgram* const code = thread.observer ? nullptr : program_->compiled(thread);
  if (!code) return qpu::run(*program_, thread);
  begin(*program_, code);
  return run(thread);
}

/// With a thread that did not end in host code. @param before  instructions of it that are counted
Stop Series::go_on(HostProgram::Leave leave, Thread& thread, uint64_t before) {
  uint64_t interpreted = 0;
  const Stop stop = qpu::go_on(*program_, *code_, leave, thread, before, interpreted);
  if (interpreted != 0) qpu::count(*program_, thread, {0, interpreted});
  count(thread.instructions - before - interpreted);
  return stop;
}

Stop Series::go_on(Thread& thread) {
  if (!code_ || thread.observer) return qpu::run(*program_, thread);
  const uint64_t before = thread.instructions;
  return go_on(host_->go_on(thread), thread, before);
}

void Series::tell() { program_->count_compiled(std::exchange(compiled_, 0)); }

void Series::end() {
  if (program_) tell();
  program_ = nullptr;
}

}  // namespace v3d::qpu
