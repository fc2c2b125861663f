#include "gpu/qpu/run/vc4_interpreter.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>
#include <vector>

#include "gpu/base/host_time.h"
#include "gpu/base/qpu_place.h"
#include "gpu/qpu/run/step_cursor.h"
#include "gpu/qpu/run/vc4_alu.h"
#include "gpu/qpu/run/vc4_ports.h"
#include "gpu/qpu/run/vc4_step.h"
#include "gpu/qpu/run/vc4_stretch.h"

namespace v3d::qpu::vc4 {

void Thread::reset() {
  for (Lanes& r : registers) r = Lanes{};
  pc = uniforms = 0;
  memory = Memory();
  qpu_number = 0;
  threads_per_qpu = 1;
  tlb = nullptr;
  tmu = nullptr;
  shared = nullptr;
  vpm_in = vpm_out = {};
  varyings = nullptr;
  num_varyings = 0;
  pixel_x = pixel_y = ms_flags = Lanes{};
  back_facing = 0;
  hang = nullptr;
  restart();
}

void Thread::restart() {
  std::fill(std::begin(flags), std::end(flags), LaneMask{0});
  budget = UINT64_MAX;
  instructions = moves = 0;
  observer = nullptr;
  host_interrupts = 0;
  Pending& p = pending;
  p.events = {};
  p.next_varying = 0;
  p.vpm_reads = {};
  p.vpm_write = {};
  p.dma = {};
  p.dma_elements = 0;
  for (Pending::Unit& unit : p.tmu) {
    unit.lookup = {};
    unit.head = unit.tail = 0;
  }
}

namespace {

using Target = StepTarget::Target;
using Events = Thread::Pending::Events;

constexpr const char* kBranchInSlot = "a branch in the first two delay slots of another";

// What Source::immediate selects.
struct Bases {
  const char* base[2];
  explicit Bases(const Thread& t)
      : base{reinterpret_cast<const char*>(&t), reinterpret_cast<const char*>(kImmediates)} {}
  const Lanes& operator[](const Source& s) const {
    return *reinterpret_cast<const Lanes*>(base[s.immediate] + s.offset);
  }
};

inline void fetch_uniform(const Step& step, Thread& t) {
  const Lanes value = splat(next_uniform(t));
  if (step.read_a == ReadPort::kUniform) t.registers[Thread::kPortA] = value;
  if (step.read_b == ReadPort::kUniform) t.registers[Thread::kPortB] = value;
}

// One value a port and word, which both files see. False if the thread has to wait.
bool fetch(const Step& step, Thread& t) {
  const ReadPort a = step.read_a, b = step.read_b;
  if ((a == ReadPort::kMutex || b == ReadPort::kMutex) && waits_for_mutex(t)) return false;
  if (a == ReadPort::kUniform || b == ReadPort::kUniform) fetch_uniform(step, t);
  if (a != ReadPort::kNone && a != ReadPort::kUniform) t.registers[Thread::kPortA] = read_port(t, a, kFileA);
  if (b == ReadPort::kNone || b == ReadPort::kUniform) return true;
  const bool same = a == b && (b == ReadPort::kVpm || b == ReadPort::kVarying);
  t.registers[Thread::kPortB] = same ? Lanes(t.registers[Thread::kPortA]) : read_port(t, b, kFileB);
  return true;
}

// What a half computed and has not written yet.
struct Result {
  Lanes value;
  LaneMask exec, carry, overflow;
};

inline Lanes operand(const Source& s, const Bases& bases) {
  return s.unpack == 0 ? bases[s] : unpacked(s.unpack, s.to_float, bases[s]);
}

inline Result compute(const Half& half, const Thread& t, const Lanes& a, const Lanes& b, bool sets_flags) {
  Result result;
  result.exec = lanes_where(half.condition, t);
  result.value = half.alu(a, b);
  const bool packs = half.pack == Half::Pack::kToA;
  result.carry = (sets_flags || packs) && half.carry ? negative(half.carry(a, b, result.value)) : LaneMask{0};
  result.overflow = packs ? negative(overflow(half.op, a, b, result.value)) : LaneMask{0};
  return result;
}

inline void store_register(const Half& half, Thread& t, const Result& result) {
  Lanes& to = register_at(t, half.to.offset);
  Lanes value = result.value;
  if (half.pack == Half::Pack::kToA) {
    const bool is_float = (info(half.op).floats & kGivesFloats) != 0;
    value = packed_to_a(half.pack_mode, {value, expand(result.carry), expand(result.overflow), is_float}, to);
  } else if (half.pack == Half::Pack::kToUnorm8) {
    value = packed_to_unorm8(half.pack_mode, value, to);
  }
  LaneMask exec = result.exec;
  if (half.to.target == Target::kQuads) {
    value = permute(value, kLaneIndex & 12u);
    exec = static_cast<LaneMask>((exec & 0x1111) * 15);
  } else if (half.to.target == Target::kLane0) {
    value = splat(uint32_t{value[0]});
    exec = exec & 1 ? kAllLanes : LaneMask{0};
  }
  to = exec == kAllLanes ? value : select(exec, value, to);
}

const char* commit(const Half& half, Thread& t, const Result& result) {
  if (half.to.target == Target::kNone) return nullptr;
  if (half.to.target != Target::kPort) {
    store_register(half, t, result);
    return nullptr;
  }
  Lanes value = result.value;
  if (half.pack == Half::Pack::kToUnorm8) value = packed_to_unorm8(half.pack_mode, value, Lanes{});
  return write_port(t, half.to.port, value, result.exec);
}

// Flags change where the condition of the half holds.
inline void write_flags(Thread& t, const Result& result) {
  const auto set = [&](Thread::Flag flag, LaneMask lanes) {
    t.flags[flag] = static_cast<LaneMask>((t.flags[flag] & ~result.exec) | (lanes & result.exec));
  };
  set(Thread::kZ, static_cast<LaneMask>(~nonzero(result.value)));
  set(Thread::kN, negative(as_int(result.value)));
  set(Thread::kC, result.carry);
}

Lanes rotated(const Step& step, const Thread& t, const Source& s, const Lanes& value) {
  if (!step.rotates) return value;
  const uint32_t count =
      step.rotate_code == kRotateByR5 ? uint32_t{t.r(5)[0]} : step.rotate_code - kRotateByR5;
  return rotated_operand(value, s.from_accumulator, count & 15u);
}

// What a signal brings to r4 after the instruction.
const char* load_r4(Signal signal, Thread& t, Lanes& r4) {
  switch (signal) {
    case Signal::kLoadTmu0:
    case Signal::kLoadTmu1:
      return pop_tmu(t, signal == Signal::kLoadTmu1, r4) ? nullptr : kEmptyQueue;
    case Signal::kColorLoad:
    case Signal::kColorLoadEnd:
      if (!t.tlb) return kNoTileBuffer;
      r4 = t.tlb->load_color(t);
      return nullptr;
    default:
      return nullptr;
  }
}

constexpr bool loads_r4(Signal signal) {
  return signal == Signal::kLoadTmu0 || signal == Signal::kLoadTmu1 || signal == Signal::kColorLoad ||
         signal == Signal::kColorLoadEnd;
}

enum class Outcome { kDone, kWait, kHang };

// Any ALU word, immediate or semaphore.
Outcome run_general(const Step& step, Thread& t, const Bases& bases) {
  const auto fail = [&](const char* why) {
    t.hang = why;
    return Outcome::kHang;
  };
  if (step.is_semaphore) {
    if (!t.shared) return fail("a semaphore in a program that has none to share");
    if (waits_for_semaphore(t, step.instruction.immediate)) return Outcome::kWait;
  }
  if (step.has_immediate) {
    const auto mode = step.is_semaphore ? kImmediate32 : static_cast<ImmediateMode>(step.instruction.unpack);
    t.registers[Thread::kPortB] = immediate_lanes(step.instruction.immediate, mode);
  } else if (step.reads_port && !fetch(step, t)) {
    return Outcome::kWait;
  }
  Result add, mul;
  if (step.add.alu)
    add = compute(step.add, t, operand(step.add.a, bases), operand(step.add.b, bases), step.add_sets_flags);
  if (step.mul.alu)
    mul = compute(step.mul, t, rotated(step, t, step.mul.a, operand(step.mul.a, bases)),
                  rotated(step, t, step.mul.b, operand(step.mul.b, bases)), step.mul_sets_flags);
  Lanes r4 = {};
  if (const char* error = load_r4(step.signal, t, r4)) return fail(error);
  if (step.add.alu)
    if (const char* error = commit(step.add, t, add)) return fail(error);
  if (step.mul.alu)
    if (const char* error = commit(step.mul, t, mul)) return fail(error);
  if (step.add_sets_flags) write_flags(t, add);
  if (step.mul_sets_flags) write_flags(t, mul);
  if (loads_r4(step.signal)) t.r(4) = r4;
  if (step.reads_varying) land_varying(t);
  return Outcome::kDone;
}

bool branch_taken(BranchCond cond, const Thread& t) {
  if (cond == BranchCond::kAlways) return true;
  const int code = static_cast<int>(cond);
  const LaneMask flag = t.flags[code / 4];
  const LaneMask lanes = code % 2 ? static_cast<LaneMask>(~flag) : flag;
  return code % 4 < 2 ? lanes == kAllLanes : lanes != 0;
}

Outcome run_branch(const Step& step, Thread& t) {
  const Instruction& i = step.instruction;
  Thread::Pending& p = t.pending;
  if (p.events.branch_in > 0) {
    t.hang = kBranchInSlot;
    return Outcome::kHang;
  }
  if (!branch_taken(i.branch_cond, t)) return Outcome::kDone;
  const GpuAddr behind = t.pc + 32;
  const uint32_t base =
      (i.relative ? behind : 0) + (i.with_register ? uint32_t{t.ra(i.raddr_a & 31)[15]} : 0);
  p.branch_target = (base + i.immediate) & ~7u;
  p.events.branch_in = 3;
  const Result link = {splat(behind), kAllLanes, 0, 0};
  for (const Half* half : {&step.add, &step.mul}) {
    if (half->to.target != Target::kNone && half->to.target != Target::kPort) {
      Half whole = *half;
      whole.pack = Half::Pack::kNone;
      store_register(whole, t, link);
    }
  }
  if (i.with_register && (i.raddr_a & 1)) write_flags(t, link);
  return Outcome::kDone;
}

bool counts_down(uint8_t& counter) { return counter != 0 && --counter == 0; }

bool any(const Events& e) { return e.branch_in | e.end_in | e.sfu_in; }

using After = Observer::Next;

After finish_instruction(Signal signal, GpuAddr target, bool jumps, Thread& t) {
  Events& e = t.pending.events;
  if (counts_down(e.sfu_in)) t.r(4) = t.pending.sfu_result;
  const bool ends = counts_down(e.end_in);
  if (signal == Signal::kEnd || signal == Signal::kColorLoadEnd) e.end_in = 2;
  t.pc = jumps ? target : t.pc + 8;
  if (ends) return After::kEnd;
  return jumps ? After::kJump : After::kContinue;
}

Outcome run_step(const Step& step, Thread& t, const Bases& bases) {
  switch (step.kind) {
    case Step::Kind::kGeneral:
      return run_general(step, t, bases);
    case Step::Kind::kBranch:
      return run_branch(step, t);
    default:
      t.hang = step.flaw;
      return Outcome::kHang;
  }
}

/// @return  null, or why the thread hangs at thread.pc
const char* run_actions(const Chunk& chunk, const StepRun& run, Thread& t) {
  const Action* const end = chunk.actions + run.end;
  for (const Action* action = chunk.actions + run.first; action != end; ++action)
    if (const char* error = action->run(t, *action)) [[unlikely]]
      return error;
  return nullptr;
}

/// Instructions that a call of run() compiles: nobody looks at the job meanwhile.
constexpr uint32_t kMostCompiled = 256;
static_assert(kMostCompiled >= Stretch::kMostSteps);

/// Tells the compiler, and who asks for the host's time, what was executed, at the end of a call of run().
class ExecutionCount {
 public:
  ExecutionCount(const Program& program, const Thread& t)
      : compiler_(program.compiler()), thread_(t), before_(t.instructions) {}
  ~ExecutionCount() {
    if (!compiler_ && !host_time::g_on) return;
    const uint64_t all = thread_.instructions - before_, by_code = std::min(compiled, all);
    if (compiler_) compiler_->executions.add({by_code, all - by_code});
    if (host_time::g_on) [[unlikely]]
      host_time::add_interpreted(all - by_code);
  }
  ExecutionCount(const ExecutionCount&) = delete;
  ExecutionCount& operator=(const ExecutionCount&) = delete;

