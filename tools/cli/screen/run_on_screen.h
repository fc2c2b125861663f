/// These functions run a program and show the display meanwhile.
#pragma once

#include "tools/cli/run/run_program.h"
#include "tools/cli/screen/watch.h"

namespace v3d::tools {

/// Runs options.command as run_program() would, in a process of its own. When it has ended, or says over the
/// descriptor of kEndVariable that it is about to (one byte, to which one answers), files are completed.
/// @param by_time  the PNG file shows what was on the screen about 0.3 s before the end, for programs whose
/// windows are drawn by others; otherwise the last picture that there was
/// @return the program's exit status, 128 and more for signals; 1 when it is 0 and a file could not be made
int run_on_screen(const RunOptions& options, const ScreenOptions& screen, bool by_time = false);

inline constexpr char kEndVariable[] = "V3DEMU_SCREEN_END";

}  // namespace v3d::tools
