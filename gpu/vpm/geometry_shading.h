/// The geometry stage has one lane for each invocation of each input primitive (cle-and-tiles.md 3.4).
#pragma once

#include <vector>

#include "gpu/base/job_context.h"
#include "gpu/draw/bin_result.h"
#include "gpu/vpm/stage_runner.h"
#include "gpu/vpm/vertex_shading.h"

namespace v3d::vpm {

/// @param inputs  rows of the program in front
ShadedVertices run_geometry(const JobContext& job, const StageProgram& stage, const draw::Draw& draw,
                            Phase phase, const ShadedVertices& inputs, std::vector<Worker>* workers);

}  // namespace v3d::vpm
