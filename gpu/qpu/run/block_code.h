/// A BlockCode is one function of the host for whole blocks of fragments, 4x4 pixels of one primitive each:
/// it interpolates, tests depth, executes the fragment program and stores what it gave, under the mask of the
/// pixels. What makes it (gpu/qpu/jit) stands above the interpreter, what calls it (gpu/pse) further above.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/base/compare.h"
#include "gpu/base/lanes.h"
#include "gpu/base/memory.h"
#include "gpu/qpu/run/block_target.h"
#include "gpu/tmu/lookup/lookup_kind.h"
#include "gpu/tmu/lookup/unit.h"

namespace v3d::qpu {

class Program;

/// Room for varying components of a primitive, which are handled 16 at a time from any start.
inline constexpr uint32_t kComponentRoom = 96;

/// value + (x * step_x + y * step_y) * scale at x and y pixels from the anchor; the primitive has anchor and
/// scale. Doubles, each operation rounded on its own.
struct BlockPlane {
  double value = 0, step_x = 0, step_y = 0;
};

/// What ldvary gives of each component: a point of the plane, and c.
struct BlockCoefficients {
  alignas(64) double value[kComponentRoom];
  alignas(64) double step_x[kComponentRoom];
  alignas(64) double step_y[kComponentRoom];
  alignas(64) uint32_t c[kComponentRoom];
};

/// 4x4 pixels. In planes of the tile the four pixels of a quad are adjacent, quads follow row by row.
struct Block {
  int32_t x, y;     ///< of the first pixel, in the tile
  uint32_t place;   ///< bytes from the begin of a plane to its first quad
  uint32_t pixels;  ///< a LaneMask: those that are drawn
};

/// What a function gets: where it draws, the primitive and its blocks.
struct BlockRun {
  // The draw
  uint32_t* depth = nullptr;     ///< a plane of the tile
  uint32_t* color = nullptr;     ///< the same of the render target: of its first words
  uint32_t bytes_of_planes = 0;  ///< from there to its second ones
  uint32_t bytes_of_rows = 0;    ///< from a row of quads to the next one
  int32_t tile_x = 0, tile_y = 0;
  const uint32_t* uniforms = nullptr;          ///< kBlendConstants behind those of the program; IndirectWord
  const tmu::TextureData* textures = nullptr;  ///< by LookupKind::texture
  const uint8_t* middle_of_memory = nullptr;   ///< the host's address of half the address space
  /// Called once a primitive before anything of its coefficients, or of the uniforms, is read: they need not
  /// be there for primitives that are hidden. It must not throw.
  void (*prepare)(BlockRun* run) = nullptr;
  void* owner = nullptr;  ///< prepare's

  // The primitive
  double anchor_x = 0, anchor_y = 0;  ///< in pixels from the centre of the first pixel of the tile
  double scale = 0;
  BlockPlane z, r;  ///< depth and 1/W
  const BlockCoefficients* coefficients = nullptr;
  uint32_t back_facing = 0;  ///< of all pixels: a LaneMask
  bool is_prepared = false;
  /// 1 / r, that is W, is the same of all pixels: flat_w.
  bool has_flat_w = false;
  float flat_w = 0;

  const Block* blocks = nullptr;  ///< after a function returned: the first that it left
  const Block* end = nullptr;
  /// Functions with lookups return after the block in which this was not zero at last: there was no memory.
  const uint32_t* fault_cost = nullptr;

