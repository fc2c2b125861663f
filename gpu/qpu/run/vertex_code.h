/// A VertexCode is one function of the host for batches of 16 vertices: it executes a coordinate or vertex
/// program from the rows of attributes to the rows of its output, without a QPU thread. What makes it
/// (gpu/qpu/jit) stands above the interpreter, what calls it (gpu/vpm) further above.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/base/lanes.h"
#include "gpu/base/memory.h"
#include "gpu/qpu/run/block_code.h"

namespace v3d::qpu {

/// A uniform as often as a vector of the host may want it.
using SpreadWord = std::array<uint32_t, 8>;

/// What a function gets. All rows that it reaches (VertexCode::rows()) are there.
struct VertexRun {
  const Lanes* in = nullptr;
  Lanes* out = nullptr;  ///< none of `in`
  const SpreadWord* uniforms = nullptr;
};
using VertexFn = void (*)(const VertexRun* run);

/// The rows that a program reaches: each a number, or kByUniform and the number of the uniform that tells it.
struct VertexRows {
  static constexpr uint32_t kByUniform = 1 << 16;
  std::vector<uint32_t> in, out;
};

class VertexCode {
 public:
  virtual ~VertexCode() = default;
  virtual VertexFn function() const = 0;
  /// Words that the program reads of VertexRun::uniforms, kMostUniforms at most.
  virtual uint32_t uniforms() const = 0;
  /// Those that it reads from kFirstIndirect on, kMostIndirect at most.
  virtual const std::vector<IndirectWord>& indirect() const = 0;
  virtual const VertexRows& rows() const = 0;
  /// Uniforms that have to be no NaNs: the function is made for that.
  virtual const std::vector<uint32_t>& numbers() const = 0;
  /// Of the program.
  virtual uint32_t instructions() const = 0;
  /// Words from the entry of the program that it was made of.
  virtual const std::vector<uint64_t>& words() const = 0;
  /// Of host memory.
  virtual size_t bytes() const = 0;
};

class Program;

/// Thread safe.
class VertexCompiler {
 public:
  virtual ~VertexCompiler() = default;
  /// Batches of 16 vertices that a program has executed before it is worth it.
  virtual uint32_t batches_before() const = 0;
  /// Null: there is none for such a program.
  /// @param final_section  threads of the program start in their last one
  virtual std::unique_ptr<const VertexCode> compile(const Program& program, Memory memory,
                                                    bool final_section) = 0;
};

}  // namespace v3d::qpu
