#include "tools/cli/captures/compiler.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tools/cli/files/files.h"

namespace v3d::tools {

absl::StatusOr<std::unique_ptr<qpu::jit::JitCompiler>> compiler_of_environment() {
  std::string no_engine;
  const auto engine = qpu::jit::find_engine(variable("V3DEMU_JIT"), &no_engine);
  if (!engine) return absl::InvalidArgumentError(absl::StrCat("V3DEMU_JIT: ", no_engine));
  return qpu::jit::make_compiler(*engine);
}

}  // namespace v3d::tools
