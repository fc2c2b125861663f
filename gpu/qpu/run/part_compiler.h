/// A PartCompiler compiles only a part of a program, for threads that are watched elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "gpu/base/memory.h"

namespace v3d::qpu {

class HostProgram;
class Program;

/// Thread safe.
class PartCompiler {
 public:
  virtual ~PartCompiler() = default;
  /// Instructions that may be part of the code, in ascending order of their addresses.
  using Words = std::vector<std::pair<GpuAddr, uint64_t>>;
  /// Gets code from another thread; destroyed uncalled when there will be none.
  using Receiver = std::function<void(std::shared_ptr<const HostProgram>)>;
  /// As Compiler::compile(); the code is left (HostProgram::Leave::Why::kElsewhere) before what is no part of
  /// it. Null: there is none, or what takes long is given to the receiver later.
  virtual std::shared_ptr<const HostProgram> compile_part(const Program& program, bool final_section,
                                                          Words words, Receiver later) = 0;
};

}  // namespace v3d::qpu
