/// The interpreter of V3D 2.1 executes programs, one thread of 16 lanes at a time: vc4-qpu.md 3.4, 3.5 and 4.
///
/// A thread switch lets the other thread of the QPU run, and the results of lookups be waited for: neither
/// shows in what a thread computes, so that execution goes on.
#pragma once

#include <span>

#include "gpu/qpu/run/vc4_program.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::qpu::vc4 {

/// Runs the thread from thread.pc until something stops it.
Stop run(const Program& program, Thread& thread);

/// A thread of a job of user programs.
struct UserThread {
  Thread* thread;
  const Program* program;
};
/// Runs threads by turns until all of them ended, or one cannot go on; each has been reset() and is at its
/// program's first instruction, and all have the same Shared. Uses up their budgets.
/// @param failed  the thread that stopped it, if the result is not kEnd: of kWait one of those that wait for
/// each other
Stop run_by_turns(std::span<const UserThread> threads, size_t& failed);

}  // namespace v3d::qpu::vc4
