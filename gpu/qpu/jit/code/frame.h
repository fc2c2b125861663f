/// A Frame is what compiled code has beside the thread while it runs: where the uniform stream is, and what
/// functions that it calls tell.
#pragma once

#include <cstdint>
#include <exception>

#include "gpu/qpu/run/thread.h"

namespace v3d::qpu::jit {

class LookupCompiler;

struct Frame {
  Thread* thread;
  LookupCompiler* lookups;  ///< null: they are done by the interpreter's function
  GpuAddr entry;            ///< of the program
  GpuAddr uniforms;         ///< the next one, where the part began that is executed
  /// Uniforms at the GPU addresses [low, low + span) stand at base + address.
  const uint8_t* uniform_base;
  uint32_t uniform_low, uniform_span;
  uint32_t forgets_registers;  ///< 1: after its end nobody looks at the thread's registers
  /// Why the thread hangs, when a call says that it does.
  const char* error;
  /// What a call threw: nothing unwinds through compiled code.
  std::exception_ptr exception;
};

}  // namespace v3d::qpu::jit
