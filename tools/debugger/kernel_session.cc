#include "tools/debugger/kernel_session.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gpu/base/job_context.h"
#include "gpu/base/thread_pool.h"
#include "gpu/csd/dispatch.h"
#include "gpu/perf/counters.h"
#include "gpu/qpu/isa/instruction.h"
#include "gpu/qpu/run/observer.h"
#include "gpu/qpu/run/program_cache.h"

namespace v3d::debugger {

class KernelSession::ThreadObserver final : public qpu::Observer {
 public:
  ThreadObserver(KernelSession& session, uint64_t number) : session_(session), number_(number) {}
  void before(const qpu::Thread&, uint64_t, const qpu::Instruction*) override { session_.before(number_); }
  void after(const qpu::Thread&, const char* error) override {
    session_.after(number_, error);
    if (error) session_.ended(number_);
  }
  void finished(const qpu::Thread&, Next next) override {
    if (next == Next::kEnd) session_.ended(number_);
  }

 private:
  KernelSession& session_;
  const uint64_t number_;
};

class KernelSession::Watch final : public qpu::ThreadWatch {
 public:
  explicit Watch(KernelSession& session) : session_(session) {}
  void start(const char*, qpu::Thread& thread) override { start_batch(0, thread); }
  void start_batch(uint64_t number, qpu::Thread& thread) override {
    // A thread has ended before another batch begins on it: at most as many live as the chip has.
    auto& observer = observers_[&thread];
    observer = std::make_unique<ThreadObserver>(session_, number);
    thread.observer = observer.get();
    session_.begin_thread(number, thread);
  }

 private:
  KernelSession& session_;
  std::map<const qpu::Thread*, std::unique_ptr<ThreadObserver>> observers_;
};

KernelSession::KernelSession(tools::Kernel kernel, const chip::Profile& profile, Tell tell)
    : kernel_(std::move(kernel)), profile_(profile), tell_(std::move(tell)) {}
KernelSession::~KernelSession() { end(); }

void KernelSession::set_breakpoints(std::vector<Breakpoint> breakpoints) {
  const std::lock_guard lock(mutex_);
  breakpoints_ = std::move(breakpoints);
  hits_.clear();
}

void KernelSession::set_halts_at_faults(bool halts) {
  const std::lock_guard lock(mutex_);
  halts_at_faults_ = halts;
}

void KernelSession::begin(bool at_entry) {
  start({.kind = at_entry ? Goal::Kind::kEntry : Goal::Kind::kNone}, 0);
}

void KernelSession::go_on() { resume({}); }

void KernelSession::step(uint64_t thread, bool whole_line) {
  Goal goal{.kind = Goal::Kind::kInstruction, .thread = thread};
  {
    const std::lock_guard lock(mutex_);
    const auto at = threads_.find(thread);
    if (at != threads_.end()) goal.line = line_of(at->second.thread->pc);
  }
  if (whole_line && goal.line != 0) goal.kind = Goal::Kind::kLeaveLine;
  resume(goal);
}

void KernelSession::finish(uint64_t thread) { resume({.kind = Goal::Kind::kThreadEnd, .thread = thread}); }

uint64_t KernelSession::begun_by(uint64_t thread) {
  const std::lock_guard lock(mutex_);
  const auto at = threads_.find(thread);
  return at == threads_.end() ? 0 : at->second.begun;
}

absl::Status KernelSession::can_step_back(uint64_t thread) {
  if (begun_by(thread) < 2) return absl::FailedPreconditionError("the thread has executed nothing yet");
  return absl::OkStatus();
}

void KernelSession::step_back(uint64_t thread) {
  const uint64_t begun = begun_by(thread);
  if (begun < 2) return;
  start({.kind = Goal::Kind::kPlace, .thread = thread, .number = begun - 2, .at_breakpoints = false}, 0);
}

void KernelSession::go_back() {
  uint64_t here;
  {
    const std::lock_guard lock(mutex_);
    here = tick_;
  }
  start({.kind = Goal::Kind::kTick, .at_breakpoints = false}, here);
}

void KernelSession::pause() {
  const std::lock_guard lock(mutex_);
  pauses_ = true;
}

void KernelSession::end() { leave(); }

/// Whatever runs is over afterwards.
void KernelSession::leave() {
  {
    const std::lock_guard lock(mutex_);
    leaves_ = true;
    if (control_) control_->cancel();
    changed_.notify_all();
  }
  if (worker_.joinable()) worker_.join();
  const std::lock_guard lock(mutex_);
  leaves_ = false;
  state_ = State::kIdle;
}

/// @param last_before  not 0: the goal is the last breakpoint before this tick
void KernelSession::start(const Goal& goal, uint64_t last_before) {
  leave();
  state_ = State::kRunning;
  pauses_ = false;
  worker_ = std::thread([this, goal, last_before] { work(goal, last_before); });
}

void KernelSession::resume(const Goal& goal) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kHalted) return;
  goal_ = goal;
  state_ = State::kRunning;
  changed_.notify_all();
}

