/// A listing is compiled code as text, for who looks at it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/jit/code/program_code.h"

namespace v3d::qpu::jit {

/// Each instruction of each block with the bytes of its host code, and the exits.
std::string listing(const flow::Flow& flow, const CodeTables& tables, std::span<const uint8_t> code);

}  // namespace v3d::qpu::jit
