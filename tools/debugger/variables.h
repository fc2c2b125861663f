/// Variables are what a halted thread has, as the trees that editors show.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/debugger/expression.h"

namespace v3d::debugger {

/// A part of what a thread has, which has parts itself.
struct Branch {
  enum class Kind : uint8_t {
    kRegisters,
    kAccumulators,
    kFlags,
    kUniforms,
    kThread,
    kBuffers,
    kRegister,  ///< its lanes
    kFlag,
    kBuffer,  ///< its elements
  } kind = Kind::kRegisters;
  uint64_t thread = 0;
  uint64_t number = 0;  ///< of the register, flag or buffer
};

struct Scope {
  const char* name;
  Branch branch;
};
std::vector<Scope> scopes_of(uint64_t thread, chip::Generation generation);

struct Variable {
  std::string name, value;
  std::string expression;  ///< that gives it; empty: there is none
  std::optional<Branch> parts = {};
  uint64_t elements = 0;  ///< of buffers: so many parts, by number
  std::optional<GpuAddr> address = {};
};

/// So many are given at once.
inline constexpr uint64_t kMostVariables = 65536;
/// @param first, count  of elements and uniforms
std::vector<Variable> variables_of(const Branch& branch, const Place& place, bool hex_only, uint64_t first,
                                   uint64_t count);

}  // namespace v3d::debugger