void KernelSession::work(Goal goal, uint64_t last_before) {
  if (last_before != 0) {
    scan_end_ = last_before;
    scanned_.reset();
    run({});
    scan_end_ = 0;
    {
      const std::lock_guard lock(mutex_);
      if (leaves_) return;
    }
    goal.number = scanned_.value_or(1);
  }
  run(goal);
}

/// From the first instruction to the last, unless it is left.
void KernelSession::run(const Goal& goal) {
  Halt over{.why = Halt::Why::kEnd};
  JobControl control;
  auto space = mmu::AddressSpace::create();
  if (space.ok())
    if (absl::Status mapped = tools::map_kernel(kernel_, **space); !mapped.ok()) space = std::move(mapped);
  {
    const std::lock_guard lock(mutex_);
    threads_.clear();
    hits_.clear();
    tick_ = faults_ = 0;
    first_fault_ = 0;
    goal_ = goal;
    space_ = space.ok() ? *std::move(space) : nullptr;
    control_ = &control;
    if (leaves_) control.cancel();
  }
  if (space_) {
    // One thread of the host: the course of a run does not depend on the host.
    ThreadPool pool(0);
    qpu::ProgramCache programs(profile_.generation, nullptr);
    JobError error;
    perf::JobCounts counts;
    Watch watch(*this);
    const JobContext context{.memory = space_->memory(),
                             .profile = &profile_,
                             .pool = &pool,
                             .programs = &programs,
                             .counts = &counts,
                             .error = &error,
                             .cancel = &control.cancelled(),
                             .watch = &watch,
                             .control = &control};
    try {
      csd::dispatch(context, tools::job_of(kernel_, profile_).cfg, false, space_.get());
    } catch (const std::bad_alloc&) {
      error.set("out of memory");
    }
    over.ended_well = !error.failed() && faults_ == 0;
    over.text = error.failed() ? absl::StrCat(error.kind() == JobError::Kind::kHang ? "hang: " : "error: ",
                                              error.message())
                               : "done";
    if (faults_ != 0)
      absl::StrAppendFormat(&over.text, "; %d access%s to memory that is not mapped, the first at 0x%08x",
                            faults_, faults_ == 1 ? "" : "es", first_fault_);
  } else {
    over.text = "out of memory";
  }
  bool tells;
  {
    const std::lock_guard lock(mutex_);
    control_ = nullptr;
    threads_.clear();
    if (space_) left_ = tools::read_buffers(kernel_, *space_);
    tells = !leaves_ && scan_end_ == 0;
    if (tells) state_ = State::kEnded;
  }
  if (tells) tell_(over);
}

void KernelSession::begin_thread(uint64_t number, qpu::Thread& thread) {
  const std::lock_guard lock(mutex_);
  threads_[number] = {.thread = &thread};
}

const Breakpoint* KernelSession::breakpoint_at(const qpu::Thread& thread) {
  for (const Breakpoint& breakpoint : breakpoints_) {
    if (kernel_.code + 8 * breakpoint.word != thread.pc) continue;
    if (breakpoint.condition &&
        !holds(*breakpoint.condition, {profile_.generation, thread, *space_, kernel_}))
      continue;
    if (++hits_[breakpoint.id] >= breakpoint.hits) return &breakpoint;
  }
  return nullptr;
}

