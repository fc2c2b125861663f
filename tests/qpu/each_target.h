/// Tests of what is compiled for each target that the host has.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "gpu/qpu/jit/jit.h"

namespace v3d::qpu {

/// As the name of a test has it.
inline std::string name_of_target(const ::testing::TestParamInfo<jit::Target>& of) {
  return std::string(jit::name(of.param));
}

/// How many random scenes are drawn twice, each in address spaces of its own: of their pages an emulator of
/// the processor keeps tables.
inline uint32_t scenes_for(jit::Target target, uint32_t most, uint32_t emulated) {
  return target == jit::Target::kNeon ? emulated : most;
}

/// Its compiler makes functions at once.
template <typename Parameter>
class OnTarget : public ::testing::TestWithParam<Parameter> {
 protected:
  /// Skips the test where the host has it not.
  void use(jit::Target target) {
    if (!jit::can_compile(target)) GTEST_SKIP() << "the processor has not what the target needs";
    compiler = std::make_unique<jit::JitCompiler>(target, 0);
  }

  std::unique_ptr<jit::JitCompiler> compiler;
};

class EachTarget : public OnTarget<jit::Target> {
 protected:
  void SetUp() override { use(GetParam()); }
};

}  // namespace v3d::qpu
