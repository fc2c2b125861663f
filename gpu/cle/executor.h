/// These functions execute control lists, as the binning thread and the rendering thread of the CLE do
/// (cle-and-tiles.md 2).
#pragma once

#include <cstdint>
#include <memory>

#include "gpu/base/job_context.h"
#include "gpu/cle/surface_job.h"
#include "gpu/cle/surfaces.h"
#include "gpu/draw/bin_result.h"

namespace v3d::cle {

/// Executes a binning list: state, draws (coordinate shading, transform feedback, clipping, binning).
/// Unknown packets, bad records and run-away lists end it with job.error.
std::shared_ptr<draw::BinResult> run_bin_list(const JobContext& job, GpuAddr start, GpuAddr end);

/// Executes a rendering list. @param bin  of the same submission, or null; @param qma  tile allocation
/// address
void run_render_list(const JobContext& job, GpuAddr start, GpuAddr end, GpuAddr qma,
                     const draw::BinResult* bin);

/// Renders a frame of VideoCore IV, which comes without a rendering list. @param bin  of the same submission,
/// or null; @param clear  of the context: those of the job before, which this one may change
void run_surfaces(const JobContext& job, const SurfaceJob& surfaces, const draw::BinResult* bin,
                  ClearValues* clear);

}  // namespace v3d::cle
