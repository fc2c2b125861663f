/// A BatchCode is one function of the host for batches of a dispatch: it executes a compute program from the
/// payload of 16 invocations to what they store, without a QPU thread. What makes it (gpu/qpu/jit) stands
/// above the interpreter, what calls it (gpu/csd) further above.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/base/lanes.h"
#include "gpu/base/memory.h"
#include "gpu/qpu/run/block_code.h"
#include "gpu/qpu/run/vertex_code.h"

namespace v3d::qpu {

/// What a function gets.
struct BatchRun {
  AlignedLanes payload[2];  ///< the two payload registers: workgroup X and Y, and Z with the index
  uint32_t lanes = 0;       ///< a LaneMask: invocations. All of them where BatchKey::is_whole
  const SpreadWord* uniforms = nullptr;       ///< IndirectWord from kFirstIndirect on
  const BlockTexture* textures = nullptr;     ///< by LookupKind::texture
  const uint8_t* middle_of_memory = nullptr;  ///< the host's address of half the address space
};
/// @return  0: the batch goes another way, for a thread. Nothing was stored then
using BatchFn = uint32_t (*)(const BatchRun* run);

/// What the function depends on besides the program.
struct BatchKey {
  bool is_whole = false;                      ///< no lane is without an invocation
  std::vector<tmu::LookupKind> lookups = {};  ///< in the order of the program
  std::vector<KnownUniform> known = {};       ///< those of BlockLookups::known
  bool operator==(const BatchKey&) const = default;
};

class BatchCode {
 public:
  virtual ~BatchCode() = default;
  virtual BatchFn function() const = 0;
  /// Words that the program reads of BatchRun::uniforms, kMostUniforms at most.
  virtual uint32_t uniforms() const = 0;
  /// Those that it reads from kFirstIndirect on, kMostIndirect at most.
  virtual const std::vector<IndirectWord>& indirect() const = 0;
  /// Of the program.
  virtual uint32_t instructions() const = 0;
  /// Words from the entry of the program that it was made of.
  virtual const std::vector<uint64_t>& words() const = 0;
  /// Of host memory.
  virtual size_t bytes() const = 0;
};

/// Thread safe.
class BatchCompiler {
 public:
  virtual ~BatchCompiler() = default;
  /// Batches that a program has executed before it is worth it.
  virtual uint32_t batches_before() const = 0;
  /// Null: there are no functions for such a program, whatever its dispatches are.
  /// @param final_section  threads of the program start in their last one
  virtual std::unique_ptr<const BlockLookups> find_lookups(const Program& program, Memory memory,
                                                           bool final_section) = 0;
  /// Null: there is none for such a program.
  virtual std::unique_ptr<const BatchCode> compile(const Program& program, Memory memory, bool final_section,
                                                   const BatchKey& key) = 0;
};

}  // namespace v3d::qpu
