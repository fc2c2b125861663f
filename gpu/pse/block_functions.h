/// BlockFunctions give blocks of 4x4 pixels of one primitive to a function of the host that does all there is
/// to do for them (gpu/qpu/run/block_code.h): partial ones under a mask, without waiting for company.
///
/// Such draws have an order of their own, that of their primitives, which is what anybody sees of quads that
/// wait. Who counts or watches sees batches as they are packed: then there are no functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "gpu/base/job_context.h"
#include "gpu/base/lanes.h"
#include "gpu/base/work_meter.h"
#include "gpu/pse/prepared_draw.h"
#include "gpu/pse/primitive_setup.h"
#include "gpu/qpu/run/block_code.h"
#include "gpu/qpu/run/known_textures.h"
#include "gpu/qpu/run/program_scope.h"
#include "gpu/qpu/run/thread.h"
#include "gpu/tlb/tile_buffer.h"

namespace v3d::pse {

class BlockFunctions {
 public:
  explicit BlockFunctions(const JobContext& job) : job_(job), meter_(&job) {}

  /// After TileBuffer::fragment_port().
  /// @param thread  of the draw's program, for who finds that there is no memory
  /// @return  whether the draw's blocks come here
  bool begin_draw(const PreparedDraw& draw, tlb::TileBuffer& tile, int tile_x, int tile_y,
                  qpu::Thread& thread);
  /// @return  instructions that programs executed
  uint64_t end_draw();

  /// Whether TileBuffer::test() comes before add(), which gets the pixels that passed.
  bool takes_tested() const { return takes_tested_; }
  /// @param x, y  relative to the tile
  /// @param setup  stays as it is until flush()
  void add(PrimitiveSetup& setup, int x, int y, LaneMask pixels) {
    if (count_ == 0 || setup_ != &setup) set_primitive(setup);
    const uint32_t quad = static_cast<uint32_t>(y >> 1) * quads_of_row_ + static_cast<uint32_t>(x >> 1);
    blocks_[count_++] = {x, y, quad * kQuadBytes, pixels};
    if (count_ == kMostBlocks) run();
  }
  /// Draws what was added.
  void flush() {
    if (count_ != 0) run();
  }

 private:
  static constexpr size_t kMostBlocks = 64;
  static constexpr uint32_t kQuadBytes = 16;

  /// @return  null, or what no function has
  const char* describe(const PreparedDraw& draw, tlb::TileBuffer& tile, qpu::BlockKey& key);
  /// What functions did for draws of a program.
  struct Filling {
    const qpu::Program* program = nullptr;
    uint64_t passed = 0, shaded = 0;  ///< as in BlockRun
  };
  /// The program's, or one that is taken from another.
  Filling& filling_of(const qpu::Program& program);
  bool is_sparse(const qpu::Program& program);
  void set_primitive(PrimitiveSetup& setup);
  void run();
  void run_looking_up();
  void describe_lookups(const qpu::BlockLookups& found);
  void read_known(const qpu::BlockLookups& found);
  static void prepare(qpu::BlockRun* run);
  qpu::ProgramScope in_program() const;
  uint32_t uniform(uint32_t number) const;
  bool has_known_configuration() const;
  void read_uniforms();

  const JobContext& job_;
  const char* said_ = nullptr;  // last, of draws that have no function
  WorkMeter meter_;
  const PreparedDraw* draw_ = nullptr;
  tlb::TileBuffer* tile_ = nullptr;
  qpu::Thread* thread_ = nullptr;
  const qpu::BlockCode* code_ = nullptr;
  uint32_t quads_of_row_ = 0;  // of the tile
  bool has_tile_ = false, has_uniforms_ = false, takes_tested_ = false;
  PrimitiveSetup* setup_ = nullptr;  // of the blocks
  size_t count_ = 0;
  qpu::BlockRun run_;
  std::array<qpu::Block, kMostBlocks> blocks_;
  std::array<float, qpu::kBlendConstants> constants_{};
  std::array<uint32_t, qpu::kFirstIndirect + qpu::kMostIndirect> uniforms_;
  std::array<Filling, 16> fillings_;  // by program, in this job
  qpu::BlockKey key_;
  qpu::KnownTextures textures_;  // of the draw
};

}  // namespace v3d::pse
