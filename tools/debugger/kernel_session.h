/// A KernelSession runs a kernel under a debugger: one QPU thread after the other, all of them halted
/// wherever one stops.
///
/// A run always takes the same course, so that going back is running again up to the place before.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "gpu/base/job_control.h"
#include "gpu/chip/profile.h"
#include "gpu/mmu/address_space.h"
#include "gpu/qpu/run/thread.h"
#include "tools/cli/kernels/kernel.h"
#include "tools/debugger/expression.h"

namespace v3d::debugger {

struct Breakpoint {
  int id = 0;
  uint32_t word = 0;                        ///< of the program, before which it stops
  std::optional<Condition> condition = {};  ///< nothing: always
  uint64_t hits = 1;                        ///< from this one on
};

/// Why the kernel halts, and where.
struct Halt {
  enum class Why : uint8_t {
    kEntry,
    kStep,
    kBreakpoint,
    kPause,
    kException,  ///< an access to memory that is not mapped, or an instruction that cannot be
    kEnd,        ///< the dispatch is over, and nothing is left to look at but buffers
  } why = Why::kEnd;
  uint64_t thread = 0;  ///< number of the batch
  int breakpoint = 0;
  std::string text = {};  ///< of exceptions; of the end: how the job ended
  bool ended_well = false;
};

/// A thread that has begun and not ended.
struct ThreadState {
  qpu::Thread* thread = nullptr;
  uint64_t begun = 0;  ///< instructions, the one before or after which it stands among them
};

class KernelSession {
 public:
  /// Called by the thread that runs the kernel, with no lock held.
  using Tell = std::function<void(const Halt&)>;

  KernelSession(tools::Kernel kernel, const chip::Profile& profile, Tell tell);
  ~KernelSession();
  KernelSession(const KernelSession&) = delete;
  KernelSession& operator=(const KernelSession&) = delete;

  const tools::Kernel& kernel() const { return kernel_; }
  const chip::Profile& profile() const { return profile_; }
  /// Any time.
  void set_breakpoints(std::vector<Breakpoint> breakpoints);
  /// Whether accesses to memory that is not mapped halt it. Any time.
  void set_halts_at_faults(bool halts);

  // Each of these comes back at once, and a Halt follows. The kernel has to be halted, or not to have begun.
  /// @param at_entry  halts before the first instruction
  void begin(bool at_entry);
  void go_on();
  /// @param whole_line  beyond the words that come of the same line
  void step(uint64_t thread, bool whole_line);
  /// To the end of a thread.
  void finish(uint64_t thread);
  /// Where can_step_back().
  void step_back(uint64_t thread);
  /// To the breakpoint before this place, or to the entry.
  void go_back();

  /// An error: the thread has executed nothing.
  absl::Status can_step_back(uint64_t thread);
  /// Halts it where it is.
  void pause();
  /// Ends the run, whatever it does.
  void end();

  /// Calls see(threads by number, memory) if the kernel is halted. @return whether it is
  bool look(const std::function<void(const std::map<uint64_t, ThreadState>&, const mmu::AddressSpace&)>& see);
  /// Number of the line of a word, from 1; 0: it has none, since the kernel came as words.
  int line_of(GpuAddr pc) const;
  std::string text_of(GpuAddr pc) const;
  /// What the kernel left: after its end.
  std::vector<tools::Array> buffers();

 private:
  class Watch;
  class ThreadObserver;
  /// When a run halts, beside at breakpoints.
  struct Goal {
    enum class Kind : uint8_t {
      kNone,
      kEntry,
      kAny,  ///< at the next instruction, whose ever it is
      kLeaveLine,
      kInstruction,
      kThreadEnd,
      kTick,
      kPlace
    } kind = Kind::kNone;
    uint64_t thread = 0;
    uint64_t number = 0;  ///< kTick: of all instructions; kPlace: of the thread's, from 0
    int line = 0;         ///< kLeaveLine
    bool at_breakpoints = true;
  };
  enum class State : uint8_t { kIdle, kRunning, kHalted, kEnded };

  void start(const Goal& goal, uint64_t last_before);
  void work(Goal goal, uint64_t last_before);
  void run(const Goal& goal);
  void resume(const Goal& goal);
  void leave();
  uint64_t begun_by(uint64_t thread);

  // Of the thread that runs the kernel.
  void begin_thread(uint64_t number, qpu::Thread& thread);
  void before(uint64_t number);
  void after(uint64_t number, const char* error);
  void ended(uint64_t number);
  std::optional<Halt> why_halt(uint64_t number, ThreadState& state);
  const Breakpoint* breakpoint_at(const qpu::Thread& thread);
  void halt(std::unique_lock<std::mutex>& lock, const Halt& why);

  const tools::Kernel kernel_;
  const chip::Profile& profile_;
  const Tell tell_;

  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::kIdle;
  bool leaves_ = false, pauses_ = false, halts_at_faults_ = true;
  Goal goal_;
  std::vector<Breakpoint> breakpoints_;
  std::map<int, uint64_t> hits_;  // by breakpoint
  std::map<uint64_t, ThreadState> threads_;
  std::unique_ptr<mmu::AddressSpace> space_;
  std::vector<tools::Array> left_;
  uint64_t tick_ = 0;                // instructions that began, of all threads
  uint64_t scan_end_ = 0;            // while looking for the last breakpoint before it
  std::optional<uint64_t> scanned_;  // its tick
  uint64_t faults_ = 0;
  GpuAddr first_fault_ = 0;
  JobControl* control_ = nullptr;
  std::thread worker_;
};

}  // namespace v3d::debugger