  // What was done
  uint64_t passed = 0;  ///< samples that passed the depth test
  uint64_t shaded = 0;  ///< blocks for which the program was executed
};
using BlockFn = void (*)(BlockRun* run);

/// A uniform on whose word a function depends: where scratch memory lies, say.
struct KnownUniform {
  uint16_t number = 0;
  uint32_t word = 0;
  bool operator==(const KnownUniform&) const = default;
};

/// What the function depends on besides the program: state of draws of frames with one sample and at most one
/// render target.
struct BlockKey {
  enum class Depth : uint8_t { kNone, k32F, k24, k16 };
  Depth depth = Depth::kNone;  ///< how it is stored; kNone: all pixels pass, and none is stored
  Compare test = Compare::kAlways;
  bool writes_depth = false;
  uint8_t components = 0;  ///< of varyings, 64 at most
  uint64_t flat = 0;       ///< bit i: component i has no slope
  BlockTarget target{};
  /// The test comes where the program writes the rasteriser's depth, of pixels that it has not discarded.
  /// Else it comes before, and such a write does nothing.
  bool is_late = false;
  std::vector<tmu::LookupKind> lookups = {};  ///< in the order of the program
  std::vector<KnownUniform> known = {};       ///< those of BlockLookups::known
  bool operator==(const BlockKey&) const = default;
};

/// A texture lookup of a program: what its configuration is made of.
struct BlockLookup {
  static constexpr uint16_t kNone = 0xffff;
  tmu::Launcher launcher;
  uint8_t written = 0;   ///< tmu::Parameter
  uint8_t num_data = 0;  ///< words that it stores; 0: none
  /// Numbers of the uniforms P0, P1 and P2; kNone: it has the value that it has if it is not written.
  std::array<uint16_t, 3> uniforms = {kNone, kNone, kNone};
};

/// What a program that may have functions takes of the draw, beside uniforms that are words like others: then
/// it is part of the key.
struct BlockLookups {
  std::vector<BlockLookup> lookups;  ///< kMostLookups at most
  std::vector<uint16_t> known;       ///< numbers of uniforms, kMostKnown at most
  std::vector<uint64_t> words;       ///< as BlockCode::words()
  bool has_scratch = false;          ///< memory that the program stores to, and functions do not
  static constexpr size_t kMostLookups = 32, kMostKnown = 128;
};

/// Behind uniforms and constants of blending stand words that a program reads by an address that is a
/// uniform: that of the Nth uniform and `offset`, in bytes.
struct IndirectWord {
  uint16_t uniform = 0;
  uint32_t first = 0;   ///< is added to the address before its lowest two bits are left out
  uint32_t offset = 0;  ///< is added then
  /// @param word  of the uniform
  GpuAddr address(uint32_t word) const { return ((word + first) & ~3u) + offset; }
  bool operator==(const IndirectWord&) const = default;
};
/// Room for uniforms of a program, and for such words, which stand behind all of it and kBlendConstants.
inline constexpr uint32_t kMostUniforms = 512, kFirstIndirect = kMostUniforms + kBlendConstants,
                          kMostIndirect = 128;

class BlockCode {
 public:
  virtual ~BlockCode() = default;
  virtual BlockFn function() const = 0;
  /// Words that the program reads of BlockRun::uniforms, kMostUniforms at most.
  virtual uint32_t uniforms() const = 0;
  /// Those that it reads from kFirstIndirect on, kMostIndirect at most.
  virtual const std::vector<IndirectWord>& indirect() const = 0;
  /// The number of the uniform, if there is one, that has to configure a write of the rasteriser's depth and,
  /// behind that, colours of four halves: is_depth_configuration() (gpu/qpu/run/ports.h).
  virtual std::optional<uint32_t> depth_configuration() const = 0;
  /// Of the program.
  virtual uint32_t instructions() const = 0;
  /// Batches whose quads waited for those of other primitives take less time than blocks of few pixels.
  virtual bool takes_long() const = 0;
  /// Words from the entry of the program that it was made of.
  virtual const std::vector<uint64_t>& words() const = 0;
  /// Of host memory.
  virtual size_t bytes() const = 0;
};

/// Thread safe.
class BlockCompiler {
 public:
  virtual ~BlockCompiler() = default;
  /// Batches of 16 fragments that a program has executed before it is worth it.
  virtual uint32_t batches_before() const = 0;
  /// Null: there are no functions for such a program, whatever its draws are.
  /// @param final_section  threads of the program start in their last one
  virtual std::unique_ptr<const BlockLookups> find_lookups(const Program& program, Memory memory,
                                                           bool final_section) = 0;
  /// Null: there is none for such a program.
  /// @param final_section  threads of the program start in their last one
  virtual std::unique_ptr<const BlockCode> compile_blocks(const Program& program, Memory memory,
                                                          bool final_section, const BlockKey& key) = 0;
};

}  // namespace v3d::qpu