std::optional<Halt> KernelSession::why_halt(uint64_t number, ThreadState& state) {
  const qpu::Thread& thread = *state.thread;
  const bool mine = goal_.thread == number;
  if (const Breakpoint* const breakpoint = breakpoint_at(thread); breakpoint && goal_.at_breakpoints)
    return Halt{.why = Halt::Why::kBreakpoint, .thread = number, .breakpoint = breakpoint->id};
  if (std::exchange(pauses_, false)) return Halt{.why = Halt::Why::kPause, .thread = number};
  bool reached = false;
  switch (goal_.kind) {
    case Goal::Kind::kNone:
      break;
    case Goal::Kind::kEntry:
      return Halt{.why = Halt::Why::kEntry, .thread = number};
    case Goal::Kind::kAny:
      reached = true;
      break;
    case Goal::Kind::kInstruction:
      reached = mine;
      break;
    case Goal::Kind::kLeaveLine:
      reached = mine && line_of(thread.pc) != goal_.line;
      break;
    case Goal::Kind::kThreadEnd:  // ended() makes it kAny
      break;
    case Goal::Kind::kTick:
      reached = tick_ == goal_.number;
      break;
    case Goal::Kind::kPlace:
      reached = mine && state.begun == goal_.number + 1;
      break;
  }
  if (!reached) return {};
  return Halt{.why = Halt::Why::kStep, .thread = number};
}

void KernelSession::before(uint64_t number) {
  std::unique_lock lock(mutex_);
  if (leaves_) return;
  ThreadState& state = threads_[number];
  ++state.begun;
  ++tick_;
  if (scan_end_ != 0) {
    if (tick_ >= scan_end_)
      control_->cancel();
    else if (breakpoint_at(*state.thread))
      scanned_ = tick_;
    return;
  }
  if (const auto why = why_halt(number, state)) halt(lock, *why);
}

void KernelSession::after(uint64_t number, const char* error) {
  std::unique_lock lock(mutex_);
  const mmu::Faults faults = space_->take_faults();
  if (faults.count != 0 && faults_ == 0) first_fault_ = faults.first_address;
  faults_ += faults.count;
  if (leaves_ || scan_end_ != 0 || !goal_.at_breakpoints) return;
  if (error) {
    halt(lock, {.why = Halt::Why::kException, .thread = number, .text = error});
  } else if (faults.count != 0 && halts_at_faults_) {
    halt(lock,
         {.why = Halt::Why::kException,
          .thread = number,
          .text = absl::StrFormat("an access to 0x%08x, where no memory is mapped", faults.first_address)});
  }
}

/// Whoever steps a thread beyond its end halts at what comes next.
void KernelSession::ended(uint64_t number) {
  const std::lock_guard lock(mutex_);
  threads_.erase(number);
  const bool waited_for = goal_.kind == Goal::Kind::kInstruction || goal_.kind == Goal::Kind::kLeaveLine ||
                          goal_.kind == Goal::Kind::kThreadEnd;
  if (goal_.thread == number && waited_for) goal_.kind = Goal::Kind::kAny;
}

void KernelSession::halt(std::unique_lock<std::mutex>& lock, const Halt& why) {
  state_ = State::kHalted;
  lock.unlock();
  tell_(why);
  lock.lock();
  changed_.wait(lock, [this] { return leaves_ || state_ == State::kRunning; });
}

bool KernelSession::look(
    const std::function<void(const std::map<uint64_t, ThreadState>&, const mmu::AddressSpace&)>& see) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kHalted || !space_) return false;
  see(threads_, *space_);
  return true;
}

int KernelSession::line_of(GpuAddr pc) const {
  const uint32_t word = (pc - kernel_.code) / 8;
  return pc >= kernel_.code && word < kernel_.lines.size() ? kernel_.lines[word] : 0;
}

std::string KernelSession::text_of(GpuAddr pc) const {
  const uint32_t word = (pc - kernel_.code) / 8;
  return pc >= kernel_.code && word < kernel_.words.size()
             ? qpu::disassemble(profile_.generation, kernel_.words[word])
             : "";
}

std::vector<tools::Array> KernelSession::buffers() {
  const std::lock_guard lock(mutex_);
  return left_;
}

}  // namespace v3d::debugger
