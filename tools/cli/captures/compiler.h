/// What compiles QPU programs in commands that run them without a daemon.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "gpu/qpu/jit/jit.h"

namespace v3d::tools {

/// As $V3DEMU_JIT names it; null: programs are interpreted. An error: it names none that this host has.
absl::StatusOr<std::unique_ptr<qpu::jit::JitCompiler>> compiler_of_environment();

}  // namespace v3d::tools
