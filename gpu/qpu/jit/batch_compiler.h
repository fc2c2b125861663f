/// BatchFunctions compiles compute programs for batches of dispatches, through a graph
/// (gpu/qpu/graph/program_front_end.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gpu/base/memory.h"
#include "gpu/qpu/jit/program_functions.h"
#include "gpu/qpu/jit/target.h"
#include "gpu/qpu/run/batch_code.h"
#include "gpu/qpu/run/compiled.h"

namespace v3d::qpu::jit {

class BatchFunctions : public BatchCompiler, public ProgramFunctions {
 public:
  /// @param batches_before  see BatchCompiler
  BatchFunctions(Target target, uint32_t batches_before);

  uint32_t batches_before() const override { return batches_before_; }
  bool knows_all(const Program& program, Memory memory, bool final_section) override;
  std::unique_ptr<const BlockLookups> find_lookups(const Program& program, Memory memory,
                                                   bool final_section) override;
  std::unique_ptr<const BatchCode> compile(const Program& program, Memory memory, bool final_section,
                                           const BatchKey& key) override;

  /// "3 functions for batches of dispatches ...".
  static std::string text_of(const Statistics& statistics);

 private:
  const uint32_t batches_before_;
};

}  // namespace v3d::qpu::jit
