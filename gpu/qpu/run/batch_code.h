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
  const SpreadWord* uniforms = nullptr;        ///< IndirectWord from kFirstIndirect on
  const tmu::TextureData* textures = nullptr;  ///< by LookupKind::texture
  const uint8_t* middle_of_memory = nullptr;   ///< the host's address of half the address space
  // Of stretches
  AlignedLanes* slots = nullptr;  ///< values behind a cut, BatchCode::slots()
  uint32_t turns = 0;             ///< that one which leads to itself may do. Afterwards: that it did not
};
/// @return  0: the batch goes another way, for a thread. Nothing was stored then. Of a stretch: where it
/// leads
using BatchFn = uint32_t (*)(BatchRun* run);

inline constexpr uint32_t kBatchSlots = 128;

/// What a stretch returns: the number of the next one, and whether that begins behind a barrier; or that the
/// program ended.
inline constexpr uint32_t kStretchWaits = 0x4000, kStretchEnds = 0x8000;
/// A stretch that leads to itself, before it becomes code.
inline constexpr uint32_t kStretchAgain = 0x2000;

/// A part of a program, up to a barrier, or to a branch that lanes or uniforms decide on.
struct BatchStretch {
  BatchFn function = nullptr;
  uint32_t instructions = 0;  ///< that it executes
  uint32_t first = 0;         ///< bytes from the entry of the program to the first of these
  bool has_turns = false;     ///< leads to itself, and sets BatchRun::turns
};

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
  /// Of the whole program; null where that is cut into stretches.
  virtual BatchFn function() const = 0;
  /// The first one begins the program. Empty where one function is enough.
  virtual const std::vector<BatchStretch>& stretches() const = 0;
  /// That they have, kBatchSlots at most.
  virtual uint32_t slots() const = 0;
  /// Of stretches: nobody can tell by what batches compute in which order, or how far apart, they were
  /// executed, but for those of a supergroup that meet at a barrier (gpu/qpu/graph/alone.h).
  virtual bool goes_alone() const = 0;
  /// Words that the program reads of BatchRun::uniforms, kMostUniforms at most.
  virtual uint32_t uniforms() const = 0;
  /// Those that it reads from kFirstIndirect on, kMostIndirect at most.
  virtual const std::vector<IndirectWord>& indirect() const = 0;
  /// Of the program, or of all stretches.
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
  /// Whether all of the program is known that functions would be made of. Else it is to be executed before.
  virtual bool knows_all(const Program& program, Memory memory, bool final_section) = 0;
  /// Null: there are no functions for such a program, whatever its dispatches are.
  /// @param final_section  threads of the program start in their last one
  virtual std::unique_ptr<const BlockLookups> find_lookups(const Program& program, Memory memory,
                                                           bool final_section) = 0;
  /// Null: there is none for such a program.
  virtual std::unique_ptr<const BatchCode> compile(const Program& program, Memory memory, bool final_section,
                                                   const BatchKey& key) = 0;
};

}  // namespace v3d::qpu
