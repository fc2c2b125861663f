/// VertexFunctions compiles coordinate and vertex programs for batches of vertices, through a graph
/// (gpu/qpu/graph/program_front_end.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gpu/base/memory.h"
#include "gpu/qpu/jit/program_functions.h"
#include "gpu/qpu/jit/target.h"
#include "gpu/qpu/run/compiled.h"
#include "gpu/qpu/run/vertex_code.h"

namespace v3d::qpu::jit {

class VertexFunctions : public VertexCompiler, public ProgramFunctions {
 public:
  /// @param batches_before  see VertexCompiler
  VertexFunctions(Target target, uint32_t batches_before);

  uint32_t batches_before() const override { return batches_before_; }
  std::unique_ptr<const VertexCode> compile(const Program& program, Memory memory,
                                            bool final_section) override;

  /// "3 functions for batches of vertices ...".
  static std::string text_of(const Statistics& statistics);

 private:
  const uint32_t batches_before_;
};

}  // namespace v3d::qpu::jit
