/// A supervisor starts a program under a filter (filter.h) and answers its calls, and those of all that it
/// starts.
#pragma once

#include <string>
#include <vector>

namespace v3d::box {

/// Runs the program in the foreground and returns its exit status, or dies of the signal that it died of.
/// Programs that it leaves behind are supervised further by a process of their own.
/// @param mounted  the device tree is (mounts.h)
int supervise(const std::vector<std::string>& words, bool mounted);

}  // namespace v3d::box
