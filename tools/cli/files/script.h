/// Commands that are programs in Python of an installation: in libexec/v3demu, in a clone links to tools/.
#pragma once

#include <string>
#include <vector>

namespace v3d::tools {

/// Becomes one of them, so that a signal to this process ends what it does, and tells it where this program
/// is (--v3demu).
/// @return  only when it cannot be started: 1, with a message of the command
int run_script(const std::string& command, const std::string& name, const std::vector<std::string>& words);

}  // namespace v3d::tools
