/// An Observer watches threads execute. The interpreter calls an Observer around every instruction of a
/// thread that has one, in a loop of its own, so that threads without one lose nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/qpu/isa/instruction.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::qpu {

namespace vc4 {
struct Thread;
}
class HostProgram;
class Program;

class Observer {
 public:
  /// What follows an instruction.
  enum class Next : uint8_t {
    kContinue,
    kJump,     ///< a branch takes effect; thread.pc is its target
    kSwitch,   ///< a thread switch takes effect
    kBarrier,  ///< a thread switch at which the thread waits for its supergroup, or at a TSY object
    kEnd,      ///< the program ended
  };

  virtual ~Observer() = default;
  /// The instruction at thread.pc is about to execute; delayed writes that it sees have landed.
  /// @param instruction  null if the word is none
  virtual void before(const Thread& thread, uint64_t word, const Instruction* instruction) = 0;
  /// It was executed; thread.pc still is its address. A branch is taken if pending.events.branch_in is 4.
  /// @param error  null, or why the thread hangs: then finished() does not follow
  virtual void after(const Thread& thread, const char* error) = 0;
  /// Between before() and after(): it started a lookup, after its ldtmu. @param words  that this returns
  virtual void general_lookup(const Thread& /*thread*/, const tmu::GeneralLookup& /*lookup*/, int /*words*/) {
  }
  virtual void texture_lookup(const Thread& /*thread*/, const tmu::TextureLookup& /*lookup*/, int /*words*/) {
  }
  /// thread.pc is that of the next instruction.
  virtual void finished(const Thread& thread, Next next) = 0;

  /// Whether it would rather not see what follows on a jump or a thread switch: then host_code() is asked.
  bool rests = false;
  /// Host code in which the thread is not seen, as far as that goes; null: it is seen on. Asked while
  /// `rests`.
  virtual const HostProgram* host_code(const Program& /*program*/, const Thread& /*thread*/) {
    return nullptr;
  }
  /// The thread is out of it, and seen again.
  virtual void left_host_code() {}
};

/// Gives threads of one job their observers. Thread safe.
class ThreadWatch {
 public:
  virtual ~ThreadWatch() = default;
  /// A thread is ready to run from its start: all inputs are set. Sets thread.observer, or leaves null.
  /// @param stage  "coordinate", "vertex", "geometry", "fragment" or "compute"; a literal
  virtual void start(const char* stage, Thread& thread) = 0;
  /// The same of V3D 2.1, without whose observers nothing is lost.
  virtual void start_vc4(const char* /*stage*/, vc4::Thread& /*thread*/) {}
  /// start() of a batch of a dispatch. @param number  of the batch in it
  virtual void start_batch(uint64_t /*number*/, Thread& thread) { start("compute", thread); }
  /// That batch is about to run for a slice, with the TMU of its worker.
  virtual void begin_slice(Thread& /*thread*/) {}
  /// GPU clocks that a batch of a dispatch took so far, if tells_clocks().
  virtual uint64_t clocks(const Thread& thread) const { return thread.instructions; }
  virtual bool tells_clocks() const { return false; }
  /// Whether batches of a dispatch may start in any order, several at a time.
  virtual bool takes_any_order() const { return false; }
  /// Of a strict watch, when the job is over: rules that programs broke, with program and instruction.
  virtual std::vector<std::string> take_broken_rules() { return {}; }
};

}  // namespace v3d::qpu