  uint64_t compiled = 0;

 private:
  RunCompiler* const compiler_;
  const Thread& thread_;
  const uint64_t before_;
};

/// A call of run(). Who is watched executes instructions, and so does who waits for what they began; others
/// execute host code, or actions.
template <bool observed>
class Execution {
 public:
  Execution(const Program& program, Thread& t)
      : program_(program), t_(t), bases_(t), count_(program, t), cursor_(program, t) {}

  Stop run() {
    if (!cursor_.enter()) return too_large();
    careful_ = observed || any(t_.pending.events);
    for (;;) {
      const Step& step = cursor_.step();
      Next next = Next::kNotDone;
      if (!careful_) [[likely]] {
        next = run_code(step);
        if (next == Next::kNotDone) next = run_run(step);
      }
      if (next == Next::kNotDone) next = run_one(step);
      if (next == Next::kStop) return stop_;
    }
  }

 private:
  enum class Next : uint8_t {
    kNotDone,
    kGoOn,
    kStop,  ///< with stop_
  };

  Stop too_large() {
    t_.hang = kProgramTooLarge;
    return cursor_.stop(Stop::kHang);
  }
  Next stop(Stop why) {
    stop_ = cursor_.stop(why);
    return Next::kStop;
  }
  Next hang(const char* why) {
    t_.hang = why;
    return stop(Stop::kHang);
  }
  /// At thread.pc.
  Next enter() {
    if (cursor_.enter()) return Next::kGoOn;
    stop_ = too_large();
    return Next::kStop;
  }
  void pay_for_faults() {
    if (t_fault_cost != 0) [[unlikely]]
      cursor_.pay(std::exchange(t_fault_cost, 0));
  }

