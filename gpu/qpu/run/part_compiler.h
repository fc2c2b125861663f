/// A PartCompiler compiles only a part of a program, for threads that are watched elsewhere.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "gpu/base/memory.h"

namespace v3d::qpu {

class HostProgram;
class Program;

/// Thread safe.
class PartCompiler {
 public:
  virtual ~PartCompiler() = default;
  /// Whether an instruction may be part of the code.
  using Part = absl::FunctionRef<bool(GpuAddr address, uint64_t word)>;
  /// As Compiler::compile(); the code is left (HostProgram::Leave::Why::kElsewhere) before what is no part of
  /// it.
  virtual std::shared_ptr<const HostProgram> compile_part(const Program& program, Memory memory,
                                                          bool final_section, Part part) = 0;
};

}  // namespace v3d::qpu
