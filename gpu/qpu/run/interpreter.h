/// The interpreter executes programs, one thread of 16 lanes at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "gpu/qpu/run/compiled.h"
#include "gpu/qpu/run/program.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::qpu {

/// Runs the thread from thread.pc until something stops it. On Stop::kHang the reason is in thread.hang.
Stop run(const Program& program, Thread& thread);

/// Threads of one stage that run a program one after another; what they have in common is done once.
class Series {
 public:
  /// @param program  outlives the series
  /// @param code  what program.compiled() gives for these threads; null: there is none yet. Threads with an
  /// observer do not run it.
  void begin(const Program& program, const HostProgram* code) {
    program_ = &program;
    code_ = code;
    if (code) code->begin(host_, program.entry());
  }
  /// begin(), unless that is what the series has.
  void use(const Program& program, const HostProgram* code) {
    if (program_ == &program && code_ == code) [[likely]]
      return;
    end();
    begin(program, code);
  }
  /// run() of a thread after reset() or restart() at the program's first instruction. After Stop::kEnd its
  /// registers are not known; any other stop is as with run().
  Stop run(Thread& thread) {
    if (!code_ || thread.observer) [[unlikely]]
      return run_outside(thread);
    const HostProgram::Leave leave = host_->start(thread);
    if (leave.why != HostProgram::Leave::Why::kEnd) [[unlikely]]
      return go_on(leave, thread, 0);
    count(thread.instructions);
    return Stop::kEnd;
  }
  /// run() of a thread that stopped before.
  Stop go_on(Thread& thread);
  void end();

 private:
  /// Of compiled instructions so many may not be counted yet.
  static constexpr uint64_t kMost = 1'000'000;

  Stop run_outside(Thread& thread);
  Stop go_on(HostProgram::Leave leave, Thread& thread, uint64_t before);
  void count(uint64_t compiled) {
    compiled_ += compiled;
    if (compiled_ >= kMost) tell();
  }
  void tell();

  const Program* program_ = nullptr;
  const HostProgram* code_ = nullptr;
  std::unique_ptr<HostSeries> host_;
  uint64_t compiled_ = 0;  // instructions that are not counted yet
};

}  // namespace v3d::qpu