  /// The host code that begins at the step. Null: there is none.
  const RunCode* code_of(const Step& step) {
    if (!step.compiles || t_.uniforms > ~kMaxUniformBytes) return nullptr;
    const Chunk& chunk = cursor_.chunk();
    const RunCode* const code = chunk.host[step.index].code.load(std::memory_order_acquire);
    if (code) [[likely]]
      return code;
    // Only where something other than actions led: else each of their runs would have code of its own.
    return program_.compiler() && at_begin_ ? program_.find_code(chunk, step.index, room_) : nullptr;
  }

  Next run_code(const Step& step) {
    const RunCode* const code = code_of(step);
    if (!code || !cursor_.affords(code->steps)) return Next::kNotDone;
    cursor_.set_pc();
    const GpuAddr begin = t_.pc;
    const char* const error = code->function(t_);
    if (error) [[unlikely]] {
      if (error == kDeclined) return Next::kNotDone;
      if (error == kUnsure) {
        program_.note_unsure(cursor_.chunk(), step.index, room_);
        return Next::kNotDone;
      }
      if (error == kThrown) std::rethrow_exception(std::exchange(t_thrown, nullptr));
    }
    const uint32_t steps = !error           ? code->steps
                           : error == kLeft ? (t_.pc - begin) / 8
                                            : (t_.pc - begin) / 8 + 1;
    count_.compiled += steps;
    cursor_.charge(steps);
    pay_for_faults();
    if (error && error != kLeft) return hang(error);
    t_.pc = begin + steps * 8u;
    at_begin_ = true;
    if (!error && code->ends) return stop(Stop::kEnd);
    careful_ = observed || any(t_.pending.events);
    return enter();
  }

