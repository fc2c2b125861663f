/// A RunCode is host code of a stretch of instructions of V3D 2.1 (vc4_stretch.h) as the interpreter sees it;
/// what makes it (gpu/qpu/jit) stands above the interpreter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>

#include "gpu/qpu/run/compiled.h"
#include "gpu/qpu/run/vc4_stretch.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::qpu::vc4 {

/// Does what the instructions do. @return  null if all did, or why the thread hangs at thread.pc, or one of
/// those below
using RunFn = const char* (*)(Thread&);
/// Nothing was done: the instructions are to be interpreted.
inline constexpr char kDeclined[] = "declined";
/// The same, as numbers came for which there is no code.
inline constexpr char kUnsure[] = "unsure";
/// Those before thread.pc did: there was no memory for what the last of them looked up.
inline constexpr char kLeft[] = "left";
/// t_thrown was thrown, by a function that the code called.
inline constexpr char kThrown[] = "thrown";
inline thread_local std::exception_ptr t_thrown;

/// Uniforms that a stretch may read: the code is not for those that end beyond the last address.
inline constexpr uint32_t kMaxUniformBytes = 4096;

class RunCode {
 public:
  RunCode(const Stretch& stretch, bool never_unsure)
      : steps(static_cast<uint32_t>(stretch.steps.size())), ends(stretch.ends), is_sure(never_unsure) {}
  virtual ~RunCode() = default;
  /// Of host memory.
  virtual size_t bytes() const = 0;

  RunFn function = nullptr;
  const uint32_t steps;  ///< instructions
  const bool ends;       ///< the program ends after the last one
  const bool is_sure;    ///< it never is kUnsure
};

/// Thread safe.
class RunCompiler {
 public:
  virtual ~RunCompiler() = default;
  /// Of all programs that may be compiled.
  Executions executions;
  /// Executions of a stretch before it is worth compiling.
  virtual uint32_t runs_before() const = 0;
  /// @param is_sure  see RunCode. Null: there is no code.
  virtual std::unique_ptr<const RunCode> compile(const Stretch& stretch, bool is_sure) = 0;
};

}  // namespace v3d::qpu::vc4
