/// These functions make mappings, and what goes with them, in another process. A supervisor can answer mmap,
/// but not map anything there; so the caller is made to do it itself.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>

#include "tools/box/caller.h"

namespace v3d::box {

/// Held while a program stands still under ptrace: who waits for children meanwhile would take its stops.
extern std::mutex g_tracing;
/// The program, if it is a child of this process: its end is for others to take note of. 0: none.
extern std::atomic<pid_t> g_program;

/// System calls that a program makes which stands still. The filter lets them pass.
class Inside {
 public:
  virtual ~Inside() = default;
  /// What the kernel returns.
  virtual uint64_t call(unsigned long number, const std::array<uint64_t, 6>& arguments) = 0;
};
/// The number of a descriptor as an argument of mmap.
uint64_t own_number(int number);

/// Ends the caller's call with what `work` returns.
void answer_inside(const Caller& caller, const std::function<uint64_t(Inside&)>& work);

/// Ends the caller's mmap as one of `memory`, a descriptor of ours, from `place` on.
void answer_with_mapping(const Caller& caller, int memory, off_t place);

}  // namespace v3d::box