  Next run_run(const Step& step) {
    const StepRun& run = step.run;
    if (run.steps == 0 || !cursor_.affords(run.steps)) return Next::kNotDone;
    cursor_.set_pc();
    const GpuAddr begin = t_.pc;
    const char* const error = run_actions(cursor_.chunk(), run, t_);
    cursor_.charge(error ? (t_.pc - begin) / 8 + 1 : run.steps);
    pay_for_faults();
    if (error) [[unlikely]]
      return hang(error);
    if (run.ends) {
      t_.pc = begin + run.steps * 8u;
      return stop(Stop::kEnd);
    }
    at_begin_ = false;
    cursor_.advance(run.steps);
    return Next::kGoOn;
  }

  Next run_one(const Step& step) {
    cursor_.set_pc();
    if (step.kind == Step::Kind::kEnd) return enter();
    if (cursor_.spent()) return stop(Stop::kBudget);
    // A branch in the last delay slot of another finds that this one takes effect.
    Events& e = t_.pending.events;
    const uint8_t branch_in = e.branch_in;
    const GpuAddr target = t_.pending.branch_target;
    const bool jumps = counts_down(e.branch_in);
    const uint64_t word = cursor_.chunk().words[step.index];
    if constexpr (observed) t_.observer->before(t_, word);
    const Outcome outcome = run_step(step, t_, bases_);
    if (outcome == Outcome::kWait) {
      e.branch_in = branch_in;
      return stop(Stop::kWait);
    }
    cursor_.charge();
    if (t_.pending.dma_elements != 0)
      t_.moves += cursor_.charge_more(std::exchange(t_.pending.dma_elements, 0) / kLanes);
    pay_for_faults();
    if constexpr (observed) t_.observer->after(t_, word, outcome == Outcome::kHang ? t_.hang : nullptr);
    if (outcome == Outcome::kHang) return stop(Stop::kHang);
    const After after = finish_instruction(step.signal, target, jumps, t_);
    if constexpr (observed) t_.observer->finished(t_, after);
    careful_ = observed || any(e);
    at_begin_ = !step.compiles || jumps;
    if (after == After::kEnd) return stop(Stop::kEnd);
    if (after == After::kJump) return enter();
    cursor_.advance();
    return Next::kGoOn;
  }

