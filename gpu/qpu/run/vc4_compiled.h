/// A RunCode is host code of a run of steps of V3D 2.1 (StepRun) as the interpreter sees it; what makes it
/// (gpu/qpu/jit) stands above the interpreter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>

#include "gpu/qpu/run/compiled.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::qpu::vc4 {

struct Chunk;

/// Does what the actions of the run do. @return  as ActionFn, kDeclined or kThrown
using RunFn = const char* (*)(Thread&);
/// Nothing was done: the actions are to be executed.
inline constexpr char kDeclined[] = "declined";
/// t_thrown was thrown, by a function that the code called.
inline constexpr char kThrown[] = "thrown";
inline thread_local std::exception_ptr t_thrown;

/// Uniforms that a run may read: the code is not for those that end beyond the last address.
inline constexpr uint32_t kMaxUniformBytes = 4096;

class RunCode {
 public:
  virtual ~RunCode() = default;
  virtual RunFn function() const = 0;
  /// Of host memory.
  virtual size_t bytes() const = 0;
};

/// Thread safe.
class RunCompiler {
 public:
  virtual ~RunCompiler() = default;
  /// Of all programs whose runs may be compiled.
  Executions executions;
  /// Executions of a run before it is worth compiling.
  virtual uint32_t runs_before() const = 0;
  /// Code of chunk.steps[first].run, which has steps. Null: there is none.
  virtual std::unique_ptr<const RunCode> compile_run(const Chunk& chunk, uint32_t first) = 0;
};

}  // namespace v3d::qpu::vc4
