/// A VertexFunction executes a coordinate or vertex program for batches of 16 vertices by one function of the
/// host (gpu/qpu/run/vertex_code.h), without QPU threads.
///
/// Who counts or watches sees threads: then there is none.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/base/job_context.h"
#include "gpu/base/lanes.h"
#include "gpu/base/memory.h"
#include "gpu/qpu/run/thread.h"
#include "gpu/qpu/run/vertex_code.h"
#include "gpu/vpm/stage_runner.h"

namespace v3d::vpm {

class VertexFunction {
 public:
  /// Reads the program's uniforms, and words by addresses that these are, which stay as they are for all
  /// batches of the draw.
  /// @param rows_in, rows_out  that there are
  /// @param thread  for who finds that there is no memory
  /// @return  whether the draw has one
  bool begin(const JobContext& job, const StageProgram& stage, uint32_t rows_in, uint32_t rows_out,
             qpu::Thread& thread);

  /// One batch, from any thread. Rows that the program does not write become 0.
  /// @return  instructions that it executed
  uint32_t run(const Lanes* in, Lanes* out) const;

 private:
  void read_uniforms(Memory memory, GpuAddr at);
  uint32_t row(uint32_t of) const;

  const qpu::VertexCode* code_ = nullptr;
  const char* stage_ = nullptr;
  GpuAddr address_ = 0;
  std::vector<qpu::SpreadWord> uniforms_;
  std::vector<uint32_t> unwritten_;  // rows of the output
};

}  // namespace v3d::vpm
