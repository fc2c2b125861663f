/// Commands that are programs in Python of an installation: in libexec/v3demu, in a clone links to tools/.
#pragma once

#include <string>
#include <vector>

namespace v3d::tools {

/// Runs one of them, and tells it where this program is (--v3demu). @return  its exit status; 1, with a
/// message of the command, when it cannot be started or dies
int run_script(const std::string& command, const std::string& name, const std::vector<std::string>& words);

}  // namespace v3d::tools
