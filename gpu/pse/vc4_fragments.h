/// A Vc4Fragments runs the fragment programs of VideoCore IV over batches (vc4-graphics.md 3.2 to 3.6).
#pragma once

#include <cstdint>
#include <memory>

#include "gpu/base/job_context.h"
#include "gpu/base/lanes.h"
#include "gpu/draw/state.h"
#include "gpu/pse/fragment_watch.h"
#include "gpu/pse/prepared_draw.h"
#include "gpu/qpu/run/thread.h"
#include "gpu/qpu/run/vc4_program.h"
#include "gpu/qpu/run/vc4_textures.h"
#include "gpu/qpu/run/vc4_thread.h"
#include "gpu/tlb/tile_buffer.h"
#include "gpu/tmu/lookup/unit.h"

namespace v3d::pse {

class Vc4Fragments {
 public:
  Vc4Fragments(const JobContext& job, tmu::Unit& tmu);

  /// Runs the program of a draw on a batch. A hang is reported to job.error.
  /// @param w         Wc of the pixels
  /// @param z         their depths, 0 to 1, the offset of the draw included
  /// @param varyings  num_components() of the draw
  /// @param watch     is told of accesses and of the end; may be null
  void run(const PreparedDraw& draw, tlb::TileBuffer& tile, tlb::FragmentBatch& batch, const LanesF& w,
           const LanesF& z, const qpu::Varying* varyings, FragmentWatch* watch = nullptr);

  uint64_t instructions = 0;  ///< of all batches

 private:
  const JobContext& job_;
  qpu::vc4::Textures textures_;
  qpu::vc4::Shared shared_;
  std::unique_ptr<qpu::vc4::Thread> thread_;
};

}  // namespace v3d::pse
