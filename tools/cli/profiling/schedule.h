/// The schedule has the frames of a profile, and says when its jobs would run.
#pragma once

#include "tools/cli/profiling/profile.h"

namespace v3d::tools::profiling {

/// What counts as a frame. A capture says nothing of presentation.
enum class FramesBy {
  /// Of each client: a frame ends before the render job whose targets look (size, format, layout) like those
  /// of the first render job of that frame. So passes into other images belong to one frame, and the images
  /// of a swapchain take turns; passes of one frame into images that look the same are told as frames of
  /// their own. Render jobs that store no colours begin none.
  kTargets,
  kSubmission,  ///< each render job, with its bin job
};

/// Sets Job::frame and makes Profile::frames, without times. Jobs of no submission belong to the frame that
/// is under way.
void group_frames(FramesBy by, Profile* profile);

/// Sets the times of jobs and frames. Each queue runs one job at a time, in the order of the capture; a
/// render job begins after its bin job; and of each client two frames are under way at most, as in a program
/// that presents them. What else jobs wait for a capture does not tell. Submits take no time.
void schedule(Profile* profile);

}  // namespace v3d::tools::profiling
