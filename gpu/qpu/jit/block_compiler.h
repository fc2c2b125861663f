/// A FragmentCompiler compiles fragment programs with all that is around them, for blocks of 4x4 pixels,
/// through a graph (gpu/qpu/graph/program_front_end.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gpu/qpu/jit/program_functions.h"
#include "gpu/qpu/jit/target.h"
#include "gpu/qpu/run/block_code.h"

namespace v3d::qpu::jit {

class FragmentCompiler : public BlockCompiler, public ProgramFunctions {
 public:
  /// @param batches_before  see BlockCompiler
  FragmentCompiler(Target target, uint32_t batches_before);

  uint32_t batches_before() const override { return batches_before_; }
  std::unique_ptr<const BlockLookups> find_lookups(const Program& program, Memory memory,
                                                   bool final_section) override;
  std::unique_ptr<const BlockCode> compile_blocks(const Program& program, Memory memory, bool final_section,
                                                  const BlockKey& key) override;

  /// "3 functions for blocks of fragments ...".
  static std::string text_of(const Statistics& statistics);

 private:
  const uint32_t batches_before_;
};

}  // namespace v3d::qpu::jit
