/// Programs as host code, as the interpreter sees them: who makes that (gpu/qpu/jit) stands above it. A
/// thread may change between host code and interpreter wherever a block of the program begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "gpu/base/memory.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::qpu {

class Program;

/// Immutable; threads of several workers run it at a time.
class HostProgram {
 public:
  /// How it was left. The thread is as if the interpreter had run it so far.
  struct Leave {
    enum class Why : uint8_t {
      kElsewhere,  ///< what follows is not compiled: the interpreter's
      kSwitch,     ///< a thread switch took effect; the thread stops, or waits, or goes on
      kEnd,
      kHang,
    } why;
    const char* error = nullptr;  ///< why it hangs
  };

  virtual ~HostProgram() = default;
  /// Runs from thread.pc as far as there is code. @param thread  without observer
  virtual Leave run(Thread& thread) const = 0;
  /// Nothing is missing that the program can reach, but for what it computes at run time.
  virtual bool complete() const = 0;
  /// Of host memory.
  virtual size_t bytes() const = 0;
};

/// Thread safe.
class Compiler {
 public:
  virtual ~Compiler() = default;
  /// Instructions of a program that are interpreted before it is worth compiling.
  virtual uint64_t warm_up() const = 0;
  /// @param final_section  of the threads that will run it
  /// @return null if it cannot, or will not
  virtual std::unique_ptr<const HostProgram> compile(const Program& program, Memory memory,
                                                     bool final_section) = 0;
};

}  // namespace v3d::qpu