  const Program& program_;
  Thread& t_;
  const Bases bases_;
  ExecutionCount count_;
  StepCursor<Program, Chunk, Thread> cursor_;
  uint32_t room_ = kMostCompiled;
  bool careful_ = false;
  bool at_begin_ = true;  ///< something other than a run of actions led here
  Stop stop_ = Stop::kEnd;
};

}  // namespace

Stop run(const Program& program, Thread& thread) {
  thread.pc &= ~7u;
  return thread.observer ? Execution<true>(program, thread).run() : Execution<false>(program, thread).run();
}

Stop run_by_turns(std::span<const UserThread> threads, size_t& failed) {
  // Short enough that who waits for another does not wait for long, and long enough to run at full speed.
  constexpr uint64_t kTurn = 256;
  std::vector<bool> ended(threads.size(), false);
  for (size_t left = threads.size(); left > 0;) {
    bool moved = false;
    for (size_t n = 0; n < threads.size(); ++n) {
      if (ended[n]) continue;
      Thread& t = *threads[n].thread;
      const uint64_t before = t.instructions, turn = std::min(t.budget, kTurn), later = t.budget - turn;
      t.budget = turn;
      const Stop stop = run(*threads[n].program, t);
      t.budget += later;
      moved |= t.instructions > before;
      failed = n;
      if (stop == Stop::kHang || (stop == Stop::kBudget && t.budget == 0)) return stop;
      if (stop != Stop::kEnd) continue;
      ended[n] = moved = true;
      --left;
    }
    if (!moved) return Stop::kWait;
  }
  return Stop::kEnd;
}

}  // namespace v3d::qpu::vc4
