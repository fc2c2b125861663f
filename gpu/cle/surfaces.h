/// These functions turn the surfaces of a SurfaceJob into what the tile buffer does: the frame, and the
/// commands of each tile. They are those of the rendering list that the kernel makes (vc4-graphics.md 1.6),
/// which is not made here.
#pragma once

#include <string>
#include <vector>

#include "gpu/cle/render_list.h"
#include "gpu/cle/surface_job.h"

namespace v3d::cle {

/// What a store leaves in the tile buffer, and so what the next job finds there. One for each context, from
/// job to job; zero at reset (assumed).
struct ClearValues {
  uint32_t color = 0;
  uint32_t z = 0;  ///< 24 bits
  uint8_t stencil = 0;

  /// Takes those of a job that has some.
  void take(const SurfaceJob& job);
};

/// The frame with one colour of 32 bits, whose tiles begin with the clear values.
tlb::Config surface_config(const SurfaceJob& job, const ClearValues& clear);

/// Loads, draws and stores of every tile.
/// @return  false, with a message in *error naming surface and field, for what is not modelled
bool surface_program(const SurfaceJob& job, TileProgram* program, std::string* error);

struct SurfaceTile {
  uint8_t column, row;
};
/// The tiles that are rendered, in their order.
std::vector<SurfaceTile> surface_tiles(const SurfaceJob& job);

/// One line for each thing that the job does, for dumps.
std::vector<std::string> describe_surfaces(const SurfaceJob& job);

}  // namespace v3d::cle
